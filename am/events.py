"""What an AM hears: from the RM by its heartbeats, from the NMs about the containers it starts."""

from __future__ import annotations

from typing import TypeAlias

from am.requests import ContainerRequest
from yarn.asks import Preemption, UpdateContainerError
from yarn.containers import Container, ContainerStatus
from yarn.ids import ContainerId
from yarn.nodes import NodeReport
from yarn.protocols.master import UpdatedContainer
from yarn.records import dataclass
from yarn.resource import Resource


@dataclass(frozen=True, slots=True)
class Registered:
    """The RM knows this AM. `resource_types` are those that the scheduler compares by (MEMORY, CPU)."""

    maximum_capability: Resource
    queue: str
    resource_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resynced:
    """The RM has restarted and knows this AM again. It may never tell what ended meanwhile (am.reconciliation)."""


@dataclass(frozen=True, slots=True)
class ContainersFromPreviousAttempts:
    """Containers that an earlier attempt left running; only with keep-containers."""

    containers: tuple[Container, ...]


@dataclass(frozen=True, slots=True)
class NodesUpdated:
    """Nodes whose usability changed since the last reply."""

    reports: tuple[NodeReport, ...]


@dataclass(frozen=True, slots=True)
class ContainersCompleted:
    """Containers that ended. Each end is told exactly once, whatever the RM repeats."""

    statuses: tuple[ContainerStatus, ...]


@dataclass(frozen=True, slots=True)
class ContainersUpdated:
    """Changes of running containers that were granted, and those that were refused."""

    updated: tuple[UpdatedContainer, ...]
    refused: tuple[UpdateContainerError, ...]


@dataclass(frozen=True, slots=True)
class PreemptionAsked:
    """The RM wants containers back (am.preemption chooses which)."""

    preemption: Preemption


@dataclass(frozen=True, slots=True)
class Allocation:
    """A container, and the request that it answers: None if nothing asks for it any more (give it back)."""

    container: Container
    request: ContainerRequest | None


@dataclass(frozen=True, slots=True)
class ContainersAllocated:
    """Containers that may be started; the requests they answer are taken out of the book."""

    allocations: tuple[Allocation, ...]


@dataclass(frozen=True, slots=True)
class HeartbeatDone:
    """The last event of each reply: how much more the AM may get, and how many nodes there are."""

    headroom: Resource
    cluster_nodes: int


@dataclass(frozen=True, slots=True)
class ShutdownOrdered:
    """The RM does not know this attempt any more: stop, and do not unregister. Nothing follows."""

    reason: str


@dataclass(frozen=True, slots=True)
class HeartbeatFailed:
    """The RM refused a call, or was silent for too long. Nothing follows."""

    error: Exception


@dataclass(frozen=True, slots=True)
class ContainerStarted:
    """The NM took the container."""

    container_id: ContainerId


@dataclass(frozen=True, slots=True)
class ContainerStartFailed:
    """The NM refused the container or could not be reached; it holds its room until it is released."""

    container_id: ContainerId
    diagnostics: str


Event: TypeAlias = (
    Registered
    | Resynced
    | ContainersFromPreviousAttempts
    | NodesUpdated
    | ContainersCompleted
    | ContainersUpdated
    | PreemptionAsked
    | ContainersAllocated
    | HeartbeatDone
    | ShutdownOrdered
    | HeartbeatFailed
    | ContainerStarted
    | ContainerStartFailed
)
