"""Turns what a ResourceManager reports of its applications into a workload: the answer to GET /ws/v1/cluster/apps.

The answer has totals, not containers: memory-seconds, vcore-seconds and times. Applications are made that use the same
totals. An application's AM runs from its launch to its end; what remains of both totals is shared among equal
containers. Their vcores are assumed, and their sizes are the multiples of the scheduler's step that explain the totals
best. How many there are, and how long each runs, cannot be known (`container_sharing.py` decides):

- MapReduce runs maps, then reduces, and Tez tasks: each lasts for `Defaults.task_ms`; those of a group are requested at
  once.
- Others, for example Spark, keep their executors: as few as can use the total in the application's time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
from pydantic import Field

from yarn.resource import MEMORY_MB, VCORES, Resource
from yarnling.workload.container_sharing import STARTED_PER_S_MAX, Limits, Shape, Usage, shape_of
from yarnling.workload.defaults import Defaults
from yarnling.workload.documents import Faults, LenientSection, refusal
from yarnling.workload.evidence import Basis, EvidenceAccount
from yarnling.workload.limits import AMOUNT_MAX, CONTAINERS_MAX, MEMORY_MB_MAX, TIME_MS_MAX, Name, Text
from yarnling.workload.model import TaskGroup, Workload, WorkloadApplication
from yarnling.workload.rest_answers import not_finite_keys, with_quoted_constants
from yarnling.workload.rest_cluster import label_of
from yarnling.workload.start_times import REAL_AM_START
from yarnling.workload.submissions import in_order
from yarnling.workload.tally import WorkloadCount
from yarnling.workload.task_groups import MAP_PRIORITY, REDUCE_PRIORITY

MAPREDUCE = "MAPREDUCE"
BATCH_KINDS = frozenset({MAPREDUCE, "TEZ"})
"""Types of applications that run many short tasks rather than a few executors."""
REDUCES_SHARE = 0.2
"""The part of the tasks of a MapReduce job that are taken to be reduces."""
DIFFERENCE_MAX = 0.02
"""A larger difference between what was recorded and what will be simulated is a warning."""
AMS_ABOUT = "AMs, as long as their applications ran, in a size that explains the totals"
CONTAINERS_ABOUT = "the number, sizes and run times of containers (their memory-hours are recorded)"
NOT_STARTED = frozenset({"NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED"})
ENDED = frozenset({"FINISHED", "FAILED", "KILLED"})
HOUR_MS = 3_600_000
NAMED_MAX = 10
"""The most applications that one sentence names."""
RUNS_MS_MIN = 1000
"""The shortest time of an application. A ResourceManager counts whole memory-seconds and vcore-seconds."""
QUERY_REMEDY = "query applications that have ended: GET /ws/v1/cluster/apps?states=FINISHED,FAILED,KILLED"

_APPLICATION_ID = re.compile(r"application_\d{1,20}_\d{1,20}")
_Total = Annotated[int, Field(ge=0, le=1 << 60)]
_Time = Annotated[int, Field(le=1 << 50)]


class _Application(LenientSection):
    """An application of the answer. -1 stands for what a ResourceManager does not know, or no longer."""

    id: Text
    user: Name
    queue: Name
    name: Text = ""
    state: Text = "FINISHED"
    kind: Annotated[Text, Field(alias="applicationType")] = "YARN"
    priority: int = 0
    started: Annotated[_Time, Field(alias="startedTime", ge=0)]
    launched: Annotated[_Time, Field(alias="launchTime")] = -1
    finished: Annotated[_Time, Field(alias="finishedTime")] = 0
    elapsed: Annotated[_Time, Field(alias="elapsedTime", ge=0)]
    memory_seconds: Annotated[_Total, Field(alias="memorySeconds")]
    vcore_seconds: Annotated[_Total, Field(alias="vcoreSeconds")]
    allocated_mb: Annotated[int, Field(alias="allocatedMB", le=MEMORY_MB_MAX)] = -1
    allocated_vcores: Annotated[int, Field(alias="allocatedVCores", le=AMOUNT_MAX)] = -1
    running: Annotated[int, Field(alias="runningContainers", le=CONTAINERS_MAX)] = -1
    unmanaged: Annotated[bool, Field(alias="unmanagedApplication")] = False
    resource_seconds: Annotated[Any, Field(alias="resourceSecondsMap")] = None
    label: Annotated[Text | None, Field(alias="appNodeLabelExpression")] = ""

    @property
    def runs_ms(self) -> int:
        """The run time: from the AM's launch (or the submission, if that is unknown) to the end, or to now."""
        waited = self.launched - self.started if self.launched > 0 else 0
        return min(max(self.elapsed - max(waited, 0), RUNS_MS_MIN), TIME_MS_MAX)

    def usage(self) -> Usage:
        """The totals of the application, and what it held if it still ran."""
        held = Resource(self.allocated_mb, self.allocated_vcores) if self.running > 1 else None
        totals = Resource.of(
            {**_extra_seconds(self.resource_seconds), MEMORY_MB: self.memory_seconds, VCORES: self.vcore_seconds}
        )
        return Usage(totals, self.runs_ms, held, self.running, has_am=not self.unmanaged)


_USED = frozenset(field.alias or name for name, field in _Application.model_fields.items())


def read_applications(text: str, source: str, defaults: Defaults, account: EvidenceAccount | None = None) -> Workload:
    """The workload that an answer describes. Its memory is added to the account, if there is one.

    Raises ConfigurationException with all faults.
    """
    reader, faults = _Reader(source, defaults, account or EvidenceAccount()), Faults(source, first=0)
    entries = _entries(with_quoted_constants(text), source)
    if not entries:
        raise refusal(source, "has no applications: there is nothing to import", QUERY_REMEDY)
    for position, raw in enumerate(entries, faults.first):
        document = msgspec.json.decode(raw)
        known_id = document.get("id") if isinstance(document, dict) else None
        entry = faults.checked(_Application, document, _path(known_id, f"apps.app[{position}]"))
        if entry is not None:
            reader.add(entry)
            reader.note_not_finite(entry.id, not_finite_keys(document))
    faults.refuse()
    return reader.workload()


def _entries(text: str, source: str) -> Sequence[msgspec.Raw]:
    """The applications of one answer, still as JSON."""
    try:
        answer = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        if "app" in answer and "apps" not in answer:
            return [answer["app"]]
        apps = msgspec.json.decode(answer.get("apps", msgspec.Raw(b"null")), type=dict[str, msgspec.Raw] | None)
        listed = (apps or {}).get("app", msgspec.Raw(b"[]"))
        if bytes(listed).lstrip().startswith(b"{"):
            return [listed]
        return msgspec.json.decode(listed, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        problem = f"is not an answer to GET /ws/v1/cluster/apps: {error}"
        raise refusal(source, problem, "save the JSON of the answer, with Accept: application/json") from None


def _path(known_id: object, path: str) -> str:
    """A path in the answer, after the id of its application if that is known."""
    return f"{known_id}: {path}" if isinstance(known_id, str) and _APPLICATION_ID.fullmatch(known_id) else path


def _extra_seconds(written: object) -> dict[str, int]:
    """{resource type: amount-seconds} of types other than memory and vcores. Jersey writes one entry as an object."""
    entries = written.get("entry", []) if isinstance(written, dict) else []
    found: dict[str, int] = {}
    for entry in entries if isinstance(entries, list) else [entries]:
        key, value = (entry.get("key"), str(entry.get("value"))) if isinstance(entry, dict) else (None, "")
        if isinstance(key, str) and key not in (MEMORY_MB, VCORES) and value.isdecimal() and len(value) < 19:
            found[key] = int(value)
    return found


def simulated_mb_ms(shape: Shape, runs_ms: int, step_mb: int) -> int:
    """Memory times time of a shape, if each size is rounded up to the step and the AM stays until the end."""
    am_ms = shape.am_ms or runs_ms
    return _rounded_up(shape.am.memory_mb, step_mb) * am_ms + _rounded_up(shape.container.memory_mb, step_mb) * sum(
        shape.durations_ms
    )


def _rounded_up(memory_mb: int, step_mb: int) -> int:
    return -(-memory_mb // step_mb) * step_mb


def _groups(shape: Shape, kind: str, label: str) -> Iterator[TaskGroup]:
    """The containers of an application: maps and then reduces, tasks, or executors."""
    container, durations = shape.container, shape.durations_ms
    if not durations:
        return
    if kind not in BATCH_KINDS:
        yield TaskGroup(container, durations, 1, label=label, name="executor")
        return
    reduces = max(1, round(len(durations) * REDUCES_SHARE)) if kind == MAPREDUCE and len(durations) > 1 else 0
    maps = durations[: len(durations) - reduces]
    name = "map" if kind == MAPREDUCE else "task"
    yield TaskGroup(container, maps, MAP_PRIORITY, label=label, name=name)
    if reduces:
        yield TaskGroup(container, durations[-reduces:], REDUCE_PRIORITY, 0, label=label, name="reduce")


class _Reader:
    """Turns the entries of an answer into applications, and counts what it had to assume."""

    def __init__(self, source: str, defaults: Defaults, account: EvidenceAccount) -> None:
        self._defaults = defaults
        self._source = source
        self._account = account
        self._tally = WorkloadCount(source)
        self._entries: list[_Application] = []
        self._seen: Counter[str] = Counter()
        self._not_finite: dict[str, list[str]] = {}
        self._recorded_mb_ms = self._simulated_mb_ms = 0

    def add(self, entry: _Application) -> None:
        """Note an application. One that has used nothing is left out, and one that contradicts itself."""
        if not entry.memory_seconds and not entry.vcore_seconds:
            self._seen["not started" if entry.state in NOT_STARTED else "unused"] += 1
            return
        if entry.usage().is_contradictory:
            self._seen["contradictory"] += 1
            return
        self._seen["running"] += entry.state not in ENDED
        self._seen["unlaunched"] += entry.launched <= 0
        self._entries.append(entry)

    def note_not_finite(self, application: str, keys: Sequence[str]) -> None:
        """Note fields that were not read because their numbers are not finite."""
        for key in keys:
            if key not in _USED:
                self._not_finite.setdefault(key, []).append(application)

    def workload(self) -> Workload:
        """The applications, in the order of their submission, the first at 0. Raises ConfigurationException."""
        if not self._entries:
            left_out = " ".join(self._sentences())
            raise refusal(self._source, f"has no application to import: {left_out}", QUERY_REMEDY)
        first = min(entry.started for entry in self._entries)
        faults = Faults(self._source)
        for entry in self._entries:
            if entry.started - first > TIME_MS_MAX:
                problem = f"is more than a year after the first one, {first}"
                faults.add(_path(entry.id, "startedTime"), problem, "split the answer", value=entry.started)
        faults.refuse()
        applications = in_order([self._application(entry, entry.started - first) for entry in self._entries])
        return Workload(applications, tuple(self._assumptions()), self._account.evidence())

    def _application(self, entry: _Application, submit_ms: int) -> WorkloadApplication:
        kind = entry.kind.upper()
        is_batch, defaults = kind in BATCH_KINDS, self._defaults
        phases = 2 if kind == MAPREDUCE else 1
        limits = Limits(defaults.task_ms if is_batch else None, phases, defaults.step_mb, defaults.container)
        usage = entry.usage()
        shape = shape_of(usage, limits)
        self._tally.add(len(shape.durations_ms))
        self._seen["AM only" if not shape.durations_ms else "batch" if is_batch else "executors"] += 1
        self._seen["mapreduce"] += bool(shape.durations_ms) and kind == MAPREDUCE
        self._seen["below step"] += shape.is_below_step
        self._recorded_mb_ms += 1000 * entry.memory_seconds
        self._simulated_mb_ms += simulated_mb_ms(shape, entry.runs_ms, defaults.step_mb)
        am_mb_ms = shape.am.memory_mb * (shape.am_ms or entry.runs_ms)
        self._account.add(Basis.DETERMINED, AMS_ABOUT, am_mb_ms if usage.has_am else 0)
        self._account.add(Basis.ASSUMED, CONTAINERS_ABOUT, shape.container.memory_mb * sum(shape.durations_ms))
        label, groups = label_of(entry.label), tuple(_groups(shape, kind, label_of(entry.label)))
        return WorkloadApplication(
            entry.id,
            submit_ms,
            entry.user,
            entry.queue,
            groups,
            shape.am,
            entry.kind,
            max(entry.priority, 0),
            label,
            am_lasts_ms=min(shape.am_ms, TIME_MS_MAX),
            am_start_ms=REAL_AM_START,
        )

    def _assumptions(self) -> Iterator[str]:
        container = self._defaults.container
        yield (
            f"The memory of AMs and of other containers is a multiple of {self._defaults.step_mb} MB (the recorded "
            "cluster's yarn.scheduler.minimum-allocation-mb), those that explain both totals best; "
            f"a container has {container.vcores} vcores, unless the application still ran."
        )
        yield from self._sentences()
        yield (
            "The AM of an application runs at least as long as it did; its containers are requested anywhere, those of "
            "a group at once; its totals include preempted work."
        )
        for key, applications in self._not_finite.items():
            more = f" and {len(applications) - NAMED_MAX} more" if len(applications) > NAMED_MAX else ""
            yield f"{key} is not finite in {', '.join(applications[:NAMED_MAX])}{more}: it is not used."
        yield self._conserved()

    def _conserved(self) -> str:
        """The recorded and the simulated memory-hours; a warning if they differ."""
        recorded, simulated = (value / 1024 / HOUR_MS for value in (self._recorded_mb_ms, self._simulated_mb_ms))
        change = simulated / recorded - 1 if recorded else 0.0
        text = f"Recorded: {recorded:,.1f} GB-hours; as imported: {simulated:,.1f} ({change:+.1%}), AMs among them."
        if abs(change) <= DIFFERENCE_MAX:
            return text
        remedy = "set --minimum-allocation to the recorded cluster's yarn.scheduler.minimum-allocation-mb"
        return f"Warning: {text} Shares and waits will differ from those of the recorded cluster ({remedy})."

    def _sentences(self) -> Iterator[str]:
        """The notices, with the number of applications that each concerns."""
        for what, text in _SENTENCES.items():
            if self._seen[what]:
                yield text.format(
                    count=self._seen[what], task_s=self._defaults.task_ms / 1000, started=STARTED_PER_S_MAX
                )


_SENTENCES = {
    "batch": "{count} applications are MapReduce or Tez: each of their containers runs for about {task_s:g} s.",
    "mapreduce": (
        "{count} of them are MapReduce: a fifth of their containers are reduces, requested when the maps have ended."
    ),
    "executors": (
        "{count} applications are of other types: they have as few containers as can use the total in their time, each "
        "from the start to the end."
    ),
    "AM only": "{count} applications used no more than one container: they are an AM that runs as long as they did.",
    "below step": (
        "{count} applications used less memory for a vcore than the smallest container has: their sizes are not "
        "multiples of it, and the scheduler will round them up."
    ),
    "running": "{count} applications still ran: what they had used by then is taken as all their work.",
    "unlaunched": "{count} applications have no launchTime: their time includes the wait for their AM.",
    "not started": "{count} applications were still waiting for their AM and are left out: their work is not known.",
    "unused": "{count} applications ended without using anything and are left out.",
    "contradictory": (
        "{count} applications are left out because their times contradict their totals: on average they held "
        "more memory or vcores than {started} for each second that they ran."
    ),
}
