"""How an attempt ends: each way goes by the store, and what follows is done once the outcome is stored.

`save_*` actions of the table in rm_app_attempt lead into FINAL_SAVING; what follows there is `end`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from rm.core.diagnostics import BoundedText
from rm.core.effects import CleanUpMaster
from rm.core.lifecycle_events import AttemptFailed, FinishedContainer, RMAppEventType, RMNodeEventType
from rm.core.state_store import ended_attempt_data
from rm.core.states import RMAppAttemptState, RMAppState
from yarn.protocols.master import FinishApplicationMasterRequest
from yarn.states import ContainerExitStatus

if TYPE_CHECKING:
    from rm.core.rm_app_attempt import RMAppAttempt

_S = RMAppAttemptState

UNAVAILABLE = "N/A"
TOO_EARLY = "Unmanaged AM must register after AM attempt reaches LAUNCHED state."


def save_killed(attempt: RMAppAttempt, diagnostics: str) -> RMAppAttemptState:
    """Killed before it had a container to clean up."""
    return save_final(attempt, _S.KILLED, lambda: end(attempt, _S.KILLED, diagnostics))


def save_killed_with_container(attempt: RMAppAttempt, diagnostics: str) -> RMAppAttemptState:
    """Killed between allocation and launch: the container may or may not be there."""

    def killed() -> None:
        end(attempt, _S.KILLED, diagnostics)
        _clean_up_master(attempt)

    return save_final(attempt, _S.KILLED, killed)


def save_killed_for_good(attempt: RMAppAttempt, diagnostics: str) -> RMAppAttemptState:
    """Killed with its master at work."""
    return save_final(attempt, _S.KILLED, lambda: end_with_cleanup(attempt, _S.KILLED, diagnostics))


def save_failed(attempt: RMAppAttempt, diagnostics: str) -> RMAppAttemptState:
    """Failed by its user, or by the launcher, for the reason given."""

    def failed() -> None:
        attempt.final_diagnostics.append(diagnostics)
        end(attempt, _S.FAILED, "")

    return save_final(attempt, _S.FAILED, failed, diagnostics=diagnostics)


def save_registered_too_early(attempt: RMAppAttempt, _: object) -> RMAppAttemptState:
    """An unmanaged master registered before it was told to."""
    return save_failed(attempt, TOO_EARLY)


def save_crashed_early(attempt: RMAppAttempt, finished: FinishedContainer) -> RMAppAttemptState:
    """The master's container ended before it registered."""

    def crashed() -> None:
        note_crash(attempt, finished)
        end(attempt, _S.FAILED, "")

    return save_final(attempt, _S.FAILED, crashed, finished=finished)


def save_expired(attempt: RMAppAttempt, _: object) -> RMAppAttemptState:
    """The master was not heard of for too long."""

    diagnostics = f"ApplicationMaster for attempt {attempt} timed out"

    def expired() -> None:
        attempt.final_diagnostics.append(diagnostics)
        end_with_cleanup(attempt, _S.FAILED, "")

    return save_final(attempt, _S.FAILED, expired, diagnostics=diagnostics)


def save_unregistered(attempt: RMAppAttempt, last_word: FinishApplicationMasterRequest) -> RMAppAttemptState:
    """Store the master's last word; the application hears of it at once. An unmanaged master is then finished."""
    if attempt.app.submission.unmanaged_am:
        next_state = save_final(attempt, _S.FINISHED, lambda: _finish(attempt, last_word), last_word=last_word)
    else:
        after = partial(_wait_for_container, attempt, last_word)
        next_state = save_final(attempt, _S.FINISHING, after, last_word=last_word)
    attempt.last_word = last_word
    attempt.context.send_app(attempt.app.application_id, RMAppEventType.ATTEMPT_UNREGISTERED)
    return next_state


def expired_while_saving(attempt: RMAppAttempt, _: object) -> None:
    """Nobody waits for the container any more: skip FINISHING."""
    skip_finishing(attempt)


def finish_without_container(attempt: RMAppAttempt, _: object) -> None:
    """The master unregistered but its container does not end: the RM ends it."""
    end_with_cleanup(attempt, _S.FINISHED, "")


def final_saved(attempt: RMAppAttempt, _: object) -> RMAppAttemptState:
    """The outcome is stored: do what was left for then."""
    assert attempt.after_saving is not None
    let_nodes_forget_master(attempt)
    attempt.after_saving()
    return attempt.target


def let_nodes_forget_master(attempt: RMAppAttempt) -> None:
    """If its master's container has ended: without kept containers nobody will ask for this attempt's ends any more."""
    finished = attempt.master_end
    if finished is None:
        return
    if attempt.app.submission.keep_containers_across_attempts:
        attempt.context.send_node(
            finished.node_id, RMNodeEventType.FINISHED_CONTAINERS_PULLED_BY_AM, (finished.status.container_id,)
        )
        return
    attempt.finished_containers.mark_sent(finished.node_id, finished.status)
    attempt.let_nodes_forget(attempt.finished_containers.take_heard())
    attempt.let_nodes_forget(attempt.finished_containers.take_unsent())
    attempt.no_master_will_ask = True


def save_final(
    attempt: RMAppAttempt,
    target: RMAppAttemptState,
    after: Callable[[], None],
    *,
    diagnostics: str = "",
    finished: FinishedContainer | None = None,
    last_word: FinishApplicationMasterRequest | None = None,
) -> RMAppAttemptState:
    """Store the end, which is one of `diagnostics`, the master's container's or its last word; `after` comes then."""
    attempt.target = target
    attempt.after_saving = after
    attempt.state_before_final_saving = attempt.state
    attempt.original_tracking_url = attempt.page
    if target in (_S.KILLED, _S.FAILED):
        attempt.proxied_tracking_url = attempt.page
    attempt.finish_ms = attempt.context.now_ms
    attempt.context.store.end_attempt(
        attempt,
        ended_attempt_data(
            attempt,
            _S.FINISHED if target is _S.FINISHING else target,
            diagnostics=_stored_diagnostics(attempt, diagnostics, finished, last_word),
            tracking_url=_url_of(last_word) if last_word is not None else attempt.page,
            final_status=last_word.final_status if last_word is not None else None,
            exit_status=finished.status.exit_status if finished is not None else ContainerExitStatus.INVALID,
        ),
    )
    return _S.FINAL_SAVING


def _stored_diagnostics(
    attempt: RMAppAttempt,
    diagnostics: str,
    finished: FinishedContainer | None,
    last_word: FinishApplicationMasterRequest | None,
) -> str:
    """Cut like those that are shown."""
    if finished is not None:
        diagnostics = _crash(attempt, finished)
    elif last_word is not None:
        diagnostics = last_word.diagnostics
    text = BoundedText(attempt.context.settings.attempt_diagnostics_chars_max)
    text.append(diagnostics)
    return str(text)


def skip_finishing(attempt: RMAppAttempt) -> None:
    """Nobody will wait for the master's container once its last word is stored."""
    last_word = attempt.last_word
    if attempt.target in (_S.FAILED, _S.KILLED) or last_word is None:
        return
    attempt.target = _S.FINISHED
    attempt.after_saving = lambda: _finish(attempt, last_word)


def _wait_for_container(attempt: RMAppAttempt, last_word: FinishApplicationMasterRequest) -> None:
    attempt.context.master_liveness.unregister(attempt.attempt_id)
    attempt.context.master_finishing.register(attempt.attempt_id, attempt.context.now_ms)
    _note_last_word(attempt, last_word)


def _finish(attempt: RMAppAttempt, last_word: FinishApplicationMasterRequest) -> None:
    _note_last_word(attempt, last_word)
    end_with_cleanup(attempt, _S.FINISHED, "")


def _note_last_word(attempt: RMAppAttempt, last_word: FinishApplicationMasterRequest) -> None:
    attempt.progress = 1.0
    attempt.final_diagnostics.append(last_word.diagnostics)
    attempt.original_tracking_url = _url_of(last_word)
    attempt.final_status = last_word.final_status


def _url_of(last_word: FinishApplicationMasterRequest) -> str:
    return last_word.tracking_url.strip() or UNAVAILABLE


def note_crash(attempt: RMAppAttempt, finished: FinishedContainer) -> None:
    """Why the attempt failed: its master's container ended."""
    attempt.final_diagnostics.append(_crash(attempt, finished))
    attempt.master_exit_status = finished.status.exit_status


def _crash(attempt: RMAppAttempt, finished: FinishedContainer) -> str:
    """Why it failed, in Hadoop's words (getAMContainerCrashedDiagnostics)."""
    status = finished.status
    return (
        f"AM Container for {attempt} exited with  exitCode: {status.exit_status}\n"
        f"Failing this attempt.Diagnostics: {status.diagnostics}"
        f"For more detailed output, check the application tracking page: {attempt.tracking_url}"
        " Then click on links to logs of each attempt.\n"
    )


def end_with_cleanup(attempt: RMAppAttempt, final_state: RMAppAttemptState, diagnostics: str) -> None:
    """An end of a master that was launched (FinalTransition)."""
    attempt.progress = 1.0
    end(attempt, final_state, diagnostics)
    if not attempt.app.submission.unmanaged_am:
        _clean_up_master(attempt)


def _clean_up_master(attempt: RMAppAttempt) -> None:
    if attempt.master is not None:
        attempt.context.effects.append(CleanUpMaster(attempt.attempt_id, attempt.master.id, attempt.master.node_id))


def end(attempt: RMAppAttempt, final_state: RMAppAttemptState, diagnostics: str) -> None:
    """Tell the application, then the scheduler (BaseFinalTransition): the order decides who gets the room."""
    context = attempt.context
    context.masters.unregister_attempt(attempt.attempt_id)
    context.master_liveness.unregister(attempt.attempt_id)
    context.master_finishing.unregister(attempt.attempt_id)
    keeps = False
    if final_state is _S.FINISHED:
        context.send_app(attempt.app.application_id, RMAppEventType.ATTEMPT_FINISHED, attempt.diagnostics)
    else:
        attempt.host, attempt.rpc_port = UNAVAILABLE, -1
        if final_state is _S.KILLED:
            context.send_app(attempt.app.application_id, RMAppEventType.ATTEMPT_KILLED, diagnostics)
        else:
            keeps = _keeps_containers(attempt)
            failure = AttemptFailed(attempt.diagnostics, keeps)
            context.send_app(attempt.app.application_id, RMAppEventType.ATTEMPT_FAILED, failure)
    context.send(context.remove_attempt, attempt, final_state.name, keeps)


def _keeps_containers(attempt: RMAppAttempt) -> bool:
    """True if the next attempt takes over the running containers of this failed one.

    There is none if the application is being killed: Hadoop keeps them, and their queue counts them for ever.
    """
    app = attempt.app
    if not app.submission.keep_containers_across_attempts or app.submission.unmanaged_am:
        return False
    if app.state is RMAppState.KILLING:
        return False
    return app.max_attempts > 1 and app.failed_attempts() < app.max_attempts
