"""Notes changes of a node that the next NodeManager has to know, and emits them as effects for the store.

Without recovery it does nothing, so a node's effects are the same as if it did not exist. A step may change a container
several times; its progress is emitted once, at the end of the step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from nm.core.stored_state import (
    ContainerProgress,
    RecoveredResource,
    RemoveLogDeletion,
    RemoveStoredApplication,
    RemoveStoredContainer,
    RemoveStoredResource,
    RemoveUsedToken,
    StoreApplication,
    StoreContainer,
    StoreEffect,
    StoreLogDeletion,
    StoreProgress,
    StoreResource,
    StoreServiceData,
    StoreUsedToken,
)
from yarn.containers import ContainerLaunchContext, ContainerTokenIdentifier, ServiceData
from yarn.ids import ApplicationId, ContainerId
from yarn.machine import Dispatcher
from yarn.states import ApplicationAccessType


class ProgressingContainer(Protocol):
    """The part of a container that the recorder uses."""

    id: ContainerId

    def progress(self) -> ContainerProgress: ...


class NodeRecorder:
    """Emits the store effects of one node through `dispatcher`, if `enabled`."""

    def __init__(self, dispatcher: Dispatcher[Any], *, enabled: bool) -> None:
        self.enabled = enabled
        self._dispatcher = dispatcher
        self._changed: dict[ContainerId, ProgressingContainer] = {}

    def application_started(
        self, application_id: ApplicationId, user: str, acls: dict[ApplicationAccessType, str]
    ) -> None:
        self._emit(StoreApplication(application_id, user, acls))

    def service_used(self, application_id: ApplicationId, service: str, data: ServiceData) -> None:
        self._emit(StoreServiceData(application_id, service, data))

    def application_forgotten(self, application_id: ApplicationId) -> None:
        self._emit(RemoveStoredApplication(application_id))

    def container_accepted(self, token: ContainerTokenIdentifier, launch_context: ContainerLaunchContext) -> None:
        """Note an accepted container, or the new token of one."""
        self._emit(StoreContainer(token, launch_context))

    def container_changed(self, container: ProgressingContainer) -> None:
        """Note that a container's progress has changed; it is emitted at the end of the step."""
        if self.enabled:
            self._changed[container.id] = container

    def container_dropped(self, container_id: ContainerId) -> None:
        self._changed.pop(container_id, None)
        self._emit(RemoveStoredContainer(container_id))

    def resource_fetched(self, resource: RecoveredResource) -> None:
        self._emit(StoreResource(resource))

    def resource_dropped(self, path: str) -> None:
        self._emit(RemoveStoredResource(path))

    def token_used(self, token: ContainerTokenIdentifier, expired: Iterable[ContainerId]) -> None:
        """Note that a container's token was used, and which earlier ones have expired."""
        self._emit(StoreUsedToken(token.container_id, token.expiry_ms))
        for container_id in expired:
            self._emit(RemoveUsedToken(container_id))

    def log_deletion_scheduled(self, application_id: ApplicationId, due_ms: int) -> None:
        self._emit(StoreLogDeletion(application_id, due_ms))

    def logs_deleted(self, application_id: ApplicationId) -> None:
        self._emit(RemoveLogDeletion(application_id))

    def end_step(self) -> None:
        """Emit the progress of the containers that the step has changed."""
        if self._changed:
            changed, self._changed = self._changed, {}
            for container in changed.values():
                self._emit(StoreProgress(container.id, container.progress()))

    def _emit(self, effect: StoreEffect) -> None:
        if self.enabled:
            self._dispatcher.emit(effect)
