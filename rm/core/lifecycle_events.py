"""The events between the state machines of the ResourceManager, under Hadoop's names; each carries its subject's id.

They are delivered in the step that sends them, first in, first out (yarn.machine.Dispatcher). What comes from outside
is in rm.core.events. Two notices of the scheduler, ContainerAllocated and AttemptAdded, go to an attempt as they are,
and UpdateContainer goes to a node.
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

# To an application (RMAppEventType)


class RMAppStart(Struct, frozen=True):
    """It was submitted."""

    application_id: ApplicationId


class RMAppRecover(Struct, frozen=True):
    """An earlier ResourceManager stored it."""

    application_id: ApplicationId
    stored: StoredApplication


class RMAppKill(Struct, frozen=True):
    """A client or the ResourceManager kills it."""

    application_id: ApplicationId
    diagnostics: str


class AppRejected(Struct, frozen=True):
    """No queue takes it."""

    application_id: ApplicationId
    diagnostics: str


class AppAccepted(Struct, frozen=True):
    """Its queue took it."""

    application_id: ApplicationId


class AttemptLaunched(Struct, frozen=True):
    """The AM of its current attempt was launched."""

    application_id: ApplicationId


class AttemptRegistered(Struct, frozen=True):
    """The AM of its current attempt registered."""

    application_id: ApplicationId


class AttemptUnregistered(Struct, frozen=True):
    """The AM of its current attempt unregistered."""

    application_id: ApplicationId


class AttemptFinished(Struct, frozen=True):
    """Its current attempt is over, after its AM unregistered."""

    application_id: ApplicationId
    diagnostics: str


class AttemptFailed(Struct, frozen=True):
    """Its current attempt failed; `transfers_containers`: the next attempt takes over the containers that run."""

    application_id: ApplicationId
    diagnostics: str
    transfers_containers: bool


class AttemptKilled(Struct, frozen=True):
    """Its current attempt was killed."""

    application_id: ApplicationId
    diagnostics: str


class RMAppNodeUpdate(Struct, frozen=True):
    """A node became usable, unusable or decommissioning."""

    application_id: ApplicationId
    node_id: NodeId
    update: NodeUpdateType


class AppRunningOnNode(Struct, frozen=True):
    """It has, or had, a container on the node."""

    application_id: ApplicationId
    node_id: NodeId


class AppNewSaved(Struct, frozen=True):
    """Its submission is stored."""

    application_id: ApplicationId


class AppUpdateSaved(Struct, frozen=True):
    """Its outcome is stored."""

    application_id: ApplicationId


class AppSaveFailed(Struct, frozen=True):
    """Its submission cannot be stored."""

    application_id: ApplicationId
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


# To an attempt (RMAppAttemptEventType)


class RMAppAttemptStart(Struct, frozen=True):
    """Its application starts it; `transfers_containers`: it takes over what the attempt before it left running."""

    attempt_id: ApplicationAttemptId
    transfers_containers: bool


class RMAppAttemptRecover(Struct, frozen=True):
    """An earlier ResourceManager stored it."""

    attempt_id: ApplicationAttemptId


class RMAppAttemptKill(Struct, frozen=True):
    """Its application is killed."""

    attempt_id: ApplicationAttemptId
    diagnostics: str


class RMAppAttemptFail(Struct, frozen=True):
    """A client has it fail."""

    attempt_id: ApplicationAttemptId
    diagnostics: str


class RMAppAttemptLaunched(Struct, frozen=True):
    """The NM accepted the start of its AM."""

    attempt_id: ApplicationAttemptId


class RMAppAttemptLaunchFailed(Struct, frozen=True):
    """The NM refused the start of its AM, or could not be reached in time."""

    attempt_id: ApplicationAttemptId
    diagnostics: str


class RMAppAttemptExpire(Struct, frozen=True):
    """Its AM sent nothing for too long, or its AM's container did not end in time."""

    attempt_id: ApplicationAttemptId


class RMAppAttemptRegistered(Struct, frozen=True):
    """Its AM registered."""

    attempt_id: ApplicationAttemptId
    request: RegisterApplicationMasterRequest


class RMAppAttemptStatusUpdate(Struct, frozen=True):
    """Its AM called allocate. `progress` is in 0..1; an empty `tracking_url` keeps the one before."""

    attempt_id: ApplicationAttemptId
    progress: float
    tracking_url: str


class RMAppAttemptUnregistered(Struct, frozen=True):
    """Its AM unregistered."""

    attempt_id: ApplicationAttemptId
    request: FinishApplicationMasterRequest


class RMAppAttemptContainerFinished(Struct, frozen=True):
    """A container that was allocated to it, perhaps that of its AM, ended."""

    attempt_id: ApplicationAttemptId
    node_id: NodeId
    status: ContainerStatus


class AttemptNewSaved(Struct, frozen=True):
    """It is stored, with its AM's container."""

    attempt_id: ApplicationAttemptId


class AttemptUpdateSaved(Struct, frozen=True):
    """Its outcome is stored."""

    attempt_id: ApplicationAttemptId


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


# To a node (RMNodeEventType)


class RMNodeStarted(Struct, frozen=True):
    """Its NM registered. `containers`: what it runs from before a restart of the ResourceManager."""

    node_id: NodeId
    containers: tuple[NMContainerStatus, ...]
    running_applications: tuple[ApplicationId, ...]
    health: NodeHealth


class RMNodeReconnected(Struct, frozen=True):
    """Its NM registered once more while the ResourceManager took it for connected."""

    node_id: NodeId
    http_port: int
    capability: Resource
    containers: tuple[NMContainerStatus, ...]
    running_applications: tuple[ApplicationId, ...]


class RMNodeStatusUpdate(Struct, frozen=True):
    """Its NM's heartbeat."""

    node_id: NodeId
    heartbeat: NodeHeartbeatRequest


class RMNodeRebooting(Struct, frozen=True):
    """Its NM's response id does not fit: it has to register again."""

    node_id: NodeId


class RMNodeShutdown(Struct, frozen=True):
    """Its NM unregistered, or an administrator took its host off the include list."""

    node_id: NodeId


class RMNodeExpire(Struct, frozen=True):
    """Its NM sent no heartbeat for too long."""

    node_id: NodeId


class RMNodeDecommission(Struct, frozen=True):
    """It leaves the cluster now."""

    node_id: NodeId


class RMNodeGracefulDecommission(Struct, frozen=True):
    """It leaves once it is empty, or after `timeout_s` (negative: it waits without end)."""

    node_id: NodeId
    timeout_s: int


class RMNodeRecommission(Struct, frozen=True):
    """It stays after all."""

    node_id: NodeId


class RMNodeResourceUpdate(Struct, frozen=True):
    """It has another size."""

    node_id: NodeId
    capability: Resource


class RMNodeCleanupApp(Struct, frozen=True):
    """The application is over: its NM may forget it."""

    node_id: NodeId
    application_id: ApplicationId


class RMNodeCleanupContainer(Struct, frozen=True):
    """Its NM must end the container."""

    node_id: NodeId
    container_id: ContainerId


class FinishedContainersPulledByAM(Struct, frozen=True):
    """The AM knows that these ended, or nobody will ask: its NM may forget them."""

    node_id: NodeId
    container_ids: tuple[ContainerId, ...]


class RMNodeSignalContainer(Struct, frozen=True):
    """A client wants a signal sent to the container."""

    node_id: NodeId
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


# To the scheduler (SchedulerEventType)


class NodeAdded(Struct, frozen=True):
    """A node is usable. `containers`: what it runs from before a restart of the ResourceManager."""

    node_id: NodeId
    containers: tuple[NMContainerStatus, ...] = ()


class NodeRemoved(Struct, frozen=True):
    """A node is not usable any more."""

    node_id: NodeId


class NodeUpdate(Struct, frozen=True):
    """A node sent a heartbeat: take what is new there, then place containers on it."""

    node_id: NodeId


class NodeResourceUpdate(Struct, frozen=True):
    """A node has another size."""

    node_id: NodeId


class AppAdded(Struct, frozen=True):
    """An application is stored: its queue may take it."""

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
    """An attempt is over; `keeps_containers`: the next attempt takes over what runs."""

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
    """An application is over: it counts among the completed ones."""

    application_id: ApplicationId


class NodeChanged(Struct, frozen=True):
    """A node became usable, unusable or decommissioning: the applications are to know."""

    node_id: NodeId
    update: NodeUpdateType
