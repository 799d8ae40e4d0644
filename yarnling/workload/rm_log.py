"""Reads the log of a ResourceManager: the containers of each application with their sizes, starts and ends.

Three kinds of lines matter. Their order does not matter, so neither does that of rotated files.

- The audit (RMAuditLogger): Submit Application Request, Register App Master, AM Allocated Container, AM Released
  Container. Each has the application, those of containers also RESOURCE and QUEUENAME.
- The summary of an application that has ended (RMAppManager$ApplicationSummary): its type, queue, label.
- Container Transitioned from ... to ... (RMContainerImpl): when the AM fetched the container, and whether it never
  ran. A log that has only the audit lacks these.

An operator has all of this without any preparation. The containers are those that ran, so a preempted one is there
beside the one that repeated its work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import NoReturn

import msgspec
from msgspec import Struct

from yarn.resource import Resource
from yarnling.workload.defaults import Defaults
from yarnling.workload.documents import refusal
from yarnling.workload.evidence import Basis
from yarnling.workload.limits import AMOUNT_MAX, MEMORY_MB_MAX
from yarnling.workload.line_files import Line
from yarnling.workload.model import Workload, WorkloadNode, WorkloadNodes
from yarnling.workload.observed import (
    RECORDED_ABOUT,
    REQUESTED_AT_ONCE,
    ObservedApplication,
    ObservedContainer,
    observed_workload,
)
from yarnling.workload.run_times import ALL_QUEUES, ApplicationTimes, RunTimes, Span, UseOverTime
from yarnling.workload.tally import WorkloadCount

MARKS = re.compile(r"RMAuditLogger|resourcemanager\.ResourceManager|ApplicationSummary|Container Transitioned from")
"""Found in the beginning of each log of a ResourceManager."""
FETCH_MS = 500
"""From the allocation of a container to the call that fetches it, half of an AM's interval, if the log does not say it.

MapReduce, Tez and AMRMClient call each second while they wait.
"""
OPEN_ABOUT = "containers that still ran when the log ends, or when their application did"
EARLIER_ABOUT = "containers that were allocated before the log begins, counted from its beginning"
UNSIZED_ABOUT = "sizes of containers that the log does not say"

UNFETCHED_ABOUT = f"containers whose fetching by the AM is not in the log: {FETCH_MS / 1000:g} s after the allocation"

_TIME = re.compile(r"\D{0,3}(\d{2,4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d)(?:[,.](\d{3}))?")
_LINE = re.compile(
    r"RMAuditLogger.*?(USER=.*)|ApplicationSummary.*?(appId=.*)|"
    r"Container Transitioned|Assigned container|registered with capability"
)
_TRANSITION = re.compile(r"(container_\S+) Container Transitioned from (\w+) to (\w+)")
_ASSIGNED = re.compile(r"Assigned container (container_\S+) of capacity (<[^>]*>)")
_REGISTERED = re.compile(r"NodeManager from node .*registered with capability: (<[^>]*>), assigned nodeId (\S+):\d+")
_AMOUNT = re.compile(r"([\w./-]+): ?(\d{1,12})")
_ID = re.compile(r"container_(?:e\d+_)?(\d+_\d+)_(\d+)_(\d+)")
_FIELD = re.compile(r"(?:^|,)(\w+)=((?:[^,\\]|\\.)*)")
_UNRUN = frozenset({"ALLOCATED", "ACQUIRED"})
_ENDED = frozenset({"RELEASED", "KILLED", "EXPIRED"})


class _Container(Struct, gc=False):
    """A container in the log. Times in ms of the log's clock; 0: not in the log."""

    application: str
    attempt: int
    number: int
    allocated_ms: int = 0
    fetched_ms: int = 0
    released_ms: int = 0
    resource: Resource | None = None
    label: str = ""
    is_surplus: bool = False
    is_killed: bool = False


class _Application(Struct):
    """An application in the log. `queue`: of its containers, `full_queue`: with its path, from its summary."""

    submitted_ms: int = 0
    ended_ms: int = 0
    user: str = ""
    queue: str = ""
    full_queue: str = ""
    kind: str = "YARN"
    label: str = ""
    registered_ms: dict[int, int] = msgspec.field(default_factory=dict)
    """{attempt: when its AM registered}"""


class RMLog:
    """The content of a log, filled line by line; a line that is not of a known kind is ignored.

    `add` raises ConfigurationException for too many containers, `workload` if the log has no application to import.
    """

    def __init__(self, source: str, defaults: Defaults) -> None:
        self._source = source
        self._defaults = defaults
        self._tally = WorkloadCount(source)
        self._applications: dict[str, _Application] = {}
        self._containers: dict[str, _Container] = {}
        self._begins_ms = self._ends_ms = self._undated = 0
        self._has_transitions = False
        self.nodes: dict[str, WorkloadNode] = {}

    def add(self, line: Line) -> None:
        """Take over a line."""
        found = _LINE.search(line.text)
        if found is None:
            return
        at_ms = _time_of(line.text)
        if at_ms is None:
            self._undated += 1
            return
        self._begins_ms, self._ends_ms = min(self._begins_ms or at_ms, at_ms), max(self._ends_ms, at_ms)
        if found[1]:
            self._audit(dict(field.split("=", 1) for field in found[1].split("\t") if "=" in field), at_ms)
        elif found[2]:
            self._summary(dict(_FIELD.findall(found[2])), at_ms)
        elif moved := _TRANSITION.search(line.text):
            self._transition(moved, at_ms)
        elif sized := _ASSIGNED.search(line.text):
            if container := self._container(sized[1]):
                container.resource = container.resource or _resource(sized[2])
        elif (known := _REGISTERED.search(line.text)) and (resource := _resource(known[1])):
            self.nodes[known[2]] = WorkloadNode(known[2], resource)

    def _audit(self, fields: dict[str, str], at_ms: int) -> None:
        operation, name = fields.get("OPERATION", ""), fields.get("APPID", "")
        if fields.get("RESULT") != "SUCCESS" or not name:
            return
        if operation in ("AM Allocated Container", "AM Released Container"):
            self._container_line(fields, at_ms, is_released=operation == "AM Released Container")
            return
        application = self._application(name)
        if operation == "Submit Application Request":
            application.submitted_ms = at_ms
            application.user = fields.get("USER", "")
            application.queue = application.queue or fields.get("QUEUENAME", "")
            application.label = fields.get("NODELABEL", "")
        elif operation == "Register App Master":
            attempt = int(fields.get("APPATTEMPTID", "_1").rpartition("_")[2])
            application.registered_ms[attempt] = at_ms
        elif operation.startswith("Application Finished"):
            application.ended_ms = at_ms

    def _container_line(self, fields: dict[str, str], at_ms: int, *, is_released: bool) -> None:
        container = self._container(fields.get("CONTAINERID", ""))
        if container is None:
            return
        application = self._application(fields["APPID"])
        application.user = application.user or fields.get("USER", "")
        application.queue = fields.get("QUEUENAME") or application.queue
        container.resource = container.resource or _resource(fields.get("RESOURCE", ""))
        container.label = fields.get("NODELABEL", container.label)
        if is_released:
            container.released_ms = at_ms
        else:
            container.allocated_ms = at_ms

    def _transition(self, moved: re.Match[str], at_ms: int) -> None:
        container = self._container(moved[1])
        if container is None:
            return
        _, before, after = moved.groups()
        self._has_transitions = True
        if after == "ACQUIRED":
            container.fetched_ms = at_ms
        elif after in _ENDED:
            container.is_surplus |= before in _UNRUN
            container.is_killed |= before == "RUNNING"

    def _summary(self, fields: dict[str, str], at_ms: int) -> None:
        application = self._application(fields["appId"])
        application.ended_ms = application.ended_ms or at_ms
        application.kind = fields.get("applicationType") or application.kind
        application.full_queue = fields.get("queue", "")
        application.user = application.user or fields.get("user", "")

    def _application(self, name: str) -> _Application:
        return self._applications.setdefault(name, _Application())

    def _container(self, name: str) -> _Container | None:
        """The container of this id; None for what is not an id."""
        container = self._containers.get(name)
        if container is None and (found := _ID.fullmatch(name)):
            self._tally.add_containers(1)
            container = self._containers[name] = _Container(f"application_{found[1]}", int(found[2]), int(found[3]))
        return container

    def _by_application(self) -> dict[str, list[_Container]]:
        """{application: its containers}. Raises ConfigurationException if there are none."""
        mine: dict[str, list[_Container]] = {}
        for each in self._containers.values():
            if each.allocated_ms or each.released_ms:
                mine.setdefault(each.application, []).append(each)
        if not mine:
            self._refuse()
        return mine

    def times(self) -> RunTimes:
        """The times of the applications that had a container, since the first submission."""
        mine = self._by_application()
        submitted = {name: self._applications[name].submitted_ms or self._begins_ms for name in mine}
        base_ms = min(submitted.values())
        found: list[ApplicationTimes] = []
        spans: dict[str, list[Span]] = {ALL_QUEUES: []}
        for name, containers in sorted(mine.items()):
            application = self._applications[name]
            observed = self._observed(name, containers)
            held = [
                (each.placed_ms - base_ms, each.end_ms - base_ms, each.resource.memory_mb)
                for each in (self._ran(one, application) for one in containers)
            ]
            spans[ALL_QUEUES] += held
            spans.setdefault(observed.queue, []).extend(held)
            am = observed.am if application.submitted_ms else None
            found.append(
                ApplicationTimes(
                    name=name,
                    queue=observed.queue,
                    submitted_ms=submitted[name] - base_ms,
                    am_allocated_ms=None if am is None else am.placed_ms - base_ms,
                    ended_ms=application.ended_ms - base_ms if application.ended_ms else None,
                    mb_ms=sum((end_ms - start_ms) * memory_mb for start_ms, end_ms, memory_mb in held),
                )
            )
        use = {queue: UseOverTime.of_containers(held) for queue, held in spans.items()}
        cluster_mb = sum(node.resource.memory_mb for node in self.nodes.values())
        return RunTimes(tuple(found), use, cluster_mb, until_ms=self._ends_ms - base_ms)

    def workload(self) -> Workload:
        """The applications that had a container, the first one submitted at 0; those from before the log begin at 0."""
        mine = self._by_application()
        observed = [self._observed(name, mine[name]) for name in sorted(mine)]
        return observed_workload(observed, self._assumptions(mine))

    def _refuse(self) -> NoReturn:
        problem = "has no container that was allocated or released"
        remedy = "name the log at level INFO, with the lines of RMAuditLogger (or the file that they are written to)"
        if self._undated:
            problem = f"has {self._undated} lines to read, but none begins with a date"
            remedy = "name the file that log4j wrote, with a layout that begins with %d{ISO8601}"
        raise refusal(self._source, problem, remedy)

    def _observed(self, name: str, containers: list[_Container]) -> ObservedApplication:
        application = self._applications.get(name) or _Application()
        self._tally.add(0)
        ams = {each.attempt: each for each in sorted(containers, key=lambda one: -one.number)}
        registrations = application.registered_ms
        ams = {attempt: each for attempt, each in ams.items() if _is_am(each, registrations.get(attempt, 0))}
        first = ams[min(ams)] if ams else None
        registered_ms = registrations.get(first.attempt, 0) if first else 0
        tasks = [each for each in containers if each is not ams.get(each.attempt) and not each.is_surplus]
        return ObservedApplication(
            name=name,
            submit_ms=application.submitted_ms or self._begins_ms,
            user=application.user or self._defaults.user,
            queue=application.full_queue or application.queue or self._defaults.queue,
            kind=application.kind,
            label=application.label,
            am=self._ran(first, application) if first else None,
            am_start_ms=registered_ms - first.allocated_ms if first and first.allocated_ms and registered_ms else None,
            containers=[self._ran(each, application) for each in tasks],
        )

    def _ran(self, container: _Container, application: _Application) -> ObservedContainer:
        """The container with the basis of its size and times, which is that of the least known one."""
        placed_ms = container.allocated_ms or self._begins_ms
        fetched_ms = container.fetched_ms or (placed_ms + FETCH_MS if container.allocated_ms else placed_ms)
        end_ms = container.released_ms or application.ended_ms or self._ends_ms
        basis, about = Basis.RECORDED, RECORDED_ABOUT
        if container.resource is None:
            basis, about = Basis.ASSUMED, UNSIZED_ABOUT
        elif not container.allocated_ms:
            basis, about = Basis.DETERMINED, EARLIER_ABOUT
        elif not container.released_ms:
            basis, about = Basis.DETERMINED, OPEN_ABOUT
        elif not container.fetched_ms:
            basis, about = Basis.DETERMINED, UNFETCHED_ABOUT
        resource = container.resource or self._defaults.container
        return ObservedContainer(placed_ms, min(fetched_ms, end_ms), end_ms, resource, container.label, basis, about)

    def _assumptions(self, mine: dict[str, list[_Container]]) -> Iterator[str]:
        yield REQUESTED_AT_ONCE
        containers = [each for those in mine.values() for each in those]
        counts = {
            "surplus": sum(each.is_surplus for each in containers),
            "killed": sum(each.is_killed for each in containers),
            "waiting": sum(1 for name, each in self._applications.items() if each.submitted_ms and name not in mine),
            "earlier": sum(not (self._applications.get(name) or _Application()).submitted_ms for name in mine),
            "restarted": sum(max(each.attempt for each in those) > 1 for those in mine.values()),
            "undated": self._undated,
        }
        for what, count in counts.items():
            if count:
                yield _SENTENCES[what].format(count=count)
        if not self._has_transitions:
            yield "The log has no transitions of containers, so those that an AM released unused are counted as work."


_SENTENCES = {
    "surplus": "{count} containers never ran: their AMs released them, or ended first. They are left out, because "
    "simulated AMs get such surplus containers, too (client: hadoop).",
    "killed": "{count} containers were killed while they ran (by preemption, with a lost node, or at the end of their "
    "application): their work is counted beside the work that replaced it.",
    "waiting": "{count} applications had no container in this log and are left out.",
    "earlier": "{count} applications had been submitted before the log begins: they are submitted at its beginning.",
    "restarted": "{count} applications had more than one attempt: the containers of all attempts are counted.",
    "undated": "{count} lines do not begin with a date and were not read.",
}


def read_rm_log(lines: Iterable[Line], source: str, defaults: Defaults) -> Workload:
    """The workload in the lines of a log. Raises ConfigurationException if it has none."""
    return _read(lines, source, defaults).workload()


def read_rm_log_times(lines: Iterable[Line], source: str) -> RunTimes:
    """The times of the applications in the lines of a log. Raises ConfigurationException if it has none."""
    return _read(lines, source, Defaults()).times()


def read_rm_log_nodes(lines: Iterable[Line], source: str) -> WorkloadNodes:
    """The nodes that registered while the log was written, by host. Raises ConfigurationException if none did."""
    nodes = _read(lines, source, Defaults()).nodes
    if not nodes:
        remedy = "name a file of nodes with --nodes, for example the answer to GET /ws/v1/cluster/nodes"
        raise refusal(source, "has no registration of a node", remedy)
    sentence = "The nodes are those that registered while the log was written; the log has no racks and labels of them."
    return WorkloadNodes(tuple(nodes[host] for host in sorted(nodes)), (sentence,))


def _read(lines: Iterable[Line], source: str, defaults: Defaults) -> RMLog:
    log = RMLog(source, defaults)
    for line in lines:
        log.add(line)
    return log


def _is_am(first: _Container, registered_ms: int) -> bool:
    """True if the first container of an attempt is its AM's; an unmanaged AM registers before it has a container."""
    if registered_ms and first.allocated_ms:
        return first.allocated_ms <= registered_ms
    return first.number == 1


def _resource(text: str) -> Resource | None:
    """The resource in a text such as <memory:4096, vCores:1, yarn.io/gpu: 2>; None if it has no memory or no vcores."""
    amounts = {name: int(amount) for name, amount in _AMOUNT.findall(text)}
    memory_mb, vcores = amounts.pop("memory", 0), amounts.pop("vCores", 0)
    if not 0 < memory_mb <= MEMORY_MB_MAX or not 0 < vcores <= AMOUNT_MAX:
        return None
    return Resource(memory_mb, vcores, tuple((name, amount) for name, amount in amounts.items() if amount))


def _time_of(text: str) -> int | None:
    """The time at the beginning of a line in ms since 1970, in the log's own time zone; None without a date."""
    found = _TIME.match(text)
    seconds = _seconds(found[1]) if found else None
    return None if seconds is None or found is None else seconds * 1000 + int(found[2] or 0)


@lru_cache(maxsize=16)
def _seconds(text: str) -> int | None:
    """Seconds of a date with four or two digits of the year."""
    text = text.replace("/", "-").replace("T", " ")
    try:
        moment = datetime.fromisoformat(text if text[4] == "-" else f"20{text}")
    except ValueError:
        return None
    return int(moment.replace(tzinfo=UTC).timestamp())
