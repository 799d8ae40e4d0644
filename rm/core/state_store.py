"""Where the ResourceManager writes what must outlive it (RMStateStore): nowhere, or to a store that the shell has.

A machine that must not go on before something is written enters a SAVING state, calls the store and waits for the
store's event. The core writes nothing itself: it says what is to be written, as effects with records, and the shell
answers with an event once that is durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from rm.core.effects import RemoveApplication, SaveApplication, SaveAttempt, SaveNodeLabels
from rm.core.lifecycle_events import RMAppAttemptEventType, RMAppEventType
from rm.core.states import RMAppAttemptState, RMAppState
from rm.core.stored_state import ApplicationAttemptStateData, ApplicationStateData, NodeLabelState, Saving
from yarn.containers import ContainerLaunchContext
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarn.states import ContainerExitStatus, FinalApplicationStatus

if TYPE_CHECKING:
    from rm.core.context import RMContext
    from rm.core.rm_app import RMApp
    from rm.core.rm_app_attempt import RMAppAttempt


class StateStore:
    """NullRMStateStore: nothing is kept, everything is saved the moment it is handed over."""

    def __init__(self, context: RMContext) -> None:
        self._context = context

    def store_application(self, app: RMApp) -> None:
        """A new application; answered with APP_NEW_SAVED."""
        self.application_saved(app.application_id, Saving.NEW)

    def end_application(self, app: RMApp, state: RMAppState, diagnostics: str) -> None:
        """An application's final state; answered with APP_UPDATE_SAVED."""
        self.application_saved(app.application_id, Saving.FINAL)

    def change_application(self, app: RMApp) -> None:
        """A living application is not what it was: no machine waits for this."""

    def remove_application(self, application_id: ApplicationId) -> None:
        """An application that is over is forgotten, with its attempts."""

    def store_attempt(self, attempt: RMAppAttempt) -> None:
        """A new attempt with its master's container; answered with ATTEMPT_NEW_SAVED."""
        self.attempt_saved(attempt.attempt_id, Saving.NEW)

    def end_attempt(self, attempt: RMAppAttempt, data: ApplicationAttemptStateData) -> None:
        """An attempt's final state; answered with ATTEMPT_UPDATE_SAVED."""
        self.attempt_saved(attempt.attempt_id, Saving.FINAL)

    def change_node_labels(self) -> None:
        """Labels have come, gone, or are other nodes' now."""

    def application_saved(self, application_id: ApplicationId, saving: Saving) -> None:
        """It is written: its machine may go on."""
        if saving is not Saving.CHANGE:
            is_new = saving is Saving.NEW
            event = RMAppEventType.APP_NEW_SAVED if is_new else RMAppEventType.APP_UPDATE_SAVED
            self._context.send_app(application_id, event)

    def application_save_failed(self, application_id: ApplicationId, diagnostics: str) -> None:
        """It will not be written: it never began. One that is on its way out meanwhile has its end stored later."""
        app = self._context.apps.get(application_id)
        if app is not None and app.state is RMAppState.NEW_SAVING:
            self._context.send_app(application_id, RMAppEventType.APP_SAVE_FAILED, diagnostics)

    def attempt_saved(self, attempt_id: ApplicationAttemptId, saving: Saving) -> None:
        """It is written: its machine may go on."""
        is_new = saving is Saving.NEW
        event = RMAppAttemptEventType.ATTEMPT_NEW_SAVED if is_new else RMAppAttemptEventType.ATTEMPT_UPDATE_SAVED
        self._context.send_attempt(attempt_id, event)


class KeepingStateStore(StateStore):
    """A store that keeps: each call is an effect, and its answer an event (ApplicationSaved, AttemptSaved)."""

    def store_application(self, app: RMApp) -> None:
        self._save(app_data(app), Saving.NEW)

    def end_application(self, app: RMApp, state: RMAppState, diagnostics: str) -> None:
        """Without what only its master needed, users' credentials among it (RMStateStore.pruneAppState)."""
        acls = ContainerLaunchContext(application_acls=app.submission.am_container.application_acls)
        living = app_data(app)
        data = replace(
            living,
            submission=replace(living.submission, am_container=acls),
            state=state,
            diagnostics=diagnostics,
            finish_ms=app.stored_finish_ms,
        )
        self._save(data, Saving.FINAL)

    def change_application(self, app: RMApp) -> None:
        self._save(app_data(app), Saving.CHANGE)

    def remove_application(self, application_id: ApplicationId) -> None:
        self._context.effects.append(RemoveApplication(application_id))

    def store_attempt(self, attempt: RMAppAttempt) -> None:
        data = ApplicationAttemptStateData(attempt.attempt_id, attempt.master, attempt.start_ms)
        self._context.effects.append(SaveAttempt(data, Saving.NEW))

    def end_attempt(self, attempt: RMAppAttempt, data: ApplicationAttemptStateData) -> None:
        self._context.effects.append(SaveAttempt(data, Saving.FINAL))

    def change_node_labels(self) -> None:
        labels = self._context.scheduler.labels
        self._context.effects.append(SaveNodeLabels(NodeLabelState(labels.cluster_labels(), labels.given())))

    def _save(self, data: ApplicationStateData, saving: Saving) -> None:
        self._context.effects.append(SaveApplication(data, saving))


def app_data(app: RMApp) -> ApplicationStateData:
    """A living application as it is stored."""
    return ApplicationStateData(
        replace(app.submission, priority=app.priority),
        app.user,
        app.submit_ms,
        placed=app.placed,
        launch_ms=app.launch_ms,
        lifetime_ends_ms=app.lifetime_ends_ms,
    )


def ended_attempt_data(
    attempt: RMAppAttempt,
    state: RMAppAttemptState,
    *,
    diagnostics: str,
    tracking_url: str,
    final_status: FinalApplicationStatus | None = None,
    exit_status: int = ContainerExitStatus.INVALID,
) -> ApplicationAttemptStateData:
    """An attempt that ends in `state`, as it is stored before anybody is told of it."""
    app = attempt.app
    return ApplicationAttemptStateData(
        attempt.attempt_id,
        attempt.master,
        attempt.start_ms,
        state,
        tracking_url,
        diagnostics,
        final_status,
        exit_status,
        attempt.finish_ms,
        app.memory_mb_seconds,
        app.vcore_seconds,
        app.losses.memory_mb_seconds,
        app.losses.vcore_seconds,
    )
