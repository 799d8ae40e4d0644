"""The lifecycle of an attempt: one try of an application, with its own ApplicationMaster (Hadoop's RMAppAttemptImpl).

The scheduler accepts the attempt and allocates the AM's container, the launcher starts the AM, and the AM registers,
works and unregisters; then its container ends. As with applications, every end passes through FINAL_SAVING: see
rm_app_attempt_ends.
"""

from __future__ import annotations

from msgspec.structs import replace

from rm.core import rm_app_attempt_ends as ends
from rm.core.applications import UNAVAILABLE, RMAppAttempt, applicable_nodes
from rm.core.effects import LaunchAM
from rm.core.lifecycle_events import (
    AppAttemptAdded,
    AttemptLaunched,
    AttemptNewSaved,
    AttemptRegistered,
    AttemptUpdateSaved,
    RMAppAttemptContainerFinished,
    RMAppAttemptExpire,
    RMAppAttemptFail,
    RMAppAttemptKill,
    RMAppAttemptLaunched,
    RMAppAttemptLaunchFailed,
    RMAppAttemptRecover,
    RMAppAttemptRegistered,
    RMAppAttemptStart,
    RMAppAttemptStatusUpdate,
    RMAppAttemptUnregistered,
)
from rm.core.service_context import AMSession
from rm.core.states import RMAppAttemptState
from rm.core.stored_state import ApplicationAttemptStateData
from rm.scheduler.model.notices import AttemptAdded, ContainerAllocated
from yarn.containers import ANY, ResourceRequest
from yarn.machine import Lifecycle, Row, ignored

S = RMAppAttemptState
BEFORE_LAUNCH = (S.NEW, S.SUBMITTED, S.SCHEDULED, S.ALLOCATED_SAVING, S.LAUNCHED_UNMANAGED_SAVING)
SAVED = (S.FINISHING, S.FAILED, S.KILLED, S.FINISHED)

WAITS_FOR_REGISTER = "AM container is launched, waiting for AM container to Register with RM"


def start(attempt: RMAppAttempt, event: RMAppAttemptStart) -> None:
    """Allow the AM to register from now on, and add the attempt to the scheduler."""
    context = attempt.context
    attempt.start_ms = context.now_ms
    context.sessions[attempt.attempt_id] = AMSession()
    context.send(AppAttemptAdded(attempt.attempt_id, event.transfers_containers))


def schedule(attempt: RMAppAttempt, _: AttemptAdded) -> RMAppAttemptState:
    """Request the AM's container; an unmanaged AM needs none."""
    context = attempt.context
    if attempt.app.submission.unmanaged_am:
        context.store.store_attempt(_stored(attempt))
        return S.LAUNCHED_UNMANAGED_SAVING
    app = attempt.app
    requests = _with_default_label(attempt)
    additions: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()
    if app.am_blacklist is not None:
        applicable = applicable_nodes(requests, context.scheduler.nodes.values())
        additions, removals = app.am_blacklist.updates(applicable)
    context.scheduler.allocate(attempt.attempt_id, requests, (), additions, removals, (), context.now_ms)
    return S.SCHEDULED


def _with_default_label(attempt: RMAppAttempt) -> tuple[ResourceRequest, ...]:
    """The AM's requests, with the queue's default label where they have none.

    The label may have been configured after the submission was checked.
    """
    app = attempt.app
    if all(request.label is not None or request.resource_name != ANY for request in app.am_requests):
        return app.am_requests
    default = attempt.context.scheduler.default_label(app.queue)
    return tuple(
        replace(request, label=default) if request.label is None and request.resource_name == ANY else request
        for request in app.am_requests
    )


def fetch_am_container(attempt: RMAppAttempt, _: ContainerAllocated) -> RMAppAttemptState:
    """Acquire the AM's container.

    If it was lost with its node, nothing is done: CONTAINER_FINISHED follows.
    """
    context = attempt.context
    containers = context.scheduler.allocate(attempt.attempt_id, (), (), (), (), (), context.now_ms).containers
    if not containers:
        return S.SCHEDULED
    attempt.am_container = containers[0]
    context.scheduler.mark_am_container(attempt.am_container.id)
    context.store.store_attempt(_stored(attempt))
    return S.ALLOCATED_SAVING


def _stored(attempt: RMAppAttempt) -> ApplicationAttemptStateData:
    return ApplicationAttemptStateData(attempt.attempt_id, attempt.am_container, attempt.start_ms)


def launch(attempt: RMAppAttempt, _: AttemptNewSaved) -> None:
    """Have the launcher start the AM (AMLauncher LAUNCH)."""
    assert attempt.am_container is not None
    app = attempt.app
    attempt.context.emit(LaunchAM(attempt.attempt_id, attempt.am_container, app.submission, app.user, app.submit_ms))


def launched(attempt: RMAppAttempt, _: RMAppAttemptLaunched | AttemptNewSaved) -> None:
    """Start to watch an AM that was launched: it must register in time, and then call in time."""
    _launched(attempt)


def _launched(attempt: RMAppAttempt) -> None:
    attempt.context.send(AttemptLaunched(attempt.app.application_id))
    attempt.launch_diagnostics = WAITS_FOR_REGISTER
    attempt.context.am_liveness.register(attempt.attempt_id, attempt.context.now_ms)


def registered(attempt: RMAppAttempt, event: RMAppAttemptRegistered) -> None:
    """Note the AM's address, and let the application run."""
    request = event.request
    attempt.host = request.host
    attempt.rpc_port = request.rpc_port
    attempt.original_tracking_url = request.tracking_url.strip() or UNAVAILABLE
    attempt.launch_diagnostics = None
    attempt.context.send(AttemptRegistered(attempt.app.application_id))


def registered_before_launched(attempt: RMAppAttempt, event: RMAppAttemptRegistered) -> None:
    """Handle an AM that registered before the launcher reported its start."""
    _launched(attempt)
    registered(attempt, event)


def status_update(attempt: RMAppAttempt, event: RMAppAttemptStatusUpdate) -> None:
    """Note an allocate call of the AM."""
    attempt.progress = event.progress
    if event.tracking_url:
        attempt.original_tracking_url = event.tracking_url
    attempt.context.am_liveness.ping(attempt.attempt_id, attempt.context.now_ms)


def recovered(attempt: RMAppAttempt, _: RMAppAttemptRecover) -> RMAppAttemptState:
    """Choose the state after a restart: the final state, or LAUNCHED (AttemptRecoveredTransition).

    In LAUNCHED the AM may run, or may never have started. If the last attempt was over and the application was not,
    what follows from the end of the attempt was lost, and is done now.
    """
    app, context = attempt.app, attempt.context
    state = attempt.recovered_final_state
    is_current = attempt is app.current_attempt
    if state is not None:
        attempt.progress = 1.0
        if state in (S.KILLED, S.FAILED):
            attempt.proxied_tracking_url = attempt.page
        if app.submission.keep_containers_across_attempts and not is_current and app.current_attempt is not None:
            attempt.finished_containers = app.current_attempt.finished_containers
        if is_current and app.recovered_final_state is None:
            attempt.add_to_scheduler(transfers_containers=False, recovering=True)
            ends.end(attempt, state, "")
        return state
    if app.recovered_final_state is not None:
        return RMAppAttemptState[app.recovered_final_state.name]
    if context.settings.work_preserving:
        context.sessions[attempt.attempt_id] = AMSession()
        attempt.add_to_scheduler(transfers_containers=False, recovering=True)
    _launched(attempt)
    return S.LAUNCHED


def collect(attempt: RMAppAttempt, finished: RMAppAttemptContainerFinished) -> None:
    """Keep the status of an ended container for the AM's next allocate; without a next AM let the node forget it."""
    attempt.finished_containers.add(finished.node_id, finished.status)
    if attempt.no_am_will_ask:
        attempt.let_nodes_forget(attempt.finished_containers.take_unsent())


def container_finished_before_registering(
    attempt: RMAppAttempt, finished: RMAppAttemptContainerFinished
) -> RMAppAttemptState:
    """Handle an ended container: the end of the AM's container fails the attempt."""
    if not attempt.is_am_container(finished.status.container_id):
        collect(attempt, finished)
        return S.LAUNCHED
    _am_container_ended(attempt, finished)
    return ends.save_crashed_early(attempt, finished)


def container_finished_while_running(
    attempt: RMAppAttempt, finished: RMAppAttemptContainerFinished
) -> RMAppAttemptState:
    """Handle an ended container: the end of the AM's container fails the attempt."""
    if not attempt.is_am_container(finished.status.container_id):
        collect(attempt, finished)
        return S.RUNNING
    _am_container_ended(attempt, finished)
    return ends.save_crashed(attempt, finished)


def container_finished_while_saving(attempt: RMAppAttempt, finished: RMAppAttemptContainerFinished) -> None:
    """Handle an ended container: the end of the AM's container means that FINISHING is skipped."""
    if not attempt.is_am_container(finished.status.container_id):
        collect(attempt, finished)
        return
    _am_container_ended(attempt, finished)
    ends.skip_finishing(attempt)


def container_finished_while_finishing(
    attempt: RMAppAttempt, finished: RMAppAttemptContainerFinished
) -> RMAppAttemptState:
    """Handle an ended container: the end of the AM's container finishes the attempt."""
    if not attempt.is_am_container(finished.status.container_id):
        collect(attempt, finished)
        return S.FINISHING
    ends.end_with_cleanup(attempt, S.FINISHED, "")
    _am_container_ended(attempt, finished)
    ends.let_nodes_forget_am(attempt)
    return S.FINISHED


def _am_container_ended(attempt: RMAppAttempt, finished: RMAppAttemptContainerFinished) -> None:
    """Note the end of the AM's container.

    The node keeps the status until the end is stored; otherwise the next ResourceManager would not learn of it.
    """
    if attempt.app.am_blacklist is not None:
        node = attempt.context.scheduler.nodes.get(finished.node_id)
        attempt.app.am_blacklist.note_end(finished.status.exit_status, node)
    attempt.am_end = finished


RM_APP_ATTEMPT_LIFECYCLE: Lifecycle[RMAppAttempt, RMAppAttemptState] = Lifecycle(
    "RMAppAttempt",
    S.NEW,
    [
        *(
            Row(state, RMAppAttemptKill, S.FINAL_SAVING, ends.save_killed, "killed before its AM was launched")
            for state in BEFORE_LAUNCH
        ),
        *(
            Row(state, RMAppAttemptFail, S.FINAL_SAVING, ends.save_failed, "failed by its user")
            for state in (*BEFORE_LAUNCH, S.ALLOCATED, S.LAUNCHED, S.RUNNING)
        ),
        *(
            Row(
                state,
                RMAppAttemptRegistered,
                S.FINAL_SAVING,
                ends.save_registered_too_early,
                "an unmanaged AM did not wait",
            )
            for state in (S.NEW, S.SUBMITTED, S.LAUNCHED_UNMANAGED_SAVING)
        ),
        Row(S.NEW, RMAppAttemptStart, S.SUBMITTED, start, "its application starts it"),
        Row(
            S.NEW,
            RMAppAttemptRecover,
            (S.LAUNCHED, S.FINISHED, S.FAILED, S.KILLED),
            recovered,
            "an earlier ResourceManager stored it: it is over, or its AM may run",
        ),
        Row(
            S.SUBMITTED,
            AttemptAdded,
            (S.LAUNCHED_UNMANAGED_SAVING, S.SCHEDULED),
            schedule,
            "the scheduler accepted it: request the AM's container, or wait for an unmanaged AM",
        ),
        Row(
            S.SCHEDULED,
            ContainerAllocated,
            (S.ALLOCATED_SAVING, S.SCHEDULED),
            fetch_am_container,
            "acquire the AM's container; if it was lost with its node, wait for another one",
        ),
        Row(
            S.SCHEDULED,
            RMAppAttemptContainerFinished,
            S.FINAL_SAVING,
            ends.save_crashed_early,
            "the AM's container was lost before it was acquired",
        ),
        Row(S.ALLOCATED_SAVING, AttemptNewSaved, S.ALLOCATED, launch, "the attempt is stored: launch its AM"),
        Row(
            S.ALLOCATED_SAVING,
            RMAppAttemptContainerFinished,
            S.FINAL_SAVING,
            ends.save_crashed_early,
            "lost before it ran",
        ),
        Row(
            S.LAUNCHED_UNMANAGED_SAVING,
            AttemptNewSaved,
            S.LAUNCHED,
            launched,
            "the attempt is stored: its AM may register",
        ),
        Row(S.ALLOCATED, RMAppAttemptLaunched, S.LAUNCHED, launched, "the NM accepted its start"),
        Row(S.ALLOCATED, RMAppAttemptLaunchFailed, S.FINAL_SAVING, ends.save_failed, "the NM refused its start"),
        Row(
            S.ALLOCATED,
            RMAppAttemptKill,
            S.FINAL_SAVING,
            ends.save_killed_with_container,
            "killed while its AM was being started",
        ),
        Row(
            S.ALLOCATED,
            RMAppAttemptRegistered,
            S.RUNNING,
            registered_before_launched,
            "its AM registered before the launcher reported its start",
        ),
        Row(
            S.ALLOCATED,
            RMAppAttemptContainerFinished,
            S.FINAL_SAVING,
            ends.save_crashed_early,
            "the AM ended before it registered",
        ),
        Row(S.LAUNCHED, RMAppAttemptRegistered, S.RUNNING, registered, "its AM registered"),
        Row(
            S.LAUNCHED,
            RMAppAttemptContainerFinished,
            (S.LAUNCHED, S.FINAL_SAVING),
            container_finished_before_registering,
            "the AM's container: it crashed; another one that was kept: reported to the AM",
        ),
        Row(S.LAUNCHED, RMAppAttemptExpire, S.FINAL_SAVING, ends.save_expired, "it never registered"),
        Row(
            S.LAUNCHED,
            RMAppAttemptKill,
            S.FINAL_SAVING,
            ends.save_killed_after_launch,
            "killed before its AM registered",
        ),
        *ignored(S.RUNNING, (RMAppAttemptLaunched, RMAppAttemptRegistered, ContainerAllocated), "its AM is registered"),
        Row(S.RUNNING, RMAppAttemptStatusUpdate, S.RUNNING, status_update, "its AM's heartbeat"),
        Row(S.RUNNING, RMAppAttemptUnregistered, S.FINAL_SAVING, ends.save_unregistered, "its AM unregistered"),
        Row(
            S.RUNNING,
            RMAppAttemptContainerFinished,
            (S.RUNNING, S.FINAL_SAVING),
            container_finished_while_running,
            "the AM's container: it crashed; another one: reported to the AM",
        ),
        Row(S.RUNNING, RMAppAttemptExpire, S.FINAL_SAVING, ends.save_expired, "its AM sent nothing for too long"),
        Row(S.RUNNING, RMAppAttemptKill, S.FINAL_SAVING, ends.save_killed_after_launch, "killed by its user or the RM"),
        Row(S.FINAL_SAVING, AttemptUpdateSaved, SAVED, ends.final_saved, "its outcome is stored"),
        Row(
            S.FINAL_SAVING,
            RMAppAttemptContainerFinished,
            S.FINAL_SAVING,
            container_finished_while_saving,
            "its AM's container ended before the outcome was stored",
        ),
        Row(
            S.FINAL_SAVING,
            RMAppAttemptExpire,
            S.FINAL_SAVING,
            ends.expired_while_saving,
            "its AM's container is not waited for",
        ),
        *ignored(
            S.FINAL_SAVING,
            (
                RMAppAttemptUnregistered,
                RMAppAttemptStatusUpdate,
                RMAppAttemptLaunched,
                RMAppAttemptLaunchFailed,
                ContainerAllocated,
                AttemptNewSaved,
                RMAppAttemptKill,
                RMAppAttemptFail,
                AttemptAdded,
            ),
            "its outcome is being stored",
        ),
        Row(S.FAILED, RMAppAttemptContainerFinished, S.FAILED, collect, "reported to the next attempt's AM"),
        *ignored(
            S.FAILED,
            (
                RMAppAttemptLaunched,
                RMAppAttemptLaunchFailed,
                RMAppAttemptExpire,
                RMAppAttemptKill,
                RMAppAttemptFail,
                RMAppAttemptRegistered,
                RMAppAttemptUnregistered,
                RMAppAttemptStatusUpdate,
                ContainerAllocated,
            ),
            "it is over",
        ),
        Row(
            S.FINISHING,
            RMAppAttemptContainerFinished,
            (S.FINISHING, S.FINISHED),
            container_finished_while_finishing,
            "the AM's container ended: the attempt is over",
        ),
        Row(
            S.FINISHING,
            RMAppAttemptExpire,
            S.FINISHED,
            ends.finish_without_container,
            "its container does not end by itself",
        ),
        *ignored(
            S.FINISHING,
            (
                RMAppAttemptLaunched,
                RMAppAttemptUnregistered,
                RMAppAttemptStatusUpdate,
                ContainerAllocated,
                RMAppAttemptKill,
                RMAppAttemptFail,
            ),
            "its outcome is stored",
        ),
        Row(S.FINISHED, RMAppAttemptContainerFinished, S.FINISHED, collect, "so that its node forgets it"),
        *ignored(
            S.FINISHED,
            (
                RMAppAttemptLaunched,
                RMAppAttemptExpire,
                RMAppAttemptUnregistered,
                ContainerAllocated,
                RMAppAttemptKill,
                RMAppAttemptFail,
            ),
            "it is over",
        ),
        Row(S.KILLED, RMAppAttemptContainerFinished, S.KILLED, collect, "so that its node forgets it"),
        *ignored(
            S.KILLED,
            (
                AttemptAdded,
                RMAppAttemptLaunched,
                RMAppAttemptLaunchFailed,
                RMAppAttemptExpire,
                RMAppAttemptRegistered,
                ContainerAllocated,
                RMAppAttemptUnregistered,
                RMAppAttemptKill,
                RMAppAttemptFail,
                RMAppAttemptStatusUpdate,
            ),
            "it is over",
        ),
    ],
    RMAppAttempt.describe,
)
