"""The events that a NodeManager's core handles: calls of AMs, answers of the RM, exits of processes, timers.

An event that is an RPC has a number, `call`, which the shell assigns. The core answers each such event in the same step
with exactly one `Reply` or `Refuse` of that number. The shell has already checked all signatures, because only the
shell has the keys.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from nm.core.effects import Signal
from nm.core.stored_state import RecoveredNode
from yarn.containers import ContainerLaunchContext, ContainerTokenIdentifier, NMTokenIdentifier
from yarn.errors import YarnException
from yarn.ids import ApplicationId, ContainerId
from yarn.machine import Tick
from yarn.machine.dispatcher import Call
from yarn.nodes import NodeHealth, ResourceUtilization
from yarn.protocols.container_management import SignalContainerRequest
from yarn.protocols.tracker import NodeHeartbeatResponse, RegisterNodeManagerResponse


class VerifiedStart(Struct, frozen=True):
    """A container to start. The signature of its token has been verified."""

    launch_context: ContainerLaunchContext
    token: ContainerTokenIdentifier


class StartContainers(Struct, frozen=True):
    """ContainerManagementProtocol.startContainers; answered with StartContainersResponse.

    `forged` is the error of the first request whose token has a wrong signature, None if there is no such request.
    If there is one, `requests` are those before it: they are started, and then the whole call is refused with
    `forged`, as in Hadoop.
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


class Recover(Struct, frozen=True):
    """The state that an earlier NodeManager of the node has stored. Comes before Start."""

    state: RecoveredNode


class Start(Struct, frozen=True):
    """The node is ready to serve and must register.

    `started_before` are the containers that an earlier NM started in the same directories.
    """

    started_before: tuple[ContainerId, ...] = ()


class NodeRegistered(Struct, frozen=True):
    """The RM's answer to SendRegistration."""

    response: RegisterNodeManagerResponse


class RegistrationFailed(Struct, frozen=True):
    """SendRegistration failed: the RM could not be reached within the configured time, or refused the node."""

    problem: str


class NodeHeartbeatAnswered(Struct, frozen=True):
    """The RM's answer to SendHeartbeat.

    `updates` are the verified contents of the tokens in its containers_to_update.
    """

    response: NodeHeartbeatResponse
    updates: tuple[ContainerTokenIdentifier, ...] = ()


class NodeHeartbeatFailed(Struct, frozen=True):
    """SendHeartbeat failed. `unreachable` is True if the RM could not be reached within the configured time."""

    problem: str
    unreachable: bool


class ResourceFetched(Struct, frozen=True):
    """FetchResource has succeeded: the copy is at `path`."""

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
    """The last part of each error log of a container that failed.

    `prelaunch_tail` is the end of prelaunch.err, None if that file does not exist. `names` are the files whose names
    match the stderr pattern, sorted. `newest` is the one that was written last, and `newest_tail` is its end.
    """

    prelaunch_tail: str | None = None
    names: tuple[str, ...] = ()
    newest: str = ""
    newest_tail: str = ""


class ContainerExited(Struct, frozen=True):
    """The container's process ended with `exit_code`, which is 128 + the signal number if a signal ended it.

    `wrapper_error` and `wrapper_output` are the output of the wrapper script itself, normally empty. `logs` are read
    only if the exit code means a failure.
    """

    container_id: ContainerId
    launch: int
    exit_code: int
    wrapper_error: str = ""
    wrapper_output: str = ""
    logs: ErrorLogs = ErrorLogs()


class ContainerSignalled(Struct, frozen=True):
    """A signal that a user requested was sent to process `pid`; `delivered` is False if sending failed."""

    container_id: ContainerId
    command: str
    signal: Signal
    pid: int
    delivered: bool


class LimitExceeded(Struct, frozen=True):
    """A container uses more memory, or has more bytes of logs, than a limit; `diagnostics` has the amounts."""

    container_id: ContainerId
    launch: int
    exit_status: int
    diagnostics: str


class UtilizationSampled(Struct, frozen=True):
    """The measured usage of all containers together, and of the whole node."""

    containers: ResourceUtilization
    node: ResourceUtilization


class HealthChecked(Struct, frozen=True):
    """The node's health, which has just been checked."""

    health: NodeHealth


class ShutDown(Struct, frozen=True):
    """The operator stops the node (SIGTERM): unregister, end all containers, then stop."""


class UnregisterCompleted(Struct, frozen=True):
    """unRegisterNodeManager is over: the RM has acknowledged the call, or the time limit for its answer has passed."""


Event: TypeAlias = (
    StartContainers
    | StopContainers
    | GetContainerStatuses
    | UpdateContainers
    | SignalToContainer
    | LogsAggregated
    | Recover
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
    | LimitExceeded
    | UtilizationSampled
    | HealthChecked
    | Tick
    | ShutDown
    | UnregisterCompleted
)
