"""Everything that can happen to the ResourceManager: an RPC, an answer of an NM or of the store, the time.

An event that is an RPC carries `call`, the shell's number for it; the core answers each such event with exactly one
`Reply` or `Refuse` of that number, in the same step or (a store that must commit first) in a later one.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from msgspec import Struct

from rm.core.host_lists import HostLists
from rm.core.stored_state import RMState, Saving
from yarn.applications import ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import Tick
from yarn.machine.effects import Call
from yarn.nodes import NodeLabel
from yarn.protocols.master import AllocateRequest, FinishApplicationMasterRequest, RegisterApplicationMasterRequest
from yarn.protocols.tracker import NodeHeartbeatRequest, RegisterNodeManagerRequest
from yarn.resource import Resource
from yarn.states import DecommissionType, SignalContainerCommand

Asker: TypeAlias = tuple[str, tuple[str, ...]]
"""The user that calls, with its groups, the primary one first."""


class _CalledByUser(Protocol):
    @property
    def user(self) -> str: ...
    @property
    def groups(self) -> tuple[str, ...]: ...


def asker_of(event: _CalledByUser) -> Asker:
    """Who made the call."""
    return event.user, event.groups


class GetNewApplication(Struct, frozen=True):
    """ApplicationClientProtocol.getNewApplication; answered with GetNewApplicationResponse."""

    call: Call


class SubmitApplication(Struct, frozen=True):
    """ApplicationClientProtocol.submitApplication; answered with None. `groups`: the user's, primary first."""

    call: Call
    user: str
    context: ApplicationSubmissionContext
    groups: tuple[str, ...] = ()


class KillApplication(Struct, frozen=True):
    """ApplicationClientProtocol.forceKillApplication; answered with KillApplicationResponse.

    `diagnostics` is the whole sentence that the application keeps.
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
    """ApplicationClientProtocol.updateApplicationPriority; answered with the priority that it has now."""

    call: Call
    application_id: ApplicationId
    priority: int
    user: str
    groups: tuple[str, ...] = ()


class UpdateApplicationTimeouts(Struct, frozen=True):
    """ApplicationClientProtocol.updateApplicationTimeouts; answered with the expiry that it has now.

    `expiry_ms`: when its lifetime ends, wall-clock ms; None if the caller named no timeout.
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

    `rack` is the shell's answer for the host (`/default-rack` where no topology is configured).
    """

    call: Call
    request: RegisterNodeManagerRequest
    rack: str


class NodeHeartbeat(Struct, frozen=True):
    """ResourceTracker.nodeHeartbeat; answered with NodeHeartbeatResponse (without keys)."""

    call: Call
    request: NodeHeartbeatRequest


class UnregisterNode(Struct, frozen=True):
    """ResourceTracker.unRegisterNodeManager; answered with None."""

    call: Call
    node_id: NodeId


class RefreshQueues(Struct, frozen=True):
    """ResourceManagerAdministrationProtocol.refreshQueues; answered with None.

    The shell has read `configuration` again; it is applied whole, or refused whole with all its faults.
    """

    call: Call
    configuration: Configuration


class UpdateNodeResource(Struct, frozen=True):
    """ResourceManagerAdministrationProtocol.updateNodeResource; answered with None. An unknown node refuses all."""

    call: Call
    resources: tuple[tuple[NodeId, Resource], ...]


class AddClusterNodeLabels(Struct, frozen=True):
    """ResourceManagerAdministrationProtocol.addToClusterNodeLabels; answered with None. A bad name refuses all."""

    call: Call
    labels: tuple[NodeLabel, ...]


class RemoveClusterNodeLabels(Struct, frozen=True):
    """ResourceManagerAdministrationProtocol.removeFromClusterNodeLabels; answered with None.

    Refused whole for an unknown label, or one that a queue names among those it may use.
    """

    call: Call
    labels: tuple[str, ...]


class ReplaceLabelsOnNodes(Struct, frozen=True):
    """ResourceManagerAdministrationProtocol.replaceLabelsOnNode; answered with None.

    `labels`: (node, its labels: one, or none to take its label away); a node with port 0 is a host with all its
    NodeManagers. With `fail_on_unknown_nodes` it is refused whole for a node that never registered.
    """

    call: Call
    labels: tuple[tuple[NodeId, tuple[str, ...]], ...]
    fail_on_unknown_nodes: bool = False


class RefreshNodes(Struct, frozen=True):
    """ResourceManagerAdministrationProtocol.refreshNodes; answered with None.

    `hosts`: the lists, which the shell has read again. `timeout_s`: for GRACEFUL, and hosts without a timeout.
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
    """The RM starts: the hosts that its files include and exclude."""

    hosts: HostLists


class AMLaunched(Struct, frozen=True):
    """The NM accepted the start of the attempt's AM."""

    attempt_id: ApplicationAttemptId


class AMLaunchFailed(Struct, frozen=True):
    """The NM refused the start of the attempt's AM, or could not be reached in time."""

    attempt_id: ApplicationAttemptId
    diagnostics: str


class StateLoaded(Struct, frozen=True):
    """The RM starts: what an earlier one stored. It comes before every call."""

    state: RMState


class ProcessStalled(Struct, frozen=True):
    """The process did not run for `for_ms` (SIGSTOP, starvation), so it could not process any heartbeat."""

    for_ms: int


class ApplicationSaved(Struct, frozen=True):
    """What SaveApplication wrote is durable."""

    application_id: ApplicationId
    saving: Saving


class ApplicationSaveFailed(Struct, frozen=True):
    """A new application could not be written, and will not be; `diagnostics`: why."""

    application_id: ApplicationId
    diagnostics: str


class AttemptSaved(Struct, frozen=True):
    """What SaveAttempt wrote is durable."""

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
