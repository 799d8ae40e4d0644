"""The calls of ApplicationClientProtocol that change something (ClientRMService); queries are in rm.core.reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from rm.core.admission import admit, checked_priority
from rm.core.events import Asker
from rm.core.lifecycle_events import RMAppAttemptEventType, RMAppEventType, RMNodeEventType
from rm.core.states import COMPLETED_APP_STATES, SCHEDULED_APP_STATES, STORED_APP_STATES, RMAppState
from yarn.applications import ApplicationSubmissionContext
from yarn.errors import ApplicationAttemptNotFoundException, ApplicationNotFoundException, YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.protocols.client import GetNewApplicationResponse, KillApplicationResponse
from yarn.resource import INT32_MAX
from yarn.states import SignalContainerCommand
from yarn.times import format_iso8601

if TYPE_CHECKING:
    from rm.core.context import RMContext
    from rm.core.rm_app import RMApp

FAILED_BY_USER = "Attempt failed by user."


class ClientRMService:
    """What clients call."""

    def __init__(self, context: RMContext) -> None:
        self._context = context
        self._last_id = 0

    def new_application(self) -> GetNewApplicationResponse:
        """A fresh id; the largest container is that of the whole cluster."""
        self._last_id += 1
        return GetNewApplicationResponse(
            ApplicationId(self._context.cluster_timestamp, self._last_id),
            self._context.scheduler.maximum_allocation(),
        )

    def submit(self, user: str, submission: ApplicationSubmissionContext, groups: tuple[str, ...] = ()) -> None:
        """Let an application in. Again with the same id: of no effect, so that a client can repeat the call."""
        context = self._context
        if submission.application_id in context.apps:
            return
        app = admit(context, user, submission, groups)
        context.apps[app.application_id] = app
        context.send_app(app.application_id, RMAppEventType.START)

    def kill(self, application_id: ApplicationId, diagnostics: str, asker: Asker) -> KillApplicationResponse:
        """False until the end is stored; the client asks again."""
        app = self._context.apps.get(application_id)
        if app is None:
            raise ApplicationNotFoundException(f"Trying to kill an absent application {application_id}")
        self._context.application_acls.check_modify(asker, app)
        if app.state in STORED_APP_STATES:
            return KillApplicationResponse(is_kill_completed=True)
        self._context.send_app(application_id, RMAppEventType.KILL, diagnostics)
        return KillApplicationResponse(is_kill_completed=app.submission.unmanaged_am)

    def move(self, application_id: ApplicationId, queue: str, asker: Asker) -> None:
        """Move an application to another leaf. Raises YarnException, with nothing moved.

        The target's access lists must let the asker in, too.
        """
        context = self._context
        app = self._app_to_change(application_id, asker)
        user, groups = asker
        if not context.queue_acls.may_submit(context.scheduler.queue_path(queue), user, groups):
            raise YarnException(
                f"org.apache.hadoop.security.AccessControlException: User {user} cannot submit applications to target "
                f"queue or the target queue doesn't exist: {queue} while moving {application_id}"
            )
        if app.state not in SCHEDULED_APP_STATES:
            raise YarnException(f"App in {app.state.name} state cannot be moved.")
        app.queue = context.scheduler.move_application(application_id, queue, context.now_ms)
        app.submission = replace(app.submission, queue=app.queue)
        app.placed = None
        context.store.change_application(app)

    def update_priority(self, application_id: ApplicationId, priority: int, asker: Asker) -> int:
        """The priority it has now: what was asked for, cut to the cluster's maximum; the old one if it is over.

        The queue's priority lists must let the asker, too. The next attempt starts with the priority of the
        submission again, as in Hadoop.
        """
        context = self._context
        app = self._app_to_change(application_id, asker)
        if app.state in COMPLETED_APP_STATES:
            return app.priority
        if app.state not in SCHEDULED_APP_STATES:
            raise YarnException(f"Application in {app.state.name} state cannot update priority.")
        priority = checked_priority(context, application_id, app.queue, priority, asker)
        context.scheduler.update_priority(application_id, priority, context.now_ms)
        app.priority = priority
        context.store.change_application(app)
        return priority

    def update_timeouts(self, application_id: ApplicationId, expiry_ms: int | None, asker: Asker) -> int:
        """When its lifetime ends now: as asked, but no later than its queue's maximum after its submission.

        What is over keeps what it had, and is answered as if it had been taken.
        """
        context = self._context
        app = self._app_to_change(application_id, asker)
        if expiry_ms is None:
            raise YarnException("At least one ApplicationTimeoutType should be configured for updating timeouts.")
        if app.state in COMPLETED_APP_STATES:
            return expiry_ms
        if app.state not in SCHEDULED_APP_STATES | {RMAppState.SUBMITTED}:
            raise YarnException(f"Application is in {app.state.name} state can not update timeout.")
        if expiry_ms < context.now_ms:
            raise YarnException(
                f"Expire time is less than current time, current-time={format_iso8601(context.now_ms)} "
                f"expire-time={format_iso8601(expiry_ms)}"
            )
        longest_s = context.scheduler.application_lifetime(app.queue, INT32_MAX)
        expiry_ms = min(expiry_ms, app.submit_ms + longest_s * 1000)
        app.end_lifetime_at(expiry_ms)
        context.store.change_application(app)
        return expiry_ms

    def fail_attempt(self, attempt_id: ApplicationAttemptId, asker: Asker) -> None:
        """Have the attempt fail; of no effect once its application is over or sure to be."""
        app = self._app_to_change(attempt_id.application_id, asker)
        if attempt_id not in app.attempts:
            raise ApplicationAttemptNotFoundException(f"ApplicationAttempt with id '{attempt_id}' doesn't exist in RM.")
        if app.state not in COMPLETED_APP_STATES:
            self._context.send_attempt(attempt_id, RMAppAttemptEventType.FAIL, FAILED_BY_USER)

    def signal_container(self, container_id: ContainerId, command: SignalContainerCommand, asker: Asker) -> None:
        """Have a container's node send its processes a signal, with the node's next heartbeat."""
        context = self._context
        app = context.apps.get(container_id.application_id)
        if app is not None:
            context.application_acls.check_modify(asker, app)
        container = None if app is None else context.scheduler.container(container_id)
        if container is None:
            raise YarnException(f"Trying to signal an absent container {container_id}")
        context.send_node(container.node_id, RMNodeEventType.SIGNAL_CONTAINER, (container_id, command))

    def _app_to_change(self, application_id: ApplicationId, asker: Asker) -> RMApp:
        """The application. Raises ApplicationNotFoundException, YarnException if the asker may not change it."""
        app = self._context.find_app(application_id)
        self._context.application_acls.check_modify(asker, app)
        return app
