"""Explains why an application does not have the containers that it requests: obstacles and their remedies.

The scheduler records refusals as it places containers (rm.scheduler.model.refusals). The reports are made from those
records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rm.core.applications import RMApp
from rm.core.context import RMContext
from rm.core.events import Asker
from rm.core.explain.obstacles import Obstacle, Remedies, application_limits, counted_types, obstacles_of
from rm.core.explain.verdict_wording import worded
from rm.core.explain.what_if import with_changes
from rm.core.reports.applications import application_state
from rm.core.states import RMAppState
from rm.scheduler.capacity.activation import HAS_ALREADY
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.refusals import Reason
from yarn.containers import UNDEFINED_PRIORITY
from yarn.ids import ApplicationId
from yarn.nodes import NO_LABEL
from yarn.protocols.inspection import (
    Explanation,
    ObstacleReport,
    ObstacleScope,
    PendingAsk,
    Reservation,
    SettingInForce,
    VerdictReport,
)

_OF_USER = frozenset({Reason.USER_LIMIT, Reason.COMMIT_USER_LIMIT, Reason.AM_USER_LIMIT})


def explanation(
    context: RMContext,
    application_id: ApplicationId,
    now_ms: int,
    asker: Asker | None = None,
    *,
    what_if: bool = False,
) -> Explanation:
    """The explanation for an application. For one that is over it contains only the state, and why it failed.

    `what_if`: also try changes on a copy of the scheduler.

    Raises ApplicationNotFoundException, or YarnException for an asker who may not view the application.
    """
    app = context.find_app(application_id)
    if asker is not None:
        context.application_acls.check_view(asker, app, f"application {application_id}")
    attempt = context.scheduler.attempt_of(application_id)
    state = application_state(app)
    if attempt is None or attempt.is_stopped:
        return Explanation(
            application_id,
            app.user,
            app.queue,
            state,
            now_ms,
            verdicts=tuple(_why_it_ended(context, app)),
            counted_types=counted_types(context.scheduler.context),
            refused_start=app.refused_start,
        )
    verdicts = worded(context, attempt, now_ms)
    return Explanation(
        application_id,
        app.user,
        attempt.leaf.path,
        state,
        now_ms,
        _requests(attempt),
        tuple(
            Reservation(container.node_id, container.resource, container.started_ms)
            for container in attempt.reserved_containers
        ),
        _reports(context, attempt, obstacles_of(attempt, context.scheduler.nodes.values())),
        with_changes(context, attempt, verdicts) if what_if else tuple(report for _, report in verdicts),
        counted_types(context.scheduler.context),
        app.refused_start,
    )


def _why_it_ended(context: RMContext, app: RMApp) -> Iterator[VerdictReport]:
    """The verdict of an application that was refused at its submission, or that failed later."""
    if app.state is not RMAppState.FAILED or not app.diagnostics:
        return
    if app.attempts:
        yield _ended(app, "FAILED", f"failed: {app.diagnostics.strip()}")
        return
    why = app.diagnostics.rpartition("Exception: ")[2].strip()
    leaf = context.scheduler.queue(app.queue)
    if HAS_ALREADY in why:
        settings = application_limits(leaf) if isinstance(leaf, LeafQueue) else ()
        yield _ended(app, "APPLICATION_LIMIT", f"was refused: {why}", settings)
    else:
        yield _ended(app, "REFUSED_AT_SUBMISSION", f"was refused: {why}")


def _ended(app: RMApp, cause: str, sentence: str, settings: tuple[SettingInForce, ...] = ()) -> VerdictReport:
    return VerdictReport(UNDEFINED_PRIORITY, -1, cause, sentence, app.submit_ms, settings)


def _requests(attempt: FiCaSchedulerApp) -> tuple[PendingAsk, ...]:
    rows = sorted(attempt.requests.rows(), key=lambda entry: (entry[0][:3], entry[1].terms.resource_name))
    return tuple(
        PendingAsk(
            key.priority,
            key.allocation_request_id,
            row.terms.resource_name,
            row.terms.capability,
            row.count,
            row.terms.relax_locality,
            row.terms.partition,
        )
        for key, row in rows
        if row.count > 0
    )


def _reports(
    context: RMContext, attempt: FiCaSchedulerApp, obstacles: Iterable[Obstacle]
) -> tuple[ObstacleReport, ...]:
    remedies = Remedies(attempt, context.scheduler.context)
    levels = {queue.path: level for level, queue in enumerate(attempt.leaf.and_above())}
    reports = [_report(context, attempt, obstacle, remedies) for obstacle in obstacles]
    reports.sort(key=lambda report: _place(report, levels))
    return tuple(reports)


def _report(context: RMContext, attempt: FiCaSchedulerApp, obstacle: Obstacle, remedies: Remedies) -> ObstacleReport:
    refusal = obstacle.refusal
    queue: CSQueue | None = context.scheduler.queue(obstacle.subject)
    scope, subject = ObstacleScope.QUEUE, obstacle.subject
    if obstacle.subject == str(attempt.attempt_id):
        queue = attempt.leaf
        by_user = refusal.reason in _OF_USER
        scope = ObstacleScope.USER if by_user else ObstacleScope.APPLICATION
        subject = attempt.user if by_user else str(attempt.attempt_id.application_id)
    node = None if obstacle.node_id is None else context.scheduler.nodes.get(obstacle.node_id)
    partition = node.partition if node is not None else (attempt.am_partition or NO_LABEL)
    return ObstacleReport(
        scope,
        subject,
        obstacle.node_id,
        refusal.reason.name,
        refusal.reason.value,
        refusal.asked,
        refusal.bound,
        refusal.at_ms,
        remedies.of(refusal, queue if queue is not None else attempt.leaf, partition),
    )


def _place(report: ObstacleReport, levels: dict[str, int]) -> tuple[object, ...]:
    """The sort key: obstacles on all nodes first, then by node: the application's, its user's, its queues' from the
    leaf upwards.
    """
    place = () if report.node_id is None else report.node_id.reading_order
    return (place, report.scope.value, levels.get(report.subject, -1))
