"""Events for an application: from the RM with each heartbeat, and from NMs about containers that are being started."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from am.core.requests import ContainerRequest
from yarn.containers import Container, ContainerStatus, Preemption, UpdateContainerError
from yarn.ids import ContainerId
from yarn.nodes import NodeReport
from yarn.protocols.master import UpdatedContainer
from yarn.resource import Resource


class Registered(Struct, frozen=True):
    """The RM has registered this attempt. `resource_types` are those that the scheduler compares (MEMORY, CPU)."""

    maximum_capability: Resource
    queue: str
    resource_types: tuple[str, ...] = ()


class Resynced(Struct, frozen=True):
    """The RM restarted, and this attempt has registered again.

    The RM may never report containers that ended in between (see am.core.reconciliation).
    """


class ContainersFromPreviousAttempts(Struct, frozen=True):
    """Containers that an earlier attempt left running; only with keep-containers."""

    containers: tuple[Container, ...]


class NodesUpdated(Struct, frozen=True):
    """Nodes whose usability changed since the last reply."""

    reports: tuple[NodeReport, ...]


class ContainersCompleted(Struct, frozen=True):
    """Containers that ended. Each end is reported exactly once, even if the RM repeats it."""

    statuses: tuple[ContainerStatus, ...]


class ContainersUpdated(Struct, frozen=True):
    """Changes of running containers: those that the RM has made, and those that it refused."""

    updated: tuple[UpdatedContainer, ...]
    refused: tuple[UpdateContainerError, ...]


class PreemptionAsked(Struct, frozen=True):
    """The RM wants containers back (am.core.preemption chooses which)."""

    preemption: Preemption


class AllocatedContainer(Struct, frozen=True):
    """A container and the request that it satisfies.

    `request` is None if no request is left for the container; the application should release it then.
    """

    container: Container
    request: ContainerRequest | None


class ContainersAllocated(Struct, frozen=True):
    """Containers that can be started. The requests that they satisfy are no longer outstanding."""

    allocations: tuple[AllocatedContainer, ...]


class HeartbeatDone(Struct, frozen=True):
    """The last event of each reply: how much more the application can get, and how many nodes the cluster has."""

    headroom: Resource
    cluster_nodes: int


class ShutdownOrdered(Struct, frozen=True):
    """The RM no longer knows this attempt.

    The application must exit without unregistering; no event follows this one.
    """

    reason: str


class AllocateFailed(Struct, frozen=True):
    """The RM refused a call, or did not answer within the time limit. No event follows this one."""

    error: Exception


class ContainerStarted(Struct, frozen=True):
    """The NM accepted the start of the container."""

    container_id: ContainerId


class ContainerStartFailed(Struct, frozen=True):
    """The NM refused to start the container, or could not be reached.

    The container stays allocated until it is released.
    """

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
    | AllocateFailed
    | ContainerStarted
    | ContainerStartFailed
)
