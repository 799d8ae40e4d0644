"""What an attempt does on each event: the actions of the table in rm_app_attempt.

An action gets (attempt, what the event carries) and returns the next state where the table leaves it a choice.
`save_*` actions lead into FINAL_SAVING; what follows once the outcome is stored is `ends.end`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rm.core import rm_app_attempt_ends as ends
from rm.core.am_blacklist import applicable_nodes
from rm.core.ask_labels import with_default_label
from rm.core.effects import LaunchMaster
from rm.core.lifecycle_events import FinishedContainer, RMAppEventType
from rm.core.states import RMAppAttemptState
from yarn.protocols.master import RegisterApplicationMasterRequest

if TYPE_CHECKING:
    from rm.core.rm_app_attempt import RMAppAttempt

_S = RMAppAttemptState

WAITS_FOR_REGISTER = "AM container is launched, waiting for AM container to Register with RM"


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
    attempt.original_tracking_url = request.tracking_url.strip() or ends.UNAVAILABLE
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
            ends.end(attempt, state, "")
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
    return ends.save_crashed_early(attempt, finished)


def container_finished_while_running(attempt: RMAppAttempt, finished: FinishedContainer) -> RMAppAttemptState:
    """The master's container: the attempt failed at work."""
    if not attempt.is_master(finished.status.container_id):
        collect(attempt, finished)
        return _S.RUNNING
    _master_container_ended(attempt, finished)

    def crashed() -> None:
        ends.note_crash(attempt, finished)
        ends.end_with_cleanup(attempt, _S.FAILED, "")

    return ends.save_final(attempt, _S.FAILED, crashed, finished=finished)


def container_finished_while_saving(attempt: RMAppAttempt, finished: FinishedContainer) -> None:
    """The master's container ended before its last word was stored: skip FINISHING."""
    if not attempt.is_master(finished.status.container_id):
        collect(attempt, finished)
        return
    _master_container_ended(attempt, finished)
    ends.skip_finishing(attempt)


def container_finished_while_finishing(attempt: RMAppAttempt, finished: FinishedContainer) -> RMAppAttemptState:
    """The master's container: all is over."""
    if not attempt.is_master(finished.status.container_id):
        collect(attempt, finished)
        return _S.FINISHING
    ends.end_with_cleanup(attempt, _S.FINISHED, "")
    _master_container_ended(attempt, finished)
    ends.let_nodes_forget_master(attempt)
    return _S.FINISHED


def _master_container_ended(attempt: RMAppAttempt, finished: FinishedContainer) -> None:
    """Its node keeps the end until that is stored: the next ResourceManager would not hear of it otherwise."""
    if attempt.app.am_blacklist is not None:
        node = attempt.context.scheduler.nodes.get(finished.node_id)
        attempt.app.am_blacklist.note_end(finished.status.exit_status, node)
    attempt.master_end = finished
