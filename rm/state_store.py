"""Where the ResourceManager writes what must outlive it (RMStateStore); so far only the store that keeps nothing.

A machine that must not go on before something is written enters a SAVING state, calls the store and waits for the
store's event. The null store's event is queued at once; a store that writes sends it once the write is durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rm.lifecycles.events import RMAppAttemptEventType, RMAppEventType

if TYPE_CHECKING:
    from rm.context import RMContext
    from rm.lifecycles.rm_app import RMApp
    from rm.lifecycles.rm_app_attempt import RMAppAttempt


class StateStore:
    """NullRMStateStore: nothing is kept, everything is saved the moment it is handed over."""

    def __init__(self, context: RMContext) -> None:
        self._context = context

    def store_application(self, app: RMApp) -> None:
        """A new application; answered with APP_NEW_SAVED."""
        self._context.send_app(app.application_id, RMAppEventType.APP_NEW_SAVED)

    def update_application(self, app: RMApp) -> None:
        """An application's final state; answered with APP_UPDATE_SAVED."""
        self._context.send_app(app.application_id, RMAppEventType.APP_UPDATE_SAVED)

    def store_attempt(self, attempt: RMAppAttempt) -> None:
        """A new attempt with its master's container; answered with ATTEMPT_NEW_SAVED."""
        self._context.send_attempt(attempt.attempt_id, RMAppAttemptEventType.ATTEMPT_NEW_SAVED)

    def update_attempt(self, attempt: RMAppAttempt) -> None:
        """An attempt's final state; answered with ATTEMPT_UPDATE_SAVED."""
        self._context.send_attempt(attempt.attempt_id, RMAppAttemptEventType.ATTEMPT_UPDATE_SAVED)
