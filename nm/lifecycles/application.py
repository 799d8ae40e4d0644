"""NMApplication: what a node keeps of an application, from its first container here to the end of its logs.

(ApplicationImpl.) An application ends on a node only by the RM's order, or with the node: that all its containers
are over says nothing, more may come.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from yarn.ids import ContainerId
from yarn.lifecycle import Lifecycle, Row

if TYPE_CHECKING:
    from nm.applications import NMApplication
    from nm.containers import NMContainer


class NMApplicationState(Enum):
    """ApplicationState of the NM, in Hadoop's spelling."""

    NEW = 1
    INITING = 2
    RUNNING = 3
    FINISHING_CONTAINERS_WAIT = 4
    APPLICATION_RESOURCES_CLEANINGUP = 5
    FINISHED = 6


class NMApplicationEvent(Enum):
    """ApplicationEventType of the NM."""

    INIT_APPLICATION = 1
    INIT_CONTAINER = 2
    APPLICATION_LOG_HANDLING_INITED = 3
    APPLICATION_INITED = 4
    FINISH_APPLICATION = 5
    APPLICATION_CONTAINER_FINISHED = 6
    APPLICATION_RESOURCES_CLEANEDUP = 7
    APPLICATION_LOG_HANDLING_FINISHED = 8


STOPPED = frozenset(
    {
        NMApplicationState.FINISHING_CONTAINERS_WAIT,
        NMApplicationState.APPLICATION_RESOURCES_CLEANINGUP,
        NMApplicationState.FINISHED,
    }
)
"""States in which no container of the application is started any more."""

S = NMApplicationState
E = NMApplicationEvent


def _init(application: NMApplication, _: object) -> None:
    application.post(E.APPLICATION_LOG_HANDLING_INITED)


def _init_resources(application: NMApplication, _: object) -> None:
    application.post(E.APPLICATION_INITED)


def _container_waits(application: NMApplication, container: NMContainer) -> None:
    application.add(container)


def _inited(application: NMApplication, _: object) -> None:
    application.init_containers()


def _init_container(application: NMApplication, container: NMContainer) -> None:
    application.add(container)
    application.init_container(container)


def _refuse_container(application: NMApplication, container: NMContainer) -> None:
    application.add(container)
    application.refuse_container(container)


def _container_finished(application: NMApplication, container_id: ContainerId) -> None:
    application.remove(container_id)


def _finish(application: NMApplication, reason: str) -> NMApplicationState:
    if application.containers:
        application.kill_containers(reason)
        return S.FINISHING_CONTAINERS_WAIT
    application.clean_up()
    return S.APPLICATION_RESOURCES_CLEANINGUP


def _last_container_finished(application: NMApplication, container_id: ContainerId) -> NMApplicationState:
    application.remove(container_id)
    if application.containers:
        return S.FINISHING_CONTAINERS_WAIT
    application.clean_up()
    return S.APPLICATION_RESOURCES_CLEANINGUP


def _resources_cleaned_up(application: NMApplication, _: object) -> None:
    application.finish_logs()


def _forget(application: NMApplication, _: object) -> None:
    application.forget()


APPLICATION_LIFECYCLE: Lifecycle[NMApplicationState, NMApplicationEvent] = Lifecycle(
    "NMApplication",
    initial=S.NEW,
    rows=[
        Row(S.NEW, E.INIT_APPLICATION, S.INITING, _init, "its first container here was accepted"),
        Row(S.NEW, E.INIT_CONTAINER, S.NEW, _container_waits, "a container waits for the application"),
        Row(S.INITING, E.INIT_CONTAINER, S.INITING, _container_waits, "a container waits for the application"),
        Row(S.INITING, E.APPLICATION_LOG_HANDLING_INITED, S.INITING, _init_resources, "its logs have a place"),
        Row(S.INITING, E.APPLICATION_INITED, S.RUNNING, _inited, "its directories can be made: containers may go on"),
        *(
            Row(
                state,
                E.FINISH_APPLICATION,
                (S.FINISHING_CONTAINERS_WAIT, S.APPLICATION_RESOURCES_CLEANINGUP),
                _finish,
                "the RM says that it is over, or the node stops",
            )
            for state in (S.INITING, S.RUNNING)
        ),
        *(
            Row(state, E.APPLICATION_CONTAINER_FINISHED, state, _container_finished, "a container is over")
            for state in (S.INITING, S.RUNNING)
        ),
        Row(S.RUNNING, E.INIT_CONTAINER, S.RUNNING, _init_container, "one more container"),
        Row(
            S.FINISHING_CONTAINERS_WAIT,
            E.APPLICATION_CONTAINER_FINISHED,
            (S.FINISHING_CONTAINERS_WAIT, S.APPLICATION_RESOURCES_CLEANINGUP),
            _last_container_finished,
            "a killed container is over; the last one frees the directories",
        ),
        *(
            Row(state, E.INIT_CONTAINER, state, _refuse_container, "a start that crossed with the application's end")
            for state in (S.FINISHING_CONTAINERS_WAIT, S.APPLICATION_RESOURCES_CLEANINGUP, S.FINISHED)
        ),
        *(
            Row(state, E.FINISH_APPLICATION, state, None, "ordered a second time")
            for state in (S.FINISHING_CONTAINERS_WAIT, S.APPLICATION_RESOURCES_CLEANINGUP, S.FINISHED)
        ),
        Row(
            S.APPLICATION_RESOURCES_CLEANINGUP,
            E.APPLICATION_CONTAINER_FINISHED,
            S.APPLICATION_RESOURCES_CLEANINGUP,
            _container_finished,
            "a container that was refused",
        ),
        Row(
            S.APPLICATION_RESOURCES_CLEANINGUP,
            E.APPLICATION_RESOURCES_CLEANEDUP,
            S.FINISHED,
            _resources_cleaned_up,
            "its directories are given up",
        ),
        Row(S.FINISHED, E.APPLICATION_CONTAINER_FINISHED, S.FINISHED, _container_finished, "a refused container"),
        Row(S.FINISHED, E.APPLICATION_LOG_HANDLING_FINISHED, S.FINISHED, _forget, "its logs are seen to"),
    ],
)
