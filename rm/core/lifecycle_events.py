"""The events between the ResourceManager's state machines, under Hadoop's names.

Each event carries the id of the object that handles it. Events are delivered in the step that sends them, first in,
first out (yarn.machine.Dispatcher). Events from outside the core are in rm.core.events. Some notices of the scheduler
are events, too: ContainerAllocated and AttemptAdded are handled by an attempt, UpdateContainer by a node.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from rm.core.stored_state import StoredApplication
from rm.scheduler.model.notices import AttemptAdded, ContainerAllocated, UpdateContainer
from yarn.containers import ContainerStatus, NMContainerStatus
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.nodes import NodeHealth
from yarn.protocols.master import FinishApplicationMasterRequest, RegisterApplicationMasterRequest
from yarn.protocols.tracker import NodeHeartbeatRequest
from yarn.resource import Resource
from yarn.states import NodeUpdateType, SignalContainerCommand

# Events for an application (RMAppEventType).


class _ToApp(Struct, frozen=True):
    """An event for an application."""

    application_id: ApplicationId


class RMAppStart(_ToApp, frozen=True):
    """The application was submitted."""


class RMAppRecover(_ToApp, frozen=True):
    """An earlier ResourceManager had stored the application."""

    stored: StoredApplication


class RMAppKill(_ToApp, frozen=True):
    """A client or the ResourceManager requests that the application be killed."""

    diagnostics: str


class AppRejected(_ToApp, frozen=True):
    """The scheduler rejected the application: no queue accepts it."""

    diagnostics: str


class AppAccepted(_ToApp, frozen=True):
    """The scheduler accepted the application."""


class AttemptLaunched(_ToApp, frozen=True):
    """The AM of the application's current attempt was launched."""


class AttemptRegistered(_ToApp, frozen=True):
    """The AM of the application's current attempt registered."""


class AttemptUnregistered(_ToApp, frozen=True):
    """The AM of the application's current attempt unregistered."""


class AttemptFinished(_ToApp, frozen=True):
    """The application's current attempt is over, after its AM unregistered."""

    diagnostics: str


class AttemptFailed(_ToApp, frozen=True):
    """The current attempt failed. If `transfers_containers`, the next attempt takes over its running containers."""

    diagnostics: str
    transfers_containers: bool


class AttemptKilled(_ToApp, frozen=True):
    """The current attempt of the application was killed."""

    diagnostics: str


class RMAppNodeUpdate(_ToApp, frozen=True):
    """A node became usable, unusable or decommissioning."""

    node_id: NodeId
    update: NodeUpdateType


class AppRunningOnNode(_ToApp, frozen=True):
    """The application has, or had, a container on the node."""

    node_id: NodeId


class AppNewSaved(_ToApp, frozen=True):
    """The application's submission is stored."""


class AppUpdateSaved(_ToApp, frozen=True):
    """The application's outcome is stored."""


class AppSaveFailed(_ToApp, frozen=True):
    """The application's submission cannot be stored."""

    diagnostics: str


RMAppEvent: TypeAlias = (
    RMAppStart
    | RMAppRecover
    | RMAppKill
    | AppRejected
    | AppAccepted
    | AttemptLaunched
    | AttemptRegistered
    | AttemptUnregistered
    | AttemptFinished
    | AttemptFailed
    | AttemptKilled
    | RMAppNodeUpdate
    | AppRunningOnNode
    | AppNewSaved
    | AppUpdateSaved
    | AppSaveFailed
)


# Events for an attempt (RMAppAttemptEventType).


class _ToAttempt(Struct, frozen=True):
    """An event for an attempt."""

    attempt_id: ApplicationAttemptId


class RMAppAttemptStart(_ToAttempt, frozen=True):
    """The application starts the attempt.

    `transfers_containers`: the attempt takes over the running containers of the attempt before it.
    """

    transfers_containers: bool


class RMAppAttemptRecover(_ToAttempt, frozen=True):
    """An earlier ResourceManager had stored the attempt."""


class RMAppAttemptKill(_ToAttempt, frozen=True):
    """The attempt's application is being killed."""

    diagnostics: str


class RMAppAttemptFail(_ToAttempt, frozen=True):
    """A client requests that the attempt fail."""

    diagnostics: str


class RMAppAttemptLaunched(_ToAttempt, frozen=True):
    """The NM accepted the start of the attempt's AM."""


class RMAppAttemptLaunchFailed(_ToAttempt, frozen=True):
    """The NM refused the start of the attempt's AM, or could not be reached in time."""

    diagnostics: str


class RMAppAttemptExpire(_ToAttempt, frozen=True):
    """The attempt's AM sent nothing for too long, or its container did not end in time."""


class RMAppAttemptRegistered(_ToAttempt, frozen=True):
    """The attempt's AM registered."""

    request: RegisterApplicationMasterRequest


class RMAppAttemptStatusUpdate(_ToAttempt, frozen=True):
    """The attempt's AM called allocate. `progress` is in 0..1; an empty `tracking_url` keeps the previous one."""

    progress: float
    tracking_url: str


class RMAppAttemptUnregistered(_ToAttempt, frozen=True):
    """The attempt's AM unregistered."""

    request: FinishApplicationMasterRequest


class RMAppAttemptContainerFinished(_ToAttempt, frozen=True):
    """A container that was allocated to the attempt ended; it may be the AM's container."""

    node_id: NodeId
    status: ContainerStatus


class AttemptNewSaved(_ToAttempt, frozen=True):
    """The attempt and its AM's container are stored."""


class AttemptUpdateSaved(_ToAttempt, frozen=True):
    """The attempt's outcome is stored."""


RMAppAttemptEvent: TypeAlias = (
    RMAppAttemptStart
    | RMAppAttemptRecover
    | RMAppAttemptKill
    | RMAppAttemptFail
    | RMAppAttemptLaunched
    | RMAppAttemptLaunchFailed
    | RMAppAttemptExpire
    | RMAppAttemptRegistered
    | RMAppAttemptStatusUpdate
    | RMAppAttemptUnregistered
    | ContainerAllocated
    | RMAppAttemptContainerFinished
    | AttemptNewSaved
    | AttemptUpdateSaved
    | AttemptAdded
)


# Events for a node (RMNodeEventType).


class _ToNode(Struct, frozen=True):
    """An event for a node."""

    node_id: NodeId


class RMNodeStarted(_ToNode, frozen=True):
    """The node's NM registered. `containers`: those that run there from before a restart of the RM."""

    containers: tuple[NMContainerStatus, ...]
    running_applications: tuple[ApplicationId, ...]
    health: NodeHealth


class RMNodeReconnected(_ToNode, frozen=True):
    """The node's NM registered again while the ResourceManager considered it connected."""

    http_port: int
    capability: Resource
    containers: tuple[NMContainerStatus, ...]
    running_applications: tuple[ApplicationId, ...]


class RMNodeStatusUpdate(_ToNode, frozen=True):
    """The node's NM sent a heartbeat."""

    heartbeat: NodeHeartbeatRequest


class RMNodeRebooting(_ToNode, frozen=True):
    """The response id of the node's NM does not fit: the NM has to register again."""


class RMNodeShutdown(_ToNode, frozen=True):
    """The node's NM unregistered, or an administrator removed its host from the include list."""


class RMNodeExpire(_ToNode, frozen=True):
    """The node's NM sent no heartbeat for too long."""


class RMNodeDecommission(_ToNode, frozen=True):
    """The node leaves the cluster now."""


class RMNodeGracefulDecommission(_ToNode, frozen=True):
    """The node leaves once it is empty, or after `timeout_s`; negative: no timeout."""

    timeout_s: int


class RMNodeRecommission(_ToNode, frozen=True):
    """The node is not to leave after all."""


class RMNodeResourceUpdate(_ToNode, frozen=True):
    """The node gets another size. If that is too small, containers are killed after the timeout; below 0: never."""

    capability: Resource
    over_commit_timeout_ms: int = -1


class RMNodeCleanupApp(_ToNode, frozen=True):
    """The application is over: the node's NM may forget it."""

    application_id: ApplicationId


class RMNodeCleanupContainer(_ToNode, frozen=True):
    """The node's NM must end the container."""

    container_id: ContainerId


class FinishedContainersPulledByAM(_ToNode, frozen=True):
    """The AM has received the ends of these containers, or no AM will ask: the node's NM may forget them."""

    container_ids: tuple[ContainerId, ...]


class RMNodeSignalContainer(_ToNode, frozen=True):
    """A client requests that a signal be sent to the container."""

    container_id: ContainerId
    command: SignalContainerCommand


RMNodeEvent: TypeAlias = (
    RMNodeStarted
    | RMNodeReconnected
    | RMNodeStatusUpdate
    | RMNodeRebooting
    | RMNodeShutdown
    | RMNodeExpire
    | RMNodeDecommission
    | RMNodeGracefulDecommission
    | RMNodeRecommission
    | RMNodeResourceUpdate
    | RMNodeCleanupApp
    | RMNodeCleanupContainer
    | FinishedContainersPulledByAM
    | UpdateContainer
    | RMNodeSignalContainer
)


# Events for the scheduler (SchedulerEventType).


class NodeAdded(Struct, frozen=True):
    """A node is usable. `containers`: containers that run there from before a restart of the ResourceManager."""

    node_id: NodeId
    containers: tuple[NMContainerStatus, ...] = ()


class NodeRemoved(Struct, frozen=True):
    """A node is no longer usable."""

    node_id: NodeId


class NodeUpdate(Struct, frozen=True):
    """A node sent a heartbeat: process what is new there, then place containers on it."""

    node_id: NodeId


class NodeResourceUpdate(Struct, frozen=True):
    """A node has another size. `over_commit_timeout_ms`: as in RMNodeResourceUpdate."""

    node_id: NodeId
    over_commit_timeout_ms: int = -1


class AppAdded(Struct, frozen=True):
    """An application is stored and can be added to a queue."""

    application_id: ApplicationId


class AppRemoved(Struct, frozen=True):
    """An application is over."""

    application_id: ApplicationId
    final_state_name: str


class AppAttemptAdded(Struct, frozen=True):
    """An attempt started; `transfers_containers` as in RMAppAttemptStart."""

    attempt_id: ApplicationAttemptId
    transfers_containers: bool


class AppAttemptRemoved(Struct, frozen=True):
    """An attempt is over. `keeps_containers`: the next attempt takes over the running containers."""

    attempt_id: ApplicationAttemptId
    final_state_name: str
    keeps_containers: bool


class ContainerExpired(Struct, frozen=True):
    """An allocated container was not started in time."""

    container_id: ContainerId


class IncreaseExpired(Struct, frozen=True):
    """The token of a container's larger size was not used in time."""

    container_id: ContainerId


class SchedulerTick(Struct, frozen=True):
    """Time has passed."""


# To the lists of applications and nodes (RMAppManagerEventType, NodesListManagerEventType)


class AppCompleted(Struct, frozen=True):
    """An application is over and is added to the completed ones."""

    application_id: ApplicationId


class NodeChanged(Struct, frozen=True):
    """A node became usable, unusable or decommissioning; applications are to be notified."""

    node_id: NodeId
    update: NodeUpdateType
