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


class _ToApp(Struct, frozen=True):
    """The application that it is for."""

    application_id: ApplicationId


class RMAppStart(_ToApp, frozen=True):
    """It was submitted."""


class RMAppRecover(_ToApp, frozen=True):
    """An earlier ResourceManager stored it."""

    stored: StoredApplication


class RMAppKill(_ToApp, frozen=True):
    """A client or the ResourceManager kills it."""

    diagnostics: str


class AppRejected(_ToApp, frozen=True):
    """No queue takes it."""

    diagnostics: str


class AppAccepted(_ToApp, frozen=True):
    """Its queue took it."""


class AttemptLaunched(_ToApp, frozen=True):
    """The AM of its current attempt was launched."""


class AttemptRegistered(_ToApp, frozen=True):
    """The AM of its current attempt registered."""


class AttemptUnregistered(_ToApp, frozen=True):
    """The AM of its current attempt unregistered."""


class AttemptFinished(_ToApp, frozen=True):
    """Its current attempt is over, after its AM unregistered."""

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
    """It has, or had, a container on the node."""

    node_id: NodeId


class AppNewSaved(_ToApp, frozen=True):
    """Its submission is stored."""


class AppUpdateSaved(_ToApp, frozen=True):
    """Its outcome is stored."""


class AppSaveFailed(_ToApp, frozen=True):
    """Its submission cannot be stored."""

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


class _ToAttempt(Struct, frozen=True):
    """The attempt that it is for."""

    attempt_id: ApplicationAttemptId


class RMAppAttemptStart(_ToAttempt, frozen=True):
    """Its application starts it; `transfers_containers`: it takes over what the attempt before it left running."""

    transfers_containers: bool


class RMAppAttemptRecover(_ToAttempt, frozen=True):
    """An earlier ResourceManager stored it."""


class RMAppAttemptKill(_ToAttempt, frozen=True):
    """Its application is killed."""

    diagnostics: str


class RMAppAttemptFail(_ToAttempt, frozen=True):
    """A client has it fail."""

    diagnostics: str


class RMAppAttemptLaunched(_ToAttempt, frozen=True):
    """The NM accepted the start of its AM."""


class RMAppAttemptLaunchFailed(_ToAttempt, frozen=True):
    """The NM refused the start of its AM, or could not be reached in time."""

    diagnostics: str


class RMAppAttemptExpire(_ToAttempt, frozen=True):
    """Its AM sent nothing for too long, or its AM's container did not end in time."""


class RMAppAttemptRegistered(_ToAttempt, frozen=True):
    """Its AM registered."""

    request: RegisterApplicationMasterRequest


class RMAppAttemptStatusUpdate(_ToAttempt, frozen=True):
    """Its AM called allocate. `progress` is in 0..1; an empty `tracking_url` keeps the one before."""

    progress: float
    tracking_url: str


class RMAppAttemptUnregistered(_ToAttempt, frozen=True):
    """Its AM unregistered."""

    request: FinishApplicationMasterRequest


class RMAppAttemptContainerFinished(_ToAttempt, frozen=True):
    """A container that was allocated to it, perhaps that of its AM, ended."""

    node_id: NodeId
    status: ContainerStatus


class AttemptNewSaved(_ToAttempt, frozen=True):
    """It is stored, with its AM's container."""


class AttemptUpdateSaved(_ToAttempt, frozen=True):
    """Its outcome is stored."""


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


class _ToNode(Struct, frozen=True):
    """The node that it is for."""

    node_id: NodeId


class RMNodeStarted(_ToNode, frozen=True):
    """Its NM registered. `containers`: what it runs from before a restart of the ResourceManager."""

    containers: tuple[NMContainerStatus, ...]
    running_applications: tuple[ApplicationId, ...]
    health: NodeHealth


class RMNodeReconnected(_ToNode, frozen=True):
    """Its NM registered once more while the ResourceManager took it for connected."""

    http_port: int
    capability: Resource
    containers: tuple[NMContainerStatus, ...]
    running_applications: tuple[ApplicationId, ...]


class RMNodeStatusUpdate(_ToNode, frozen=True):
    """Its NM's heartbeat."""

    heartbeat: NodeHeartbeatRequest


class RMNodeRebooting(_ToNode, frozen=True):
    """Its NM's response id does not fit: it has to register again."""


class RMNodeShutdown(_ToNode, frozen=True):
    """Its NM unregistered, or an administrator took its host off the include list."""


class RMNodeExpire(_ToNode, frozen=True):
    """Its NM sent no heartbeat for too long."""


class RMNodeDecommission(_ToNode, frozen=True):
    """It leaves the cluster now."""


class RMNodeGracefulDecommission(_ToNode, frozen=True):
    """It leaves once it is empty, or after `timeout_s` (negative: it waits without end)."""

    timeout_s: int


class RMNodeRecommission(_ToNode, frozen=True):
    """It stays after all."""


class RMNodeResourceUpdate(_ToNode, frozen=True):
    """It has another size."""

    capability: Resource


class RMNodeCleanupApp(_ToNode, frozen=True):
    """The application is over: its NM may forget it."""

    application_id: ApplicationId


class RMNodeCleanupContainer(_ToNode, frozen=True):
    """Its NM must end the container."""

    container_id: ContainerId


class FinishedContainersPulledByAM(_ToNode, frozen=True):
    """The AM knows that these ended, or nobody will ask: its NM may forget them."""

    container_ids: tuple[ContainerId, ...]


class RMNodeSignalContainer(_ToNode, frozen=True):
    """A client wants a signal sent to the container."""

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
