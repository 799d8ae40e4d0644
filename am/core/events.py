"""What an AM hears: from the RM by its heartbeats, from the NMs about the containers it starts."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from am.core.requests import ContainerRequest
from yarn.asks import Preemption, UpdateContainerError
from yarn.containers import Container, ContainerStatus
from yarn.ids import ContainerId
from yarn.nodes import NodeReport
from yarn.protocols.master import UpdatedContainer
from yarn.resource import Resource


class Registered(Struct, frozen=True):
    """The RM knows this AM. `resource_types` are those that the scheduler compares by (MEMORY, CPU)."""

    maximum_capability: Resource
    queue: str
    resource_types: tuple[str, ...] = ()


class Resynced(Struct, frozen=True):
    """The RM has restarted and knows this AM again. It may never tell what ended meanwhile (am.core.reconciliation)."""


class ContainersFromPreviousAttempts(Struct, frozen=True):
    """Containers that an earlier attempt left running; only with keep-containers."""

    containers: tuple[Container, ...]


class NodesUpdated(Struct, frozen=True):
    """Nodes whose usability changed since the last reply."""

    reports: tuple[NodeReport, ...]


class ContainersCompleted(Struct, frozen=True):
    """Containers that ended. Each end is told exactly once, whatever the RM repeats."""

    statuses: tuple[ContainerStatus, ...]


class ContainersUpdated(Struct, frozen=True):
    """Changes of running containers that were granted, and those that were refused."""

    updated: tuple[UpdatedContainer, ...]
    refused: tuple[UpdateContainerError, ...]


class PreemptionAsked(Struct, frozen=True):
    """The RM wants containers back (am.core.preemption chooses which)."""

    preemption: Preemption


class Allocation(Struct, frozen=True):
    """A container, and the request that it answers: None if nothing asks for it any more (give it back)."""

    container: Container
    request: ContainerRequest | None


class ContainersAllocated(Struct, frozen=True):
    """Containers that may be started; the requests they answer are taken out of the book."""

    allocations: tuple[Allocation, ...]


class HeartbeatDone(Struct, frozen=True):
    """The last event of each reply: how much more the AM may get, and how many nodes there are."""

    headroom: Resource
    cluster_nodes: int


class ShutdownOrdered(Struct, frozen=True):
    """The RM does not know this attempt any more: stop, and do not unregister. Nothing follows."""

    reason: str


class HeartbeatFailed(Struct, frozen=True):
    """The RM refused a call, or was silent for too long. Nothing follows."""

    error: Exception


class ContainerStarted(Struct, frozen=True):
    """The NM took the container."""

    container_id: ContainerId


class ContainerStartFailed(Struct, frozen=True):
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
