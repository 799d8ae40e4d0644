"""The effects that a NodeManager's core returns. The shell carries them out in order."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, TypeAlias

from msgspec import Struct

from nm.core.stored_state import StoreEffect
from yarn.containers import LocalResource
from yarn.ids import ApplicationId, ContainerId
from yarn.machine import InvariantsBroken, Refuse, Reply, StateChanged, Warn
from yarn.protocols.tracker import NodeHeartbeatRequest, RegisterNodeManagerRequest
from yarn.records import SecretRecord
from yarn.resource import Resource
from yarn.states import ApplicationAccessType


class Signal(Enum):
    """The signals that an NM sends to containers; `value` is the signal number."""

    QUIT = 3
    KILL = 9
    TERM = 15


class SendRegistration(Struct, frozen=True):
    """Call registerNodeManager. The shell answers with NodeRegistered or RegistrationFailed."""

    request: RegisterNodeManagerRequest


class SendHeartbeat(Struct, frozen=True):
    """Call nodeHeartbeat. The shell answers with NodeHeartbeatAnswered or NodeHeartbeatFailed.

    At most one heartbeat is in progress. `at_once` is True if a container has ended: such a heartbeat is sent before
    the interval is over.
    """

    request: NodeHeartbeatRequest
    at_once: bool = False


class SendUnregistration(Struct, frozen=True):
    """Call unRegisterNodeManager; a failure is ignored. The shell answers with UnregisterCompleted."""


class EndNode(Struct, frozen=True):
    """End the node after the shell has carried out all earlier effects.

    `failure` says why the node cannot continue; it is empty after an orderly shutdown.
    """

    failure: str = ""


class LeaveContainers(Struct, frozen=True):
    """Leave the processes of containers running when the node ends: the next NodeManager recovers them."""


class EraseStoredState(Struct, frozen=True):
    """Erase the stored state when the node ends: the RM has taken the node out of use."""


class FetchResource(Struct, frozen=True):
    """Copy a file into a cache, and unpack it if it is an archive.

    Answered with ResourceFetched or ResourceFetchFailed. The copy goes into directory `number` of the cache that
    belongs to `resource.visibility`, `user` and `application_id`. `container_id` is the first container that requested
    the file.
    """

    fetch_id: int
    container_id: ContainerId
    user: str
    application_id: ApplicationId
    number: int
    resource: LocalResource


class DeleteResource(Struct, frozen=True):
    """Delete a cached copy, together with the numbered directory that contains it."""

    path: str


class LaunchContainer(SecretRecord, frozen=True):
    """Start a container's process.

    The shell answers with ContainerLaunched and later ContainerExited, or with LaunchFailed. `links` is {link name
    below the work directory: path of the copy}. `launch` counts the launches of the container: from the second launch
    on, the existing work and log directories are used. Every answer repeats `launch`. `resource` and `opportunistic`
    determine the CPU share. `emulation` names the rule by which the container is emulated; if it is empty, the
    container runs as a process.
    """

    secret_fields: ClassVar = ("tokens",)

    container_id: ContainerId
    launch: int
    user: str
    commands: tuple[str, ...]
    environment: dict[str, str]
    links: dict[str, str]
    localization_counters: str
    resource: Resource
    emulation: str = ""
    tokens: bytes = b""
    opportunistic: bool = False


class ReacquireContainer(Struct, frozen=True):
    """Watch a container that an earlier NodeManager has launched.

    The shell answers with ContainerLaunched and later ContainerExited, whose exit code the wrapper script has written
    into a file; ContainerExitStatus.LOST if there is none. `effect` is what launched it, `elapsed_ms` before this one.
    """

    effect: LaunchContainer
    elapsed_ms: int


class SignalProcess(Struct, frozen=True):
    """Send a signal to a container's process group. TERM and KILL also cancel a launch that has not happened yet.

    If `command` is set, a user requested the signal, and the shell answers with ContainerSignalled.
    """

    container_id: ContainerId
    launch: int
    signal: Signal
    command: str = ""


class MonitorContainer(Struct, frozen=True):
    """Monitor a container's process tree, and its logs if that is configured.

    The shell sends LimitExceeded if the tree uses more memory than a limit (bytes), or if there are too many logs.
    """

    container_id: ContainerId
    launch: int
    physical_memory_limit_bytes: int
    virtual_memory_limit_bytes: int


class ChangeMonitoring(Struct, frozen=True):
    """Change a container's memory limits (bytes) and vcores; ignored if the container has ended."""

    container_id: ContainerId
    physical_memory_limit_bytes: int
    virtual_memory_limit_bytes: int
    vcores: int = 1
    opportunistic: bool = False


class DeleteContainerFiles(Struct, frozen=True):
    """Delete a container's work directories and private directories from all local directories."""

    container_id: ContainerId
    user: str


class DeleteApplicationFiles(Struct, frozen=True):
    """Delete an application's caches and work directories from all local directories."""

    application_id: ApplicationId
    user: str


class DeleteApplicationLogs(Struct, frozen=True):
    """Delete an application's logs from all log directories."""

    application_id: ApplicationId


class AggregateLogs(Struct, frozen=True):
    """Write an application's logs into its file in the remote log directory; answer with LogsAggregated.

    `acls` {access: users, a blank, groups}, of the application's first container here, go into the file.
    """

    application_id: ApplicationId
    user: str
    acls: dict[ApplicationAccessType, str]


class InitAuxiliaryService(SecretRecord, frozen=True):
    """Pass service data of a container to an auxiliary service: its application uses the service on this node."""

    secret_fields: ClassVar = ("data",)

    service: str
    application_id: ApplicationId
    user: str
    data: bytes = b""


class StopAuxiliaryServices(Struct, frozen=True):
    """Have the auxiliary services forget an application: it has ended on this node."""

    application_id: ApplicationId


class ForgetApplicationKeys(Struct, frozen=True):
    """Forget the keys for the NM tokens of an application's attempts, because the application has
    ended on this node.
    """

    application_id: ApplicationId


Effect: TypeAlias = (
    Reply
    | Refuse
    | SendRegistration
    | SendHeartbeat
    | SendUnregistration
    | EndNode
    | LeaveContainers
    | EraseStoredState
    | StoreEffect
    | FetchResource
    | DeleteResource
    | LaunchContainer
    | ReacquireContainer
    | SignalProcess
    | MonitorContainer
    | ChangeMonitoring
    | DeleteContainerFiles
    | DeleteApplicationFiles
    | DeleteApplicationLogs
    | AggregateLogs
    | InitAuxiliaryService
    | StopAuxiliaryServices
    | ForgetApplicationKeys
    | StateChanged
    | Warn
    | InvariantsBroken
)
