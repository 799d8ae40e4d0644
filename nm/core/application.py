"""One application on a node: its containers here, and what is done at its end. Transitions: application_lifecycle."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from nm.core.container import InitContainer, KillContainer
from nm.core.context import NodeContext
from nm.core.diagnostics import APPLICATION_OVER, application_finished
from nm.core.effects import DeleteApplicationFiles, DeleteApplicationLogs
from yarn.ids import ApplicationId, ContainerId
from yarn.machine import Machine
from yarn.states import ContainerExitStatus


class NMApplicationState(Enum):
    """ApplicationState of the NM, in Hadoop's spelling."""

    NEW = 1
    INITING = 2
    RUNNING = 3
    FINISHING_CONTAINERS_WAIT = 4
    APPLICATION_RESOURCES_CLEANINGUP = 5
    FINISHED = 6


STOPPED = frozenset(
    {
        NMApplicationState.FINISHING_CONTAINERS_WAIT,
        NMApplicationState.APPLICATION_RESOURCES_CLEANINGUP,
        NMApplicationState.FINISHED,
    }
)
"""States in which no container of the application is started any more."""


class InitApplication(Struct, frozen=True):
    """Its first container on this node was accepted."""

    application_id: ApplicationId


class ApplicationContainerInit(Struct, frozen=True):
    """One of its containers was accepted (ApplicationContainerInitEvent)."""

    container_id: ContainerId


class ApplicationLogHandlingInited(Struct, frozen=True):
    """Its logs have a place."""

    application_id: ApplicationId


class ApplicationInited(Struct, frozen=True):
    """Its directories can be made."""

    application_id: ApplicationId


class FinishApplication(Struct, frozen=True):
    """The RM reports that it is over, or the node stops: end its containers, and say why."""

    application_id: ApplicationId
    diagnostics: str


class ApplicationResourcesCleanedup(Struct, frozen=True):
    """Its directories are given up."""

    application_id: ApplicationId


class ApplicationLogHandlingFinished(Struct, frozen=True):
    """The deletion of its logs is planned."""

    application_id: ApplicationId


class ApplicationForgotten(Struct, frozen=True):
    """The node is to drop it."""

    application_id: ApplicationId


class NMApplication:
    """In the node's applications from its first accepted container until the deletion of its logs is planned.

    `containers` are the ids of those that are not DONE, in the order they came.
    """

    def __init__(self, application_id: ApplicationId, user: str, context: NodeContext) -> None:
        self.id = application_id
        self.user = user
        self.containers: dict[ContainerId, None] = {}
        self.machine = Machine(NMApplicationState.NEW)
        self._context = context

    def __str__(self) -> str:
        return str(self.id)

    @property
    def is_stopped(self) -> bool:
        """True once its end was ordered: none of its containers is started here any more."""
        return self.machine.state in STOPPED

    # What the transitions do

    def send(self, event: object) -> None:
        self._context.dispatcher.send(event)

    def add(self, container_id: ContainerId) -> None:
        self.containers[container_id] = None

    def remove(self, container_id: ContainerId) -> None:
        self.containers.pop(container_id, None)

    def init_containers(self) -> None:
        for container_id in self.containers:
            self.send(InitContainer(container_id))

    def refuse_container(self, container_id: ContainerId) -> None:
        self.send(KillContainer(container_id, ContainerExitStatus.KILLED_AFTER_APP_COMPLETION, APPLICATION_OVER))

    def kill_containers(self, reason: str) -> None:
        text = application_finished(reason)
        for container_id in self.containers:
            self.send(KillContainer(container_id, ContainerExitStatus.KILLED_AFTER_APP_COMPLETION, text))

    def clean_up(self) -> None:
        """Give up the application's directories and its part of the cache."""
        self._context.resources.forget_application(self.id)
        self._context.delete_later(DeleteApplicationFiles(self.id, self.user))
        self.send(ApplicationResourcesCleanedup(self.id))

    def finish_logs(self) -> None:
        """Have the logs deleted when they have been kept long enough (NonAggregatingLogHandler)."""
        self._context.emit_after(self._context.settings.log_retain_ms, DeleteApplicationLogs(self.id))
        self.send(ApplicationLogHandlingFinished(self.id))
