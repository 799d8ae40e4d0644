"""A plan: a cluster, the work on it, what is done to it and when, and what is expected. Pure.

Times are in seconds of the run. A `Span` is drawn from, once for each time a fault comes; both ends equal: no draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct, field

Span = tuple[float, float]

FENCE_S = 5.0
"""How long what was given up may still run where its node can be reached: two heartbeats, a kill, and a retry's pause.

In the fast profile that is 2.5 s (1.5 s of it the longest pause between two tries); the rest is for a busy machine."""
HEAL_S = 60.0
DRAIN_S = 120.0
"""Both are seconds where all is well. They tell what hangs from what is slow on a machine that is busy with others."""


class Scope(Enum):
    """What a fault is done to."""

    NODE = "a node"
    RM = "the ResourceManager"
    MASTER = "a running master"
    CONTAINER = "a running container"
    CLIENTS = "the way from clients to the ResourceManager"


class Program(Enum):
    """What an application is."""

    BATCH = "batch"
    """A distributed shell: so many containers, each for so many seconds."""
    SERVICE = "service"
    """A distributed shell whose containers run until it is killed, at the end."""
    TASKS = "tasks"
    """An elastic application: so many tasks on workers, each task tried until it is done."""
    WORDCOUNT = "wordcount"
    """A map-reduce whose counts are compared with a plain count."""


class FaultKind(Struct, frozen=True):
    """A fault by name. `needs_network`: it is done by the proxies between the processes.

    `hides`: while it lasts, the ResourceManager cannot have the node's containers ended (of all nodes, if the scope
    is RM). `silences`: while it lasts, a master cannot hear that its application is over; the ResourceManager waits for
    it then. `parameters`: what a plan may set beside time and target.
    """

    name: str
    about: str
    scope: Scope
    needs_network: bool = False
    hides: bool = False
    silences: bool = False
    parameters: tuple[str, ...] = ()
    has_end: bool = True


KINDS: Mapping[str, FaultKind] = {
    kind.name: kind
    for kind in (
        FaultKind(
            "kill-node",
            "SIGKILL to a NodeManager and its containers, as if its machine had gone; its end: it is started again",
            Scope.NODE,
            hides=True,
            parameters=("containers",),
        ),
        FaultKind(
            "stop-node",
            "SIGTERM to a NodeManager: it ends its containers and takes leave; its end: it is started again",
            Scope.NODE,
        ),
        FaultKind("pause-node", "SIGSTOP to a NodeManager, its containers run on", Scope.NODE, hides=True),
        FaultKind(
            "decommission-node",
            "a graceful decommission: no new work, then the NodeManager leaves; its end: it is taken back",
            Scope.NODE,
            parameters=("timeout",),
        ),
        FaultKind("full-disk", "the disk of a node's work directory is full", Scope.NODE),
        FaultKind(
            "kill-rm",
            "SIGKILL to the ResourceManager; its end: another one on the same store",
            Scope.RM,
            hides=True,
        ),
        FaultKind("pause-rm", "SIGSTOP to the ResourceManager", Scope.RM, hides=True),
        FaultKind(
            "full-store",
            "the disk of the ResourceManager's state store is full",
            Scope.RM,
            hides=True,
        ),
        FaultKind("kill-master", "SIGKILL to an ApplicationMaster", Scope.MASTER, has_end=False),
        FaultKind("pause-master", "SIGSTOP to an ApplicationMaster", Scope.MASTER, silences=True),
        FaultKind("kill-container", "SIGKILL to a container that is no master", Scope.CONTAINER, has_end=False),
        FaultKind(
            "partition-node",
            "a node is cut off: its NodeManager and masters from the ResourceManager, everybody from it",
            Scope.NODE,
            needs_network=True,
            hides=True,
            parameters=("lost", "how"),
        ),
        FaultKind(
            "partition-nm-from-rm",
            "a NodeManager is cut off from the ResourceManager; masters reach both",
            Scope.NODE,
            needs_network=True,
            hides=True,
            parameters=("lost", "how"),
        ),
        FaultKind(
            "partition-masters-from-rm",
            "the masters on a node are cut off from the ResourceManager, its NodeManager is not",
            Scope.NODE,
            needs_network=True,
            silences=True,
            parameters=("lost", "how"),
        ),
        FaultKind(
            "partition-nm-from-masters",
            "nobody's calls reach a NodeManager, which reaches the ResourceManager itself",
            Scope.NODE,
            needs_network=True,
            parameters=("lost", "how"),
        ),
        FaultKind(
            "partition-clients",
            "clients are cut off from the ResourceManager",
            Scope.CLIENTS,
            needs_network=True,
            parameters=("lost", "how"),
        ),
        FaultKind(
            "slow-node",
            "calls of and to a node are delayed, some of their bytes lost and sent again, or their rate is low",
            Scope.NODE,
            needs_network=True,
            hides=True,
            parameters=("delay", "loss", "kilobytes", "breaks"),
        ),
    )
}


class ClusterPlan(Struct, frozen=True):
    """`network`: every call goes through a proxy (also True if a fault needs it). `same_ports`: a NodeManager that is
    started again has its old port, and so its old NodeId."""

    nodes: int = 4
    racks: int = 1
    memory_mb: int = 2048
    vcores: int = 16
    network: bool = False
    same_ports: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)


class Work(Struct, frozen=True):
    """`applications` of one program, `every` so many seconds from `at` on. `seconds`: of a container or task.

    `may_fail`: that they end is enough; the distributed shell counts a killed container as failed, as Hadoop's does.
    """

    program: Program
    applications: int = 1
    tasks: int = 4
    seconds: float = 1.0
    at: float = 0.0
    every: float = 0.5
    users: tuple[str, ...] = ("",)
    may_fail: bool = False
    keep_containers: bool = False
    attempts: int = 0


class FaultPlan(Struct, frozen=True):
    """A fault, `times` over. `node`: a number, "any", "all", "half" or "rack-N"; `count` of "any".

    `options`: the kind's own parameters. `optional`: it is no matter if there is nothing to do it to.
    """

    kind: FaultKind
    at: Span = (1.0, 1.0)
    lasts: Span = (2.0, 2.0)
    times: int = 1
    every: Span = (1.0, 1.0)
    node: str = "any"
    count: int = 1
    options: Mapping[str, object] = field(default_factory=dict)
    optional: bool = False


class Expectations(Struct, frozen=True):
    """`nodes_lost` to `refused`: bounds (least, most), None: no matter. `attempts`: of all applications, the highest.
    `refused`: submissions that had an answer, and it was no.

    `lost_within`: a node that is killed or hangs is LOST so many seconds later.
    """

    nodes_lost: tuple[int, int] | None = None
    attempts: tuple[int, int] | None = None
    failed: tuple[int, int] | None = None
    refused: tuple[int, int] | None = None
    lost_within: float | None = None
    fence: float = FENCE_S
    heal: float = HEAL_S
    drain: float = DRAIN_S


class Plan(Struct, frozen=True):
    """`lasts`: when everything is healed. Times count from when the first container works; if not `awaits_work`, from
    the first submission: then faults may come before there is anything to lose but submissions."""

    name: str
    about: str
    cluster: ClusterPlan
    work: tuple[Work, ...]
    faults: tuple[FaultPlan, ...]
    lasts: float
    expect: Expectations = Expectations()
    awaits_work: bool = True

    @property
    def needs_network(self) -> bool:
        return self.cluster.network or any(fault.kind.needs_network for fault in self.faults)

    def has(self, kind: str) -> bool:
        return any(fault.kind.name == kind for fault in self.faults)
