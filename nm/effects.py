"""Everything that the NodeManager's core wants done. The shell carries effects out in order."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TypeAlias

from yarn.containers import LocalResource
from yarn.errors import YarnException
from yarn.ids import ApplicationId, ContainerId
from yarn.protocols.tracker import NodeHeartbeatRequest, RegisterNodeManagerRequest
from yarn.records import dataclass
from yarn.resource import Resource

Call: TypeAlias = int
"""The shell's number for an RPC that waits for its answer."""


class Signal(Enum):
    """The signals that an NM sends, by name; `value` is the number."""

    QUIT = 3
    KILL = 9
    TERM = 15


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer call `call` with `value` (the response record of its protocol, or None)."""

    call: Call
    value: object


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer call `call` with an error."""

    call: Call
    error: YarnException


@dataclass(frozen=True, slots=True)
class RegisterNode:
    """Send registerNodeManager; answer with NodeRegistered or RegistrationFailed."""

    request: RegisterNodeManagerRequest


@dataclass(frozen=True, slots=True)
class SendHeartbeat:
    """Send nodeHeartbeat; answer with HeartbeatAnswered or HeartbeatFailed. Never two at a time.

    `at_once`: it is out of turn, as a container has ended.
    """

    request: NodeHeartbeatRequest
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class UnregisterNode:
    """Send unRegisterNodeManager, best effort; the node stops afterwards."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End the process once the effects before this one are done. `failure` says why, empty if all is well."""

    failure: str = ""


@dataclass(frozen=True, slots=True)
class FetchResource:
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


@dataclass(frozen=True, slots=True)
class DeleteResource:
    """Delete a cached copy, with the numbered directory that holds it."""

    path: str


@dataclass(frozen=True, slots=True)
class LaunchContainer:
    """Start the container's process; answer with ContainerLaunched, then ContainerExited, or with LaunchFailed.

    `links` {link name below the work directory: path of the copy}. `launch` counts the starts of this container:
    above 1 it starts again in its work and log directory, and every answer carries the number back. `resource` and
    `opportunistic` say how much CPU it gets beside others. `emulation` names the rule by which it is emulated; empty:
    it is run as a process.
    """

    container_id: ContainerId
    launch: int
    user: str
    commands: tuple[str, ...]
    environment: dict[str, str]
    links: dict[str, str]
    localization_counters: str
    resource: Resource
    emulation: str = ""
    tokens: bytes = field(default=b"", repr=False)
    opportunistic: bool = False


@dataclass(frozen=True, slots=True)
class SignalContainer:
    """Send a signal to the container's process group; before its process is there, TERM and KILL cancel the start.

    `told`: answer with ContainerSignalled (an order of a user), else with nothing.
    """

    container_id: ContainerId
    launch: int
    signal: Signal
    told: str = ""


@dataclass(frozen=True, slots=True)
class MonitorContainer:
    """Watch the container's process tree; answer with MemoryExceeded if it is above a limit (bytes)."""

    container_id: ContainerId
    launch: int
    physical_memory_limit_bytes: int
    virtual_memory_limit_bytes: int


@dataclass(frozen=True, slots=True)
class ChangeMonitoring:
    """The container's limits (bytes) and vcores are others from now on; of no effect if it has ended."""

    container_id: ContainerId
    physical_memory_limit_bytes: int
    virtual_memory_limit_bytes: int
    vcores: int = 1
    opportunistic: bool = False


@dataclass(frozen=True, slots=True)
class DeleteContainerFiles:
    """Delete the container's work directories and its private one, on every local directory."""

    container_id: ContainerId
    user: str


@dataclass(frozen=True, slots=True)
class DeleteApplicationFiles:
    """Delete the application's directories (caches and work), on every local directory."""

    application_id: ApplicationId
    user: str


@dataclass(frozen=True, slots=True)
class DeleteApplicationLogs:
    """Delete the application's log directories, on every log directory."""

    application_id: ApplicationId


@dataclass(frozen=True, slots=True)
class StateChanged:
    """For the log: `kind` (NMContainer, NMApplication) `subject` went from `source` to `target` on `event`."""

    kind: str
    subject: str
    event: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Warn:
    """For the log: something an operator should know that is no state change."""

    text: str


Effect: TypeAlias = (
    Reply
    | Refuse
    | RegisterNode
    | SendHeartbeat
    | UnregisterNode
    | Stop
    | FetchResource
    | DeleteResource
    | LaunchContainer
    | SignalContainer
    | MonitorContainer
    | ChangeMonitoring
    | DeleteContainerFiles
    | DeleteApplicationFiles
    | DeleteApplicationLogs
    | StateChanged
    | Warn
)
