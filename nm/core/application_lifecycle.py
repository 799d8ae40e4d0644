"""NMApplication: what a node keeps of an application, from its first container here to the end of its logs.

(ApplicationImpl.) An application ends on a node only by the RM's order, or with the node: that all its containers
are done means nothing, more may come.
"""

from __future__ import annotations

from nm.core.application import (
    ApplicationContainerInit,
    ApplicationForgotten,
    ApplicationInited,
    ApplicationLogHandlingFinished,
    ApplicationLogHandlingInited,
    ApplicationResourcesCleanedup,
    FinishApplication,
    InitApplication,
    NMApplication,
    NMApplicationState,
)
from nm.core.container import ApplicationContainerFinished, InitContainer
from yarn.machine import Lifecycle, Row

ApplicationEvent = (
    InitApplication
    | ApplicationLogHandlingInited
    | ApplicationInited
    | FinishApplication
    | ApplicationResourcesCleanedup
    | ApplicationLogHandlingFinished
)
"""The events that an application takes; each carries its `application_id`."""

ContainerOfApplicationEvent = ApplicationContainerInit | ApplicationContainerFinished
"""Events about one of its containers; each carries the `container_id`, which has the application's."""

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
        Row(S.NEW, InitApplication, S.INITING, _init, "its first container here was accepted"),
        Row(S.NEW, ApplicationContainerInit, S.NEW, _container_waits, "a container waits for the application"),
        Row(S.INITING, ApplicationContainerInit, S.INITING, _container_waits, "a container waits for the application"),
        Row(S.INITING, ApplicationLogHandlingInited, S.INITING, _init_resources, "its logs have a place"),
        Row(S.INITING, ApplicationInited, S.RUNNING, _inited, "its directories can be made: containers may go on"),
        *(
            Row(
                state,
                FinishApplication,
                (S.FINISHING_CONTAINERS_WAIT, S.APPLICATION_RESOURCES_CLEANINGUP),
                _finish,
                "the RM reports that it is over, or the node stops",
            )
            for state in (S.INITING, S.RUNNING)
        ),
        *(
            Row(state, ApplicationContainerFinished, state, _container_finished, "a container is over")
            for state in (S.INITING, S.RUNNING)
        ),
        Row(S.RUNNING, ApplicationContainerInit, S.RUNNING, _init_container, "one more container"),
        Row(
            S.FINISHING_CONTAINERS_WAIT,
            ApplicationContainerFinished,
            (S.FINISHING_CONTAINERS_WAIT, S.APPLICATION_RESOURCES_CLEANINGUP),
            _last_container_finished,
            "a killed container is over; the last one frees the directories",
        ),
        *(
            Row(
                state,
                ApplicationContainerInit,
                state,
                _refuse_container,
                "started while the application ended",
            )
            for state in (S.FINISHING_CONTAINERS_WAIT, S.APPLICATION_RESOURCES_CLEANINGUP, S.FINISHED)
        ),
        *(
            Row(state, FinishApplication, state, None, "ordered a second time")
            for state in (S.FINISHING_CONTAINERS_WAIT, S.APPLICATION_RESOURCES_CLEANINGUP, S.FINISHED)
        ),
        Row(
            S.APPLICATION_RESOURCES_CLEANINGUP,
            ApplicationContainerFinished,
            S.APPLICATION_RESOURCES_CLEANINGUP,
            _container_finished,
            "a container that was refused",
        ),
        Row(
            S.APPLICATION_RESOURCES_CLEANINGUP,
            ApplicationResourcesCleanedup,
            S.FINISHED,
            _resources_cleaned_up,
            "its directories are given up",
        ),
        Row(S.FINISHED, ApplicationContainerFinished, S.FINISHED, _container_finished, "a refused container"),
        Row(S.FINISHED, ApplicationLogHandlingFinished, S.FINISHED, _forget, "the deletion of its logs is planned"),
    ],
)
