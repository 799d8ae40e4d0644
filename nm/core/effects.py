"""The effects of the NodeManager's core. The shell carries them out in order."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, TypeAlias

from msgspec import Struct

from yarn.containers import LocalResource
from yarn.ids import ApplicationId, ContainerId
from yarn.machine import InvariantsBroken, Refuse, Reply, StateChanged, Warn
from yarn.protocols.tracker import NodeHeartbeatRequest, RegisterNodeManagerRequest
from yarn.records import SecretRecord
from yarn.resource import Resource
from yarn.states import ApplicationAccessType


class Signal(Enum):
    """The signals that an NM sends; `value` is the number."""

    QUIT = 3
    KILL = 9
    TERM = 15


class SendRegistration(Struct, frozen=True):
    """Send registerNodeManager; answer with NodeRegistered or RegistrationFailed."""

    request: RegisterNodeManagerRequest


class SendHeartbeat(Struct, frozen=True):
    """Send nodeHeartbeat; answer with NodeHeartbeatAnswered or NodeHeartbeatFailed. At most one is in progress.

    `at_once`: a container has ended, so it is sent before the interval is over.
    """

    request: NodeHeartbeatRequest
    at_once: bool = False


class SendUnregistration(Struct, frozen=True):
    """Send unRegisterNodeManager, best effort; answer with UnregisterCompleted."""


class EndNode(Struct, frozen=True):
    """End the node, after the earlier effects. `failure` says why it cannot go on; empty for an orderly end."""

    failure: str = ""


class FetchResource(Struct, frozen=True):
    """Copy (and unpack) a file into a cache; answer with ResourceFetched or ResourceFetchFailed.

    The copy goes to directory `number` of the cache for `resource.visibility`, `user` and `application_id`.
    `container_id` is the first container that requested it.
    """

    fetch_id: int
    container_id: ContainerId
    user: str
    application_id: ApplicationId
    number: int
    resource: LocalResource


class DeleteResource(Struct, frozen=True):
    """Delete a cached copy, with the numbered directory that contains it."""

    path: str


class LaunchContainer(SecretRecord, frozen=True):
    """Start the container's process; answer with ContainerLaunched, then ContainerExited, or with LaunchFailed.

    `links` {link name below the work directory: path of the copy}. `launch` counts the launches of this container:
    above 1 it is relaunched in its work and log directory; every answer repeats the number. `resource` and
    `opportunistic` set its share of the CPU. `emulation` names the rule by which it is emulated; empty: it runs as a
    process.
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


class SignalProcess(Struct, frozen=True):
    """Send a signal to the container's process group; TERM and KILL cancel a launch that has not happened yet.

    `command` is set if a user ordered the signal: answer with ContainerSignalled then.
    """

    container_id: ContainerId
    launch: int
    signal: Signal
    command: str = ""


class MonitorContainer(Struct, frozen=True):
    """Monitor the container's process tree; send MemoryExceeded if it uses more memory than a limit (bytes)."""

    container_id: ContainerId
    launch: int
    physical_memory_limit_bytes: int
    virtual_memory_limit_bytes: int


class ChangeMonitoring(Struct, frozen=True):
    """Change the container's memory limits (bytes) and vcores; ignored if it has ended."""

    container_id: ContainerId
    physical_memory_limit_bytes: int
    virtual_memory_limit_bytes: int
    vcores: int = 1
    opportunistic: bool = False


class DeleteContainerFiles(Struct, frozen=True):
    """Delete the container's work and private directories, below every local directory."""

    container_id: ContainerId
    user: str


class DeleteApplicationFiles(Struct, frozen=True):
    """Delete the application's directories (caches and work), below every local directory."""

    application_id: ApplicationId
    user: str


class DeleteApplicationLogs(Struct, frozen=True):
    """Delete the application's log directories, below every log directory."""

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
    """Drop the keys that NM tokens of the application's attempts are checked with: it has ended on this node."""

    application_id: ApplicationId


Effect: TypeAlias = (
    Reply
    | Refuse
    | SendRegistration
    | SendHeartbeat
    | SendUnregistration
    | EndNode
    | FetchResource
    | DeleteResource
    | LaunchContainer
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
