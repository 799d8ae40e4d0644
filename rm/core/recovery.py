"""The ResourceManager takes up what an earlier one stored (ResourceManager.recover, RMAppManager.recover).

One event, the first of all, brings everything. Each application becomes what it was: one that is over is shown again;
one that never got to a master starts anew; of the others the last attempt is waited for, as its master may run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rm.core.admission import master_requests
from rm.core.lifecycle_events import RMAppEventType
from rm.core.rm_app import RMApp
from rm.core.stored_state import RMState, StoredApplication
from yarn.applications import ApplicationSubmissionContext
from yarn.asks import ResourceRequest
from yarn.errors import YarnException

if TYPE_CHECKING:
    from rm.core.context import RMContext


def recover(context: RMContext, state: RMState) -> None:
    """Make all applications what they were, in the order of their ids."""
    work_preserving = context.settings.work_preserving
    context.scheduler.recovery.begin(
        epoch=state.epoch if work_preserving else 0,
        waits=work_preserving and bool(state.applications),
        remember_releases_ms=context.settings.node_expiry_ms,
        now_ms=context.now_ms,
    )
    for stored in state.applications:
        app = _application(context, stored)
        context.apps[app.application_id] = app
        context.step_app(app, RMAppEventType.RECOVER, stored)


def _application(context: RMContext, stored: StoredApplication) -> RMApp:
    """As submitted. Neither limits nor access lists are asked: it was let in."""
    data = stored.application
    submission = data.submission
    app = RMApp(
        context,
        submission,
        user=data.user,
        queue=data.placed or context.scheduler.queue_path(submission.queue),
        placed=data.placed,
        am_requests=_master_requests(context, submission),
        priority=submission.priority or 0,
    )
    app.submit_ms = data.submit_ms
    return app


def _master_requests(context: RMContext, submission: ApplicationSubmissionContext) -> tuple[ResourceRequest, ...]:
    """Those that were let in once; what a smaller maximum makes impossible now is told when they are asked for."""
    try:
        return master_requests(context, submission)
    except YarnException as error:
        context.warn(f"{submission.application_id} is recovered with asks for its master as they are: {error.message}")
        return submission.am_requests
