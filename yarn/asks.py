"""What an AM requests from the RM: containers, and updates of containers; and what the RM may take back."""

from __future__ import annotations

from msgspec import Struct

from yarn.ids import ContainerId
from yarn.resource import Resource
from yarn.states import ContainerUpdateType, ExecutionType

UNDEFINED_PRIORITY = -1
"""The priority of a request that has none, like those in a preemption message."""

ANY = "*"
"""The resource name for any host."""


class ResourceRequest(Struct, frozen=True):
    """A resource request. It is absolute: it REPLACES the earlier one of the same (priority, request id, resource
    name).

    `resource_name` is a host, a rack (`/r1`) or `*`; a container on a host needs all three requests. `count` 0
    withdraws it. `label` None means the application's expression, or else the queue's.
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
    """An update of a running container; `version` is the version that the AM knows."""

    container_id: ContainerId
    version: int
    type: ContainerUpdateType
    capability: Resource | None = None
    execution_type: ExecutionType | None = None


class UpdateContainerError(Struct, frozen=True):
    """Why an update was refused: `reason` is Hadoop's constant, e.g. INVALID_CONTAINER_ID."""

    reason: str
    request: UpdateContainerRequest
    current_version: int = 0


class Preemption(Struct, frozen=True):
    """Containers that will be (`strict`) or may be (`negotiable`) preempted; releasing `asks` instead is as good."""

    strict: tuple[ContainerId, ...] = ()
    negotiable: tuple[ContainerId, ...] = ()
    asks: tuple[ResourceRequest, ...] = ()
