"""ApplicationMasterProtocol: requests and replies between an AM and the RM."""

from __future__ import annotations

from msgspec import Struct, field

from yarn.containers import (
    Container,
    ContainerStatus,
    Preemption,
    ResourceRequest,
    Token,
    UpdateContainerError,
    UpdateContainerRequest,
)
from yarn.ids import ContainerId, NodeId
from yarn.nodes import NodeReport
from yarn.resource import Resource
from yarn.states import (
    ApplicationAccessType,
    ContainerUpdateType,
    FinalApplicationStatus,
    SchedulerResourceTypes,
)


class ResourceTypeInfo(Struct, frozen=True):
    """A resource type of the cluster; all are counted. `units`: `Mi` for memory-mb, else as configured."""

    name: str
    units: str = ""


class NMToken(Struct, frozen=True):
    """The token with which an AM calls one NM; it is valid for the life of the attempt.

    `token` is None only inside the RM, between the core, which names the nodes, and the shell, which signs.
    """

    node_id: NodeId
    token: Token | None = None


class RegisterApplicationMasterRequest(Struct, frozen=True):
    """The AM's address; `rpc_port` -1 = none. `has_placement_constraints`: then it is refused."""

    host: str = ""
    rpc_port: int = -1
    tracking_url: str = ""
    has_placement_constraints: bool = False


class RegisterApplicationMasterResponse(Struct, frozen=True):
    """The basis of an AM's requests: the largest container, its queue, and the containers of earlier attempts.

    `application_acls` are those of the submission; `scheduler_resource_types` are those that the scheduler compares.
    """

    maximum_capability: Resource
    queue: str
    containers_from_previous_attempts: tuple[Container, ...] = ()
    nm_tokens: tuple[NMToken, ...] = ()
    resource_types: tuple[ResourceTypeInfo, ...] = ()
    application_acls: dict[ApplicationAccessType, str] = field(default_factory=dict)
    scheduler_resource_types: tuple[SchedulerResourceTypes, ...] = ()


class AllocateRequest(Struct, frozen=True):
    """An AM's heartbeat. `response_id`: the id of the last reply that it received. `progress`: 0..1.

    `has_scheduling_requests`: it has requests with placement constraints, and is refused.
    """

    response_id: int
    progress: float = 0.0
    asks: tuple[ResourceRequest, ...] = ()
    releases: tuple[ContainerId, ...] = ()
    blacklist_additions: tuple[str, ...] = ()
    blacklist_removals: tuple[str, ...] = ()
    updates: tuple[UpdateContainerRequest, ...] = ()
    tracking_url: str = ""
    has_scheduling_requests: bool = False


class UpdatedContainer(Struct, frozen=True):
    """A container after an update that the AM requested."""

    type: ContainerUpdateType
    container: Container


class AllocateResponse(Struct, frozen=True):
    """Containers that were allocated, ended and changed since the last call, and the AM's `headroom`."""

    response_id: int
    headroom: Resource
    cluster_nodes: int
    allocated: tuple[Container, ...] = ()
    completed: tuple[ContainerStatus, ...] = ()
    updated_nodes: tuple[NodeReport, ...] = ()
    nm_tokens: tuple[NMToken, ...] = ()
    preemption: Preemption | None = None
    updated_containers: tuple[UpdatedContainer, ...] = ()
    update_errors: tuple[UpdateContainerError, ...] = ()
    containers_from_previous_attempts: tuple[Container, ...] = ()
    am_rm_token: Token | None = None
    application_priority: int = 0


class FinishApplicationMasterRequest(Struct, frozen=True):
    """The AM's final report."""

    final_status: FinalApplicationStatus
    diagnostics: str = ""
    tracking_url: str = ""


class FinishApplicationMasterResponse(Struct, frozen=True):
    """The reply to unregistering. False: the end is not stored yet; call again."""

    is_unregistered: bool
