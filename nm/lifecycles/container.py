"""NMContainer: from the accepted start to the last file deleted (ContainerImpl).

The idea to keep in mind is who decides the exit status. A kill writes its reason first (-105 from the AM, -104 from the
monitor...) and the process's own code does not overwrite it, unless the process, asked to stop, ends by itself with
some other code: then the process has won and the reason is lost, though its text stays in the diagnostics.

Not here, because nothing of ours can ask for it yet: pausing and resuming (opportunistic containers) and the
re-initialisation of a running container, with their six states.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from nm.diagnostics import ATTEMPT_MESSAGE, KILLED_BEFORE_LAUNCH, KILLED_EXTERNALLY
from yarn.containers import ContainerTokenIdentifier
from yarn.lifecycle import Lifecycle, Row
from yarn.states import ContainerExitStatus

if TYPE_CHECKING:
    from nm.containers import NMContainer
    from nm.resource_cache import ResourceKey


class NMContainerState(Enum):
    """ContainerState of the NM, in Hadoop's spelling."""

    NEW = 1
    LOCALIZING = 2
    LOCALIZATION_FAILED = 3
    SCHEDULED = 4
    RUNNING = 5
    RELAUNCHING = 6
    EXITED_WITH_SUCCESS = 7
    EXITED_WITH_FAILURE = 8
    KILLING = 9
    CONTAINER_CLEANEDUP_AFTER_KILL = 10
    DONE = 11


class NMContainerEvent(Enum):
    """ContainerEventType, as far as it can happen here."""

    INIT_CONTAINER = 1
    KILL_CONTAINER = 2
    UPDATE_DIAGNOSTICS_MSG = 3
    RESOURCE_LOCALIZED = 4
    RESOURCE_FAILED = 5
    CONTAINER_RESOURCES_CLEANEDUP = 6
    CONTAINER_LAUNCHED = 7
    CONTAINER_EXITED_WITH_SUCCESS = 8
    CONTAINER_EXITED_WITH_FAILURE = 9
    CONTAINER_KILLED_ON_REQUEST = 10
    UPDATE_CONTAINER_TOKEN = 11


class Kill(Struct, frozen=True):
    """Detail of KILL_CONTAINER: why, as a status and as a text."""

    exit_status: int
    diagnostics: str


class Exit(Struct, frozen=True):
    """Detail of CONTAINER_EXITED_WITH_FAILURE and CONTAINER_KILLED_ON_REQUEST."""

    exit_code: int
    diagnostics: str


class Localized(Struct, frozen=True):
    """Detail of RESOURCE_LOCALIZED: the copy is at `path`. `cached`: it was there before."""

    key: ResourceKey
    path: str
    size_bytes: int
    cached: bool


S = NMContainerState
E = NMContainerEvent


def _request_resources(container: NMContainer, _: object) -> NMContainerState:
    if container.request_resources():
        return S.LOCALIZING
    container.launch()
    return S.SCHEDULED


def _resource_localized(container: NMContainer, detail: Localized) -> NMContainerState:
    if not container.take_resource(detail):
        return S.LOCALIZING
    container.launch()
    return S.SCHEDULED


def _resource_failed(container: NMContainer, diagnostics: str) -> None:
    container.add_diagnostics(diagnostics + "\n")
    container.clean_up()


def _launched(container: NMContainer, _: object) -> None:
    container.start_monitoring()


def _exited_with_success(container: NMContainer, _: object) -> None:
    container.exit_status = ContainerExitStatus.SUCCESS
    container.end_leftovers()
    container.clean_up()


def _exited_with_failure(container: NMContainer, exit_: Exit) -> None:
    container.exit_status = exit_.exit_code
    container.add_diagnostics(exit_.diagnostics + "\n")
    container.end_leftovers()
    container.clean_up()


def _exited_with_success_while_killed(container: NMContainer, _: object) -> None:
    container.exit_status = ContainerExitStatus.SUCCESS
    container.clean_up()


def _exited_with_failure_while_killed(container: NMContainer, exit_: Exit) -> None:
    container.exit_status = exit_.exit_code
    container.add_diagnostics(exit_.diagnostics + "\n")
    container.clean_up()


def _failed_maybe_retry(container: NMContainer, exit_: Exit) -> NMContainerState:
    container.exit_status = exit_.exit_code
    if container.retries.is_set:
        container.add_diagnostics(ATTEMPT_MESSAGE)
    container.add_diagnostics(exit_.diagnostics + "\n")
    if container.maybe_relaunch_later(exit_.exit_code):
        return S.RELAUNCHING
    _exited_with_failure(container, exit_)
    return S.EXITED_WITH_FAILURE


def _killed_externally(container: NMContainer, exit_: Exit) -> None:
    _exited_with_failure(container, exit_)
    container.add_diagnostics(KILLED_EXTERNALLY)


def _kill(container: NMContainer, kill: Kill) -> None:
    container.add_diagnostics(kill.diagnostics + "\n")
    container.exit_status = kill.exit_status
    container.end_processes()


def _kill_between_launches(container: NMContainer, kill: Kill) -> None:
    _kill(container, kill)
    container.cancel_relaunch()


def _kill_before_running(container: NMContainer, kill: Kill) -> None:
    container.exit_status = kill.exit_status
    container.add_diagnostics(kill.diagnostics + "\n")
    container.add_diagnostics(KILLED_BEFORE_LAUNCH)
    container.clean_up()


def _kill_on_new(container: NMContainer, kill: Kill) -> None:
    container.exit_status = kill.exit_status
    container.add_diagnostics(kill.diagnostics + "\n")
    container.add_diagnostics(KILLED_BEFORE_LAUNCH)
    container.finished()


def _killed(container: NMContainer, exit_: Exit) -> None:
    if container.exit_status == ContainerExitStatus.INVALID:
        container.exit_status = exit_.exit_code
    container.add_diagnostics(exit_.diagnostics + "\n")
    container.clean_up()


def _update_diagnostics(container: NMContainer, text: str) -> None:
    container.add_diagnostics(text + "\n")


def _update(container: NMContainer, token: ContainerTokenIdentifier) -> None:
    container.token = token


def _update_while_watched(container: NMContainer, token: ContainerTokenIdentifier) -> None:
    container.token = token
    container.change_monitoring()


def _done(container: NMContainer, _: object) -> None:
    container.finished()


CONTAINER_LIFECYCLE: Lifecycle[NMContainerState, NMContainerEvent] = Lifecycle(
    "NMContainer",
    initial=S.NEW,
    rows=[
        Row(S.NEW, E.INIT_CONTAINER, (S.LOCALIZING, S.SCHEDULED), _request_resources, "its application runs here"),
        Row(S.NEW, E.UPDATE_DIAGNOSTICS_MSG, S.NEW, _update_diagnostics, "something to tell"),
        Row(S.NEW, E.KILL_CONTAINER, S.DONE, _kill_on_new, "killed before its application was there"),
        Row(
            S.LOCALIZING,
            E.RESOURCE_LOCALIZED,
            (S.LOCALIZING, S.SCHEDULED),
            _resource_localized,
            "one more copy is there; the last one starts the launch",
        ),
        Row(S.LOCALIZING, E.RESOURCE_FAILED, S.LOCALIZATION_FAILED, _resource_failed, "a file could not be had"),
        Row(S.LOCALIZING, E.UPDATE_DIAGNOSTICS_MSG, S.LOCALIZING, _update_diagnostics, "something to tell"),
        Row(S.LOCALIZING, E.KILL_CONTAINER, S.KILLING, _kill_before_running, "killed while its files are fetched"),
        Row(S.LOCALIZATION_FAILED, E.CONTAINER_RESOURCES_CLEANEDUP, S.DONE, _done, "its files are released"),
        Row(S.LOCALIZATION_FAILED, E.UPDATE_DIAGNOSTICS_MSG, S.LOCALIZATION_FAILED, _update_diagnostics, "to tell"),
        Row(S.LOCALIZATION_FAILED, E.KILL_CONTAINER, S.LOCALIZATION_FAILED, None, "nothing runs that could be killed"),
        Row(S.LOCALIZATION_FAILED, E.RESOURCE_LOCALIZED, S.LOCALIZATION_FAILED, None, "another file came, too late"),
        Row(S.LOCALIZATION_FAILED, E.RESOURCE_FAILED, S.LOCALIZATION_FAILED, None, "another file failed as well"),
        Row(S.SCHEDULED, E.CONTAINER_LAUNCHED, S.RUNNING, _launched, "its process runs"),
        Row(
            S.SCHEDULED,
            E.CONTAINER_EXITED_WITH_FAILURE,
            S.EXITED_WITH_FAILURE,
            _exited_with_failure,
            "the process could not be started: no good disk, no work directory",
        ),
        Row(S.SCHEDULED, E.UPDATE_DIAGNOSTICS_MSG, S.SCHEDULED, _update_diagnostics, "something to tell"),
        Row(S.SCHEDULED, E.KILL_CONTAINER, S.KILLING, _kill, "killed while its process is being started"),
        Row(S.RUNNING, E.CONTAINER_EXITED_WITH_SUCCESS, S.EXITED_WITH_SUCCESS, _exited_with_success, "exit 0"),
        Row(
            S.RUNNING,
            E.CONTAINER_EXITED_WITH_FAILURE,
            (S.RELAUNCHING, S.EXITED_WITH_FAILURE),
            _failed_maybe_retry,
            "a code that is not 0; its retry context says whether it starts again",
        ),
        Row(S.RUNNING, E.UPDATE_DIAGNOSTICS_MSG, S.RUNNING, _update_diagnostics, "something to tell"),
        Row(S.RUNNING, E.KILL_CONTAINER, S.KILLING, _kill, "the AM, the RM, the monitor or its application's end"),
        Row(
            S.RUNNING,
            E.CONTAINER_KILLED_ON_REQUEST,
            S.EXITED_WITH_FAILURE,
            _killed_externally,
            "TERM or KILL that was not ours, or an exit with 143 or 137",
        ),
        Row(S.RELAUNCHING, E.CONTAINER_LAUNCHED, S.RUNNING, _launched, "its process runs again"),
        Row(
            S.RELAUNCHING,
            E.CONTAINER_EXITED_WITH_FAILURE,
            S.EXITED_WITH_FAILURE,
            _exited_with_failure,
            "the process could not be started again",
        ),
        Row(S.RELAUNCHING, E.UPDATE_DIAGNOSTICS_MSG, S.RELAUNCHING, _update_diagnostics, "something to tell"),
        Row(S.RELAUNCHING, E.KILL_CONTAINER, S.KILLING, _kill_between_launches, "killed between two tries"),
        Row(S.EXITED_WITH_SUCCESS, E.CONTAINER_RESOURCES_CLEANEDUP, S.DONE, _done, "its files are released"),
        Row(S.EXITED_WITH_SUCCESS, E.UPDATE_DIAGNOSTICS_MSG, S.EXITED_WITH_SUCCESS, _update_diagnostics, "to tell"),
        Row(S.EXITED_WITH_SUCCESS, E.KILL_CONTAINER, S.EXITED_WITH_SUCCESS, None, "too late"),
        Row(S.EXITED_WITH_SUCCESS, E.CONTAINER_KILLED_ON_REQUEST, S.EXITED_WITH_SUCCESS, None, "too late"),
        Row(S.EXITED_WITH_FAILURE, E.CONTAINER_RESOURCES_CLEANEDUP, S.DONE, _done, "its files are released"),
        Row(S.EXITED_WITH_FAILURE, E.UPDATE_DIAGNOSTICS_MSG, S.EXITED_WITH_FAILURE, _update_diagnostics, "to tell"),
        Row(S.EXITED_WITH_FAILURE, E.KILL_CONTAINER, S.EXITED_WITH_FAILURE, None, "too late"),
        Row(S.EXITED_WITH_FAILURE, E.CONTAINER_KILLED_ON_REQUEST, S.EXITED_WITH_FAILURE, None, "too late"),
        Row(
            S.KILLING,
            E.CONTAINER_KILLED_ON_REQUEST,
            S.CONTAINER_CLEANEDUP_AFTER_KILL,
            _killed,
            "the signal did it: the reason of the kill stays the status",
        ),
        Row(S.KILLING, E.RESOURCE_LOCALIZED, S.KILLING, None, "killed while localizing: the file came all the same"),
        Row(S.KILLING, E.RESOURCE_FAILED, S.KILLING, None, "killed while localizing: the file failed"),
        Row(S.KILLING, E.UPDATE_DIAGNOSTICS_MSG, S.KILLING, _update_diagnostics, "something to tell"),
        Row(S.KILLING, E.KILL_CONTAINER, S.KILLING, None, "the first reason counts"),
        Row(
            S.KILLING,
            E.CONTAINER_EXITED_WITH_SUCCESS,
            S.EXITED_WITH_SUCCESS,
            _exited_with_success_while_killed,
            "the process ended by itself, or made exit 0 of the signal: its code wins",
        ),
        Row(
            S.KILLING,
            E.CONTAINER_EXITED_WITH_FAILURE,
            S.EXITED_WITH_FAILURE,
            _exited_with_failure_while_killed,
            "the process ended by itself, or made another code of the signal: its code wins",
        ),
        Row(S.KILLING, E.CONTAINER_RESOURCES_CLEANEDUP, S.DONE, _done, "it was never launched"),
        Row(S.KILLING, E.CONTAINER_LAUNCHED, S.KILLING, None, "the process started after the kill was ordered"),
        Row(S.CONTAINER_CLEANEDUP_AFTER_KILL, E.CONTAINER_RESOURCES_CLEANEDUP, S.DONE, _done, "files released"),
        Row(
            S.CONTAINER_CLEANEDUP_AFTER_KILL,
            E.UPDATE_DIAGNOSTICS_MSG,
            S.CONTAINER_CLEANEDUP_AFTER_KILL,
            _update_diagnostics,
            "something to tell",
        ),
        *(
            Row(state, E.UPDATE_CONTAINER_TOKEN, state, _update, "its size, or its kind, is another")
            for state in (S.NEW, S.LOCALIZING, S.LOCALIZATION_FAILED, S.SCHEDULED, S.RELAUNCHING)
        ),
        Row(S.RUNNING, E.UPDATE_CONTAINER_TOKEN, S.RUNNING, _update_while_watched, "its size, or its kind, is another"),
        *(
            Row(state, E.UPDATE_CONTAINER_TOKEN, state, None, "too late")
            for state in (
                S.EXITED_WITH_SUCCESS,
                S.EXITED_WITH_FAILURE,
                S.KILLING,
                S.CONTAINER_CLEANEDUP_AFTER_KILL,
                S.DONE,
            )
        ),
        *(
            Row(S.CONTAINER_CLEANEDUP_AFTER_KILL, event, S.CONTAINER_CLEANEDUP_AFTER_KILL, None, "too late")
            for event in (
                E.KILL_CONTAINER,
                E.RESOURCE_FAILED,
                E.CONTAINER_EXITED_WITH_SUCCESS,
                E.CONTAINER_EXITED_WITH_FAILURE,
                E.CONTAINER_KILLED_ON_REQUEST,
            )
        ),
        Row(S.DONE, E.UPDATE_DIAGNOSTICS_MSG, S.DONE, _update_diagnostics, "something to tell"),
        *(
            Row(S.DONE, event, S.DONE, None, "too late")
            for event in (
                E.INIT_CONTAINER,
                E.KILL_CONTAINER,
                E.RESOURCE_FAILED,
                E.CONTAINER_EXITED_WITH_SUCCESS,
                E.CONTAINER_EXITED_WITH_FAILURE,
                E.CONTAINER_KILLED_ON_REQUEST,
            )
        ),
    ],
)
