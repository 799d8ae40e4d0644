"""The lifecycle of an application, from its submission to its end (Hadoop's RMAppImpl).

The outcome of an application is stored before it is reported to anybody, so every end passes through FINAL_SAVING. The
`save_*` actions lead there; they set `target` to the state that follows, and `after_saving` to the action that follows.
"""

from __future__ import annotations

from rm.core.applications import RMApp, RMAppAttempt
from rm.core.lifecycle_events import (
    AppAccepted,
    AppAdded,
    AppCompleted,
    AppNewSaved,
    AppRejected,
    AppRemoved,
    AppRunningOnNode,
    AppSaveFailed,
    AppUpdateSaved,
    AttemptFailed,
    AttemptFinished,
    AttemptKilled,
    AttemptLaunched,
    AttemptRegistered,
    AttemptUnregistered,
    RMAppAttemptKill,
    RMAppAttemptRecover,
    RMAppAttemptStart,
    RMAppKill,
    RMAppNodeUpdate,
    RMAppRecover,
    RMAppStart,
    RMNodeCleanupApp,
)
from rm.core.states import FINAL_APP_STATES, RMAppAttemptState, RMAppState
from yarn.ids import ApplicationAttemptId
from yarn.machine import Lifecycle, Row, ignored

S = RMAppState


NO_LAUNCH_TIME = -1
"""The launch time of an application whose AM is unmanaged (the timestamp of an event without one)."""


def store(app: RMApp, _: RMAppStart) -> None:
    """Store the submission, with the lifetime that its queue allows."""
    app.create_missing_queue()
    app.lifetime_s = app.context.scheduler.application_lifetime(app.queue, app.submission.lifetime_s or 0)
    if app.lifetime_s:
        app.end_lifetime_at(app.submit_ms + app.lifetime_s * 1000)
    app.context.store.store_application(app.state_data())


def add_to_scheduler(app: RMApp, _: AppNewSaved) -> None:
    """Add the stored application to the scheduler."""
    app.context.send(AppAdded(app.application_id))


def start_first_attempt(app: RMApp, _: AppAccepted) -> None:
    """Start the first attempt: a queue accepted the application."""
    _start_attempt(app, transfers_containers=False)


def _start_attempt(app: RMApp, *, transfers_containers: bool) -> RMAppAttempt:
    attempt = app.add_attempt(ApplicationAttemptId(app.application_id, len(app.attempts) + 1))
    app.context.send(RMAppAttemptStart(attempt.attempt_id, transfers_containers))
    return attempt


def recover(app: RMApp, event: RMAppRecover) -> RMAppState:
    """Restore a stored application (RMAppRecoveredTransition). It is RUNNING only once its AM registers again."""
    data = event.stored.application
    app.diagnostics = data.diagnostics
    app.stored_finish_ms = data.finish_ms
    app.launch_ms = data.launch_ms
    app.recovered_final_state = data.state
    app.lifetime_ends_ms = data.lifetime_ends_ms
    for attempt_data in event.stored.attempts:
        app.add_attempt(attempt_data.attempt_id).recover(attempt_data)
    if data.state is not None:
        _recover_attempts(app)
        _end(app, data.state, "")
        return data.state
    if data.lifetime_ends_ms is not None:
        app.end_lifetime_at(data.lifetime_ends_ms)
    app.add_to_scheduler(recovering=bool(app.attempts))
    if not app.attempts:
        return RMAppState.SUBMITTED
    _recover_attempts(app)
    return RMAppState.ACCEPTED


def _recover_attempts(app: RMApp) -> None:
    """Recover the attempts at once.

    An attempt before the last one has failed if its end is not stored; the last one may still run.
    """
    for attempt in app.attempts.values():
        if attempt is not app.current_attempt and attempt.recovered_final_state is None:
            attempt.recovered_final_state = RMAppAttemptState.FAILED
        app.context.dispatcher.deliver(RMAppAttemptRecover(attempt.attempt_id))


def note_launch(app: RMApp, _: AttemptLaunched) -> None:
    """Note the time of the first launch of an AM as the launch time of the application.

    It is NO_LAUNCH_TIME for an unmanaged AM, which the RM does not launch.
    """
    if app.launch_ms == 0:
        app.launch_ms = NO_LAUNCH_TIME if app.submission.unmanaged_am else app.context.now_ms
        app.context.store.change_application(app.state_data())


def note_node_update(app: RMApp, event: RMAppNodeUpdate) -> None:
    """Report a changed node with the reply to the AM's next allocate."""
    app.updated_nodes[event.node_id] = event.update


def note_running_on_node(app: RMApp, event: AppRunningOnNode) -> None:
    """Order the node to clean up when the application ends, or at once if it has ended."""
    if app.state in FINAL_APP_STATES:
        app.context.send(RMNodeCleanupApp(event.node_id, app.application_id))
    else:
        app.ran_nodes[event.node_id] = None
        app.log_aggregation.add_node(event.node_id)


def attempt_failed(app: RMApp, failure: AttemptFailed) -> RMAppState:
    """Start another attempt, or fail (AttemptFailedTransition)."""
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
    """Why no further attempt is made, in Hadoop's words."""
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


def kill(app: RMApp, event: RMAppKill) -> None:
    """Kill the attempt first; its AttemptKilled event carries the reason back."""
    assert app.current_attempt is not None
    app.state_before_killing = app.state
    app.context.send(RMAppAttemptKill(app.current_attempt.attempt_id, event.diagnostics))


def killed_at_once(app: RMApp, event: RMAppKill) -> None:
    """End without saving, because nothing of the application is stored yet and only its client knows it."""
    _end(app, RMAppState.KILLED, event.diagnostics)


def save_killed(app: RMApp, event: RMAppKill | AttemptKilled) -> RMAppState:
    """Save the outcome of an application that was killed, or whose attempt was."""
    return _save_final(app, RMAppState.KILLED, event.diagnostics)


def save_rejected(app: RMApp, event: AppRejected) -> RMAppState:
    """Save the outcome of an application that no queue accepts."""
    return _save_final(app, RMAppState.FAILED, event.diagnostics)


def save_finished(app: RMApp, event: AttemptFinished) -> RMAppState:
    """Save the outcome of an application whose attempt finished before its registration was seen."""
    return _save_final(app, RMAppState.FINISHED, event.diagnostics)


def save_finishing(app: RMApp, _: AttemptUnregistered) -> RMAppState:
    """Save FINISHED as the outcome. Nodes and the scheduler are informed when the attempt ends."""
    app.target = RMAppState.FINISHING
    app.after_saving = lambda: _note_finish(app)
    return _save(app, RMAppState.FINISHED, "")


def not_saved(app: RMApp, event: AppSaveFailed) -> None:
    """End without saving, because the store cannot store the application."""
    _end(app, RMAppState.FAILED, event.diagnostics)


def _save_final(app: RMApp, target: RMAppState, diagnostics: str) -> RMAppState:
    if target is not RMAppState.FINISHED:
        diagnostics = app.with_refused_start(diagnostics)
    app.target = target
    app.after_saving = lambda: _end(app, target, diagnostics)
    return _save(app, target, diagnostics)


def _save(app: RMApp, stored_as: RMAppState, diagnostics: str) -> RMAppState:
    app.state_before_final_saving = app.state
    app.stored_finish_ms = app.context.now_ms
    app.context.store.end_application(app.state_data(), stored_as, diagnostics, app.stored_finish_ms)
    return RMAppState.FINAL_SAVING


def final_saved(app: RMApp, _: AppUpdateSaved) -> RMAppState:
    """Do what had to wait until the outcome was stored."""
    app.context.lifetimes.unregister(app.application_id)
    assert app.after_saving is not None
    app.after_saving()
    return app.target


def attempt_finished_while_saving(app: RMApp, event: AttemptFinished) -> None:
    """Skip FINISHING, because the AM's container ended before the AM's unregistration was stored."""
    if app.target in (RMAppState.FAILED, RMAppState.KILLED):
        return
    app.target = RMAppState.FINISHED
    app.after_saving = lambda: _end(app, RMAppState.FINISHED, event.diagnostics)


def finished(app: RMApp, event: AttemptFinished) -> None:
    """End the application: the AM's container ended after the AM had unregistered."""
    app.context.lifetimes.unregister(app.application_id)
    _end(app, RMAppState.FINISHED, event.diagnostics)


def _note_finish(app: RMApp) -> None:
    app.finish_ms = app.stored_finish_ms


def _end(app: RMApp, final_state: RMAppState, diagnostics: str) -> None:
    """Report the end to nodes, to the scheduler, and to the list of completed applications (FinalTransition)."""
    app.diagnostics += diagnostics
    for node_id in app.ran_nodes:
        app.context.send(RMNodeCleanupApp(node_id, app.application_id))
    app.ran_nodes.clear()
    app.context.send(AppRemoved(app.application_id, final_state.name))
    app.context.send(AppCompleted(app.application_id))
    app.finish_ms = app.stored_finish_ms or app.context.now_ms


RM_APP_LIFECYCLE: Lifecycle[RMApp, RMAppState] = Lifecycle(
    "RMApp",
    S.NEW,
    [
        *(
            Row(state, RMAppNodeUpdate, state, note_node_update, "reported to the AM with its next allocate")
            for state in (S.NEW, S.NEW_SAVING, S.SUBMITTED, S.ACCEPTED, S.RUNNING)
        ),
        *(
            Row(state, AppRunningOnNode, state, note_running_on_node, "the node must forget it when it ends")
            for state in (S.ACCEPTED, S.RUNNING, S.FINAL_SAVING, S.FINISHING, S.KILLING)
        ),
        *(
            Row(state, AppRunningOnNode, state, note_running_on_node, "the node must forget it at once")
            for state in (S.FINISHED, S.FAILED, S.KILLED)
        ),
        Row(S.NEW, RMAppStart, S.NEW_SAVING, store, "submitted: store it before the scheduler is informed"),
        Row(
            S.NEW,
            RMAppRecover,
            (S.SUBMITTED, S.ACCEPTED, S.FINISHED, S.FAILED, S.KILLED),
            recover,
            "an earlier ResourceManager stored it",
        ),
        Row(S.NEW, RMAppKill, S.KILLED, killed_at_once, "nothing of it is stored yet"),
        Row(S.NEW, AppRejected, S.FINAL_SAVING, save_rejected, "refused before it was stored"),
        Row(S.NEW_SAVING, AppNewSaved, S.SUBMITTED, add_to_scheduler, "stored"),
        Row(S.NEW_SAVING, AppSaveFailed, S.FAILED, not_saved, "the store cannot take it"),
        Row(S.NEW_SAVING, RMAppKill, S.FINAL_SAVING, save_killed, "killed before the scheduler knew it"),
        Row(S.NEW_SAVING, AppRejected, S.FINAL_SAVING, save_rejected, "refused before the scheduler knew it"),
        Row(S.SUBMITTED, AppRejected, S.FINAL_SAVING, save_rejected, "no queue takes it"),
        Row(S.SUBMITTED, AppAccepted, S.ACCEPTED, start_first_attempt, "its queue took it"),
        Row(S.SUBMITTED, RMAppKill, S.FINAL_SAVING, save_killed, "killed before a queue took it"),
        Row(
            S.ACCEPTED,
            AttemptLaunched,
            S.ACCEPTED,
            note_launch,
            "the AM of an attempt was launched: the first launch counts as the application's",
        ),
        Row(S.ACCEPTED, AttemptRegistered, S.RUNNING, None, "its AM registered"),
        Row(
            S.ACCEPTED, AttemptFailed, (S.ACCEPTED, S.FINAL_SAVING), attempt_failed, "another attempt, or none is left"
        ),
        Row(S.ACCEPTED, AttemptFinished, S.FINAL_SAVING, save_finished, "it ended before its registration was seen"),
        Row(S.ACCEPTED, AttemptKilled, S.FINAL_SAVING, save_killed, "its attempt was killed"),
        Row(S.ACCEPTED, RMAppKill, S.KILLING, kill, "its attempt is killed first"),
        Row(S.RUNNING, AttemptUnregistered, S.FINAL_SAVING, save_finishing, "its AM unregistered"),
        Row(S.RUNNING, AttemptFinished, S.FINISHED, finished, "an unmanaged AM has no container that could end later"),
        Row(S.RUNNING, AttemptFailed, (S.ACCEPTED, S.FINAL_SAVING), attempt_failed, "another attempt, or none is left"),
        Row(S.RUNNING, RMAppKill, S.KILLING, kill, "its attempt is killed first"),
        Row(
            S.FINAL_SAVING,
            AppUpdateSaved,
            (S.FINISHING, S.FAILED, S.KILLED, S.FINISHED),
            final_saved,
            "its outcome is stored",
        ),
        Row(
            S.FINAL_SAVING,
            AttemptFinished,
            S.FINAL_SAVING,
            attempt_finished_while_saving,
            "its AM's container ended before the outcome was stored",
        ),
        *ignored(S.FINAL_SAVING, (RMAppNodeUpdate, RMAppKill, AppNewSaved), "its outcome is being stored"),
        Row(S.FINISHING, AttemptFinished, S.FINISHED, finished, "its AM's container ended"),
        *ignored(S.FINISHING, (RMAppNodeUpdate, RMAppKill), "its outcome is stored"),
        Row(S.KILLING, AttemptKilled, S.FINAL_SAVING, save_killed, "its attempt is over"),
        Row(S.KILLING, AttemptUnregistered, S.FINAL_SAVING, save_finishing, "its AM unregistered before the kill"),
        Row(S.KILLING, AttemptFinished, S.FINISHED, finished, "an unmanaged AM unregistered before the kill"),
        Row(S.KILLING, AttemptFailed, S.FINAL_SAVING, attempt_failed, "no new attempt while it is killed"),
        *ignored(
            S.KILLING,
            (RMAppNodeUpdate, AttemptLaunched, AttemptRegistered, AppUpdateSaved, RMAppKill),
            "its attempt is already ending",
        ),
        *ignored(S.FINISHED, (RMAppNodeUpdate, AttemptUnregistered, AttemptFinished, RMAppKill), "it is over"),
        *ignored(S.FAILED, (RMAppKill, RMAppNodeUpdate), "it is over"),
        *ignored(
            S.KILLED,
            (AppAccepted, AppRejected, RMAppKill, AttemptFinished, AttemptFailed, RMAppNodeUpdate, RMAppStart),
            "it is over",
        ),
    ],
    RMApp.describe,
)
