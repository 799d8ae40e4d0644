"""An application on one node: its containers there, its states, and the cleanup at its end (ApplicationImpl).

An application ends on a node when the RM reports its end, or when the node stops. The end of its last container does
not end the application, because its AM may start more containers.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from nm.core.container import ApplicationContainerFinished, InitContainer, KillContainer
from nm.core.context import NodeContext
from nm.core.diagnostics import APPLICATION_NOT_RUNNING, application_finished
from nm.core.effects import (
    AggregateLogs,
    DeleteApplicationFiles,
    DeleteApplicationLogs,
    ForgetApplicationKeys,
    StopAuxiliaryServices,
)
from yarn.ids import ApplicationId, ContainerId
from yarn.machine import Lifecycle, Machine, Row, Warn
from yarn.states import ApplicationAccessType, ContainerExitStatus


class NMApplicationState(Enum):
    """The states of an application on a node (Hadoop's ApplicationState of the NM)."""

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
"""The states in which the node refuses to start containers of the application."""


class InitApplication(Struct, frozen=True):
    """To an application: the node has accepted the application's first container."""

    application_id: ApplicationId


class ApplicationContainerInit(Struct, frozen=True):
    """To an application: the node has accepted a container of the application (ApplicationContainerInitEvent)."""

    container_id: ContainerId


class ApplicationLogHandlingInited(Struct, frozen=True):
    """To an application: the directory of its logs is known."""

    application_id: ApplicationId


class ApplicationInited(Struct, frozen=True):
    """To an application: its local directories can be created."""

    application_id: ApplicationId


class FinishApplication(Struct, frozen=True):
    """To an application: kill its containers, and append `diagnostics` to the diagnostics of each.

    Sent when the RM reports the end of the application, or when the node stops.
    """

    application_id: ApplicationId
    diagnostics: str


class ApplicationResourcesCleanedup(Struct, frozen=True):
    """To an application: the deletion of its local directories is scheduled."""

    application_id: ApplicationId


class ApplicationLogHandlingFinished(Struct, frozen=True):
    """To an application: its logs are aggregated, or their deletion is scheduled."""

    application_id: ApplicationId


class ApplicationForgotten(Struct, frozen=True):
    """To the node: the application has ended; remove it from the node's applications."""

    application_id: ApplicationId


class NMApplication:
    """An application that has, or had, containers on this node.

    The node keeps it from its first accepted container until its logs are aggregated or their
    deletion is scheduled. `containers` are
    the ids of its containers that are not DONE, in the order in which they were started. `is_played`: it has no
    directories and logs here.
    """

    def __init__(
        self,
        application_id: ApplicationId,
        user: str,
        context: NodeContext,
        acls: dict[ApplicationAccessType, str] | None = None,
    ) -> None:
        self.id = application_id
        self.user = user
        self.acls = acls or {}
        self.containers: dict[ContainerId, None] = {}
        self.is_played = False
        self.machine = Machine(NMApplicationState.NEW)
        self._context = context

    def __str__(self) -> str:
        return str(self.id)

    @property
    def is_stopped(self) -> bool:
        """True once the end of the application was ordered; the node then refuses its new containers."""
        return self.machine.state in STOPPED

    def send(self, event: object) -> None:
        self._context.dispatcher.send(event)

    def add(self, container_id: ContainerId) -> None:
        self.containers[container_id] = None

    def remove(self, container_id: ContainerId) -> None:
        self.containers.pop(container_id, None)

    def play_start(self) -> None:
        """Become RUNNING, as InitApplication does on a node without directories and logs."""
        self.is_played = True
        self.machine.state = NMApplicationState.RUNNING

    def init_containers(self) -> None:
        for container_id in self.containers:
            self.send(InitContainer(container_id))

    def refuse_container(self, container_id: ContainerId) -> None:
        self.send(KillContainer(container_id, ContainerExitStatus.KILLED_AFTER_APP_COMPLETION, APPLICATION_NOT_RUNNING))

    def kill_containers(self, reason: str) -> None:
        text = application_finished(reason)
        for container_id in self.containers:
            self.send(KillContainer(container_id, ContainerExitStatus.KILLED_AFTER_APP_COMPLETION, text))

    def clean_up(self) -> None:
        """Delete the application's local directories, stop its auxiliary services, and drop its cache of files."""
        if self._context.settings.auxiliary_services:
            self._context.dispatcher.emit(StopAuxiliaryServices(self.id))
        self._context.resources.forget_application(self.id)
        self._context.delete_later(DeleteApplicationFiles(self.id, self.user))
        self.send(ApplicationResourcesCleanedup(self.id))

    def finish_logs(self) -> None:
        """Have the application's logs aggregated, or schedule their deletion after the configured retention."""
        self._context.dispatcher.emit(ForgetApplicationKeys(self.id))
        if self._context.settings.aggregate_logs:
            self._context.dispatcher.emit(AggregateLogs(self.id, self.user, self.acls))
        else:
            self._retain_logs()

    def logs_aggregated(self, problem: str) -> None:
        """Delete its logs, which are in the remote directory now; if aggregation failed, keep them for a while.

        Hadoop deletes them then, too (AppLogAggregatorImpl.doAppLogAggregationPostCleanUp).
        """
        if problem:
            self._context.dispatcher.emit(Warn(f"Log aggregation failed for application {self.id}: {problem}"))
            self._retain_logs()
        else:
            self._context.delete_later(DeleteApplicationLogs(self.id))
            self.send(ApplicationLogHandlingFinished(self.id))

    def _retain_logs(self) -> None:
        """Schedule the deletion of its logs (NonAggregatingLogHandler), if it has some."""
        if not self.is_played:
            due_ms = self._context.dispatcher.now_ms + self._context.settings.log_retain_ms
            self._context.delete_logs_at(self.id, due_ms)
            self._context.recorder.log_deletion_scheduled(self.id, due_ms)
        self.send(ApplicationLogHandlingFinished(self.id))


ApplicationEvent = (
    InitApplication
    | ApplicationLogHandlingInited
    | ApplicationInited
    | FinishApplication
    | ApplicationResourcesCleanedup
    | ApplicationLogHandlingFinished
)
"""The events that an application handles; each carries its `application_id`."""

ContainerOfApplicationEvent = ApplicationContainerInit | ApplicationContainerFinished
"""Events about a container of the application. Each carries `container_id`, which contains the application's id."""

S = NMApplicationState


def _init(application: NMApplication, _: InitApplication) -> None:
    application.send(ApplicationLogHandlingInited(application.id))


def _init_resources(application: NMApplication, _: ApplicationLogHandlingInited) -> None:
    application.send(ApplicationInited(application.id))


def _container_waits(application: NMApplication, event: ApplicationContainerInit) -> None:
    application.add(event.container_id)


def _inited(application: NMApplication, _: ApplicationInited) -> None:
    application.init_containers()


def _init_container(application: NMApplication, event: ApplicationContainerInit) -> None:
    application.add(event.container_id)
    application.send(InitContainer(event.container_id))


def _refuse_container(application: NMApplication, event: ApplicationContainerInit) -> None:
    application.add(event.container_id)
    application.refuse_container(event.container_id)


def _container_finished(application: NMApplication, event: ApplicationContainerFinished) -> None:
    application.remove(event.container_id)


def _finish(application: NMApplication, event: FinishApplication) -> NMApplicationState:
    if application.containers:
        application.kill_containers(event.diagnostics)
        return S.FINISHING_CONTAINERS_WAIT
    application.clean_up()
    return S.APPLICATION_RESOURCES_CLEANINGUP


def _last_container_finished(application: NMApplication, event: ApplicationContainerFinished) -> NMApplicationState:
    application.remove(event.container_id)
    if application.containers:
        return S.FINISHING_CONTAINERS_WAIT
    application.clean_up()
    return S.APPLICATION_RESOURCES_CLEANINGUP


def _resources_cleaned_up(application: NMApplication, _: ApplicationResourcesCleanedup) -> None:
    application.finish_logs()


def _forget(application: NMApplication, _: ApplicationLogHandlingFinished) -> None:
    application.send(ApplicationForgotten(application.id))


APPLICATION_LIFECYCLE: Lifecycle[NMApplication, NMApplicationState] = Lifecycle(
    "NMApplication",
    S.NEW,
    [
        Row(S.NEW, InitApplication, S.INITING, _init, "the application's first container on this node was accepted"),
        Row(S.NEW, ApplicationContainerInit, S.NEW, _container_waits, "a container waits for the application"),
        Row(S.INITING, ApplicationContainerInit, S.INITING, _container_waits, "a container waits for the application"),
        Row(S.INITING, ApplicationLogHandlingInited, S.INITING, _init_resources, "the directory of its logs is known"),
        Row(
            S.INITING,
            ApplicationInited,
            S.RUNNING,
            _inited,
            "its local directories can be created, so its containers can start localizing",
        ),
        *(
            Row(
                state,
                FinishApplication,
                (S.FINISHING_CONTAINERS_WAIT, S.APPLICATION_RESOURCES_CLEANINGUP),
                _finish,
                "the RM reports its end, or the node stops",
            )
            for state in (S.INITING, S.RUNNING)
        ),
        *(
            Row(state, ApplicationContainerFinished, state, _container_finished, "a container has ended")
            for state in (S.INITING, S.RUNNING)
        ),
        Row(
            S.RUNNING,
            ApplicationContainerInit,
            S.RUNNING,
            _init_container,
            "another container of the application was accepted",
        ),
        Row(
            S.FINISHING_CONTAINERS_WAIT,
            ApplicationContainerFinished,
            (S.FINISHING_CONTAINERS_WAIT, S.APPLICATION_RESOURCES_CLEANINGUP),
            _last_container_finished,
            "a killed container has ended; after the last one the directories are deleted",
        ),
        *(
            Row(
                state,
                ApplicationContainerInit,
                state,
                _refuse_container,
                "a container is started after the end of the application",
            )
            for state in (S.FINISHING_CONTAINERS_WAIT, S.APPLICATION_RESOURCES_CLEANINGUP, S.FINISHED)
        ),
        *(
            Row(state, FinishApplication, state, None, "its end was ordered a second time")
            for state in (S.FINISHING_CONTAINERS_WAIT, S.APPLICATION_RESOURCES_CLEANINGUP, S.FINISHED)
        ),
        Row(
            S.APPLICATION_RESOURCES_CLEANINGUP,
            ApplicationContainerFinished,
            S.APPLICATION_RESOURCES_CLEANINGUP,
            _container_finished,
            "a container that was refused has ended",
        ),
        Row(
            S.APPLICATION_RESOURCES_CLEANINGUP,
            ApplicationResourcesCleanedup,
            S.FINISHED,
            _resources_cleaned_up,
            "the deletion of its directories is scheduled",
        ),
        Row(
            S.FINISHED,
            ApplicationContainerFinished,
            S.FINISHED,
            _container_finished,
            "a container that was refused has ended",
        ),
        Row(S.FINISHED, ApplicationLogHandlingFinished, S.FINISHED, _forget, "the deletion of its logs is scheduled"),
    ],
)
