"""Everything that the NodeManager's core wants done. The shell carries effects out in order."""

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


class Signal(Enum):
    """The signals that an NM sends, by name; `value` is the number."""

    QUIT = 3
    KILL = 9
    TERM = 15


class SendRegistration(Struct, frozen=True):
    """Send registerNodeManager; answer with NodeRegistered or RegistrationFailed."""

    request: RegisterNodeManagerRequest


class SendHeartbeat(Struct, frozen=True):
    """Send nodeHeartbeat; answer with NodeHeartbeatAnswered or NodeHeartbeatFailed. Never two at a time.

    `at_once`: it is out of turn, as a container has ended.
    """

    request: NodeHeartbeatRequest
    at_once: bool = False


class SendUnregistration(Struct, frozen=True):
    """Send unRegisterNodeManager, best effort; answer with UnregisterCompleted."""


class EndNode(Struct, frozen=True):
    """End the process once the effects before this one are done. `failure` says why, empty if all is well."""

    failure: str = ""


class FetchResource(Struct, frozen=True):
    """Copy (and unpack) a file into a cache; answer with ResourceFetched or ResourceFetchFailed.

    The copy goes to directory `number` of the cache that `resource.visibility` names for `user` and
    `application_id`. `container_id` is the one that asked first.
    """

    fetch_id: int
    container_id: ContainerId
    user: str
    application_id: ApplicationId
    number: int
    resource: LocalResource


class DeleteResource(Struct, frozen=True):
    """Delete a cached copy, with the numbered directory that holds it."""

    path: str


class LaunchContainer(SecretRecord, frozen=True):
    """Start the container's process; answer with ContainerLaunched, then ContainerExited, or with LaunchFailed.

    `links` {link name below the work directory: path of the copy}. `launch` counts the starts of this container:
    above 1 it starts again in its work and log directory, and every answer carries the number back. `resource` and
    `opportunistic` say how much CPU it gets beside others. `emulation` names the rule by which it is emulated; empty:
    it is run as a process.
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
    """Send a signal to the container's process group; before its process is there, TERM and KILL cancel the start.

    `told`: answer with ContainerSignalled (an order of a user), else with nothing.
    """

    container_id: ContainerId
    launch: int
    signal: Signal
    told: str = ""


class MonitorContainer(Struct, frozen=True):
    """Watch the container's process tree; answer with MemoryExceeded if it is above a limit (bytes)."""

    container_id: ContainerId
    launch: int
    physical_memory_limit_bytes: int
    virtual_memory_limit_bytes: int


class ChangeMonitoring(Struct, frozen=True):
    """The container's limits (bytes) and vcores are others from now on; of no effect if it has ended."""

    container_id: ContainerId
    physical_memory_limit_bytes: int
    virtual_memory_limit_bytes: int
    vcores: int = 1
    opportunistic: bool = False


class DeleteContainerFiles(Struct, frozen=True):
    """Delete the container's work directories and its private one, on every local directory."""

    container_id: ContainerId
    user: str


class DeleteApplicationFiles(Struct, frozen=True):
    """Delete the application's directories (caches and work), on every local directory."""

    application_id: ApplicationId
    user: str


class DeleteApplicationLogs(Struct, frozen=True):
    """Delete the application's log directories, on every log directory."""

    application_id: ApplicationId


class ForgetApplicationKeys(Struct, frozen=True):
    """Drop the keys that the NM tokens of the application's attempts are checked with: it has ended on this node."""

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
    | ForgetApplicationKeys
    | StateChanged
    | Warn
    | InvariantsBroken
)
