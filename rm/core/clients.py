"""The core's part of ApplicationClientProtocol: calls that change something. Queries are in rm.core.reports."""

from __future__ import annotations

from msgspec.structs import replace

from rm.core.app_manager import checked_priority
from rm.core.applications import RMApp
from rm.core.context import RMContext
from rm.core.events import (
    Asker,
    FailApplicationAttempt,
    GetNewApplication,
    KillApplication,
    MoveApplication,
    SignalContainer,
    UpdateApplicationPriority,
    UpdateApplicationTimeouts,
    asker_of,
)
from rm.core.lifecycle_events import RMAppAttemptFail, RMAppKill, RMNodeSignalContainer
from rm.core.states import COMPLETED_APP_STATES, SCHEDULED_APP_STATES, STORED_APP_STATES, RMAppState
from yarn.errors import ApplicationAttemptNotFoundException, ApplicationNotFoundException, YarnException
from yarn.ids import ApplicationId
from yarn.protocols.client import GetNewApplicationResponse, KillApplicationResponse
from yarn.resource import INT64_MAX
from yarn.times import format_iso8601

FAILED_BY_USER = "Attempt failed by user."


class ClientRMService:
    """The calls of clients (ClientRMService), except submitApplication, which RMAppManager handles."""

    def __init__(self, context: RMContext) -> None:
        self._context = context
        self._last_id = 0

    def new_application(self, _: GetNewApplication) -> GetNewApplicationResponse:
        """A new application id, and the largest container that any queue allows."""
        self._last_id += 1
        return GetNewApplicationResponse(
            ApplicationId(self._context.cluster_timestamp, self._last_id),
            self._context.scheduler.maximum_allocation(self._context.now_ms),
        )

    def kill(self, event: KillApplication) -> KillApplicationResponse:
        """Kill an application. Replies False until its final state is stored; clients repeat the call until True."""
        app = self._context.apps.get(event.application_id)
        if app is None:
            raise ApplicationNotFoundException(f"Trying to kill an absent application {event.application_id}")
        self._context.application_acls.check_modify(asker_of(event), app)
        if app.state in STORED_APP_STATES:
            return KillApplicationResponse(is_kill_completed=True)
        self._context.send(RMAppKill(event.application_id, event.diagnostics))
        return KillApplicationResponse(is_kill_completed=app.submission.unmanaged_am)

    def move(self, event: MoveApplication) -> None:
        """Move an application to another leaf. Raises YarnException; then nothing was moved.

        The access lists of the target queue must admit the caller, too.
        """
        context, application_id, queue = self._context, event.application_id, event.queue
        app = self._app_to_change(application_id, asker_of(event))
        user, groups = asker_of(event)
        if not context.queue_acls.may_submit(context.scheduler.queue_path(queue), user, groups):
            raise YarnException(
                f"java.security.AccessControlException: User {user} cannot submit applications to target "
                f"queue or the target queue doesn't exist: {queue} while moving {application_id}"
            )
        if app.state not in SCHEDULED_APP_STATES:
            raise YarnException(f"App in {app.state.name} state cannot be moved.")
        app.queue = context.scheduler.move_application(application_id, queue, context.now_ms)
        app.submission = replace(app.submission, queue=app.queue)
        app.placed = None
        context.store.change_application(app.state_data())

    def update_priority(self, event: UpdateApplicationPriority) -> int:
        """Set an application's priority, reduced to the cluster's maximum; returns the priority that it has now.

        An application that is over keeps its priority. The queue's priority lists must allow the caller to use the new
        one. As in Hadoop, the next attempt starts with the priority of the submission again.
        """
        context, application_id, asker = self._context, event.application_id, asker_of(event)
        app = self._app_to_change(application_id, asker)
        if app.state in COMPLETED_APP_STATES:
            return app.priority
        if app.state not in SCHEDULED_APP_STATES:
            raise YarnException(f"Application in {app.state.name} state cannot update priority.")
        priority = checked_priority(context, application_id, app.queue, event.priority, asker)
        context.scheduler.update_priority(application_id, priority, context.now_ms)
        app.priority = priority
        context.store.change_application(app.state_data())
        return priority

    def update_timeouts(self, event: UpdateApplicationTimeouts) -> int:
        """Set the time at which an application's lifetime ends; returns the new time in wall-clock ms.

        The queue's maximum lifetime, counted from the submission, limits the time. An application that is over keeps
        its old time, and the requested one is returned.
        """
        context, expiry_ms = self._context, event.expiry_ms
        app = self._app_to_change(event.application_id, asker_of(event))
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
        longest_s = context.scheduler.application_lifetime(app.queue, INT64_MAX)
        expiry_ms = min(expiry_ms, app.submit_ms + longest_s * 1000)
        app.end_lifetime_at(expiry_ms)
        context.store.change_application(app.state_data())
        return expiry_ms

    def fail_attempt(self, event: FailApplicationAttempt) -> None:
        """Fail an attempt. A no-op if its application is over or about to end."""
        attempt_id = event.attempt_id
        app = self._app_to_change(attempt_id.application_id, asker_of(event))
        if attempt_id not in app.attempts:
            raise ApplicationAttemptNotFoundException(f"ApplicationAttempt with id '{attempt_id}' doesn't exist in RM.")
        if app.state not in COMPLETED_APP_STATES:
            self._context.send(RMAppAttemptFail(attempt_id, FAILED_BY_USER))

    def signal_container(self, event: SignalContainer) -> None:
        """Send a signal to a container's processes; the node receives it with the reply to its next heartbeat."""
        context, container_id = self._context, event.container_id
        app = context.apps.get(container_id.application_id)
        if app is not None:
            context.application_acls.check_modify(asker_of(event), app)
        container = None if app is None else context.scheduler.container(container_id)
        if container is None:
            raise YarnException(f"Trying to signal an absent container {container_id}")
        context.send(RMNodeSignalContainer(container.node_id, container_id, event.command))

    def _app_to_change(self, application_id: ApplicationId, asker: Asker) -> RMApp:
        """The application. Raises ApplicationNotFoundException, or YarnException if the caller may not change it."""
        app = self._context.find_app(application_id)
        self._context.application_acls.check_modify(asker, app)
        return app
