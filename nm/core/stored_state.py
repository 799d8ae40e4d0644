"""The state of a node that outlives its NodeManager, if recovery is enabled (NMStateStoreService).

    records = NodeRecords()
    records.apply(StoreContainer(token, launch_context))     the effects of a core, in order
    records.state() -> RecoveredNode                         what the next core is given with Recover

The shell writes the same effects into a file (nm.shell.recovery_store). NodeRecords keeps them in memory: it is the
definition of what a store has to return.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from nm.core.resource_key import CacheKey, ResourceKey
from yarn.containers import ContainerLaunchContext, ContainerTokenIdentifier, ServiceData
from yarn.ids import ApplicationId, ContainerId
from yarn.states import ApplicationAccessType, ContainerExitStatus


class RecoveredContainerStatus(Enum):
    """The progress of a stored container. Hadoop's QUEUED and PAUSED are missing: no container is queued here."""

    REQUESTED = 1
    LAUNCHED = 2
    COMPLETED = 3


class ContainerProgress(Struct, frozen=True):
    """The part of a stored container that changes while it runs.

    `launches`: how often its process was started, last at `launched_ms` (wall clock). `is_killed`: its AM has stopped
    it. `remaining_retries` (None: as the retry context says) and `restarts_ms` belong to its retry policy.
    """

    status: RecoveredContainerStatus = RecoveredContainerStatus.REQUESTED
    launches: int = 0
    launched_ms: int = 0
    is_killed: bool = False
    exit_status: int = ContainerExitStatus.INVALID
    diagnostics: str = ""
    remaining_retries: int | None = None
    restarts_ms: tuple[int, ...] = ()


class RecoveredApplication(Struct, frozen=True):
    """An application that has, or had, containers on the node. `services` {auxiliary service: data for it}."""

    application_id: ApplicationId
    user: str
    acls: dict[ApplicationAccessType, str]
    services: dict[str, ServiceData]


class RecoveredContainer(Struct, frozen=True):
    """A container that the node had accepted, and whose end the RM has not acknowledged (RecoveredContainerState)."""

    token: ContainerTokenIdentifier
    launch_context: ContainerLaunchContext
    progress: ContainerProgress


class RecoveredResource(Struct, frozen=True):
    """A copy of a file in one of the node's caches. `number`: that of the copy's directory in the cache."""

    cache: CacheKey
    number: int
    key: ResourceKey
    path: str
    size_bytes: int


class RecoveredNode(Struct, frozen=True):
    """The stored state of a node. Applications and containers are in the order of their ids.

    `used_tokens` are (container, expiry of its token in wall-clock ms): a token starts its container only once.
    `log_deletions` are (application, wall-clock ms when its logs are due to be deleted).
    """

    applications: tuple[RecoveredApplication, ...] = ()
    containers: tuple[RecoveredContainer, ...] = ()
    resources: tuple[RecoveredResource, ...] = ()
    used_tokens: tuple[tuple[ContainerId, int], ...] = ()
    log_deletions: tuple[tuple[ApplicationId, int], ...] = ()


class StoreApplication(Struct, frozen=True):
    """Store an application: the node has accepted its first container."""

    application_id: ApplicationId
    user: str
    acls: dict[ApplicationAccessType, str]


class StoreServiceData(Struct, frozen=True):
    """Store the data of a stored application for an auxiliary service, in place of the service's earlier data."""

    application_id: ApplicationId
    service: str
    data: ServiceData


class RemoveStoredApplication(Struct, frozen=True):
    """Remove an application: its logs are aggregated, or their deletion is stored."""

    application_id: ApplicationId


class StoreContainer(Struct, frozen=True):
    """Store an accepted container, or the new token of one whose size has changed."""

    token: ContainerTokenIdentifier
    launch_context: ContainerLaunchContext


class StoreProgress(Struct, frozen=True):
    """Store how far a stored container has come, in place of its earlier progress."""

    container_id: ContainerId
    progress: ContainerProgress


class RemoveStoredContainer(Struct, frozen=True):
    """Remove a container: the RM has acknowledged its end, or its application has ended."""

    container_id: ContainerId


class StoreResource(Struct, frozen=True):
    """Store that a file was fetched."""

    resource: RecoveredResource


class RemoveStoredResource(Struct, frozen=True):
    """Remove a copy, which is being deleted."""

    path: str


class StoreUsedToken(Struct, frozen=True):
    """Store that a container's token was used, until it expires (wall-clock ms)."""

    container_id: ContainerId
    expiry_ms: int


class RemoveUsedToken(Struct, frozen=True):
    """Remove a container's token, which has expired."""

    container_id: ContainerId


class StoreLogDeletion(Struct, frozen=True):
    """Store when an application's logs are due to be deleted (wall-clock ms)."""

    application_id: ApplicationId
    due_ms: int


class RemoveLogDeletion(Struct, frozen=True):
    """Remove the deletion of an application's logs, which is carried out now."""

    application_id: ApplicationId


StoreEffect: TypeAlias = (
    StoreApplication
    | StoreServiceData
    | RemoveStoredApplication
    | StoreContainer
    | StoreProgress
    | RemoveStoredContainer
    | StoreResource
    | RemoveStoredResource
    | StoreUsedToken
    | RemoveUsedToken
    | StoreLogDeletion
    | RemoveLogDeletion
)
"""The effects that change the stored state. The shell makes those of a step durable before the step's other effects."""


class NodeRecords:
    """The stored state of a node in memory."""

    def __init__(self) -> None:
        self._applications: dict[ApplicationId, RecoveredApplication] = {}
        self._containers: dict[ContainerId, RecoveredContainer] = {}
        self._resources: dict[str, RecoveredResource] = {}
        self._used_tokens: dict[ContainerId, int] = {}
        self._log_deletions: dict[ApplicationId, int] = {}

    def apply(self, effect: StoreEffect) -> None:
        """Carry out one effect. Removing what is not stored is a no-op."""
        match effect:
            case StoreApplication(application_id, user, acls):
                self._applications[application_id] = RecoveredApplication(application_id, user, acls, {})
            case StoreServiceData(application_id, service, data):
                known = self._applications[application_id]
                self._applications[application_id] = replace(known, services={**known.services, service: data})
            case RemoveStoredApplication(application_id):
                self._applications.pop(application_id, None)
            case StoreContainer(token, launch_context):
                before = self._containers.get(token.container_id)
                progress = ContainerProgress() if before is None else before.progress
                self._containers[token.container_id] = RecoveredContainer(token, launch_context, progress)
            case StoreProgress(container_id, progress):
                self._containers[container_id] = replace(self._containers[container_id], progress=progress)
            case RemoveStoredContainer(container_id):
                self._containers.pop(container_id, None)
            case StoreResource(resource):
                self._resources[resource.path] = resource
            case RemoveStoredResource(path):
                self._resources.pop(path, None)
            case StoreUsedToken(container_id, expiry_ms):
                self._used_tokens[container_id] = expiry_ms
            case RemoveUsedToken(container_id):
                self._used_tokens.pop(container_id, None)
            case StoreLogDeletion(application_id, due_ms):
                self._log_deletions[application_id] = due_ms
            case RemoveLogDeletion(application_id):
                self._log_deletions.pop(application_id, None)

    def clear(self) -> None:
        """Forget everything."""
        for table in (
            self._applications,
            self._containers,
            self._resources,
            self._used_tokens,
            self._log_deletions,
        ):
            table.clear()

    def state(self) -> RecoveredNode:
        """The state for the next core."""
        return RecoveredNode(
            tuple(self._applications[one] for one in sorted(self._applications)),
            tuple(self._containers[one] for one in sorted(self._containers)),
            tuple(self._resources[path] for path in sorted(self._resources)),
            tuple(sorted(self._used_tokens.items())),
            tuple(sorted(self._log_deletions.items())),
        )
