"""Reads a recording of a cluster into what is known of each application and node over time.

A line has only what changed. Where a recorder began anew, everything that still is there is said again, so what is not
said again had gone in between, at an unknown time: it counts until the poll before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from yarn.resource import MEMORY_MB, VCORES, Resource
from yarnling.workload.documents import refusal
from yarnling.workload.limits import APPLICATIONS_MAX, MEMORY_MB_MAX, NODES_MAX
from yarnling.workload.line_files import Line
from yarnling.workload.recording_lines import (
    AppsSeen,
    ConfSeen,
    ContainersSeen,
    FieldsMissing,
    ManagerSeen,
    MetricsSeen,
    NodesSeen,
    PollFailed,
    QueuesSeen,
    RecordingBegan,
    RecordingLine,
    SchedulerSeen,
)

GONE = "GONE"
ENDED = frozenset({"FINISHED", "FAILED", "KILLED"})
USED_SO_FAR = ("memorySeconds", "elapsedTime")
"""Fields of which a live application has some values, those at the polls that saw it change."""
_DECODER = msgspec.json.Decoder(RecordingLine)


class Level(Struct, frozen=True, gc=False):
    """The containers of an application from a poll on, its AM among them. `before_ms`: the poll before. `pending_mb`:
    what it still waits for; `used_mb_ms`: memory times time that it has used by then, and `elapsed_ms`: since its
    submission, by the clock of the ResourceManager; None: not recorded.
    """

    before_ms: int
    at_ms: int
    containers: int
    memory_mb: int
    vcores: int
    pending_mb: int | None = None
    used_mb_ms: int | None = None
    elapsed_ms: int | None = None


class ListedContainer(Struct, frozen=True, gc=False):
    """A container in a list of an application's containers. `number`: in its attempt; 1 is the AM's, usually."""

    attempt: int
    number: int
    resource: Resource
    priority: int
    started_ms: int


class TrackedApplication(Struct):
    """An application. `fields`: the last value of each, under the names of the REST API. `levels`: in order of time.

    `lists`: {poll: the containers that were listed}. `registered`: the two polls between which its AM registered; None
    if no poll saw the application without an AM that runs. `last_ms`: the last poll that had it.
    """

    fields: dict[str, Any]
    levels: list[Level] = msgspec.field(default_factory=list)
    lists: dict[int, list[ListedContainer]] = msgspec.field(default_factory=dict)
    registered: tuple[int, int] | None = None
    last_ms: int = 0
    is_live: bool = True

    def number(self, name: str) -> int:
        """A number of the fields; 0 if it is not known or negative."""
        value = self.fields.get(name)
        return max(value, 0) if isinstance(value, int) else 0

    def text(self, name: str) -> str:
        """A text of the fields; "" if it is not known."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    @property
    def has_ended(self) -> bool:
        return self.text("state") in ENDED


class RecordedNode(Struct):
    """A node. `changes`: (poll, state) in order of time; the state is GONE when it was not reported any more."""

    fields: dict[str, Any]
    changes: list[tuple[int, str]] = msgspec.field(default_factory=list)

    def take(self, fields: dict[str, Any]) -> None:
        """Take over changed fields, but not the size of a node that is drained: that is what it still uses. Before
        Hadoop 3.3 a node that has left is reported without its size.
        """
        before = self.resource()
        known = self.fields.get("amounts")
        self.fields |= fields
        is_drained = self.fields.get("state") in ("DECOMMISSIONING", "DECOMMISSIONED")
        if before is not None and (is_drained or self.resource() is None):
            self.fields["amounts"] = known

    def resource(self) -> Resource | None:
        """Its size; None if it is not known."""
        amounts = self.fields.get("amounts")
        if not isinstance(amounts, dict):
            return None
        whole = {str(name): value for name, value in amounts.items() if isinstance(value, int)}
        has_size = 0 < whole.get(MEMORY_MB, 0) <= MEMORY_MB_MAX and whole.get(VCORES, 0) > 0
        return Resource.of(whole) if has_size else None


class RecordedCluster:
    """The content of a recording, filled line by line.

    `begins_ms`, `ends_ms`: the first and the last poll. `queues`: (poll, answer to GET .../scheduler), each time it
    changed. `settings`: the first value of each property; `settings_changed`: (poll, keys) of later changes.
    `every_ms`: the longest interval of its polls; 0: not recorded.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.applications: dict[str, TrackedApplication] = {}
        self.nodes: dict[str, RecordedNode] = {}
        self.queues: list[tuple[int, str]] = []
        self.settings: dict[str, str] = {}
        self.settings_changed: list[tuple[int, list[str]]] = []
        self.missing: set[str] = set()
        self.restarts = self.failures = self.unreadable = self.every_ms = 0
        self.begins_ms = self.ends_ms = 0
        self._before_ms = 0
        self._managers: set[int] = set()
        self._current: dict[str, str] = {}
        self._unsaid: set[str] = set()

    def began_before(self, application: TrackedApplication) -> bool:
        """True if the application was submitted before the recording began, so that its first part is not known."""
        return application.number("startedTime") < self.begins_ms

    def submitted_ms(self, application: TrackedApplication) -> int:
        """The time of its submission; the first poll for one that had been submitted before."""
        return max(application.number("startedTime"), self.begins_ms)

    def add(self, line: Line) -> None:
        """Take over a line; one that cannot be read is counted. Raises ConfigurationException for too many entries."""
        try:
            seen = _DECODER.decode(line.text)
        except (msgspec.DecodeError, RecursionError):
            self.unreadable += bool(line.text.strip())
            return
        if not isinstance(seen, PollFailed | RecordingBegan):
            if seen.at > self.ends_ms:
                self._before_ms, self.ends_ms = self.ends_ms or seen.at, seen.at
            self.begins_ms = self.begins_ms or seen.at
        self._take(seen)

    def _take(self, seen: RecordingLine) -> None:
        match seen:
            case RecordingBegan():
                self.every_ms = max(seen.every_ms, self.every_ms)
                self._begin()
            case ManagerSeen():
                self.restarts += bool(self._managers) and seen.started_ms not in self._managers
                self._managers.add(seen.started_ms)
            case AppsSeen():
                self._take_applications(seen)
            case ContainersSeen():
                self._take_containers(seen)
            case NodesSeen():
                self._take_nodes(seen)
            case SchedulerSeen():
                text = bytes(seen.answer).decode("utf-8", "replace")
                if not self.queues or self.queues[-1][1] != text:
                    self.queues.append((seen.at, text))
            case ConfSeen():
                self._take_settings(seen)
            case FieldsMissing():
                self.missing.update(seen.fields)
            case PollFailed():
                self.failures += 1
            case MetricsSeen() | QueuesSeen():
                pass

    def _begin(self) -> None:
        """A recorder has begun: what it does not find is gone."""
        for application in self.applications.values():
            if application.is_live:
                application.is_live, application.last_ms = False, self.ends_ms
        self._unsaid = {name for name, node in self.nodes.items() if node.changes[-1:] and node.changes[-1][1] != GONE}

    def _take_applications(self, seen: AppsSeen) -> None:
        for name, fields in seen.apps.items():
            known = self.applications.setdefault(name, TrackedApplication({}))
            if fields.get("state") == "RUNNING" and known.registered is None:
                known.registered = (self._before_ms, seen.at)
            used_mb_s, elapsed_ms = (fields.get(key) for key in USED_SO_FAR)
            has_ended = fields.get("state", known.fields.get("state")) in ENDED
            known.fields |= {key: value for key, value in fields.items() if has_ended or key not in USED_SO_FAR}
            known.is_live = True
            known.last_ms = seen.at
            level = Level(
                self._before_ms,
                seen.at,
                0 if known.has_ended else known.number("runningContainers"),
                known.number("allocatedMB"),
                known.number("allocatedVCores"),
                known.number("pendingMB") if "pendingMB" in known.fields else None,
                used_mb_s * 1000 if isinstance(used_mb_s, int) else None,
                elapsed_ms if isinstance(elapsed_ms, int) else None,
            )
            known.levels.append(level)
        for name in seen.gone:
            if name in self.applications:
                self.applications[name].is_live = False
                self.applications[name].last_ms = seen.at
        if len(self.applications) > APPLICATIONS_MAX:
            raise refusal(self.source, f"has more than {APPLICATIONS_MAX} applications", "import one day at a time")

    def _take_containers(self, seen: ContainersSeen) -> None:
        application = self.applications.get(seen.app)
        if application is not None:
            application.lists[seen.at] = [
                ListedContainer(seen.attempt, number, Resource(memory_mb, vcores), priority, started_ms)
                for number, memory_mb, vcores, priority, started_ms in seen.containers
                if 0 < memory_mb <= MEMORY_MB_MAX and 0 < vcores <= MEMORY_MB_MAX
            ]

    def _take_nodes(self, seen: NodesSeen) -> None:
        for name, fields in seen.nodes.items():
            node = self.nodes.setdefault(name, RecordedNode({}))
            node.take(fields)
            state = str(node.fields.get("state", ""))
            if not node.changes or node.changes[-1][1] != state:
                node.changes.append((seen.at, state))
        gone = [*seen.gone, *sorted(self._unsaid.difference(seen.nodes))]
        self._unsaid = set()
        for name in gone:
            if name in self.nodes:
                self.nodes[name].changes.append((seen.at, GONE))
        if len(self.nodes) > NODES_MAX:
            raise refusal(self.source, f"has more than {NODES_MAX} nodes", "import one day at a time")

    def _take_settings(self, seen: ConfSeen) -> None:
        """Note the changes; a new file says all properties again."""
        if self.settings:
            changed = [key for key, value in seen.properties.items() if self._current.get(key) != value]
            if changed or seen.removed:
                self.settings_changed.append((seen.at, sorted({*changed, *seen.removed})))
        else:
            self.settings = dict(seen.properties)
        self._current = {key: value for key, value in self._current.items() if key not in seen.removed}
        self._current |= seen.properties


def read_cluster(lines: Iterable[Line], source: str) -> RecordedCluster:
    """The cluster in the lines of a recording. Raises ConfigurationException if nothing in it can be read."""
    cluster = RecordedCluster(source)
    for line in lines:
        cluster.add(line)
    if not cluster.begins_ms:
        raise refusal(source, "has no line of a recording", "name a directory that yarnling record wrote")
    # Those that are still there have not changed since.
    for application in cluster.applications.values():
        if application.is_live and not application.has_ended:
            application.last_ms = cluster.ends_ms
    return cluster
