"""Where the ResourceManager writes what must outlive it (RMStateStore): nowhere, or to a store that the shell has.

A machine that must not go on before something is written enters a SAVING state, calls the store and waits for the
store's event. The core writes nothing itself: it emits what is to be written, as effects with records, and the shell
answers with an event once that is durable.
"""

from __future__ import annotations

from msgspec.structs import replace

from rm.core.effects import Effect, RemoveApplication, SaveApplication, SaveAttempt, SaveNodeLabels
from rm.core.lifecycle_events import AppNewSaved, AppUpdateSaved, AttemptNewSaved, AttemptUpdateSaved
from rm.core.states import RMAppState
from rm.core.stored_state import ApplicationAttemptStateData, ApplicationStateData, NodeLabelState, Saving
from yarn.containers import ContainerLaunchContext
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarn.machine import Dispatcher


class StateStore:
    """NullRMStateStore: keeps nothing, and reports everything as saved at once."""

    def __init__(self, dispatcher: Dispatcher[Effect]) -> None:
        self._dispatcher = dispatcher

    def store_application(self, data: ApplicationStateData) -> None:
        """A new application; answered with APP_NEW_SAVED."""
        self.application_saved(data.application_id, Saving.NEW)

    def end_application(self, data: ApplicationStateData, state: RMAppState, diagnostics: str, finish_ms: int) -> None:
        """The final state of an application; answered with APP_UPDATE_SAVED."""
        self.application_saved(data.application_id, Saving.FINAL)

    def change_application(self, data: ApplicationStateData) -> None:
        """A running application has changed: no machine waits for this."""

    def remove_application(self, application_id: ApplicationId) -> None:
        """Forget an application that is over, with its attempts."""

    def store_attempt(self, data: ApplicationAttemptStateData) -> None:
        """A new attempt with its AM's container; answered with ATTEMPT_NEW_SAVED."""
        self.attempt_saved(data.attempt_id, Saving.NEW)

    def end_attempt(self, data: ApplicationAttemptStateData) -> None:
        """The final state of an attempt; answered with ATTEMPT_UPDATE_SAVED."""
        self.attempt_saved(data.attempt_id, Saving.FINAL)

    def change_node_labels(self, labels: NodeLabelState) -> None:
        """The cluster's labels, or those of its nodes, have changed."""

    def application_saved(self, application_id: ApplicationId, saving: Saving) -> None:
        """It is written: its machine may go on."""
        if saving is Saving.NEW:
            self._dispatcher.send(AppNewSaved(application_id))
        elif saving is Saving.FINAL:
            self._dispatcher.send(AppUpdateSaved(application_id))

    def attempt_saved(self, attempt_id: ApplicationAttemptId, saving: Saving) -> None:
        """It is written: its machine may go on."""
        event = AttemptNewSaved if saving is Saving.NEW else AttemptUpdateSaved
        self._dispatcher.send(event(attempt_id))


class PersistentStateStore(StateStore):
    """A store that keeps: each call is an effect, and its answer an event (ApplicationSaved, AttemptSaved)."""

    def store_application(self, data: ApplicationStateData) -> None:
        self._dispatcher.emit(SaveApplication(data, Saving.NEW))

    def end_application(self, data: ApplicationStateData, state: RMAppState, diagnostics: str, finish_ms: int) -> None:
        """Without what only its AM needed, users' credentials among it (RMStateStore.pruneAppState)."""
        acls = ContainerLaunchContext(application_acls=data.submission.am_container.application_acls)
        pruned = replace(data.submission, am_container=acls)
        data = replace(data, submission=pruned, state=state, diagnostics=diagnostics, finish_ms=finish_ms)
        self._dispatcher.emit(SaveApplication(data, Saving.FINAL))

    def change_application(self, data: ApplicationStateData) -> None:
        self._dispatcher.emit(SaveApplication(data, Saving.CHANGE))

    def remove_application(self, application_id: ApplicationId) -> None:
        self._dispatcher.emit(RemoveApplication(application_id))

    def store_attempt(self, data: ApplicationAttemptStateData) -> None:
        self._dispatcher.emit(SaveAttempt(data, Saving.NEW))

    def end_attempt(self, data: ApplicationAttemptStateData) -> None:
        self._dispatcher.emit(SaveAttempt(data, Saving.FINAL))

    def change_node_labels(self, labels: NodeLabelState) -> None:
        self._dispatcher.emit(SaveNodeLabels(labels))
