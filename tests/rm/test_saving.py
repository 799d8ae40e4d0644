"""A slow store: what happens to applications and attempts while their state is being written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rm.core.events import FailApplicationAttempt, FinishApplicationMaster, UnregisterNode
from rm.core.lifecycle_events import RMAppAttemptUnregistered, RMAppKill
from rm.core.reports.applications import application_report, attempt_report
from rm.core.state_store import StateStore
from rm.core.stored_state import Saving
from tests.rm.builders import RM, done, resource_request
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarn.protocols.master import FinishApplicationMasterRequest
from yarn.states import FinalApplicationStatus, YarnApplicationAttemptState, YarnApplicationState


class SlowStore(StateStore):
    """Everything waits until `write` is called; nothing waits while `quick`."""

    def __init__(self, rm: RM) -> None:
        super().__init__(rm.core.context.dispatcher)
        self.quick = True
        self._waiting: list[Callable[[], None]] = []

    def write(self) -> None:
        """Make everything handed over so far durable."""
        waiting, self._waiting = self._waiting, []
        for answer in waiting:
            answer()
        self._dispatcher.drain()

    def application_saved(self, application_id: ApplicationId, saving: Saving) -> None:
        self._take(lambda: super(SlowStore, self).application_saved(application_id, saving))

    def attempt_saved(self, attempt_id: ApplicationAttemptId, saving: Saving) -> None:
        self._take(lambda: super(SlowStore, self).attempt_saved(attempt_id, saving))

    def _take(self, answer: Callable[[], None]) -> None:
        if self.quick:
            answer()
        else:
            self._waiting.append(answer)


@pytest.fixture
def rm() -> RM:
    rm = RM()
    rm.node("n1")
    return rm


@pytest.fixture
def store(rm: RM) -> SlowStore:
    store = SlowStore(rm)
    rm.core.context.store = store
    return store


def states(rm: RM, app: ApplicationId) -> tuple[str, str]:
    return rm.state(app), rm.attempt_state(app)


def write_all(store: SlowStore) -> None:
    """Write until no record waits: one write may lead to another."""
    while store._waiting:
        store.write()


# Submission


def test_the_scheduler_gets_an_application_once_it_is_stored(rm: RM, store: SlowStore) -> None:
    store.quick = False
    app = rm.submit()
    assert rm.state(app) == "NEW_SAVING"
    assert app not in rm.core.scheduler.applications
    store.write()
    assert rm.state(app) == "ACCEPTED"


def test_an_application_killed_while_being_stored_ends_once_stored(rm: RM, store: SlowStore) -> None:
    """The confirmation of the earlier write is ignored."""
    store.quick = False
    app = rm.submit()
    assert rm.kill(app) is False
    assert rm.state(app) == "FINAL_SAVING"
    assert application_report(rm.core.context, app).state is YarnApplicationState.NEW_SAVING
    store.write()
    assert rm.state(app) == "KILLED"
    assert app not in rm.core.scheduler.applications


def test_an_am_is_started_once_its_attempt_is_stored(rm: RM, store: SlowStore) -> None:
    app = rm.submit()
    store.quick = False
    rm.beat()
    assert states(rm, app) == ("ACCEPTED", "ALLOCATED_SAVING")
    store.write()
    assert states(rm, app) == ("ACCEPTED", "ALLOCATED")


@pytest.mark.parametrize(
    ("end", "ends_as"),
    [
        (lambda rm, app: rm.kill(app), "KILLED"),
        (lambda rm, app: rm.send(FailApplicationAttempt(rm.call(), rm.attempt_id(app))), "FAILED"),
        (lambda rm, app: rm.send(UnregisterNode(rm.call(), rm.nodes["n1"].node_id)), "FAILED"),
    ],
    ids=["killed", "failed", "its node left"],
)
def test_an_application_ended_while_its_attempt_is_being_stored_ends_once_stored(
    rm: RM, store: SlowStore, end: Callable[[RM, ApplicationId], object], ends_as: str
) -> None:
    app = rm.submit(max_app_attempts=1)
    store.quick = False
    rm.beat()
    end(rm, app)
    assert rm.attempt_state(app) == "FINAL_SAVING"
    write_all(store)
    assert states(rm, app) == (ends_as, ends_as)
    assert rm.core.scheduler.containers_of(app) == {}


# Completion


def test_an_am_container_may_end_before_the_unregistration_is_stored(rm: RM, store: SlowStore) -> None:
    """Application and attempt skip FINISHING; nodes may forget other containers that complete during the write."""
    app = rm.submit()
    am = rm.run_am(app)
    task = rm.get(app, 1)[0]
    store.quick = False
    assert rm.finish(app) is False
    assert states(rm, app) == ("FINAL_SAVING", "FINAL_SAVING")
    report = attempt_report(rm.core.context, rm.attempt_id(app))
    assert report.state is YarnApplicationAttemptState.RUNNING
    rm.beat(ended=[done(task.id), done(am.id)])
    assert states(rm, app) == ("FINAL_SAVING", "FINAL_SAVING")
    write_all(store)
    assert states(rm, app) == ("FINISHED", "FINISHED")
    assert application_report(rm.core.context, app).final_status is FinalApplicationStatus.SUCCEEDED
    assert set(rm.beat().containers_to_forget) == {task.id, am.id}


def test_a_node_keeps_the_completion_of_an_am_until_it_is_stored(rm: RM, store: SlowStore) -> None:
    """If the ResourceManager is killed before the write, the node reports the completion to the next one."""
    app = rm.submit()
    am = rm.run_am(app)
    task = rm.get(app, 1)[0]
    store.quick = False
    rm.beat(ended=[done(am.id, 1)])
    rm.beat(ended=[done(task.id)])
    assert rm.attempt_state(app) == "FINAL_SAVING"
    assert rm.beat().containers_to_forget == ()
    write_all(store)
    assert set(rm.beat().containers_to_forget) == {am.id, task.id}


def test_the_completion_of_an_am_with_kept_containers_is_kept_until_it_is_stored(rm: RM, store: SlowStore) -> None:
    app = rm.submit(keep_containers_across_attempts=True)
    am = rm.run_am(app)
    store.quick = False
    rm.beat(ended=[done(am.id, 1)])
    assert rm.beat().containers_to_forget == ()
    write_all(store)
    assert rm.beat().containers_to_forget == (am.id,)


def test_an_am_expires_before_its_unregistration_is_stored(rm: RM, store: SlowStore) -> None:
    app = rm.submit()
    rm.run_am(app)
    store.quick = False
    rm.finish(app)
    for _ in range(13):
        rm.wait(100_000)
        rm.beat()
    assert states(rm, app) == ("FINAL_SAVING", "FINAL_SAVING")
    write_all(store)
    assert states(rm, app) == ("FINISHED", "FINISHED")


def test_a_kill_after_the_unregistration_of_the_am_has_no_effect(rm: RM, store: SlowStore) -> None:
    app = rm.submit()
    rm.run_am(app)
    store.quick = False
    rm.finish(app)
    rm.kill(app)
    write_all(store)
    assert rm.state(app) == "FINISHING"


def test_an_unregistration_during_a_kill_finishes_the_application(rm: RM) -> None:
    """The application is KILLING when its AM's unregistration arrives."""
    app = rm.submit()
    rm.run_am(app)
    context = rm.core.context
    request = FinishApplicationMasterRequest(FinalApplicationStatus.SUCCEEDED)
    context.send(RMAppKill(app, "killed"))
    context.send(RMAppAttemptUnregistered(rm.attempt_id(app), request))
    context.dispatcher.drain()
    assert states(rm, app) == ("FINISHING", "FINISHING")


def test_an_attempt_that_fails_while_being_killed_is_not_retried(rm: RM, store: SlowStore) -> None:
    app = rm.submit()
    am = rm.run_am(app)
    store.quick = False
    rm.beat(ended=[done(am.id, 1)])
    rm.kill(app)
    assert states(rm, app) == ("KILLING", "FINAL_SAVING")
    assert application_report(rm.core.context, app).state is YarnApplicationState.RUNNING
    write_all(store)
    assert (rm.state(app), rm.attempt_id(app).attempt) == ("KILLED", 1)


def test_a_kill_keeps_no_containers_for_a_next_attempt(rm: RM, store: SlowStore) -> None:
    """Containers were kept for the next attempt, but the application is killed while this one's failure is stored."""
    app = rm.submit(keep_containers_across_attempts=True)
    am = rm.run_am(app)
    rm.run(*rm.get(app, 2))
    store.quick = False
    rm.beat(ended=[done(am.id, 1)])
    rm.kill(app)
    write_all(store)
    assert states(rm, app) == ("KILLED", "FAILED")
    rm.beat()
    rm.beat()
    assert rm.nodes["n1"].running == {}
    root = rm.core.scheduler.queue("root")
    assert root is not None
    assert root.usage.used("").memory_mb == 0


# Unmanaged AMs


def test_an_unmanaged_am_needs_no_container(rm: RM) -> None:
    app = rm.submit(unmanaged_am=True)
    assert states(rm, app) == ("ACCEPTED", "LAUNCHED")
    rm.register(app)
    rm.allocate(app, [resource_request(1)])
    rm.beat()
    assert len(rm.allocate(app).allocated) == 1
    assert rm.finish(app) is True
    assert states(rm, app) == ("FINISHED", "FINISHED")


def test_an_unmanaged_am_that_expires_is_not_retried(rm: RM) -> None:
    """As on a real cluster: an unmanaged AM that registered and stopped calling."""
    app = rm.submit(unmanaged_am=True)
    rm.register(app)
    for _ in range(13):
        rm.wait(100_000)
        rm.beat()
    assert rm.state(app) == "FAILED"
    assert application_report(rm.core.context, app).diagnostics == (
        f"Unmanaged application {app} failed due to ApplicationMaster for attempt {rm.attempt_id(app)} timed out."
        " Failing the application."
    )


def test_an_unmanaged_am_that_registers_too_early_fails(rm: RM, store: SlowStore) -> None:
    store.quick = False
    app = rm.submit(unmanaged_am=True)
    store.write()
    assert rm.attempt_state(app) == "LAUNCHED_UNMANAGED_SAVING"
    rm.register(app)
    write_all(store)
    assert rm.state(app) == "FAILED"
    report = attempt_report(rm.core.context, rm.attempt_id(app))
    assert report.diagnostics == "Unmanaged AM must register after AM attempt reaches LAUNCHED state."


def test_an_unmanaged_am_that_keeps_containers_may_register_again(rm: RM) -> None:
    app = rm.submit(unmanaged_am=True, keep_containers_across_attempts=True)
    rm.register(app)
    rm.allocate(app, [resource_request(1)])
    rm.beat()
    (container,) = rm.allocate(app).allocated
    assert [kept.id for kept in rm.register(app).containers_from_previous_attempts] == [container.id]
    assert rm.allocate(app).response_id == 1


def test_an_am_that_unregisters_again_and_again_does_not_expire_while_its_outcome_is_stored(
    rm: RM, store: SlowStore
) -> None:
    """Its container is then waited for, as after a quick write."""
    app = rm.submit()
    rm.run_am(app)
    store.quick = False
    for _ in range(5):
        assert rm.finish(app) is False
        rm.wait(rm.core.context.settings.am_expiry_ms // 2)
        rm.beat()
    write_all(store)
    assert states(rm, app) == ("FINISHING", "FINISHING")


def test_only_the_first_outcome_with_which_an_am_unregisters_counts(rm: RM, store: SlowStore) -> None:
    app = rm.submit()
    rm.run_am(app)
    store.quick = False
    rm.finish(app)
    failed = FinishApplicationMasterRequest(FinalApplicationStatus.FAILED)
    for write in (lambda: None, store.write):
        write()
        rm.send(FinishApplicationMaster(rm.call(), rm.attempt_id(app), failed))
    write_all(store)
    assert application_report(rm.core.context, app).final_status is FinalApplicationStatus.SUCCEEDED
