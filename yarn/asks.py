"""What an AM asks of the RM: containers, changes of containers, nodes to keep away from."""

from __future__ import annotations

from msgspec import Struct

from yarn.ids import ContainerId
from yarn.resource import Resource
from yarn.states import ContainerUpdateType, ExecutionType

UNDEFINED_PRIORITY = -1
"""Of an ask that is in no order, such as what a preemption message names."""

ANY = "*"
"""The resource name that stands for any host."""


class ResourceRequest(Struct, frozen=True):
    """An ask. It is absolute: it REPLACES what was asked for the same (priority, request id, resource name).

    `resource_name` is a host, a rack (`/r1`) or `*`; a container on a host needs all three rows. `count` 0 withdraws.
    `label` None means: the application's, else the queue's, expression.
    """

    priority: int
    resource_name: str
    capability: Resource
    count: int
    relax_locality: bool = True
    label: str | None = None
    allocation_request_id: int = -1
    execution_type: ExecutionType = ExecutionType.GUARANTEED
    enforce_execution_type: bool = False


class UpdateContainerRequest(Struct, frozen=True):
    """A change of a running container; `version` is the container's as the AM knows it."""

    container_id: ContainerId
    version: int
    type: ContainerUpdateType
    capability: Resource | None = None
    execution_type: ExecutionType | None = None


class UpdateContainerError(Struct, frozen=True):
    """Why a change was refused, as `reason` (Hadoop's word, such as INVALID_CONTAINER_ID) and the request."""

    reason: str
    request: UpdateContainerRequest
    current_version: int = 0


class Preemption(Struct, frozen=True):
    """What will be (`strict`) or may be (`negotiable`) taken from an AM; `asks` is what giving back equals."""

    strict: tuple[ContainerId, ...] = ()
    negotiable: tuple[ContainerId, ...] = ()
    asks: tuple[ResourceRequest, ...] = ()
