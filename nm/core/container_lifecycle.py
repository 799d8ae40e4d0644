"""The lifecycle of a container on a node, from its accepted start to the deletion of its files (ContainerImpl).

The exit status is set as follows. A kill stores the status for its reason at once (-105 if the AM stops the container,
-104 if the monitor does, ...). If the process then exits on its own with a code that is not that of the signal, that
code replaces the status. The text of the kill stays in the diagnostics.

No call can pause or resume a container (opportunistic containers) or re-initialise a running one yet, so the six states
for these are missing.
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
from nm.core.diagnostics import ATTEMPT_MESSAGE, KILLED_BEFORE_LAUNCH, KILLED_EXTERNALLY, RECOVERED_AS_KILLED
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
"""The events that a container handles; each carries its `container_id`."""

S = NMContainerState


def _request_resources(container: NMContainer, _: InitContainer) -> NMContainerState:
    if container.is_recovered_as_ended:
        container.finished()
        return S.DONE
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
    if container.is_reacquired and container.is_stopped:
        container.add_diagnostics(RECOVERED_AS_KILLED)
        container.end_processes()


def _exited_with_success(container: NMContainer, _: ContainerExitedWithSuccess) -> None:
    container.exit_status = ContainerExitStatus.SUCCESS
    container.end_orphans()
    container.clean_up()


def _exited_with_failure(container: NMContainer, event: ContainerExitedWithFailure | ContainerKilledOnRequest) -> None:
    container.exit_status = event.exit_code
    container.add_diagnostics(event.diagnostics + "\n")
    container.end_orphans()
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
    container.take_token(event.token)


def _update_while_watched(container: NMContainer, event: UpdateContainerToken) -> None:
    container.take_token(event.token)
    container.change_monitoring()


def _done(container: NMContainer, _: ContainerResourcesCleanedup) -> None:
    container.finished()


_TOO_LATE = (
    KillContainer,
    ResourceFailed,
    ContainerExitedWithSuccess,
    ContainerExitedWithFailure,
    ContainerKilledOnRequest,
)
"""Events that may arrive after the container has ended; the container ignores them then."""

CONTAINER_LIFECYCLE: Lifecycle[NMContainer, NMContainerState] = Lifecycle(
    "NMContainer",
    S.NEW,
    [
        Row(
            S.NEW,
            InitContainer,
            (S.LOCALIZING, S.SCHEDULED, S.DONE),
            _request_resources,
            "its application is running; a recovered container may have ended",
        ),
        Row(S.NEW, KillContainer, S.DONE, _kill_on_new, "killed before its application was initialised"),
        Row(
            S.LOCALIZING,
            ResourceLocalized,
            (S.LOCALIZING, S.SCHEDULED),
            _resource_localized,
            "one more file was fetched; after the last one it is launched",
        ),
        Row(S.LOCALIZING, ResourceFailed, S.LOCALIZATION_FAILED, _resource_failed, "a file could not be fetched"),
        Row(S.LOCALIZING, KillContainer, S.KILLING, _kill_before_running, "killed while its files are being fetched"),
        Row(S.LOCALIZATION_FAILED, KillContainer, S.LOCALIZATION_FAILED, None, "the container has no process to kill"),
        Row(
            S.LOCALIZATION_FAILED,
            ResourceLocalized,
            S.LOCALIZATION_FAILED,
            None,
            "another file was fetched, after one has already failed",
        ),
        Row(S.LOCALIZATION_FAILED, ResourceFailed, S.LOCALIZATION_FAILED, None, "another file failed as well"),
        Row(S.SCHEDULED, ContainerLaunched, S.RUNNING, _launched, "its process runs"),
        Row(
            S.SCHEDULED,
            ContainerExitedWithFailure,
            S.EXITED_WITH_FAILURE,
            _exited_with_failure,
            "its process could not be started: all disks are bad, or the work directory cannot be made",
        ),
        Row(S.SCHEDULED, KillContainer, S.KILLING, _kill, "killed while its process is being started"),
        Row(S.RUNNING, ContainerExitedWithSuccess, S.EXITED_WITH_SUCCESS, _exited_with_success, "exit 0"),
        Row(
            S.RUNNING,
            ContainerExitedWithFailure,
            (S.RELAUNCHING, S.EXITED_WITH_FAILURE),
            _failed_maybe_retry,
            "it exited with a code other than 0; its retry context decides whether it is relaunched",
        ),
        Row(
            S.RUNNING,
            KillContainer,
            S.KILLING,
            _kill,
            "killed by the AM, the RM or the monitor, or with its application",
        ),
        Row(
            S.RUNNING,
            ContainerKilledOnRequest,
            S.EXITED_WITH_FAILURE,
            _killed_externally,
            "killed by a signal from outside, or exited with 143 or 137",
        ),
        Row(S.RELAUNCHING, ContainerLaunched, S.RUNNING, _launched, "its process runs again"),
        Row(
            S.RELAUNCHING,
            ContainerExitedWithFailure,
            S.EXITED_WITH_FAILURE,
            _exited_with_failure,
            "its process could not be relaunched",
        ),
        Row(S.RELAUNCHING, KillContainer, S.KILLING, _kill_between_launches, "killed between two launches"),
        *ignored(S.EXITED_WITH_SUCCESS, (KillContainer, ContainerKilledOnRequest, UpdateContainerToken), "too late"),
        *ignored(S.EXITED_WITH_FAILURE, (KillContainer, ContainerKilledOnRequest, UpdateContainerToken), "too late"),
        Row(
            S.KILLING,
            ContainerKilledOnRequest,
            S.CONTAINER_CLEANEDUP_AFTER_KILL,
            _killed,
            "the signal ended the process: the exit status stays that of the kill's reason",
        ),
        Row(S.KILLING, ResourceLocalized, S.KILLING, None, "killed while localizing; a file was fetched"),
        Row(S.KILLING, ResourceFailed, S.KILLING, None, "killed while localizing; a file could not be fetched"),
        Row(S.KILLING, KillContainer, S.KILLING, None, "killed a second time: the first reason stays"),
        Row(
            S.KILLING,
            ContainerExitedWithSuccess,
            S.EXITED_WITH_SUCCESS,
            _exited_with_success_while_killed,
            "the process exited with 0 on its own, or on the signal: its exit code counts",
        ),
        Row(
            S.KILLING,
            ContainerExitedWithFailure,
            S.EXITED_WITH_FAILURE,
            _exited_with_failure_while_killed,
            "the process exited with a code of its own, or on the signal: its exit code counts",
        ),
        Row(S.KILLING, ContainerResourcesCleanedup, S.DONE, _done, "it was never launched"),
        Row(S.KILLING, ContainerLaunched, S.KILLING, None, "the process started after the kill was ordered"),
        Row(S.KILLING, UpdateContainerToken, S.KILLING, None, "too late"),
        *ignored(S.CONTAINER_CLEANEDUP_AFTER_KILL, (*_TOO_LATE, UpdateContainerToken), "too late"),
        *ignored(S.DONE, (InitContainer, *_TOO_LATE, UpdateContainerToken), "too late"),
        *(
            Row(state, ContainerResourcesCleanedup, S.DONE, _done, "its files are released")
            for state in (
                S.LOCALIZATION_FAILED,
                S.EXITED_WITH_SUCCESS,
                S.EXITED_WITH_FAILURE,
                S.CONTAINER_CLEANEDUP_AFTER_KILL,
            )
        ),
        *(
            Row(state, UpdateContainerToken, state, _update, "its size or execution type changes")
            for state in (S.NEW, S.LOCALIZING, S.LOCALIZATION_FAILED, S.SCHEDULED, S.RELAUNCHING)
        ),
        Row(S.RUNNING, UpdateContainerToken, S.RUNNING, _update_while_watched, "its size or execution type changes"),
        *(Row(state, UpdateDiagnosticsMsg, state, _update_diagnostics, "more diagnostics") for state in S),
    ],
)
