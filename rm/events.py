"""Everything that can happen to the ResourceManager: an RPC that came in, an answer of an NM, the time.

An event that is an RPC carries `call`, the shell's number for it; the core answers each such event with exactly one
`Reply` or `Refuse` of that number, in the same step or (a store that must commit first) in a later one.
"""

from __future__ import annotations

from typing import TypeAlias

from rm.host_lists import HostLists
from rm.stored_state import RMState, Saving
from yarn.applications import ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.nodes import NodeLabel
from yarn.protocols.master import AllocateRequest, FinishApplicationMasterRequest, RegisterApplicationMasterRequest
from yarn.protocols.tracker import NodeHeartbeatRequest, RegisterNodeManagerRequest
from yarn.records import dataclass
from yarn.resource import Resource
from yarn.states import DecommissionType, SignalContainerCommand

Call: TypeAlias = int
"""The shell's number for an RPC that waits for its answer."""

Asker: TypeAlias = tuple[str, tuple[str, ...]]
"""The user that calls, with its groups, the primary one first."""


class _Asked:
    """A call that is granted by who makes it."""

    __slots__ = ()
    user: str
    groups: tuple[str, ...]

    @property
    def asker(self) -> Asker:
        return self.user, self.groups


@dataclass(frozen=True, slots=True)
class GetNewApplication:
    """ApplicationClientProtocol.getNewApplication; answered with GetNewApplicationResponse."""

    call: Call


@dataclass(frozen=True, slots=True)
class SubmitApplication:
    """ApplicationClientProtocol.submitApplication; answered with None. `groups`: the user's, primary first."""

    call: Call
    user: str
    context: ApplicationSubmissionContext
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KillApplication(_Asked):
    """ApplicationClientProtocol.forceKillApplication; answered with KillApplicationResponse.

    `diagnostics` is the whole sentence that the application keeps.
    """

    call: Call
    application_id: ApplicationId
    diagnostics: str
    user: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailApplicationAttempt(_Asked):
    """ApplicationClientProtocol.failApplicationAttempt; answered with None."""

    call: Call
    attempt_id: ApplicationAttemptId
    user: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MoveApplication(_Asked):
    """ApplicationClientProtocol.moveApplicationAcrossQueues; answered with None."""

    call: Call
    user: str
    application_id: ApplicationId
    queue: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UpdateApplicationPriority(_Asked):
    """ApplicationClientProtocol.updateApplicationPriority; answered with the priority that it has now."""

    call: Call
    application_id: ApplicationId
    priority: int
    user: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UpdateApplicationTimeouts(_Asked):
    """ApplicationClientProtocol.updateApplicationTimeouts; answered with the expiry that it has now.

    `expiry_ms`: when its lifetime ends, wall-clock ms; None if the caller named no timeout.
    """

    call: Call
    application_id: ApplicationId
    expiry_ms: int | None
    user: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SignalContainer(_Asked):
    """ApplicationClientProtocol.signalToContainer; answered with None."""

    call: Call
    container_id: ContainerId
    command: SignalContainerCommand
    user: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RegisterApplicationMaster:
    """ApplicationMasterProtocol.registerApplicationMaster; answered with RegisterApplicationMasterResponse."""

    call: Call
    attempt_id: ApplicationAttemptId
    request: RegisterApplicationMasterRequest


@dataclass(frozen=True, slots=True)
class Allocate:
    """ApplicationMasterProtocol.allocate; answered with AllocateResponse."""

    call: Call
    attempt_id: ApplicationAttemptId
    request: AllocateRequest


@dataclass(frozen=True, slots=True)
class FinishApplicationMaster:
    """ApplicationMasterProtocol.finishApplicationMaster; answered with FinishApplicationMasterResponse."""

    call: Call
    attempt_id: ApplicationAttemptId
    request: FinishApplicationMasterRequest


@dataclass(frozen=True, slots=True)
class RegisterNode:
    """ResourceTracker.registerNodeManager; answered with RegisterNodeManagerResponse (without keys).

    `rack` is the shell's answer for the host (`/default-rack` where no topology is configured).
    """

    call: Call
    request: RegisterNodeManagerRequest
    rack: str


@dataclass(frozen=True, slots=True)
class NodeHeartbeat:
    """ResourceTracker.nodeHeartbeat; answered with NodeHeartbeatResponse (without keys)."""

    call: Call
    request: NodeHeartbeatRequest


@dataclass(frozen=True, slots=True)
class UnregisterNode:
    """ResourceTracker.unRegisterNodeManager; answered with None."""

    call: Call
    node_id: NodeId


@dataclass(frozen=True, slots=True)
class RefreshQueues:
    """ResourceManagerAdministrationProtocol.refreshQueues; answered with None.

    `configuration` is read anew by the shell; it is applied whole, or refused whole with all its faults.
    """

    call: Call
    configuration: Configuration


@dataclass(frozen=True, slots=True)
class UpdateNodeResource:
    """ResourceManagerAdministrationProtocol.updateNodeResource; answered with None. One unknown node refuses all."""

    call: Call
    resources: tuple[tuple[NodeId, Resource], ...]


@dataclass(frozen=True, slots=True)
class AddClusterNodeLabels:
    """ResourceManagerAdministrationProtocol.addToClusterNodeLabels; answered with None. One bad name refuses all."""

    call: Call
    labels: tuple[NodeLabel, ...]


@dataclass(frozen=True, slots=True)
class RemoveClusterNodeLabels:
    """ResourceManagerAdministrationProtocol.removeFromClusterNodeLabels; answered with None.

    One that is unknown, or that a queue names among those it may use, refuses all.
    """

    call: Call
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplaceLabelsOnNodes:
    """ResourceManagerAdministrationProtocol.replaceLabelsOnNode; answered with None.

    `labels`: (node, its labels: one, or none to take its label away); a node with port 0 is a host with all its
    NodeManagers. `fail_on_unknown_nodes` refuses all for one node that the RM never heard of.
    """

    call: Call
    labels: tuple[tuple[NodeId, tuple[str, ...]], ...]
    fail_on_unknown_nodes: bool = False


@dataclass(frozen=True, slots=True)
class RefreshNodes:
    """ResourceManagerAdministrationProtocol.refreshNodes; answered with None.

    `hosts`: the lists, read anew by the shell. `timeout_s`: how long GRACEFUL waits where the list says nothing.
    """

    call: Call
    hosts: HostLists
    type: DecommissionType
    timeout_s: int


@dataclass(frozen=True, slots=True)
class RefreshClusterMaxPriority:
    """ResourceManagerAdministrationProtocol.refreshClusterMaxPriority; answered with None."""

    call: Call
    priority: int


@dataclass(frozen=True, slots=True)
class HostListsRead:
    """The RM starts: which hosts its files include and exclude."""

    hosts: HostLists


@dataclass(frozen=True, slots=True)
class MasterLaunched:
    """The NM accepted the start of the attempt's master."""

    attempt_id: ApplicationAttemptId


@dataclass(frozen=True, slots=True)
class MasterLaunchFailed:
    """The NM refused the start of the attempt's master, or could not be reached in time."""

    attempt_id: ApplicationAttemptId
    diagnostics: str


@dataclass(frozen=True, slots=True)
class StateLoaded:
    """The RM starts: what an earlier one stored. It comes before all that could ask for an application."""

    state: RMState


@dataclass(frozen=True, slots=True)
class Stood:
    """The ResourceManager did not run for so long (it was stopped, or starved): it can have heard of nobody."""

    for_ms: int


@dataclass(frozen=True, slots=True)
class ApplicationSaved:
    """What SaveApplication said is durable."""

    application_id: ApplicationId
    saving: Saving


@dataclass(frozen=True, slots=True)
class ApplicationSaveFailed:
    """A new application was not written, and is not going to be; `diagnostics`: why."""

    application_id: ApplicationId
    diagnostics: str


@dataclass(frozen=True, slots=True)
class AttemptSaved:
    """What SaveAttempt said is durable."""

    attempt_id: ApplicationAttemptId
    saving: Saving


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: the shell sends it at `next_deadline_ms`."""


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
    | MasterLaunched
    | MasterLaunchFailed
    | StateLoaded
    | Stood
    | ApplicationSaved
    | ApplicationSaveFailed
    | AttemptSaved
    | Tick
)
