"""The events of the ResourceManager's core: RPCs, results of the shell's actions, and the passing of time.

An event that is an RPC carries `call`, the shell's number for it. The core answers each such event with exactly one
`Reply` or `Refuse` of that number, in the same step or in a later one (if something must be stored first).
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from msgspec import Struct

from rm.core.host_lists import HostLists
from rm.core.stored_state import RMState, Saving
from yarn.applications import ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.containers import ContainerStatus
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import Tick
from yarn.machine.dispatcher import Call
from yarn.nodes import NodeLabel
from yarn.protocols.admin import NodeResources
from yarn.protocols.master import AllocateRequest, FinishApplicationMasterRequest, RegisterApplicationMasterRequest
from yarn.protocols.tracker import NodeHeartbeatRequest, RegisterNodeManagerRequest
from yarn.states import DecommissionType, SignalContainerCommand

Asker: TypeAlias = tuple[str, tuple[str, ...]]
"""The calling user and the user's groups, the primary one first."""


class _CalledByUser(Protocol):
    @property
    def user(self) -> str: ...
    @property
    def groups(self) -> tuple[str, ...]: ...


def asker_of(event: _CalledByUser) -> Asker:
    """The caller of the event: (user, groups)."""
    return event.user, event.groups


class GetNewApplication(Struct, frozen=True):
    """ApplicationClientProtocol.getNewApplication; answered with GetNewApplicationResponse."""

    call: Call


class SubmitApplication(Struct, frozen=True):
    """ApplicationClientProtocol.submitApplication; answered with None.

    `groups`: the user's, primary first. `tag_groups`: those of the user whom a tag names (see `tagged_user`).
    """

    call: Call
    user: str
    context: ApplicationSubmissionContext
    groups: tuple[str, ...] = ()
    tag_groups: tuple[str, ...] = ()


class KillApplication(Struct, frozen=True):
    """ApplicationClientProtocol.forceKillApplication; answered with KillApplicationResponse.

    `diagnostics` becomes the diagnostics of the application, without any addition.
    """

    call: Call
    application_id: ApplicationId
    diagnostics: str
    user: str = ""
    groups: tuple[str, ...] = ()


class FailApplicationAttempt(Struct, frozen=True):
    """ApplicationClientProtocol.failApplicationAttempt; answered with None."""

    call: Call
    attempt_id: ApplicationAttemptId
    user: str = ""
    groups: tuple[str, ...] = ()


class MoveApplication(Struct, frozen=True):
    """ApplicationClientProtocol.moveApplicationAcrossQueues; answered with None."""

    call: Call
    user: str
    application_id: ApplicationId
    queue: str
    groups: tuple[str, ...] = ()


class UpdateApplicationPriority(Struct, frozen=True):
    """ApplicationClientProtocol.updateApplicationPriority; answered with the new priority."""

    call: Call
    application_id: ApplicationId
    priority: int
    user: str
    groups: tuple[str, ...] = ()


class UpdateApplicationTimeouts(Struct, frozen=True):
    """ApplicationClientProtocol.updateApplicationTimeouts; answered with the new `expiry_ms`.

    `expiry_ms`: when the application's lifetime ends, wall-clock ms; None if the request has no timeout.
    """

    call: Call
    application_id: ApplicationId
    expiry_ms: int | None
    user: str = ""
    groups: tuple[str, ...] = ()


class SignalContainer(Struct, frozen=True):
    """ApplicationClientProtocol.signalToContainer; answered with None."""

    call: Call
    container_id: ContainerId
    command: SignalContainerCommand
    user: str = ""
    groups: tuple[str, ...] = ()


class RegisterApplicationMaster(Struct, frozen=True):
    """ApplicationMasterProtocol.registerApplicationMaster; answered with RegisterApplicationMasterResponse."""

    call: Call
    attempt_id: ApplicationAttemptId
    request: RegisterApplicationMasterRequest


class Allocate(Struct, frozen=True):
    """ApplicationMasterProtocol.allocate; answered with AllocateResponse."""

    call: Call
    attempt_id: ApplicationAttemptId
    request: AllocateRequest


class FinishApplicationMaster(Struct, frozen=True):
    """ApplicationMasterProtocol.finishApplicationMaster; answered with FinishApplicationMasterResponse."""

    call: Call
    attempt_id: ApplicationAttemptId
    request: FinishApplicationMasterRequest


class RegisterNode(Struct, frozen=True):
    """ResourceTracker.registerNodeManager; answered with RegisterNodeManagerResponse (without keys).

    `rack`: the rack of the host by the shell's topology, or `/default-rack`.
    """

    call: Call
    request: RegisterNodeManagerRequest
    rack: str


class NodeHeartbeat(Struct, frozen=True):
    """ResourceTracker.nodeHeartbeat; answered with NodeHeartbeatResponse (without keys)."""

    call: Call
    request: NodeHeartbeatRequest


class QuietHeartbeat(Struct, frozen=True):
    """A heartbeat of a node whose heartbeats are left out. It contains nothing new, and nothing waits for the node, but
    the scheduler may place containers there (rm.core.quiet_nodes). Only simulations send it."""

    node_id: NodeId


class PlayedHeartbeat(Struct, frozen=True):
    """A heartbeat of a node whose heartbeats are left out, answered with NodeHeartbeatResponse (rm.core.quiet_nodes).

    `news`: the statuses of containers that its last heartbeat did not contain. Only simulations send it.
    """

    call: Call
    node_id: NodeId
    news: tuple[ContainerStatus, ...]


class UnregisterNode(Struct, frozen=True):
    """ResourceTracker.unRegisterNodeManager; answered with None."""

    call: Call
    node_id: NodeId


class RefreshQueues(Struct, frozen=True):
    """ResourceManagerAdministrationProtocol.refreshQueues; answered with None.

    `configuration` is what the shell has read again. It is applied as a whole, or refused with all its faults.
    """

    call: Call
    configuration: Configuration


class UpdateNodeResource(Struct, frozen=True):
    """ResourceManagerAdministrationProtocol.updateNodeResource; answered with None.

    One unknown node refuses the call.
    """

    call: Call
    resources: NodeResources


class AddClusterNodeLabels(Struct, frozen=True):
    """ResourceManagerAdministrationProtocol.addToClusterNodeLabels; answered with None.

    One bad name refuses the call.
    """

    call: Call
    labels: tuple[NodeLabel, ...]


class RemoveClusterNodeLabels(Struct, frozen=True):
    """ResourceManagerAdministrationProtocol.removeFromClusterNodeLabels; answered with None.

    The call is refused if one of the labels is unknown, or is among the accessible labels of a queue.
    """

    call: Call
    labels: tuple[str, ...]


class ReplaceLabelsOnNodes(Struct, frozen=True):
    """ResourceManagerAdministrationProtocol.replaceLabelsOnNode; answered with None.

    `labels`: (node, its new labels: one, or none to remove its label); port 0 means all NodeManagers of the host. With
    `fail_on_unknown_nodes` the call is refused if one of the nodes never registered.
    """

    call: Call
    labels: tuple[tuple[NodeId, tuple[str, ...]], ...]
    fail_on_unknown_nodes: bool = False


class RefreshNodes(Struct, frozen=True):
    """ResourceManagerAdministrationProtocol.refreshNodes; answered with None.

    `hosts`: the lists, which the shell has read again. `timeout_s`: for a GRACEFUL refresh, the timeout of hosts that
    have none of their own in the list.
    """

    call: Call
    hosts: HostLists
    type: DecommissionType
    timeout_s: int


class RefreshClusterMaxPriority(Struct, frozen=True):
    """ResourceManagerAdministrationProtocol.refreshClusterMaxPriority; answered with None."""

    call: Call
    priority: int


class HostListsRead(Struct, frozen=True):
    """The host lists as read at the RM's start."""

    hosts: HostLists


class AMLaunched(Struct, frozen=True):
    """The NM accepted the start of the attempt's AM."""

    attempt_id: ApplicationAttemptId


class AMLaunchFailed(Struct, frozen=True):
    """The NM refused the start of the attempt's AM, or could not be reached in time."""

    attempt_id: ApplicationAttemptId
    diagnostics: str


class StateLoaded(Struct, frozen=True):
    """The state that an earlier RM stored. It is the first event, before every call."""

    state: RMState


class ProcessStalled(Struct, frozen=True):
    """The process did not run for `for_ms` (SIGSTOP, starvation), so it could not process any heartbeat."""

    for_ms: int


class ApplicationSaved(Struct, frozen=True):
    """The record of a SaveApplication effect is durable."""

    application_id: ApplicationId
    saving: Saving


class ApplicationSaveFailed(Struct, frozen=True):
    """A new application could not be stored and will not be. `diagnostics`: the reason."""

    application_id: ApplicationId
    diagnostics: str


class AttemptSaved(Struct, frozen=True):
    """The record of a SaveAttempt effect is durable."""

    attempt_id: ApplicationAttemptId
    saving: Saving


Event: TypeAlias = (
    GetNewApplication
    | SubmitApplication
    | KillApplication
    | FailApplicationAttempt
    | MoveApplication
    | UpdateApplicationPriority
    | UpdateApplicationTimeouts
    | SignalContainer
    | RegisterApplicationMaster
    | Allocate
    | FinishApplicationMaster
    | RegisterNode
    | NodeHeartbeat
    | QuietHeartbeat
    | PlayedHeartbeat
    | UnregisterNode
    | RefreshQueues
    | UpdateNodeResource
    | AddClusterNodeLabels
    | RemoveClusterNodeLabels
    | ReplaceLabelsOnNodes
    | RefreshNodes
    | RefreshClusterMaxPriority
    | HostListsRead
    | AMLaunched
    | AMLaunchFailed
    | StateLoaded
    | ProcessStalled
    | ApplicationSaved
    | ApplicationSaveFailed
    | AttemptSaved
    | Tick
)
