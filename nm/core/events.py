"""The events that a NodeManager's core handles: calls of AMs, answers of the RM, exits of processes, timers.

An event that is an RPC carries `call`, the shell's number for it; the core answers each such event with exactly one
`Reply` or `Refuse` of that number, in the same step. The shell, which has the keys, has checked all signatures.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from nm.core.effects import Signal
from yarn.containers import ContainerLaunchContext, ContainerTokenIdentifier, NMTokenIdentifier
from yarn.errors import YarnException
from yarn.ids import ApplicationId, ContainerId
from yarn.machine.effects import Call
from yarn.nodes import NodeHealth, ResourceUtilization
from yarn.protocols.container_management import SignalContainerRequest
from yarn.protocols.tracker import NodeHeartbeatResponse, RegisterNodeManagerResponse


class VerifiedStart(Struct, frozen=True):
    """One container to start; the signature of its token has been verified."""

    launch_context: ContainerLaunchContext
    token: ContainerTokenIdentifier


class StartContainers(Struct, frozen=True):
    """ContainerManagementProtocol.startContainers; answered with StartContainersResponse.

    `forged` is the error of the first request whose token has a wrong signature. The requests before it are started,
    those after it were dropped, and the whole call is refused with it (as Hadoop does).
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
    """ContainerManagementProtocol.updateContainer; answered with UpdateContainersResponse."""

    call: Call
    caller: NMTokenIdentifier
    tokens: tuple[ContainerTokenIdentifier, ...]


class SignalToContainer(Struct, frozen=True):
    """ContainerManagementProtocol.signalToContainer; answered with None."""

    call: Call
    caller: NMTokenIdentifier
    request: SignalContainerRequest


class LogsAggregated(Struct, frozen=True):
    """The answer to AggregateLogs: `problem` says why the logs could not be aggregated, empty if they are."""

    application_id: ApplicationId
    problem: str = ""


class Start(Struct, frozen=True):
    """The node is ready to serve: register it.

    `started_before`: containers that an earlier NM over the same directories started.
    """

    started_before: tuple[ContainerId, ...] = ()


class NodeRegistered(Struct, frozen=True):
    """The RM's answer to SendRegistration."""

    response: RegisterNodeManagerResponse


class RegistrationFailed(Struct, frozen=True):
    """SendRegistration could not reach the RM within the configured wait, or the RM refused it with an error."""

    problem: str


class NodeHeartbeatAnswered(Struct, frozen=True):
    """The RM's answer to SendHeartbeat. `updates`: the contents of the verified tokens in its containers_to_update."""

    response: NodeHeartbeatResponse
    updates: tuple[ContainerTokenIdentifier, ...] = ()


class NodeHeartbeatFailed(Struct, frozen=True):
    """SendHeartbeat failed. `unreachable`: the RM could not be reached within the configured wait."""

    problem: str
    unreachable: bool


class ResourceFetched(Struct, frozen=True):
    """FetchResource is done: the copy is at `path`."""

    fetch_id: int
    path: str
    size_bytes: int


class ResourceFetchFailed(Struct, frozen=True):
    """FetchResource failed; the container's AM receives `diagnostics`."""

    fetch_id: int
    diagnostics: str


class ContainerLaunched(Struct, frozen=True):
    """LaunchContainer started the process."""

    container_id: ContainerId
    launch: int


class LaunchFailed(Struct, frozen=True):
    """LaunchContainer could not start the process; `exit_status` is -1, or -101 if every disk is bad."""

    container_id: ContainerId
    launch: int
    exit_status: int
    problem: str


class LaunchCancelled(Struct, frozen=True):
    """The container was killed before LaunchContainer started its process."""

    container_id: ContainerId
    launch: int


class ErrorLogs(Struct, frozen=True):
    """The ends of a failed container's error logs.

    `prelaunch_tail`: the end of prelaunch.err, None if the file does not exist. `names`: the files whose name matches
    the stderr pattern, sorted; `newest` is the one last written, `newest_tail` its end.
    """

    prelaunch_tail: str | None = None
    names: tuple[str, ...] = ()
    newest: str = ""
    newest_tail: str = ""


class ContainerExited(Struct, frozen=True):
    """The container's process ended with `exit_code` (128 + the number for a signal).

    `wrapper_error`, `wrapper_output`: the output of the wrapper script itself, normally empty. `logs` are read only if
    the code is a failure.
    """

    container_id: ContainerId
    launch: int
    exit_code: int
    wrapper_error: str = ""
    wrapper_output: str = ""
    logs: ErrorLogs = ErrorLogs()


class ContainerSignalled(Struct, frozen=True):
    """A signal that a user ordered was sent to `pid`; `delivered` is False if that failed."""

    container_id: ContainerId
    command: str
    signal: Signal
    pid: int
    delivered: bool


class MemoryExceeded(Struct, frozen=True):
    """The container's process tree uses more memory than a limit; `diagnostics` lists the amounts and the processes."""

    container_id: ContainerId
    launch: int
    exit_status: int
    diagnostics: str


class UtilizationSampled(Struct, frozen=True):
    """The measured usage of all containers together, and of the whole node."""

    containers: ResourceUtilization
    node: ResourceUtilization


class HealthChecked(Struct, frozen=True):
    """The node's health, as just checked."""

    health: NodeHealth


class Tick(Struct, frozen=True):
    """The time of `next_deadline_ms` has come."""


class ShutDown(Struct, frozen=True):
    """The operator stops the node (SIGTERM): unregister, end all containers, stop."""


class UnregisterCompleted(Struct, frozen=True):
    """The RM has acknowledged unRegisterNodeManager, or did not in time."""


Event: TypeAlias = (
    StartContainers
    | StopContainers
    | GetContainerStatuses
    | UpdateContainers
    | SignalToContainer
    | LogsAggregated
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
