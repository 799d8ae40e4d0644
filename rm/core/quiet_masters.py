"""Leave out heartbeats of AMs that would change nothing: of which AMs, until when, and what they would have updated.

A heartbeat that requests nothing, from an AM that does not heed the reply, changes nothing if both of this hold when it
arrives:

- the reply would contain only the headroom: the attempt and its application are RUNNING, nothing was placed, nothing
  has ended, nothing is to be preempted, and no node has changed;
- looking up the headroom would store nothing. It stores the limit of the AM's user, on which later decisions depend
  (UsersManager.getComputedResourceLimitForActiveUsers), if that has changed since the last lookup.

If the first one may no longer hold, `due` returns the AM. The second one is the same for all AMs with the same
`lookup`; `changed` returns the leaves in which it may no longer hold. The caller keeps the times of heartbeats, and
lets those arrive for which one of the two does not hold (`heartbeat`).

Nobody reads the headroom of a heartbeat that is left out. So the reply to the last one, which may still be under way,
has the headroom of the time at which the AM sends its heartbeats again.
"""

from __future__ import annotations

from rm.core.context import RMContext
from rm.core.service_context import next_response_id
from rm.core.states import RMAppAttemptState, RMAppState
from rm.scheduler.capacity.limits import HeadroomLookup, present_headroom
from rm.scheduler.model.users import UsersManager
from yarn.ids import ApplicationAttemptId
from yarn.protocols.master import AllocateResponse
from yarn.resource import Resource


class QuietMasters:
    """The AMs whose heartbeats are left out. Dicts without values are sets that keep their order.

    `_watched`: those without news. `_due`: those for which there may be news. `_changed`: the users of leaves in which
    a lookup may store something.
    """

    def __init__(self, context: RMContext) -> None:
        self._context = context
        self._suspended: dict[ApplicationAttemptId, None] = {}
        self._watched: dict[ApplicationAttemptId, None] = {}
        self._due: dict[ApplicationAttemptId, None] = {}
        self._changed: dict[UsersManager, None] = {}

    def suspend(self, attempt_id: ApplicationAttemptId) -> None:
        """Start leaving out heartbeats of the AM, which does not expire meanwhile."""
        if self._context.am_liveness.suspend(attempt_id):
            self._suspended[attempt_id] = None

    def resume(self, attempt_id: ApplicationAttemptId, last_ms: int) -> None:
        """Stop leaving out the AM's heartbeats; the last one left out would have arrived at `last_ms`."""
        self._forget(attempt_id)
        if attempt_id in self._suspended:
            del self._suspended[attempt_id]
            if attempt_id in self._context.sessions:
                self._context.am_liveness.resume(attempt_id, last_ms)

    def skip(self, attempt_id: ApplicationAttemptId, response_id: int) -> AllocateResponse:
        """Update the AM's session as the heartbeats that were left out would have done; returns the last one's reply.

        `response_id` is that of the reply. An AM that may not call any more gets a reply without headroom.
        """
        session, app = self._context.sessions.get(attempt_id), self._context.apps.get(attempt_id.application_id)
        none = self._context.scheduler.resource_types.none
        if session is None or app is None:
            return AllocateResponse(response_id, none, 0)
        attempt = self._context.scheduler.attempt_of(attempt_id.application_id)
        session.response_id = response_id
        session.response = self._reply(attempt_id, response_id, present_headroom(attempt) if attempt else none)
        return session.response

    def heartbeat(self, attempt_id: ApplicationAttemptId, now_ms: int) -> bool:
        """Apply a heartbeat that requests nothing, if the reply would contain only the headroom.

        Otherwise returns False, and nothing has changed.
        """
        if not self._is_running(attempt_id):
            return False
        headroom = self._context.scheduler.allocate_nothing(attempt_id, now_ms)
        if headroom is None:
            return False
        session = self._context.sessions[attempt_id]
        session.response_id = next_response_id(session.response_id)
        session.response = self._reply(attempt_id, session.response_id, headroom)
        return True

    def watch(self, attempt_id: ApplicationAttemptId) -> bool:
        """Watch the AM, if the reply would contain only the headroom now, until `due` returns it; True if so."""
        self._forget(attempt_id)
        application = self._context.scheduler.without_news(attempt_id) if self._is_running(attempt_id) else None
        if application is None:
            return False
        self._watched[attempt_id] = None
        application.watch = self._due
        lookup = HeadroomLookup.of(application)
        if lookup is not None:
            lookup.users.watch = self._changed
        return True

    def lookup(self, attempt_id: ApplicationAttemptId) -> HeadroomLookup | None:
        """The limits that the AM's heartbeats look up now; None if they look up none."""
        attempt = self._context.scheduler.attempt_of(attempt_id.application_id)
        return HeadroomLookup.of(attempt) if attempt is not None else None

    def note(self, attempt_id: ApplicationAttemptId) -> None:
        """Record that something has happened to the attempt, of which its AM may have to learn."""
        if attempt_id in self._watched:
            self._due[attempt_id] = None

    def due(self) -> list[ApplicationAttemptId]:
        """Return the watched AMs for which there may be news, and stop watching them."""
        if not self._due:
            return []
        due = [attempt_id for attempt_id in self._due if attempt_id in self._watched]
        self._due.clear()
        for attempt_id in due:
            self._forget(attempt_id)
        return due

    def changed(self) -> list[UsersManager]:
        """Return the users of leaves in which lookups may store something, since the last call."""
        if not self._changed:
            return []
        changed = list(self._changed)
        self._changed.clear()
        return changed

    def _is_running(self, attempt_id: ApplicationAttemptId) -> bool:
        """True if the AM has registered, and only the scheduler can have news for it."""
        context = self._context
        app, session = context.apps.get(attempt_id.application_id), context.sessions.get(attempt_id)
        attempt = app.attempts.get(attempt_id) if app is not None else None
        if app is None or attempt is None or session is None or session.response is None:
            return False
        if attempt.state is not RMAppAttemptState.RUNNING or app.state is not RMAppState.RUNNING:
            return False
        return not app.updated_nodes and attempt.finished_containers.is_empty

    def _reply(self, attempt_id: ApplicationAttemptId, response_id: int, headroom: Resource) -> AllocateResponse:
        app = self._context.apps[attempt_id.application_id]
        return AllocateResponse(
            response_id=response_id,
            headroom=headroom,
            cluster_nodes=self._context.scheduler.node_count_for(app.queue),
            application_priority=app.priority,
        )

    def _forget(self, attempt_id: ApplicationAttemptId) -> None:
        if attempt_id in self._watched:
            del self._watched[attempt_id]
            attempt = self._context.scheduler.attempt_of(attempt_id.application_id)
            if attempt is not None and attempt.attempt_id == attempt_id:
                attempt.watch = None
