"""What an application does on each event: the actions of the table in rm_app.

An action gets (application, what the event carries) and returns the next state where the table leaves it a choice.
`save_*` actions lead into FINAL_SAVING; what follows once the outcome is stored is `after_saving`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rm.core.lifecycle_events import AttemptFailed, RMAppAttemptEventType, RMNodeEventType
from rm.core.rm_app_attempt import RMAppAttempt
from rm.core.states import FINAL_APP_STATES, RMAppAttemptState, RMAppState
from rm.core.stored_state import StoredApplication
from yarn.ids import ApplicationAttemptId, NodeId
from yarn.states import NodeUpdateType

if TYPE_CHECKING:
    from rm.core.rm_app import RMApp
    from rm.core.rm_node import RMNode


# On the way in


def store(app: RMApp, _: object) -> None:
    """Write it down, with how long its queue lets it live."""
    app.lifetime_s = app.context.scheduler.application_lifetime(app.queue, app.submission.lifetime_s or 0)
    if app.lifetime_s:
        app.end_lifetime_at(app.submit_ms + app.lifetime_s * 1000)
    app.context.store.store_application(app)


def add_to_scheduler(app: RMApp, _: object) -> None:
    """Stored: now the scheduler may know it."""
    app.context.send(app.context.add_application, app)


def start_first_attempt(app: RMApp, _: object) -> None:
    """Its queue took it."""
    _start_attempt(app, transfers_containers=False)


def _start_attempt(app: RMApp, *, transfers_containers: bool) -> RMAppAttempt:
    attempt = _new_attempt(app, ApplicationAttemptId(app.application_id, len(app.attempts) + 1))
    app.context.send_attempt(attempt.attempt_id, RMAppAttemptEventType.START, transfers_containers)
    return attempt


def _new_attempt(app: RMApp, attempt_id: ApplicationAttemptId) -> RMAppAttempt:
    attempt = RMAppAttempt(app.context, app, attempt_id)
    app.attempts[attempt_id] = attempt
    app.current_attempt = attempt
    return attempt


# After a restart of the ResourceManager


def recover(app: RMApp, stored: StoredApplication) -> RMAppState:
    """Be what an earlier ResourceManager stored; RUNNING only once the master says so (RMAppRecoveredTransition)."""
    data = stored.application
    app.diagnostics = data.diagnostics
    app.stored_finish_ms = data.finish_ms
    app.launch_ms = data.launch_ms
    app.recovered_final_state = data.state
    app.lifetime_ends_ms = data.lifetime_ends_ms
    for attempt_data in stored.attempts:
        _new_attempt(app, attempt_data.attempt_id).recover(attempt_data)
    if data.state is not None:
        _recover_attempts(app)
        _end(app, data.state, "")
        return data.state
    if data.lifetime_ends_ms is not None:
        app.end_lifetime_at(data.lifetime_ends_ms)
    app.context.add_application(app, recovering=bool(app.attempts))
    if not app.attempts:
        return RMAppState.SUBMITTED
    _recover_attempts(app)
    return RMAppState.ACCEPTED


def _recover_attempts(app: RMApp) -> None:
    """Each at once. An end that was not stored is a failure, but for the last attempt's: that may go on."""
    for attempt in app.attempts.values():
        if attempt is not app.current_attempt and attempt.recovered_final_state is None:
            attempt.recovered_final_state = RMAppAttemptState.FAILED
        app.context.step_attempt(attempt, RMAppAttemptEventType.RECOVER, None)


# While it lives


def note_launch(app: RMApp, _: object) -> None:
    """The first launch of a master is when the application began."""
    if app.launch_ms == 0:
        app.launch_ms = app.context.now_ms
        app.context.store.change_application(app)


def note_node_update(app: RMApp, detail: tuple[RMNode, NodeUpdateType]) -> None:
    """Its master is told of the node with its next call."""
    node, update = detail
    app.updated_nodes[node.node_id] = (node, update)


def note_running_on_node(app: RMApp, node_id: NodeId) -> None:
    """The node is to forget it in the end, or at once if that is over."""
    if app.state in FINAL_APP_STATES:
        app.context.send_node(node_id, RMNodeEventType.CLEANUP_APP, app.application_id)
    else:
        app.ran_nodes[node_id] = None


def attempt_failed(app: RMApp, failure: AttemptFailed) -> RMAppState:
    """Try again, or give up (AttemptFailedTransition)."""
    failures = app.max_attempts if app.max_attempts == 1 else app.failed_attempts()
    if app.submission.unmanaged_am or failures >= app.max_attempts:
        return _save_final(app, RMAppState.FAILED, _exhausted(app, failure))
    if app.state is RMAppState.KILLING:
        return _save_final(app, RMAppState.KILLED, failure.diagnostics)
    old = app.current_attempt
    assert old is not None
    new = _start_attempt(app, transfers_containers=failure.transfers_containers)
    new.finished_containers = old.finished_containers.handed_on()
    return RMAppState.ACCEPTED


def _exhausted(app: RMApp, failure: AttemptFailed) -> str:
    """Why the application fails with its last attempt, in Hadoop's words."""
    if app.submission.unmanaged_am:
        return f"Unmanaged application {app} failed due to {failure.diagnostics}. Failing the application."
    interval_ms = app.submission.attempt_failures_validity_interval_ms
    interval = f" in previous {interval_ms} milliseconds" if interval_ms > 0 else ""
    limit = app.context.settings.global_max_attempts
    limits = "" if limit == app.max_attempts else f" (global limit ={limit}; local limit is ={app.max_attempts})"
    return (
        f"Application {app} failed {app.max_attempts} times{interval}{limits} due to {failure.diagnostics}. "
        "Failing the application."
    )


# On the way out


def kill(app: RMApp, diagnostics: str) -> None:
    """The attempt ends first and hands the reason back with ATTEMPT_KILLED."""
    assert app.current_attempt is not None
    app.state_before_killing = app.state
    app.context.send_attempt(app.current_attempt.attempt_id, RMAppAttemptEventType.KILL, diagnostics)


def killed_at_once(app: RMApp, diagnostics: str) -> None:
    """Nothing of it is stored, and nobody else knows it."""
    _end(app, RMAppState.KILLED, diagnostics)


def save_killed(app: RMApp, diagnostics: str) -> RMAppState:
    """It was killed, or its attempt was."""
    return _save_final(app, RMAppState.KILLED, diagnostics)


def save_rejected(app: RMApp, diagnostics: str) -> RMAppState:
    """No queue takes it."""
    return _save_final(app, RMAppState.FAILED, diagnostics)


def save_finished(app: RMApp, diagnostics: str) -> RMAppState:
    """Its attempt finished before it was seen to run."""
    return _save_final(app, RMAppState.FINISHED, diagnostics)


def save_finishing(app: RMApp, _: object) -> RMAppState:
    """The outcome is stored as FINISHED; what is to be told of it comes with the attempt's end."""
    app.target = RMAppState.FINISHING
    app.after_saving = lambda: _note_finish(app)
    return _save(app, RMAppState.FINISHED, "")


def save_failed(app: RMApp, diagnostics: str) -> None:
    """The store could not take the application: it never began."""
    _end(app, RMAppState.FAILED, diagnostics)


def _save_final(app: RMApp, target: RMAppState, diagnostics: str) -> RMAppState:
    app.target = target
    app.after_saving = lambda: _end(app, target, diagnostics)
    return _save(app, target, diagnostics)


def _save(app: RMApp, stored_as: RMAppState, diagnostics: str) -> RMAppState:
    app.state_before_final_saving = app.state
    app.stored_finish_ms = app.context.now_ms
    app.context.store.end_application(app, stored_as, diagnostics)
    return RMAppState.FINAL_SAVING


def final_saved(app: RMApp, _: object) -> RMAppState:
    """The outcome is stored: do what was left for then."""
    app.context.lifetimes.unregister(app.application_id)
    assert app.after_saving is not None
    app.after_saving()
    return app.target


def attempt_finished_while_saving(app: RMApp, diagnostics: str) -> None:
    """The master's container ended before its unregistering was stored: skip FINISHING."""
    if app.target in (RMAppState.FAILED, RMAppState.KILLED):
        return
    app.target = RMAppState.FINISHED
    app.after_saving = lambda: _end(app, RMAppState.FINISHED, diagnostics)


def finished(app: RMApp, diagnostics: str) -> None:
    """The master is gone, after its last word."""
    app.context.lifetimes.unregister(app.application_id)
    _end(app, RMAppState.FINISHED, diagnostics)


def _note_finish(app: RMApp) -> None:
    app.finish_ms = app.stored_finish_ms


def _end(app: RMApp, final_state: RMAppState, diagnostics: str) -> None:
    """Tell nodes, scheduler and the RM's own list (FinalTransition)."""
    app.diagnostics += diagnostics
    for node_id in app.ran_nodes:
        app.context.send_node(node_id, RMNodeEventType.CLEANUP_APP, app.application_id)
    app.ran_nodes.clear()
    app.context.send(app.context.scheduler.remove_application, app.application_id, final_state.name)
    app.context.send(app.context.complete_application, app.application_id)
    app.finish_ms = app.stored_finish_ms or app.context.now_ms
