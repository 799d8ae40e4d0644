"""The end of an attempt: first its outcome is stored, then everything that depends on the outcome is done.

The `save_*` actions of the table in rm_app_attempt_lifecycle lead to the state FINAL_SAVING. `end` does what follows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from rm.core.applications import UNAVAILABLE, BoundedText, RMAppAttempt
from rm.core.effects import CleanUpAM
from rm.core.lifecycle_events import (
    AppAttemptRemoved,
    AttemptFailed,
    AttemptFinished,
    AttemptKilled,
    AttemptUnregistered,
    AttemptUpdateSaved,
    FinishedContainersPulledByAM,
    RMAppAttemptContainerFinished,
    RMAppAttemptExpire,
    RMAppAttemptFail,
    RMAppAttemptKill,
    RMAppAttemptLaunchFailed,
    RMAppAttemptRegistered,
    RMAppAttemptUnregistered,
)
from rm.core.states import RMAppAttemptState, RMAppState
from rm.core.stored_state import ApplicationAttemptStateData
from yarn.protocols.master import FinishApplicationMasterRequest
from yarn.states import ContainerExitStatus, FinalApplicationStatus

S = RMAppAttemptState

TOO_EARLY = "Unmanaged AM must register after AM attempt reaches LAUNCHED state."


def save_killed(attempt: RMAppAttempt, event: RMAppAttemptKill) -> RMAppAttemptState:
    """Save an attempt that was killed before it had a container."""
    return _save(attempt, S.KILLED, lambda: end(attempt, S.KILLED, event.diagnostics))


def save_killed_with_container(attempt: RMAppAttempt, event: RMAppAttemptKill) -> RMAppAttemptState:
    """Save an attempt that was killed between allocation and launch; the container may have been started or not."""

    def killed() -> None:
        end(attempt, S.KILLED, event.diagnostics)
        _clean_up_am(attempt)

    return _save(attempt, S.KILLED, killed)


def save_killed_after_launch(attempt: RMAppAttempt, event: RMAppAttemptKill) -> RMAppAttemptState:
    """Save an attempt that was killed after its AM was launched."""
    return _save(attempt, S.KILLED, lambda: end_with_cleanup(attempt, S.KILLED, event.diagnostics))


def save_failed(attempt: RMAppAttempt, event: RMAppAttemptFail | RMAppAttemptLaunchFailed) -> RMAppAttemptState:
    """Save an attempt that its user or the launcher failed, with the reason given."""
    return _save_failure(attempt, event.diagnostics)


def _save_failure(attempt: RMAppAttempt, diagnostics: str) -> RMAppAttemptState:
    def failed() -> None:
        attempt.final_diagnostics.append(diagnostics)
        end(attempt, S.FAILED, "")

    return _save(attempt, S.FAILED, failed, diagnostics=diagnostics)


def save_registered_too_early(attempt: RMAppAttempt, _: RMAppAttemptRegistered) -> RMAppAttemptState:
    """Save the failure of an attempt whose unmanaged AM registered before the attempt was LAUNCHED."""
    return _save_failure(attempt, TOO_EARLY)


def save_crashed_early(attempt: RMAppAttempt, finished: RMAppAttemptContainerFinished) -> RMAppAttemptState:
    """Save the failure of an attempt whose AM container ended before the AM registered."""

    def crashed() -> None:
        _note_crash(attempt, finished)
        end(attempt, S.FAILED, "")

    return _save(attempt, S.FAILED, crashed, finished=finished)


def save_crashed(attempt: RMAppAttempt, finished: RMAppAttemptContainerFinished) -> RMAppAttemptState:
    """Save the failure of an attempt whose AM container ended while the AM was registered."""

    def crashed() -> None:
        _note_crash(attempt, finished)
        end_with_cleanup(attempt, S.FAILED, "")

    return _save(attempt, S.FAILED, crashed, finished=finished)


def save_expired(attempt: RMAppAttempt, _: RMAppAttemptExpire) -> RMAppAttemptState:
    """Save the failure of an attempt whose AM sent nothing for too long."""
    diagnostics = f"ApplicationMaster for attempt {attempt} timed out"

    def expired() -> None:
        attempt.final_diagnostics.append(diagnostics)
        end_with_cleanup(attempt, S.FAILED, "")

    return _save(attempt, S.FAILED, expired, diagnostics=diagnostics)


def save_unregistered(attempt: RMAppAttempt, event: RMAppAttemptUnregistered) -> RMAppAttemptState:
    """Save what the AM reported when it unregistered. The attempt of an unmanaged AM is then finished."""
    unregistration = event.request
    if unregistration.final_status is not FinalApplicationStatus.SUCCEEDED:
        diagnostics = attempt.app.with_refused_start(unregistration.diagnostics)
        unregistration = replace(unregistration, diagnostics=diagnostics)
    if attempt.app.submission.unmanaged_am:
        next_state = _save(attempt, S.FINISHED, lambda: _finish(attempt, unregistration), unregistration=unregistration)
    else:
        after = partial(_wait_for_container, attempt, unregistration)
        next_state = _save(attempt, S.FINISHING, after, unregistration=unregistration)
    attempt.unregistration = unregistration
    attempt.context.send(AttemptUnregistered(attempt.app.application_id))
    return next_state


def expired_while_saving(attempt: RMAppAttempt, _: RMAppAttemptExpire) -> None:
    """Skip FINISHING: the AM's container is not waited for any more."""
    skip_finishing(attempt)


def finish_without_container(attempt: RMAppAttempt, _: RMAppAttemptExpire) -> None:
    """End an attempt whose AM unregistered but whose container does not end: the RM ends the container."""
    end_with_cleanup(attempt, S.FINISHED, "")


def final_saved(attempt: RMAppAttempt, _: AttemptUpdateSaved) -> RMAppAttemptState:
    """Do what had to wait until the outcome was stored."""
    assert attempt.after_saving is not None
    let_nodes_forget_am(attempt)
    attempt.after_saving()
    return attempt.target


def let_nodes_forget_am(attempt: RMAppAttempt) -> None:
    """Let nodes forget the ended containers of an attempt whose AM container ended.

    No AM will ask for them, unless containers are kept across attempts.
    """
    finished = attempt.am_end
    if finished is None:
        return
    if attempt.app.submission.keep_containers_across_attempts:
        attempt.context.send(FinishedContainersPulledByAM(finished.node_id, (finished.status.container_id,)))
        return
    attempt.finished_containers.mark_sent(finished.node_id, finished.status)
    attempt.let_nodes_forget(attempt.finished_containers.take_sent())
    attempt.let_nodes_forget(attempt.finished_containers.take_unsent())
    attempt.no_am_will_ask = True


def _save(
    attempt: RMAppAttempt,
    target: RMAppAttemptState,
    after: Callable[[], None],
    *,
    diagnostics: str = "",
    finished: RMAppAttemptContainerFinished | None = None,
    unregistration: FinishApplicationMasterRequest | None = None,
) -> RMAppAttemptState:
    """Store the outcome, then call `after`.

    `diagnostics`, the status of the AM's container or its unregistration explain the end.
    """
    attempt.target = target
    attempt.after_saving = after
    attempt.state_before_final_saving = attempt.state
    attempt.original_tracking_url = attempt.page
    if target in (S.KILLED, S.FAILED):
        attempt.proxied_tracking_url = attempt.page
    attempt.finish_ms = attempt.context.now_ms
    app = attempt.app
    attempt.context.store.end_attempt(
        ApplicationAttemptStateData(
            attempt.attempt_id,
            attempt.am_container,
            attempt.start_ms,
            S.FINISHED if target is S.FINISHING else target,
            tracking_url=_url_of(unregistration) if unregistration is not None else attempt.page,
            diagnostics=_stored_diagnostics(attempt, diagnostics, finished, unregistration),
            final_status=unregistration.final_status if unregistration is not None else None,
            exit_status=finished.status.exit_status if finished is not None else ContainerExitStatus.INVALID,
            finish_ms=attempt.finish_ms,
            memory_mb_seconds=app.memory_mb_seconds,
            vcore_seconds=app.vcore_seconds,
            preempted_memory_mb_seconds=app.losses.memory_mb_seconds,
            preempted_vcore_seconds=app.losses.vcore_seconds,
        )
    )
    return S.FINAL_SAVING


def _stored_diagnostics(
    attempt: RMAppAttempt,
    diagnostics: str,
    finished: RMAppAttemptContainerFinished | None,
    unregistration: FinishApplicationMasterRequest | None,
) -> str:
    """The diagnostics to store, cut to the same length as those that are shown."""
    if finished is not None:
        diagnostics = _crash(attempt, finished)
    elif unregistration is not None:
        diagnostics = unregistration.diagnostics
    text = BoundedText(attempt.context.settings.attempt_diagnostics_chars_max)
    text.append(diagnostics)
    return str(text)


def skip_finishing(attempt: RMAppAttempt) -> None:
    """Skip FINISHING once the unregistration is stored: the AM's container is not waited for."""
    unregistration = attempt.unregistration
    if attempt.target in (S.FAILED, S.KILLED) or unregistration is None:
        return
    attempt.target = S.FINISHED
    attempt.after_saving = lambda: _finish(attempt, unregistration)


def _wait_for_container(attempt: RMAppAttempt, unregistration: FinishApplicationMasterRequest) -> None:
    attempt.context.am_liveness.unregister(attempt.attempt_id)
    attempt.context.am_finishing.register(attempt.attempt_id, attempt.context.now_ms)
    _note_unregistration(attempt, unregistration)


def _finish(attempt: RMAppAttempt, unregistration: FinishApplicationMasterRequest) -> None:
    _note_unregistration(attempt, unregistration)
    end_with_cleanup(attempt, S.FINISHED, "")


def _note_unregistration(attempt: RMAppAttempt, unregistration: FinishApplicationMasterRequest) -> None:
    attempt.progress = 1.0
    attempt.final_diagnostics.append(unregistration.diagnostics)
    attempt.original_tracking_url = _url_of(unregistration)
    attempt.final_status = unregistration.final_status


def _url_of(unregistration: FinishApplicationMasterRequest) -> str:
    return unregistration.tracking_url.strip() or UNAVAILABLE


def _note_crash(attempt: RMAppAttempt, finished: RMAppAttemptContainerFinished) -> None:
    """Note that the attempt failed because its AM's container ended."""
    attempt.final_diagnostics.append(_crash(attempt, finished))
    attempt.am_exit_status = finished.status.exit_status


def _crash(attempt: RMAppAttempt, finished: RMAppAttemptContainerFinished) -> str:
    """Why the attempt failed, in Hadoop's words (getAMContainerCrashedDiagnostics)."""
    status = finished.status
    return (
        f"AM Container for {attempt} exited with  exitCode: {status.exit_status}\n"
        f"Failing this attempt.Diagnostics: {status.diagnostics}"
        f"For more detailed output, check the application tracking page: {attempt.tracking_url}"
        " Then click on links to logs of each attempt.\n"
    )


def end_with_cleanup(attempt: RMAppAttempt, final_state: RMAppAttemptState, diagnostics: str) -> None:
    """End an attempt whose AM was launched (FinalTransition)."""
    attempt.progress = 1.0
    end(attempt, final_state, diagnostics)
    if not attempt.app.submission.unmanaged_am:
        _clean_up_am(attempt)


def _clean_up_am(attempt: RMAppAttempt) -> None:
    if attempt.am_container is not None:
        attempt.context.emit(CleanUpAM(attempt.attempt_id, attempt.am_container.id, attempt.am_container.node_id))


def end(attempt: RMAppAttempt, final_state: RMAppAttemptState, diagnostics: str) -> None:
    """Report the end to the application, then to the scheduler (BaseFinalTransition).

    This order decides which application gets the freed resources.
    """
    context, application_id = attempt.context, attempt.app.application_id
    context.sessions.pop(attempt.attempt_id, None)
    context.am_liveness.unregister(attempt.attempt_id)
    context.am_finishing.unregister(attempt.attempt_id)
    keeps = False
    if final_state is S.FINISHED:
        context.send(AttemptFinished(application_id, attempt.diagnostics))
    else:
        attempt.host, attempt.rpc_port = UNAVAILABLE, -1
        if final_state is S.KILLED:
            context.send(AttemptKilled(application_id, diagnostics))
        else:
            keeps = _keeps_containers(attempt)
            context.send(AttemptFailed(application_id, attempt.diagnostics, keeps))
    context.send(AppAttemptRemoved(attempt.attempt_id, final_state.name, keeps))


def _keeps_containers(attempt: RMAppAttempt) -> bool:
    """True if the next attempt takes over the running containers of this failed attempt.

    There is no next attempt if the application is being killed. Hadoop keeps the containers even then, and their queue
    counts them forever.
    """
    app = attempt.app
    if not app.submission.keep_containers_across_attempts or app.submission.unmanaged_am:
        return False
    if app.state is RMAppState.KILLING:
        return False
    return app.max_attempts > 1 and app.failed_attempts() < app.max_attempts
