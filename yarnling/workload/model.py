"""A workload: applications, when each is submitted, and the containers that it asks for. Pure data.

Times are in milliseconds, those of submissions since the start of the workload.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from yarn.resource import Resource
from yarnling.workload.autoscaling import NodeScaling
from yarnling.workload.calibration import Calibration
from yarnling.workload.evidence import Evidence
from yarnling.workload.start_times import StartTime

AM_RESOURCE = Resource(1536, 1)
"""The size of an application's AM if the trace does not say it (the default of MapReduce's AM)."""

AM_START_MS = 200
TASK_START_MS = 0
"""The times that an AM and a task take to start unless the workload says it. Real ones, of JVMs, take seconds
(yarnling.workload.start_times): summaries, and imports that do not record them, have those."""


class RequestStyle(Enum):
    """The way an AM requests containers. HADOOP: as AMRMClientImpl, which sends each lowered request again, so it gets
    surplus containers and releases them. EXACT: it sends only what the ResourceManager cannot know.
    """

    HADOOP = "hadoop"
    EXACT = "exact"


class TaskGroup(Struct, frozen=True):
    """Containers of one kind. There is one for each entry of `durations_ms`, which is how long it runs.

    `after`: the position of a group: the containers of all groups up to and including it must have ended before these
    are requested. `delay_ms`: how much later they are requested. `hosts`: where the containers are wanted, with relaxed
    locality; empty: anywhere. `priority`: of the requests, as in YARN, lower first. `name`: the kind of work, as
    "map".
    """

    resource: Resource
    durations_ms: tuple[int, ...]
    priority: int = 20
    after: int | None = None
    hosts: tuple[str, ...] = ()
    label: str = ""
    delay_ms: int = 0
    name: str = ""


class WorkloadApplication(Struct, frozen=True):
    """An application. `priority`: of the application, higher first. `deadline_ms`: the time from its submission within
    which it should end; None: it has no deadline. `am_lasts_ms`: how long its AM runs at least,
    from its start on. `am_start_ms`, `task_start_ms`: what its AM, and each task before its duration, take to start, in
    ms or as a distribution of ms.
    """

    name: str
    submit_ms: int
    user: str
    queue: str
    groups: tuple[TaskGroup, ...]
    am_resource: Resource = AM_RESOURCE
    kind: str = "yarnling"
    priority: int = 0
    label: str = ""
    deadline_ms: int | None = None
    am_lasts_ms: int = 0
    client: RequestStyle = RequestStyle.HADOOP
    am_start_ms: StartTime = AM_START_MS
    task_start_ms: StartTime = TASK_START_MS

    @property
    def containers(self) -> int:
        """The number of containers that it asks for, without its AM."""
        return sum(len(group.durations_ms) for group in self.groups)


class WorkloadNode(Struct, frozen=True):
    """A machine of the cluster that a workload runs on. `label`: of its partition; "" is the default partition."""

    host: str
    resource: Resource
    rack: str = "/default-rack"
    label: str = ""


class NodeChange(Enum):
    """A change of a node.

    JOIN: its NodeManager starts, on a new machine or on one that has left or was lost; a drain ends. LEAVE: it is
    decommissioned at once. DRAIN: it is decommissioned gracefully: it gets no more containers, and leaves once its
    containers and their applications have ended, or after a timeout. LOST: the machine fails, with its containers; the
    ResourceManager notices it after yarn.nm.liveness-monitor.expiry-interval-ms.
    """

    JOIN = "join"
    LEAVE = "leave"
    DRAIN = "drain"
    LOST = "lost"


class NodeEvent(Struct, frozen=True):
    """A change of a node during a workload. A node whose first event is JOIN is not there before.

    `timeout_s`: of DRAIN; negative: without limit; None: the configuration's
    (yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs).
    """

    time_ms: int
    host: str
    change: NodeChange
    timeout_s: int | None = None


class SpotNodes(Struct, frozen=True):
    """Nodes that may be lost at any time: each with the same probability, `lost_per_hour` 0..1 in each hour, whatever
    happens to others. `replaced_ms`: how much later another machine joins under the same name; None: never.
    """

    hosts: tuple[str, ...]
    lost_per_hour: float
    replaced_ms: int | None = None


class NodeSchedule(Struct, frozen=True):
    """The changes of the nodes during a workload: at known times, by chance, and by an autoscaler.

    Nodes of `scaling` have no events.
    """

    events: tuple[NodeEvent, ...] = ()
    spots: tuple[SpotNodes, ...] = ()
    scaling: NodeScaling | None = None


UNCHANGED = NodeSchedule()
"""All nodes are there from the start to the end."""


class WorkloadNodes(Struct, frozen=True):
    """The nodes of a cluster, as they were read, and how they change.

    `assumptions`: what was left out or assumed, one sentence each.
    """

    nodes: tuple[WorkloadNode, ...]
    assumptions: tuple[str, ...] = ()
    schedule: NodeSchedule = UNCHANGED


class Workload(Struct, frozen=True):
    """A workload.

    `applications` in the order of their submission. `assumptions`: what the trace does not say and how it was
    filled in, one sentence each. `evidence`: what its memory-hours rest on; empty: not known. `calibration`: on the run
    that it was recorded from; None: it has not been calibrated.
    """

    applications: tuple[WorkloadApplication, ...]
    assumptions: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    calibration: Calibration | None = None

    def with_assumptions(self, more: tuple[str, ...]) -> Workload:
        """A copy of this workload with more assumptions."""
        return replace(self, assumptions=(*self.assumptions, *more))
