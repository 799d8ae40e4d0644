"""Everything that can happen to a NodeManager: a call of an AM, an answer of the RM, a process that ended, the time.

An event that is an RPC carries `call`, the shell's number for it; the core answers each such event with exactly one
`Reply` or `Refuse` of that number, in the same step. Signatures were checked by the shell, which alone has the keys.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from nm.core.effects import Signal
from yarn.containers import ContainerLaunchContext, ContainerTokenIdentifier, NMTokenIdentifier
from yarn.errors import YarnException
from yarn.ids import ContainerId
from yarn.machine.effects import Call
from yarn.nodes import NodeHealth, ResourceUtilization
from yarn.protocols.container_management import SignalContainerRequest
from yarn.protocols.tracker import NodeHeartbeatResponse, RegisterNodeManagerResponse


class VerifiedStart(Struct, frozen=True):
    """One container to start, its token's signature checked."""

    launch_context: ContainerLaunchContext
    token: ContainerTokenIdentifier


class StartContainers(Struct, frozen=True):
    """ContainerManagementProtocol.startContainers; answered with StartContainersResponse.

    `forged` is the error of the first request whose token's signature is not good: the requests before it are
    started, those after it are not here, and the whole call is refused with it (as Hadoop does).
    """

    call: Call
    caller: NMTokenIdentifier
    requests: tuple[VerifiedStart, ...]
    forged: YarnException | None = None


class StopContainers(Struct, frozen=True):
    """ContainerManagementProtocol.stopContainers; answered with StopContainersResponse."""

    call: Call
    caller: NMTokenIdentifier
    container_ids: tuple[ContainerId, ...]


class GetContainerStatuses(Struct, frozen=True):
    """ContainerManagementProtocol.getContainerStatuses; answered with GetContainerStatusesResponse."""

    call: Call
    caller: NMTokenIdentifier
    container_ids: tuple[ContainerId, ...]


class UpdateContainers(Struct, frozen=True):
    """ContainerManagementProtocol.updateContainer; answered with UpdateContainersResponse. The seals are checked."""

    call: Call
    caller: NMTokenIdentifier
    tokens: tuple[ContainerTokenIdentifier, ...]


class SignalToContainer(Struct, frozen=True):
    """ContainerManagementProtocol.signalToContainer; answered with None."""

    call: Call
    caller: NMTokenIdentifier
    request: SignalContainerRequest


class Start(Struct, frozen=True):
    """The node is ready to serve: register it.

    `started_before`: containers that an earlier NM on the same directories started.
    """

    started_before: tuple[ContainerId, ...] = ()


class NodeRegistered(Struct, frozen=True):
    """The RM's answer to SendRegistration."""

    response: RegisterNodeManagerResponse


class RegistrationFailed(Struct, frozen=True):
    """SendRegistration did not reach the RM within the configured wait, or the RM refused it with an error."""

    problem: str


class NodeHeartbeatAnswered(Struct, frozen=True):
    """The RM's answer to SendHeartbeat. `updates`: what the tokens of its containers_to_update say."""

    response: NodeHeartbeatResponse
    updates: tuple[ContainerTokenIdentifier, ...] = ()


class NodeHeartbeatFailed(Struct, frozen=True):
    """SendHeartbeat got no answer. `unreachable`: the RM was not reached within the configured wait."""

    problem: str
    unreachable: bool


class ResourceFetched(Struct, frozen=True):
    """FetchResource is done: the copy is at `path`."""

    fetch_id: int
    path: str
    size_bytes: int


class ResourceFetchFailed(Struct, frozen=True):
    """FetchResource failed; `diagnostics` is what the container's AM gets to read."""

    fetch_id: int
    diagnostics: str


class ContainerLaunched(Struct, frozen=True):
    """LaunchContainer started the process."""

    container_id: ContainerId
    launch: int


class LaunchFailed(Struct, frozen=True):
    """LaunchContainer could not start the process; `exit_status` is -1, or -101 if no disk is good."""

    container_id: ContainerId
    launch: int
    exit_status: int
    problem: str


class LaunchCancelled(Struct, frozen=True):
    """The container was killed before LaunchContainer started its process."""

    container_id: ContainerId
    launch: int


class ErrorLogs(Struct, frozen=True):
    """What a failed container left on its error streams.

    `prelaunch_tail`: the end of prelaunch.err, None if there is no such file. `names`: the files named like a stderr,
    sorted; `newest` is the one last written, `newest_tail` its end.
    """

    prelaunch_tail: str | None = None
    names: tuple[str, ...] = ()
    newest: str = ""
    newest_tail: str = ""


class ContainerExited(Struct, frozen=True):
    """The container's process ended with `exit_code` (128 + the number for a signal).

    `wrapper_error`, `wrapper_output`: what the wrapper itself printed, normally nothing. `logs` are read only for a
    code that is a failure.
    """

    container_id: ContainerId
    launch: int
    exit_code: int
    wrapper_error: str = ""
    wrapper_output: str = ""
    logs: ErrorLogs = ErrorLogs()


class ContainerSignalled(Struct, frozen=True):
    """A signal that a user ordered was sent to `pid`, or could not be."""

    container_id: ContainerId
    command: str
    signal: Signal
    pid: int
    delivered: bool


class MemoryExceeded(Struct, frozen=True):
    """The container's process tree is above a limit; `diagnostics` has the numbers and the processes."""

    container_id: ContainerId
    launch: int
    exit_status: int
    diagnostics: str


class UtilizationSampled(Struct, frozen=True):
    """What the containers, and the whole node, really use now."""

    containers: ResourceUtilization
    node: ResourceUtilization


class HealthChecked(Struct, frozen=True):
    """The node's health as of now."""

    health: NodeHealth


class Tick(Struct, frozen=True):
    """A deadline of `next_deadline_ms` has come."""


class ShutDown(Struct, frozen=True):
    """The operator stops the node (SIGTERM): unregister, end every container, stop."""


class UnregisterCompleted(Struct, frozen=True):
    """The RM has answered unRegisterNodeManager, or is not waited for any longer."""


Event: TypeAlias = (
    StartContainers
    | StopContainers
    | GetContainerStatuses
    | UpdateContainers
    | SignalToContainer
    | Start
    | NodeRegistered
    | RegistrationFailed
    | NodeHeartbeatAnswered
    | NodeHeartbeatFailed
    | ResourceFetched
    | ResourceFetchFailed
    | ContainerLaunched
    | LaunchFailed
    | LaunchCancelled
    | ContainerExited
    | ContainerSignalled
    | MemoryExceeded
    | UtilizationSampled
    | HealthChecked
    | Tick
    | ShutDown
    | UnregisterCompleted
)
