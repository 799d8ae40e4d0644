"""NMContainer: from the accepted start to the last file deleted (ContainerImpl).

The idea to keep in mind is who decides the exit status. A kill writes its reason first (-105 from the AM, -104 from the
monitor...) and the process's own code does not overwrite it, unless the process, asked to stop, ends by itself with
some other code: then the process has won and the reason is lost, though its text stays in the diagnostics.

Not here, because nothing of ours can ask for it yet: pausing and resuming (opportunistic containers) and the
re-initialisation of a running container, with their six states.
"""

from __future__ import annotations

from nm.core.container import (
    ContainerExitedWithFailure,
    ContainerExitedWithSuccess,
    ContainerKilledOnRequest,
    ContainerResourcesCleanedup,
    InitContainer,
    KillContainer,
    NMContainer,
    NMContainerState,
    UpdateContainerToken,
    UpdateDiagnosticsMsg,
)
from nm.core.diagnostics import ATTEMPT_MESSAGE, KILLED_BEFORE_LAUNCH, KILLED_EXTERNALLY
from nm.core.events import ContainerLaunched
from nm.core.resource_cache import ResourceFailed, ResourceLocalized
from yarn.machine import Lifecycle, Row, ignored
from yarn.states import ContainerExitStatus

ContainerEvent = (
    InitContainer
    | KillContainer
    | UpdateDiagnosticsMsg
    | ResourceLocalized
    | ResourceFailed
    | ContainerResourcesCleanedup
    | ContainerLaunched
    | ContainerExitedWithSuccess
    | ContainerExitedWithFailure
    | ContainerKilledOnRequest
    | UpdateContainerToken
)
"""The events that a container takes; each carries its `container_id`."""

S = NMContainerState


def _request_resources(container: NMContainer, _: InitContainer) -> NMContainerState:
    if container.request_resources():
        return S.LOCALIZING
    container.launch()
    return S.SCHEDULED


def _resource_localized(container: NMContainer, event: ResourceLocalized) -> NMContainerState:
    if not container.take_resource(event):
        return S.LOCALIZING
    container.launch()
    return S.SCHEDULED


def _resource_failed(container: NMContainer, event: ResourceFailed) -> None:
    container.add_diagnostics(event.diagnostics + "\n")
    container.clean_up()


def _launched(container: NMContainer, _: ContainerLaunched) -> None:
    container.start_monitoring()


def _exited_with_success(container: NMContainer, _: ContainerExitedWithSuccess) -> None:
    container.exit_status = ContainerExitStatus.SUCCESS
    container.end_leftovers()
    container.clean_up()


def _exited_with_failure(container: NMContainer, event: ContainerExitedWithFailure | ContainerKilledOnRequest) -> None:
    container.exit_status = event.exit_code
    container.add_diagnostics(event.diagnostics + "\n")
    container.end_leftovers()
    container.clean_up()


def _exited_with_success_while_killed(container: NMContainer, _: ContainerExitedWithSuccess) -> None:
    container.exit_status = ContainerExitStatus.SUCCESS
    container.clean_up()


def _exited_with_failure_while_killed(container: NMContainer, event: ContainerExitedWithFailure) -> None:
    container.exit_status = event.exit_code
    container.add_diagnostics(event.diagnostics + "\n")
    container.clean_up()


def _failed_maybe_retry(container: NMContainer, event: ContainerExitedWithFailure) -> NMContainerState:
    container.exit_status = event.exit_code
    if container.retries.is_set:
        container.add_diagnostics(ATTEMPT_MESSAGE)
    container.add_diagnostics(event.diagnostics + "\n")
    if container.maybe_relaunch_later(event.exit_code):
        return S.RELAUNCHING
    _exited_with_failure(container, event)
    return S.EXITED_WITH_FAILURE


def _killed_externally(container: NMContainer, event: ContainerKilledOnRequest) -> None:
    _exited_with_failure(container, event)
    container.add_diagnostics(KILLED_EXTERNALLY)


def _kill(container: NMContainer, kill: KillContainer) -> None:
    container.add_diagnostics(kill.diagnostics + "\n")
    container.exit_status = kill.exit_status
    container.end_processes()


def _kill_between_launches(container: NMContainer, kill: KillContainer) -> None:
    _kill(container, kill)
    container.cancel_relaunch()


def _kill_before_running(container: NMContainer, kill: KillContainer) -> None:
    container.exit_status = kill.exit_status
    container.add_diagnostics(kill.diagnostics + "\n")
    container.add_diagnostics(KILLED_BEFORE_LAUNCH)
    container.clean_up()


def _kill_on_new(container: NMContainer, kill: KillContainer) -> None:
    container.exit_status = kill.exit_status
    container.add_diagnostics(kill.diagnostics + "\n")
    container.add_diagnostics(KILLED_BEFORE_LAUNCH)
    container.finished()


def _killed(container: NMContainer, event: ContainerKilledOnRequest) -> None:
    if container.exit_status == ContainerExitStatus.INVALID:
        container.exit_status = event.exit_code
    container.add_diagnostics(event.diagnostics + "\n")
    container.clean_up()


def _update_diagnostics(container: NMContainer, event: UpdateDiagnosticsMsg) -> None:
    container.add_diagnostics(event.text + "\n")


def _update(container: NMContainer, event: UpdateContainerToken) -> None:
    container.token = event.token


def _update_while_watched(container: NMContainer, event: UpdateContainerToken) -> None:
    container.token = event.token
    container.change_monitoring()


def _done(container: NMContainer, _: ContainerResourcesCleanedup) -> None:
    container.finished()


CONTAINER_LIFECYCLE: Lifecycle[NMContainer, NMContainerState] = Lifecycle(
    "NMContainer",
    S.NEW,
    [
        Row(S.NEW, InitContainer, (S.LOCALIZING, S.SCHEDULED), _request_resources, "its application runs here"),
        Row(S.NEW, UpdateDiagnosticsMsg, S.NEW, _update_diagnostics, "more diagnostics"),
        Row(S.NEW, KillContainer, S.DONE, _kill_on_new, "killed before its application was there"),
        Row(
            S.LOCALIZING,
            ResourceLocalized,
            (S.LOCALIZING, S.SCHEDULED),
            _resource_localized,
            "one more file is there; the last one starts the launch",
        ),
        Row(S.LOCALIZING, ResourceFailed, S.LOCALIZATION_FAILED, _resource_failed, "a file could not be fetched"),
        Row(S.LOCALIZING, UpdateDiagnosticsMsg, S.LOCALIZING, _update_diagnostics, "more diagnostics"),
        Row(S.LOCALIZING, KillContainer, S.KILLING, _kill_before_running, "killed while its files are fetched"),
        Row(S.LOCALIZATION_FAILED, ContainerResourcesCleanedup, S.DONE, _done, "its files are released"),
        Row(
            S.LOCALIZATION_FAILED,
            UpdateDiagnosticsMsg,
            S.LOCALIZATION_FAILED,
            _update_diagnostics,
            "more diagnostics",
        ),
        Row(S.LOCALIZATION_FAILED, KillContainer, S.LOCALIZATION_FAILED, None, "nothing runs that could be killed"),
        Row(S.LOCALIZATION_FAILED, ResourceLocalized, S.LOCALIZATION_FAILED, None, "another file came, too late"),
        Row(S.LOCALIZATION_FAILED, ResourceFailed, S.LOCALIZATION_FAILED, None, "another file failed as well"),
        Row(S.SCHEDULED, ContainerLaunched, S.RUNNING, _launched, "its process runs"),
        Row(
            S.SCHEDULED,
            ContainerExitedWithFailure,
            S.EXITED_WITH_FAILURE,
            _exited_with_failure,
            "the process could not be started: no good disk, no work directory",
        ),
        Row(S.SCHEDULED, UpdateDiagnosticsMsg, S.SCHEDULED, _update_diagnostics, "more diagnostics"),
        Row(S.SCHEDULED, KillContainer, S.KILLING, _kill, "killed while its process is being started"),
        Row(S.RUNNING, ContainerExitedWithSuccess, S.EXITED_WITH_SUCCESS, _exited_with_success, "exit 0"),
        Row(
            S.RUNNING,
            ContainerExitedWithFailure,
            (S.RELAUNCHING, S.EXITED_WITH_FAILURE),
            _failed_maybe_retry,
            "a code that is not 0; its retry context says whether it starts again",
        ),
        Row(S.RUNNING, UpdateDiagnosticsMsg, S.RUNNING, _update_diagnostics, "more diagnostics"),
        Row(S.RUNNING, KillContainer, S.KILLING, _kill, "the AM, the RM, the monitor or its application's end"),
        Row(
            S.RUNNING,
            ContainerKilledOnRequest,
            S.EXITED_WITH_FAILURE,
            _killed_externally,
            "TERM or KILL that was not ours, or an exit with 143 or 137",
        ),
        Row(S.RELAUNCHING, ContainerLaunched, S.RUNNING, _launched, "its process runs again"),
        Row(
            S.RELAUNCHING,
            ContainerExitedWithFailure,
            S.EXITED_WITH_FAILURE,
            _exited_with_failure,
            "the process could not be started again",
        ),
        Row(S.RELAUNCHING, UpdateDiagnosticsMsg, S.RELAUNCHING, _update_diagnostics, "more diagnostics"),
        Row(S.RELAUNCHING, KillContainer, S.KILLING, _kill_between_launches, "killed between two tries"),
        Row(S.EXITED_WITH_SUCCESS, ContainerResourcesCleanedup, S.DONE, _done, "its files are released"),
        Row(
            S.EXITED_WITH_SUCCESS,
            UpdateDiagnosticsMsg,
            S.EXITED_WITH_SUCCESS,
            _update_diagnostics,
            "more diagnostics",
        ),
        Row(S.EXITED_WITH_SUCCESS, KillContainer, S.EXITED_WITH_SUCCESS, None, "too late"),
        Row(S.EXITED_WITH_SUCCESS, ContainerKilledOnRequest, S.EXITED_WITH_SUCCESS, None, "too late"),
        Row(S.EXITED_WITH_FAILURE, ContainerResourcesCleanedup, S.DONE, _done, "its files are released"),
        Row(
            S.EXITED_WITH_FAILURE,
            UpdateDiagnosticsMsg,
            S.EXITED_WITH_FAILURE,
            _update_diagnostics,
            "more diagnostics",
        ),
        Row(S.EXITED_WITH_FAILURE, KillContainer, S.EXITED_WITH_FAILURE, None, "too late"),
        Row(S.EXITED_WITH_FAILURE, ContainerKilledOnRequest, S.EXITED_WITH_FAILURE, None, "too late"),
        Row(
            S.KILLING,
            ContainerKilledOnRequest,
            S.CONTAINER_CLEANEDUP_AFTER_KILL,
            _killed,
            "the signal did it: the reason of the kill stays the status",
        ),
        Row(S.KILLING, ResourceLocalized, S.KILLING, None, "killed while localizing: the file was fetched"),
        Row(S.KILLING, ResourceFailed, S.KILLING, None, "killed while localizing: the file failed"),
        Row(S.KILLING, UpdateDiagnosticsMsg, S.KILLING, _update_diagnostics, "more diagnostics"),
        Row(S.KILLING, KillContainer, S.KILLING, None, "the first reason counts"),
        Row(
            S.KILLING,
            ContainerExitedWithSuccess,
            S.EXITED_WITH_SUCCESS,
            _exited_with_success_while_killed,
            "the process ended by itself, or made exit 0 of the signal: its code wins",
        ),
        Row(
            S.KILLING,
            ContainerExitedWithFailure,
            S.EXITED_WITH_FAILURE,
            _exited_with_failure_while_killed,
            "the process ended by itself, or made another code of the signal: its code wins",
        ),
        Row(S.KILLING, ContainerResourcesCleanedup, S.DONE, _done, "it was never launched"),
        Row(S.KILLING, ContainerLaunched, S.KILLING, None, "the process started after the kill was ordered"),
        Row(S.CONTAINER_CLEANEDUP_AFTER_KILL, ContainerResourcesCleanedup, S.DONE, _done, "files released"),
        Row(
            S.CONTAINER_CLEANEDUP_AFTER_KILL,
            UpdateDiagnosticsMsg,
            S.CONTAINER_CLEANEDUP_AFTER_KILL,
            _update_diagnostics,
            "more diagnostics",
        ),
        *(
            Row(state, UpdateContainerToken, state, _update, "its size or execution type changes")
            for state in (S.NEW, S.LOCALIZING, S.LOCALIZATION_FAILED, S.SCHEDULED, S.RELAUNCHING)
        ),
        Row(
            S.RUNNING,
            UpdateContainerToken,
            S.RUNNING,
            _update_while_watched,
            "its size or execution type changes",
        ),
        *(
            Row(state, UpdateContainerToken, state, None, "too late")
            for state in (
                S.EXITED_WITH_SUCCESS,
                S.EXITED_WITH_FAILURE,
                S.KILLING,
                S.CONTAINER_CLEANEDUP_AFTER_KILL,
                S.DONE,
            )
        ),
        *ignored(
            S.CONTAINER_CLEANEDUP_AFTER_KILL,
            (
                KillContainer,
                ResourceFailed,
                ContainerExitedWithSuccess,
                ContainerExitedWithFailure,
                ContainerKilledOnRequest,
            ),
            "too late",
        ),
        Row(S.DONE, UpdateDiagnosticsMsg, S.DONE, _update_diagnostics, "more diagnostics"),
        *ignored(
            S.DONE,
            (
                InitContainer,
                KillContainer,
                ResourceFailed,
                ContainerExitedWithSuccess,
                ContainerExitedWithFailure,
                ContainerKilledOnRequest,
            ),
            "too late",
        ),
    ],
)
