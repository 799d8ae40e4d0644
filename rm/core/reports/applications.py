"""Reports to clients about applications, attempts and containers: functions of the context that change nothing.

`asker` is the calling user with groups; None means the ResourceManager itself, which may view everything. Source:
RMAppImpl.createAndGetApplicationReport, RMAppAttemptImpl.createApplicationAttemptReport, ClientRMService.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from rm.core.access_control import VIEW
from rm.core.applications import RMApp, RMAppAttempt
from rm.core.context import RMContext
from rm.core.events import Asker
from rm.core.reports.launch_diagnostics import launch_diagnostics
from rm.core.states import COMPLETED_APP_STATES, FINAL_APP_STATES, RMAppAttemptState, RMAppState
from rm.scheduler.model.rm_container import RMContainer, RMContainerState
from yarn.applications import (
    DEFAULT_PARTITION,
    LABEL_NOT_SET,
    NO_REMAINING_TIME,
    ApplicationAttemptReport,
    ApplicationFilter,
    ApplicationReport,
    ApplicationResourceUsage,
    ContainerReport,
)
from yarn.errors import (
    ApplicationAttemptNotFoundException,
    ContainerNotFoundException,
)
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.resource import Resource
from yarn.states import (
    ApplicationsRequestScope,
    ContainerState,
    FinalApplicationStatus,
    YarnApplicationAttemptState,
    YarnApplicationState,
)
from yarn.times import UNLIMITED, format_iso8601

UNAVAILABLE = "N/A"
NO_ATTEMPT = -1
"""The attempt number of an application that has no attempt yet."""

UNKNOWN_USAGE = ApplicationResourceUsage(-1, -1, Resource(-1, -1), Resource(-1, -1), Resource(-1, -1))
"""The usage of an application that the scheduler does not have, or no longer has."""


def application_report(
    context: RMContext, application_id: ApplicationId, asker: Asker | None = None
) -> ApplicationReport:
    """The report of an application. Raises ApplicationNotFoundException.

    For a caller who may not view the application most fields are empty.
    """
    return _application_report(context, context.find_app(application_id), asker)


def applications(
    context: RMContext, wanted: ApplicationFilter, asker: Asker | None = None
) -> Iterator[ApplicationReport]:
    """The applications that match the filter, in the order of submission, at most `wanted.limit`.

    Applications may change between two reports: each report shows the state at the time it is created.
    """
    acls = context.application_acls
    wanted = replace(wanted, types=frozenset(kind.lower() for kind in wanted.types))
    count = 0
    for app in tuple(context.apps.values()):
        if wanted.limit is not None and count >= wanted.limit:
            break
        if asker is not None:
            if wanted.scope is ApplicationsRequestScope.OWN and app.user != asker[0]:
                continue
            if wanted.scope is ApplicationsRequestScope.VIEWABLE and not acls.may(asker, VIEW, app):
                continue
        if _passes(app, wanted):
            count += 1
            yield _application_report(context, app, asker)


def application_state(app: RMApp) -> YarnApplicationState:
    """The state as clients see it: while the end of the application is being stored, the state before that."""
    state = app.state
    if state is RMAppState.FINAL_SAVING:
        state = app.state_before_final_saving
    if state is RMAppState.KILLING:
        state = app.state_before_killing
    if state is RMAppState.FINISHING:
        return YarnApplicationState.FINISHED
    return YarnApplicationState[state.name]


def final_status(app: RMApp) -> FinalApplicationStatus:
    """The final status that the AM reported; if it reported none, the one that follows from the state."""
    attempt = app.current_attempt
    if attempt is not None and attempt.final_status is not None:
        return attempt.final_status
    if app.state in (RMAppState.FINISHING, RMAppState.FINISHED, RMAppState.FAILED):
        return FinalApplicationStatus.FAILED
    if app.state is RMAppState.KILLED:
        return FinalApplicationStatus.KILLED
    return FinalApplicationStatus.UNDEFINED


def _application_report(context: RMContext, app: RMApp, asker: Asker | None) -> ApplicationReport:
    attempt = app.current_attempt
    is_shown = asker is None or context.application_acls.may(asker, VIEW, app)
    report = ApplicationReport(
        application_id=app.application_id,
        user=app.user,
        queue=app.queue,
        name=app.submission.name,
        state=application_state(app),
        current_attempt_id=ApplicationAttemptId(app.application_id, NO_ATTEMPT),
        tracking_url=f"http://{context.settings.web_address}/proxy/{app}/" if is_shown else UNAVAILABLE,
        diagnostics=app.diagnostics if is_shown else UNAVAILABLE,
        start_time_ms=app.submit_ms,
        launch_time_ms=app.launch_ms,
        finish_time_ms=app.finish_ms,
        final_status=final_status(app),
        usage=application_usage(context, app) if is_shown else UNKNOWN_USAGE,
        type=app.submission.type,
        tags=app.submission.tags,
        unmanaged=app.submission.unmanaged_am,
        priority=app.priority,
        label_expression=_label_expression(app.submission.node_label_expression),
        am_label_expression=_label_expression(app.am_requests[0].label) if app.am_requests else None,
        lifetime_ends=UNLIMITED if app.lifetime_ends_ms is None else format_iso8601(app.lifetime_ends_ms),
        lifetime_remaining_s=_remaining_lifetime_s(app),
    )
    return report if attempt is None or not is_shown else _with_attempt(report, app, attempt)


def _label_expression(label: str | None) -> str:
    if label is None:
        return LABEL_NOT_SET
    return label if label.strip() else DEFAULT_PARTITION


def _remaining_lifetime_s(app: RMApp) -> int:
    """The remaining lifetime in whole seconds; 0 for an application that is over."""
    if app.lifetime_ends_ms is None:
        return NO_REMAINING_TIME
    return 0 if app.state in COMPLETED_APP_STATES else max(0, app.lifetime_ends_ms - app.context.now_ms) // 1000


def _with_attempt(report: ApplicationReport, app: RMApp, attempt: RMAppAttempt) -> ApplicationReport:
    """Add fields about the current attempt. A report without an attempt has no log aggregation status either."""
    return replace(
        report,
        current_attempt_id=attempt.attempt_id,
        host=attempt.host,
        rpc_port=attempt.rpc_port,
        tracking_url=attempt.tracking_url,
        original_tracking_url=attempt.original_tracking_url,
        diagnostics=report.diagnostics or attempt_diagnostics(attempt),
        progress=attempt.progress,
        log_aggregation=app.log_aggregation.status(
            is_over=app.state in FINAL_APP_STATES, finish_ms=app.finish_ms, now_ms=app.context.now_ms
        ),
    )


def application_usage(context: RMContext, app: RMApp) -> ApplicationResourceUsage:
    """The amounts that the application holds now, and the resource-seconds of its ended and live containers."""
    memory_mb_seconds, vcore_seconds, lost = app.memory_mb_seconds, app.vcore_seconds, app.losses
    live = context.scheduler.containers_of(app.application_id)
    for container in live.values():
        lifetime_ms = context.now_ms - container.started_ms
        memory_mb_seconds += container.resource.memory_mb * lifetime_ms // 1000
        vcore_seconds += container.resource.vcores * lifetime_ms // 1000
    holding = context.scheduler.application_usage(app.application_id)
    return replace(
        UNKNOWN_USAGE if holding is None else holding,
        memory_seconds=memory_mb_seconds,
        vcore_seconds=vcore_seconds,
        preempted_memory_seconds=lost.memory_mb_seconds,
        preempted_vcore_seconds=lost.vcore_seconds,
    )


def _passes(app: RMApp, wanted: ApplicationFilter) -> bool:
    """True if the application matches every field of the filter; a field matches if one of its values does.

    `wanted` has types in lower case, and queues by path or short name. Tags are compared as they are: clients send them
    in lower case (ClientRMService.getApplications).
    """
    if wanted.types and app.submission.type.lower() not in wanted.types:
        return False
    if wanted.states and application_state(app) not in wanted.states:
        return False
    if wanted.users and app.user not in wanted.users:
        return False
    if wanted.queues and app.queue not in wanted.queues and app.queue.rpartition(".")[2] not in wanted.queues:
        return False
    if wanted.name is not None and app.submission.name != wanted.name:
        return False
    if wanted.started is not None and app.submit_ms not in wanted.started:
        return False
    if wanted.finished is not None and app.finish_ms not in wanted.finished:
        return False
    return not wanted.tags or not wanted.tags.isdisjoint(app.submission.tags)


def find_attempt(context: RMContext, attempt_id: ApplicationAttemptId) -> RMAppAttempt:
    """The attempt; raises Application- or ApplicationAttemptNotFoundException for an unknown one."""
    attempt = context.find_app(attempt_id.application_id).attempts.get(attempt_id)
    if attempt is None:
        raise ApplicationAttemptNotFoundException(f"ApplicationAttempt with id '{attempt_id}' doesn't exist in RM.")
    return attempt


def attempt_report(
    context: RMContext, attempt_id: ApplicationAttemptId, asker: Asker | None = None
) -> ApplicationAttemptReport:
    """The report of an attempt. Raises as `find_attempt`, and YarnException for a caller who may not view it."""
    _check_view(context, attempt_id.application_id, asker, f"attempt {attempt_id}")
    return _attempt_report(find_attempt(context, attempt_id))


def attempt_reports(
    context: RMContext, application_id: ApplicationId, asker: Asker | None = None
) -> tuple[ApplicationAttemptReport, ...]:
    """The reports of all attempts of an application, the first attempt first. Raises as `attempt_report`."""
    _check_view(context, application_id, asker, f"application {application_id}")
    return tuple(_attempt_report(attempt) for attempt in context.find_app(application_id).attempts.values())


def _check_view(context: RMContext, application_id: ApplicationId, asker: Asker | None, what: str) -> None:
    app = context.find_app(application_id)
    if asker is not None:
        context.application_acls.check_view(asker, app, what)


def attempt_state(attempt: RMAppAttempt) -> YarnApplicationAttemptState:
    """The state as clients see it: while the end of the attempt is being stored, the state before that."""
    state = attempt.state
    if state is RMAppAttemptState.FINAL_SAVING:
        state = attempt.state_before_final_saving
    if state is RMAppAttemptState.LAUNCHED_UNMANAGED_SAVING:
        return YarnApplicationAttemptState.ALLOCATED_SAVING
    return YarnApplicationAttemptState[state.name]


def attempt_diagnostics(attempt: RMAppAttempt) -> str:
    """Why the attempt ended, or what it is waiting for."""
    return str(attempt.final_diagnostics) or launch_diagnostics(attempt.context, attempt)


def _attempt_report(attempt: RMAppAttempt) -> ApplicationAttemptReport:
    return ApplicationAttemptReport(
        attempt_id=attempt.attempt_id,
        state=attempt_state(attempt),
        am_container_id=None if attempt.am_container is None else attempt.am_container.id,
        host=attempt.host,
        rpc_port=attempt.rpc_port,
        tracking_url=attempt.tracking_url,
        original_tracking_url=attempt.original_tracking_url,
        diagnostics=attempt_diagnostics(attempt),
        start_time_ms=attempt.start_ms,
        finish_time_ms=attempt.finish_ms,
    )


# Only live containers are reported, because the RM does not keep ended ones.


def container_report(context: RMContext, container_id: ContainerId, asker: Asker | None = None) -> ContainerReport:
    """The report of a container. Raises as `attempt_report`, and ContainerNotFoundException for one that has ended."""
    _check_view(context, container_id.application_id, asker, f"application {container_id.application_id}")
    find_attempt(context, container_id.attempt_id)
    container = context.scheduler.container(container_id)
    if container is None or container.state is RMContainerState.RESERVED:
        raise ContainerNotFoundException(f"Container with id '{container_id}' doesn't exist in RM.")
    return _container_report(context, container)


def container_reports(
    context: RMContext, attempt_id: ApplicationAttemptId, asker: Asker | None = None
) -> tuple[ContainerReport, ...]:
    """The live containers of an attempt; raises as `attempt_report`."""
    _check_view(context, attempt_id.application_id, asker, f"application {attempt_id.application_id}")
    attempt = find_attempt(context, attempt_id)
    if attempt.app.current_attempt is not attempt:
        return ()
    live = context.scheduler.containers_of(attempt_id.application_id)
    return tuple(_container_report(context, live[container_id]) for container_id in sorted(live))


def _container_report(context: RMContext, container: RMContainer) -> ContainerReport:
    node = context.nodes.get(container.node_id)
    address = f"http://{container.container.node_http_address}"
    return ContainerReport(
        container_id=container.id,
        resource=container.resource,
        node_id=container.node_id,
        priority=container.priority,
        state=ContainerState.RUNNING,  # As in RMContainerImpl.getContainerState, a live container is RUNNING
        creation_time_ms=container.started_ms,
        log_url=f"{address}/node/containerlogs/{container.id}/{container.user}",
        node_http_address=address if node is None else f"http://{node.http_address}",
        execution_type=container.container.execution_type,
    )
