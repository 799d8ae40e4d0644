"""Stores what must survive a restart of the ResourceManager (RMStateStore).

A state machine that must wait until something is stored enters a SAVING state, calls the store, and waits for an event.
The core does no I/O: the store emits an effect with the record, and the shell sends an event once the record is
durable. Without recovery nothing is stored, and the event is sent at once.
"""

from __future__ import annotations

from msgspec.structs import replace

from rm.core.effects import Effect, RemoveApplication, SaveApplication, SaveAttempt, SaveNodeLabels, StoreEffect
from rm.core.lifecycle_events import AppNewSaved, AppUpdateSaved, AttemptNewSaved, AttemptUpdateSaved
from rm.core.states import RMAppState
from rm.core.stored_state import ApplicationAttemptStateData, ApplicationStateData, NodeLabelState, Saving
from yarn.containers import ContainerLaunchContext
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarn.machine import Dispatcher


class StateStore:
    """A store that keeps nothing and reports everything as saved at once (NullRMStateStore)."""

    def __init__(self, dispatcher: Dispatcher[Effect]) -> None:
        self._dispatcher = dispatcher

    def store_application(self, data: ApplicationStateData) -> None:
        """Store a new application; AppNewSaved follows."""
        self.application_saved(data.application_id, Saving.NEW)

    def end_application(self, data: ApplicationStateData, state: RMAppState, diagnostics: str, finish_ms: int) -> None:
        """Store the final state of an application; AppUpdateSaved follows."""
        self.application_saved(data.application_id, Saving.FINAL)

    def change_application(self, data: ApplicationStateData) -> None:
        """Store changes of a running application; no state machine waits for this."""

    def remove_application(self, application_id: ApplicationId) -> None:
        """Delete an application that is over, with its attempts."""

    def store_attempt(self, data: ApplicationAttemptStateData) -> None:
        """Store a new attempt with its AM's container; AttemptNewSaved follows."""
        self.attempt_saved(data.attempt_id, Saving.NEW)

    def end_attempt(self, data: ApplicationAttemptStateData) -> None:
        """Store the final state of an attempt; AttemptUpdateSaved follows."""
        self.attempt_saved(data.attempt_id, Saving.FINAL)

    def change_node_labels(self, labels: NodeLabelState) -> None:
        """Store the labels of the cluster and its nodes."""

    def application_saved(self, application_id: ApplicationId, saving: Saving) -> None:
        """Send the event for which the application's state machine waits."""
        if saving is Saving.NEW:
            self._dispatcher.send(AppNewSaved(application_id))
        elif saving is Saving.FINAL:
            self._dispatcher.send(AppUpdateSaved(application_id))

    def attempt_saved(self, attempt_id: ApplicationAttemptId, saving: Saving) -> None:
        """Send the event for which the attempt's state machine waits."""
        event = AttemptNewSaved if saving is Saving.NEW else AttemptUpdateSaved
        self._dispatcher.send(event(attempt_id))


class PersistentStateStore(StateStore):
    """A store whose calls become effects; the shell's events ApplicationSaved and AttemptSaved report that they are
    done.
    """

    def store_application(self, data: ApplicationStateData) -> None:
        self.write(SaveApplication(data, Saving.NEW))

    def end_application(self, data: ApplicationStateData, state: RMAppState, diagnostics: str, finish_ms: int) -> None:
        """Store the final state without what only the AM needed, for example credentials
        (RMStateStore.pruneAppState).
        """
        acls = ContainerLaunchContext(application_acls=data.submission.am_container.application_acls)
        pruned = replace(data.submission, am_container=acls)
        data = replace(data, submission=pruned, state=state, diagnostics=diagnostics, finish_ms=finish_ms)
        self.write(SaveApplication(data, Saving.FINAL))

    def change_application(self, data: ApplicationStateData) -> None:
        self.write(SaveApplication(data, Saving.CHANGE))

    def remove_application(self, application_id: ApplicationId) -> None:
        self.write(RemoveApplication(application_id))

    def store_attempt(self, data: ApplicationAttemptStateData) -> None:
        self.write(SaveAttempt(data, Saving.NEW))

    def end_attempt(self, data: ApplicationAttemptStateData) -> None:
        self.write(SaveAttempt(data, Saving.FINAL))

    def change_node_labels(self, labels: NodeLabelState) -> None:
        self.write(SaveNodeLabels(labels))

    def write(self, effect: StoreEffect) -> None:
        """Let the shell store a record."""
        self._dispatcher.emit(effect)
