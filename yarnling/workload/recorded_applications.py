"""Makes a workload of a recorded cluster: containers from how many an application held at each poll, and from lists.

A poll says how many containers an application holds, and how much memory. When the number rises, containers began, and
when it falls, some of them ended, between two polls (`recorded_containers.py` decides which, and `interval_times.py`
when). Containers that follow one another between two polls look like one. The lists that a recorder takes of some
applications help: they have sizes, and the number of a container says how many were allocated before it. So the mean
run time is the time of all containers until the list, divided by how many had ended by then, and longer ones that no
list shows are cut into containers of that length. If none had ended, or without a list, tasks of MapReduce and Tez are
taken to run for `Defaults.task_ms`. At the end the ResourceManager reports the memory-seconds of an application, to
which all run times are scaled.

An application that no poll saw with a container beside its AM, because it was short, is made of its totals alone
(`rest_applications.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from yarn.resource import Resource
from yarn.settings.scheduler import MINIMUM_ALLOCATION_MB
from yarnling.workload.defaults import Defaults
from yarnling.workload.documents import refusal, whole_number
from yarnling.workload.evidence import Basis, EvidenceAccount
from yarnling.workload.limits import MEMORY_MB_MAX
from yarnling.workload.line_files import Line
from yarnling.workload.model import AM_RESOURCE, Workload, WorkloadApplication
from yarnling.workload.observed import REQUESTED_AT_ONCE, ObservedApplication, ObservedContainer
from yarnling.workload.recorded_cluster import Level, RecordedCluster, TrackedApplication, read_cluster
from yarnling.workload.recorded_containers import (
    HeldContainer,
    PollReading,
    RequestTimes,
    held_containers,
    listed_containers,
)
from yarnling.workload.rest_applications import BATCH_KINDS, read_applications
from yarnling.workload.rest_cluster import label_of
from yarnling.workload.submissions import in_order
from yarnling.workload.tally import WorkloadCount

LISTED_ABOUT = "containers: sizes from lists, run times from how many there were at each poll"
COUNTED_ABOUT = "containers: sizes and run times from how many there were at each poll, and their memory"
TASKS_ABOUT = "the number and run times of tasks that no list shows (how many ran at each poll is recorded)"
LISTED_AM_ABOUT = "AMs: times and sizes"
ALONE_AM_ABOUT = "AMs: sizes from polls that saw them alone (times are recorded)"
USUAL_AM_ABOUT = "sizes of AMs that no poll saw alone"
REQUESTED_AS_POLLS_SAW = (
    "The containers of an application are requested at once, anywhere, and again when all earlier ones have ended, "
    "except those before which a poll saw nothing wanted: these are requested after that poll."
)
CORRECTION_MAX = 5.0
"""With a larger difference between the memory-seconds of polls and those of the ResourceManager, polls missed most."""
CUT_AT = 1.5
"""A container is cut into several if it lasted so many times the mean run time."""


def read_recording(lines: Iterable[Line], source: str, defaults: Defaults) -> Workload:
    """The workload in a recording. Raises ConfigurationException if it has no application to import."""
    return recorded_workload(read_cluster(lines, source), defaults)


def first_submission_ms(cluster: RecordedCluster) -> int:
    """The time, in ms since 1970, at which the workload of a recording begins; the first poll if it has none."""
    used = filter(is_used, cluster.applications.values())
    return min(map(cluster.submitted_ms, used), default=cluster.begins_ms)


def is_used(application: TrackedApplication) -> bool:
    """True if the application has used anything, so that it is part of the workload."""
    return _is_seen(application) or bool(application.number("memorySeconds"))


def _is_seen(application: TrackedApplication) -> bool:
    """True if a poll saw it with a container beside its AM."""
    return any(level.containers > 1 for level in application.levels)


def recorded_workload(cluster: RecordedCluster, defaults: Defaults) -> Workload:
    """The workload of a recorded cluster, the first application submitted at 0. Raises ConfigurationException.

    The minimum allocation of the recorded configuration, if it has one, is used instead of that of `defaults`.
    """
    defaults = replace(defaults, step_mb=_minimum_mb(cluster) or defaults.step_mb)
    account, tally, seen = EvidenceAccount(), WorkloadCount(cluster.source), list[ObservedApplication]()
    totals: dict[str, TrackedApplication] = {}
    notes: Counter[str] = Counter()
    for name, application in sorted(cluster.applications.items()):
        if not _is_seen(application):
            notes["waiting"] += not application.number("memorySeconds")
            totals |= {name: application} if application.number("memorySeconds") else {}
            continue
        observed = _Reading(application, defaults).observed(name, cluster)
        notes["running"] += not application.has_ended
        notes["before"] += cluster.began_before(application)
        tally.add(len(observed.containers))
        seen.append(observed)
    if not seen and not totals:
        raise refusal(cluster.source, "has no application to import", "record while applications run")
    base_ms = first_submission_ms(cluster)
    applications = [each.record(base_ms, account) for each in seen]
    from_totals = _from_totals(totals, cluster.source, defaults, account, base_ms)
    notes["short"] = len(from_totals)
    found = in_order([*applications, *from_totals])
    return Workload(found, tuple(_assumptions(cluster, notes, defaults)), account.evidence())


def _minimum_mb(cluster: RecordedCluster) -> int:
    """The minimum allocation of the recorded configuration; 0 if it does not say it."""
    minimum_mb = whole_number(cluster.settings.get(MINIMUM_ALLOCATION_MB.key, ""))
    return minimum_mb if minimum_mb <= MEMORY_MB_MAX else 0


class _Reading:
    """Concludes the containers of one application from its polls and lists."""

    def __init__(self, application: TrackedApplication, defaults: Defaults) -> None:
        self._application = application
        self._defaults = defaults
        self._is_batch = application.text("applicationType").upper() in BATCH_KINDS
        self._listed = {(each.attempt, each.number): each for listed in application.lists.values() for each in listed}
        self._poll_ms = _poll_ms(application.levels)
        self._first_attempt = min((attempt for attempt, _ in self._listed), default=1)

    def observed(self, name: str, cluster: RecordedCluster) -> ObservedApplication:
        """The application with its containers; its submission and its AM's times are those that the RM reports."""
        application = self._application
        started_ms = cluster.submitted_ms(application)
        placed_ms = max(application.number("launchTime") or application.levels[0].at_ms, started_ms)
        ended_ms = application.number("finishedTime") if application.has_ended else 0
        am = self._am(placed_ms, ended_ms or max(application.last_ms, placed_ms))
        held = self._held(am, is_whole=not cluster.began_before(application))
        cut = self._cut(held)
        containers = cut if cluster.began_before(application) else self._corrected(cut, am)
        return ObservedApplication(
            name=name,
            submit_ms=started_ms,
            user=application.text("user") or self._defaults.user,
            queue=application.text("queue") or self._defaults.queue,
            kind=application.text("applicationType") or "YARN",
            priority=application.number("priority"),
            label=label_of(application.text("appNodeLabelExpression")),
            am=None if application.fields.get("unmanagedApplication") is True else am,
            ready_ms=application.registered,
            containers=containers,
        )

    def _am(self, placed_ms: int, end_ms: int) -> ObservedContainer:
        """The container of the AM."""
        listed = self._listed.get((self._first_attempt, 1))
        alone = next((level for level in self._application.levels if level.containers == 1 and level.memory_mb), None)
        basis, about = Basis.DETERMINED, ALONE_AM_ABOUT
        if listed is not None:
            basis, about, resource = Basis.RECORDED, LISTED_AM_ABOUT, listed.resource
        elif alone is not None:
            resource = Resource(alone.memory_mb, max(alone.vcores, 1))
        else:
            basis, about, step_mb = Basis.ASSUMED, USUAL_AM_ABOUT, self._defaults.step_mb
            resource = Resource(-(-AM_RESOURCE.memory_mb // step_mb) * step_mb, 1)
        return ObservedContainer(placed_ms, placed_ms, max(end_ms, placed_ms), resource, "", basis, about)

    def _held(self, am: ObservedContainer, *, is_whole: bool) -> list[HeldContainer]:
        """Containers as polls and lists saw them begin and end."""
        application = self._application
        reading = PollReading(
            am.resource,
            {each.resource for (_, number), each in self._listed.items() if number > 1},
            self._defaults.step_mb,
            application.number("launchTime"),
            application.number("finishedTime") if application.has_ended else 0,
            self._is_batch,
            application.number("startedTime"),
            is_whole,
        )
        listed = listed_containers(application.lists, am.placed_ms)
        return held_containers(application.levels, listed, tuple(application.lists), application.last_ms, reading)

    def _cut(self, held: Sequence[HeldContainer]) -> list[ObservedContainer]:
        """The containers, long ones that no list shows cut into several that follow one another."""
        mean_ms = self._mean_ms(held)
        basis, about = Basis.DETERMINED, LISTED_ABOUT if self._listed else COUNTED_ABOUT
        if mean_ms is None and self._is_batch:
            mean_ms, basis, about = float(self._defaults.task_ms), Basis.ASSUMED, TASKS_ABOUT
        requests = RequestTimes(self._application.levels)
        found: list[ObservedContainer] = []
        for each in held:
            one = ObservedContainer(
                each.start_ms,
                each.start_ms,
                each.end_ms,
                each.resource,
                priority=each.priority,
                slack_ms=self._poll_ms,
                after_ms=requests.after_ms(each.start_ms),
                asked_ms=requests.asked_ms(each.start_ms),
            )
            if each.is_listed:
                found.append(replace(one, basis=Basis.DETERMINED, about=LISTED_ABOUT))
            else:
                found += [replace(part, basis=basis, about=about) for part in _parts(one, mean_ms)]
        return found

    def _mean_ms(self, held: Sequence[HeldContainer]) -> float | None:
        """The mean run time of containers: the time of all until the last list, divided by how many had ended; None
        without such a list.
        """
        rows = [(at_ms, listed) for at_ms, listed in self._application.lists.items() if listed]
        if not rows:
            return None
        at_ms, listed = max(rows, key=lambda row: row[0])
        if len({each.attempt for each in listed}) > 1 or listed[0].attempt > 1:
            return None
        ended = max(each.number for each in listed) - len({each.number for each in listed} | {1})
        busy_ms = sum(min(each.end_ms, at_ms) - min(each.start_ms, at_ms) for each in held)
        return busy_ms / ended if ended > 0 and busy_ms > 0 else None

    def _corrected(self, containers: list[ObservedContainer], am: ObservedContainer) -> list[ObservedContainer]:
        """The containers with run times that have the memory-seconds which the ResourceManager reports at the end."""
        reported = self._application.number("memorySeconds") * 1000 - am.resource.memory_mb * (am.end_ms - am.start_ms)
        counted = sum(each.mb_ms for each in containers)
        if not self._application.has_ended or reported <= 0 or not counted:
            return containers
        factor = reported / counted
        if not 1 / CORRECTION_MAX <= factor <= CORRECTION_MAX:
            return containers
        return [
            replace(each, end_ms=each.start_ms + max(round((each.end_ms - each.start_ms) * factor), 1))
            for each in containers
        ]


def _poll_ms(levels: Sequence[Level]) -> int:
    """The usual distance of two polls."""
    distances = sorted(level.at_ms - level.before_ms for level in levels if level.before_ms)
    return distances[len(distances) // 2] if distances else 0


def _parts(container: ObservedContainer, mean_ms: float | None) -> Iterator[ObservedContainer]:
    """A container, or equal ones that follow one another if it lasted much longer than the mean."""
    lasted_ms = container.end_ms - container.start_ms
    count = round(lasted_ms / mean_ms) if mean_ms and lasted_ms >= CUT_AT * mean_ms else 1
    for number in range(count):
        start_ms = container.start_ms + lasted_ms * number // count
        end_ms = container.start_ms + lasted_ms * (number + 1) // count
        yield replace(container, placed_ms=start_ms, start_ms=start_ms, end_ms=end_ms)


def _from_totals(
    totals: dict[str, TrackedApplication], source: str, defaults: Defaults, account: EvidenceAccount, base_ms: int
) -> list[WorkloadApplication]:
    """Applications that were too short for the polls, made of the totals that the ResourceManager reports."""
    if not totals:
        return []
    entries = [{"id": name, **application.fields} for name, application in totals.items()]
    for entry in entries:
        entry.setdefault("elapsedTime", max(entry.get("finishedTime", 0) - entry.get("startedTime", 0), 0))
    text = msgspec.json.encode({"apps": {"app": entries}}).decode()
    read = read_applications(text, source, defaults, account)
    first_ms = min(application.number("startedTime") for application in totals.values())
    return [replace(each, submit_ms=max(each.submit_ms + first_ms - base_ms, 0)) for each in read.applications]


def _assumptions(cluster: RecordedCluster, notes: Counter[str], defaults: Defaults) -> Iterator[str]:
    levels = (level for each in cluster.applications.values() for level in each.levels)
    is_demand_seen = any(level.pending_mb is not None for level in levels)
    yield REQUESTED_AS_POLLS_SAW if is_demand_seen else REQUESTED_AT_ONCE
    for what, text in _SENTENCES.items():
        if notes[what]:
            yield text.format(count=notes[what], task_s=defaults.task_ms / 1000)
    if cluster.failures or cluster.unreadable:
        yield f"{cluster.failures} requests failed during the recording, and {cluster.unreadable} lines are unreadable."
    if cluster.restarts:
        yield f"The ResourceManager was restarted or failed over {cluster.restarts} times."
    if cluster.missing:
        yield f"The recorded release does not report {', '.join(sorted(cluster.missing)[:10])}."


_SENTENCES = {
    "short": "{count} applications ended before a poll saw a container of theirs: they are made of their totals.",
    "waiting": "{count} applications used nothing while they were recorded and are left out.",
    "before": "{count} applications had been submitted before the recording began: they are submitted when it begins, "
    "with what they did from then on.",
    "running": "{count} applications still ran when the recording ends: what they had done by then is all their work.",
}
