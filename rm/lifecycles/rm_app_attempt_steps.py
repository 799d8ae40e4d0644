"""What an attempt does on each event: the actions of the table in rm_app_attempt.

An action gets (attempt, what the event carries) and returns the next state where the table leaves it a choice.
`save_*` actions lead into FINAL_SAVING; what follows once the outcome is stored is `_end`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from rm.am_blacklist import applicable_nodes
from rm.ask_labels import with_default_label
from rm.diagnostics import BoundedText
from rm.effects import CleanUpMaster, LaunchMaster
from rm.lifecycles.events import (
    AttemptFailed,
    FinishedContainer,
    RMAppEventType,
    RMNodeEventType,
)
from rm.lifecycles.states import RMAppAttemptState
from rm.state_store import ended_attempt_data
from yarn.protocols.master import FinishApplicationMasterRequest, RegisterApplicationMasterRequest
from yarn.states import ContainerExitStatus

if TYPE_CHECKING:
    from rm.lifecycles.rm_app_attempt import RMAppAttempt

_S = RMAppAttemptState

UNAVAILABLE = "N/A"
WAITS_FOR_REGISTER = "AM container is launched, waiting for AM container to Register with RM"
TOO_EARLY = "Unmanaged AM must register after AM attempt reaches LAUNCHED state."


# From the application's wish to a master at work


def start(attempt: RMAppAttempt, transfers_containers: bool) -> None:
    """Let the master register from now on, and tell the scheduler."""
    context = attempt.context
    attempt.start_ms = context.now_ms
    context.masters.register_attempt(attempt.attempt_id)
    context.send(context.add_attempt, attempt, transfers_containers)


def schedule(attempt: RMAppAttempt, _: object) -> RMAppAttemptState:
    """Ask for the master's container; an unmanaged master needs none."""
    context = attempt.context
    if attempt.app.submission.unmanaged_am:
        context.store.store_attempt(attempt)
        return _S.LAUNCHED_UNMANAGED_SAVING
    app = attempt.app
    asks = with_default_label(app.am_requests, context, app.queue)
    additions: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()
    if app.am_blacklist is not None:
        applicable = applicable_nodes(asks, context.scheduler.nodes.values())
        additions, removals = app.am_blacklist.updates(applicable)
    context.scheduler.allocate(attempt.attempt_id, asks, (), additions, removals, (), context.now_ms)
    return _S.SCHEDULED


def fetch_master_container(attempt: RMAppAttempt, _: object) -> RMAppAttemptState:
    """Take the container over; with its node it may be gone again, then CONTAINER_FINISHED is on its way."""
    context = attempt.context
    containers = context.scheduler.allocate(attempt.attempt_id, (), (), (), (), (), context.now_ms).containers
    if not containers:
        return _S.SCHEDULED
    attempt.master = containers[0]
    context.scheduler.mark_am_container(attempt.master.id)
    context.store.store_attempt(attempt)
    return _S.ALLOCATED_SAVING


def launch(attempt: RMAppAttempt, _: object) -> None:
    """Have the launcher start the master (AMLauncher LAUNCH)."""
    assert attempt.master is not None
    app = attempt.app
    attempt.context.effects.append(
        LaunchMaster(attempt.attempt_id, attempt.master, app.submission, app.user, app.submit_ms)
    )


def launched(attempt: RMAppAttempt, _: object) -> None:
    """The master runs: from now on it must be heard of."""
    attempt.context.send_app(attempt.app.application_id, RMAppEventType.ATTEMPT_LAUNCHED)
    attempt.launch_diagnostics = WAITS_FOR_REGISTER
    attempt.context.master_liveness.register(attempt.attempt_id, attempt.context.now_ms)


def registered(attempt: RMAppAttempt, request: RegisterApplicationMasterRequest) -> None:
    """Note where the master is, and let the application run."""
    attempt.host = request.host
    attempt.rpc_port = request.rpc_port
    attempt.original_tracking_url = request.tracking_url.strip() or UNAVAILABLE
    attempt.launch_diagnostics = None
    attempt.context.send_app(attempt.app.application_id, RMAppEventType.ATTEMPT_REGISTERED)


def registered_before_launched(attempt: RMAppAttempt, request: RegisterApplicationMasterRequest) -> None:
    """The master was quicker than the launcher's word."""
    launched(attempt, None)
    registered(attempt, request)


def status_update(attempt: RMAppAttempt, status: tuple[float, str]) -> None:
    """The master's heartbeat: (progress, tracking URL or "" for no change)."""
    attempt.progress, tracking_url = status
    if tracking_url:
        attempt.original_tracking_url = tracking_url
    attempt.context.master_liveness.ping(attempt.attempt_id, attempt.context.now_ms)


# After a restart of the ResourceManager


def recovered(attempt: RMAppAttempt, _: object) -> RMAppAttemptState:
    """Over, or LAUNCHED: the master may run, or never have started (AttemptRecoveredTransition).

    If the last attempt was over and the application was not, what follows from its end was lost and is done now.
    """
    app, context = attempt.app, attempt.context
    state = attempt.recovered_final_state
    is_current = attempt is app.current_attempt
    if state is not None:
        attempt.progress = 1.0
        if state in (_S.KILLED, _S.FAILED):
            attempt.proxied_tracking_url = attempt.page
        if app.submission.keep_containers_across_attempts and not is_current and app.current_attempt is not None:
            attempt.finished_containers = app.current_attempt.finished_containers
        if is_current and app.recovered_final_state is None:
            context.add_attempt(attempt, False, recovering=True)
            _end(attempt, state, "")
        return state
    if app.recovered_final_state is not None:
        return RMAppAttemptState[app.recovered_final_state.name]
    if context.settings.work_preserving:
        context.masters.register_attempt(attempt.attempt_id)
        context.add_attempt(attempt, False, recovering=True)
    launched(attempt, None)
    return _S.LAUNCHED


# Containers that end


def collect(attempt: RMAppAttempt, finished: FinishedContainer) -> None:
    """Keep the end for the master to hear; if none will, let the node forget it at once."""
    attempt.finished_containers.add(finished.node_id, finished.status)
    if attempt.no_master_will_ask:
        attempt.let_nodes_forget(attempt.finished_containers.take_unsent())


def container_finished_before_registering(attempt: RMAppAttempt, finished: FinishedContainer) -> RMAppAttemptState:
    """The master's container: the attempt failed."""
    if not attempt.is_master(finished.status.container_id):
        collect(attempt, finished)
        return _S.LAUNCHED
    _master_container_ended(attempt, finished)
    return save_crashed_early(attempt, finished)


def container_finished_while_running(attempt: RMAppAttempt, finished: FinishedContainer) -> RMAppAttemptState:
    """The master's container: the attempt failed at work."""
    if not attempt.is_master(finished.status.container_id):
        collect(attempt, finished)
        return _S.RUNNING
    _master_container_ended(attempt, finished)

    def crashed() -> None:
        _note_crash(attempt, finished)
        _end_with_cleanup(attempt, _S.FAILED, "")

    return _save_final(attempt, _S.FAILED, crashed, finished=finished)


def container_finished_while_saving(attempt: RMAppAttempt, finished: FinishedContainer) -> None:
    """The master's container ended before its last word was stored: skip FINISHING."""
    if not attempt.is_master(finished.status.container_id):
        collect(attempt, finished)
        return
    _master_container_ended(attempt, finished)
    _skip_finishing(attempt)


def container_finished_while_finishing(attempt: RMAppAttempt, finished: FinishedContainer) -> RMAppAttemptState:
    """The master's container: all is over."""
    if not attempt.is_master(finished.status.container_id):
        collect(attempt, finished)
        return _S.FINISHING
    _end_with_cleanup(attempt, _S.FINISHED, "")
    _master_container_ended(attempt, finished)
    return _S.FINISHED


def _master_container_ended(attempt: RMAppAttempt, finished: FinishedContainer) -> None:
    """Let nodes forget: without kept containers nobody will ask for this attempt's ends any more."""
    if attempt.app.am_blacklist is not None:
        node = attempt.context.scheduler.nodes.get(finished.node_id)
        attempt.app.am_blacklist.note_end(finished.status.exit_status, node)
    if attempt.app.submission.keep_containers_across_attempts:
        attempt.context.send_node(
            finished.node_id, RMNodeEventType.FINISHED_CONTAINERS_PULLED_BY_AM, (finished.status.container_id,)
        )
        return
    attempt.finished_containers.mark_sent(finished.node_id, finished.status)
    attempt.let_nodes_forget(attempt.finished_containers.take_heard())
    attempt.let_nodes_forget(attempt.finished_containers.take_unsent())
    attempt.no_master_will_ask = True


# Ways out, each by way of the store


def save_killed(attempt: RMAppAttempt, diagnostics: str) -> RMAppAttemptState:
    """Killed before it had a container to clean up."""
    return _save_final(attempt, _S.KILLED, lambda: _end(attempt, _S.KILLED, diagnostics))


def save_killed_with_container(attempt: RMAppAttempt, diagnostics: str) -> RMAppAttemptState:
    """Killed between allocation and launch: the container may or may not be there."""

    def killed() -> None:
        _end(attempt, _S.KILLED, diagnostics)
        _clean_up_master(attempt)

    return _save_final(attempt, _S.KILLED, killed)


def save_killed_for_good(attempt: RMAppAttempt, diagnostics: str) -> RMAppAttemptState:
    """Killed with its master at work."""
    return _save_final(attempt, _S.KILLED, lambda: _end_with_cleanup(attempt, _S.KILLED, diagnostics))


def save_failed(attempt: RMAppAttempt, diagnostics: str) -> RMAppAttemptState:
    """Failed by its user, or by the launcher, for the reason given."""

    def failed() -> None:
        attempt.final_diagnostics.append(diagnostics)
        _end(attempt, _S.FAILED, "")

    return _save_final(attempt, _S.FAILED, failed, diagnostics=diagnostics)


def save_registered_too_early(attempt: RMAppAttempt, _: object) -> RMAppAttemptState:
    """An unmanaged master registered before it was told to."""
    return save_failed(attempt, TOO_EARLY)


def save_crashed_early(attempt: RMAppAttempt, finished: FinishedContainer) -> RMAppAttemptState:
    """The master's container ended before it registered."""

    def crashed() -> None:
        _note_crash(attempt, finished)
        _end(attempt, _S.FAILED, "")

    return _save_final(attempt, _S.FAILED, crashed, finished=finished)


def save_expired(attempt: RMAppAttempt, _: object) -> RMAppAttemptState:
    """The master was not heard of for too long."""

    diagnostics = f"ApplicationMaster for attempt {attempt} timed out"

    def expired() -> None:
        attempt.final_diagnostics.append(diagnostics)
        _end_with_cleanup(attempt, _S.FAILED, "")

    return _save_final(attempt, _S.FAILED, expired, diagnostics=diagnostics)


def save_unregistered(attempt: RMAppAttempt, last_word: FinishApplicationMasterRequest) -> RMAppAttemptState:
    """Store the master's last word; the application hears of it at once. An unmanaged master is then finished."""
    if attempt.app.submission.unmanaged_am:
        next_state = _save_final(attempt, _S.FINISHED, lambda: _finish(attempt, last_word), last_word=last_word)
    else:
        after = partial(_wait_for_container, attempt, last_word)
        next_state = _save_final(attempt, _S.FINISHING, after, last_word=last_word)
    attempt.last_word = last_word
    attempt.context.send_app(attempt.app.application_id, RMAppEventType.ATTEMPT_UNREGISTERED)
    return next_state


def expired_while_saving(attempt: RMAppAttempt, _: object) -> None:
    """Nobody waits for the container any more: skip FINISHING."""
    _skip_finishing(attempt)


def finish_without_container(attempt: RMAppAttempt, _: object) -> None:
    """The master unregistered but its container does not end: the RM ends it."""
    _end_with_cleanup(attempt, _S.FINISHED, "")


def final_saved(attempt: RMAppAttempt, _: object) -> RMAppAttemptState:
    """The outcome is stored: do what was left for then."""
    assert attempt.after_saving is not None
    attempt.after_saving()
    return attempt.target


def _save_final(
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


def _skip_finishing(attempt: RMAppAttempt) -> None:
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
    _end_with_cleanup(attempt, _S.FINISHED, "")


def _note_last_word(attempt: RMAppAttempt, last_word: FinishApplicationMasterRequest) -> None:
    attempt.progress = 1.0
    attempt.final_diagnostics.append(last_word.diagnostics)
    attempt.original_tracking_url = _url_of(last_word)
    attempt.final_status = last_word.final_status


def _url_of(last_word: FinishApplicationMasterRequest) -> str:
    return last_word.tracking_url.strip() or UNAVAILABLE


def _note_crash(attempt: RMAppAttempt, finished: FinishedContainer) -> None:
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


def _end_with_cleanup(attempt: RMAppAttempt, final_state: RMAppAttemptState, diagnostics: str) -> None:
    """An end of a master that was launched (FinalTransition)."""
    attempt.progress = 1.0
    _end(attempt, final_state, diagnostics)
    if not attempt.app.submission.unmanaged_am:
        _clean_up_master(attempt)


def _clean_up_master(attempt: RMAppAttempt) -> None:
    if attempt.master is not None:
        attempt.context.effects.append(CleanUpMaster(attempt.attempt_id, attempt.master.id, attempt.master.node_id))


def _end(attempt: RMAppAttempt, final_state: RMAppAttemptState, diagnostics: str) -> None:
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
    """True if the next attempt takes over the running containers of this failed one."""
    app = attempt.app
    if not app.submission.keep_containers_across_attempts or app.submission.unmanaged_am:
        return False
    return app.max_attempts > 1 and app.failed_attempts() < app.max_attempts
