"""A new ResourceManager recovers what an earlier one stored. Tests are named after TestRMRestart where it has them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rm.core.events import (
    ApplicationSaveFailed,
    FailApplicationAttempt,
    MoveApplication,
    UpdateApplicationPriority,
    UpdateApplicationTimeouts,
)
from rm.core.reports.applications import application_report, attempt_report
from tests.rm.builders import START_MS, done
from tests.rm.stored import NOT_PRESERVING, StoredRM
from yarn.containers import ANY, ResourceRequest
from yarn.errors import ApplicationAttemptNotFoundException
from yarn.ids import ApplicationId
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus, QueueState, YarnApplicationState

NO_SETTLING = {"yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "0"}
TWO_QUEUES = {
    **NO_SETTLING,
    "yarn.scheduler.capacity.root.queues": "default,other",
    "yarn.scheduler.capacity.root.default.capacity": "50",
    "yarn.scheduler.capacity.root.other.capacity": "50",
}


ON_DEMAND = {
    "yarn.scheduler.capacity.root.queues": "default,users",
    "yarn.scheduler.capacity.root.default.capacity": "1w",
    "yarn.scheduler.capacity.root.users.capacity": "1w",
    "yarn.scheduler.capacity.root.users.auto-queue-creation-v2.enabled": "true",
}


@pytest.fixture
def rm() -> StoredRM:
    rm = StoredRM(NO_SETTLING)
    rm.node("n1")
    return rm


def states(rm: StoredRM, app: ApplicationId) -> tuple[str, str]:
    return rm.state(app), rm.attempt_state(app)


# When records are written


def test_a_submission_is_not_accepted_before_it_is_stored(rm: StoredRM) -> None:
    rm.disk.is_slow = True
    app = rm.submit()
    assert rm.state(app) == "NEW_SAVING"
    assert app not in rm.core.scheduler.applications
    rm.write()
    assert rm.state(app) == "ACCEPTED"


def test_an_application_that_was_not_stored_is_unknown_after_a_restart(rm: StoredRM) -> None:
    rm.disk.is_slow = True
    app = rm.submit()
    assert app not in rm.restart().core.context.apps


def test_an_application_that_cannot_be_stored_fails_and_is_unknown_after_a_restart(rm: StoredRM) -> None:
    rm.disk.is_slow = True
    app = rm.submit()
    rm.disk.waiting.clear()
    rm.send(ApplicationSaveFailed(app, "no room"))
    assert rm.state(app) == "FAILED"
    assert application_report(rm.core.context, app).diagnostics == "no room"
    assert rm.disk.waiting == []
    assert app not in rm.restart().core.context.apps


def test_an_application_killed_before_its_store_operation_failed_is_killed(rm: StoredRM) -> None:
    rm.disk.is_slow = True
    app = rm.submit()
    rm.disk.waiting.clear()
    rm.kill(app)
    rm.send(ApplicationSaveFailed(app, "no room"))
    assert rm.state(app) == "FINAL_SAVING"
    rm.write()
    assert rm.state(app) == "KILLED"
    assert rm.restart().state(app) == "KILLED"


def test_the_oldest_completed_applications_are_forgotten_by_the_store() -> None:
    rm = StoredRM({"yarn.resourcemanager.state-store.max-completed-applications": "1"})
    rm.node("n1")
    apps = [rm.submit() for _ in range(3)]
    for app in apps:
        rm.kill(app)
    assert list(rm.disk.applications) == apps[-1:]
    assert list(rm.restart().core.context.apps) == apps[-1:]


# Ended applications


def test_final_states_and_diagnostics_are_recovered(rm: StoredRM) -> None:
    finished, killed, failed = rm.submit(), rm.submit(max_app_attempts=1), rm.submit(max_app_attempts=1)
    ams = {app: rm.run_am(app) for app in (finished, killed, failed)}
    rm.wait(3000)
    rm.finish(finished)
    rm.beat(ended=[done(ams[finished].id), done(ams[failed].id, 7, "crashed")])
    rm.kill(killed)
    before = {app: application_report(rm.core.context, app) for app in (finished, killed, failed)}
    again = rm.restart()
    for app, report in before.items():
        now = application_report(again.core.context, app)
        assert (now.state, now.final_status) == (report.state, report.final_status)
        assert (now.start_time_ms, now.finish_time_ms) == (report.start_time_ms, report.finish_time_ms)
        assert (now.user, now.queue, now.launch_time_ms) == (report.user, report.queue, report.launch_time_ms)
    assert before[failed].diagnostics == application_report(again.core.context, failed).diagnostics
    assert "crashed" in before[failed].diagnostics
    assert again.core.context.apps[failed].memory_mb_seconds == rm.core.context.apps[failed].memory_mb_seconds > 0
    assert again.core.scheduler.applications == {}
    assert list(again.core.context.completed_apps) == [finished, killed, failed]


def test_an_attempt_whose_end_was_not_stored_ends_as_its_application(rm: StoredRM) -> None:
    app = rm.submit()
    rm.run_am(app)
    rm.disk.is_slow = True
    rm.kill(app)
    rm.write()
    attempt = rm.attempt_id(app)
    rm.disk.attempts[attempt] = replace(rm.disk.attempts[attempt], state=None)
    assert states(rm.restart(), app) == ("KILLED", "KILLED")


# Applications without an AM


def test_an_application_stored_without_an_attempt_is_submitted_again(rm: StoredRM) -> None:
    app = rm.submit()
    again = rm.restart()
    assert states(again, app) == ("ACCEPTED", "SCHEDULED")
    again.comes_back()
    again.wait(1)
    am = again.launch(app)
    assert (am.id.attempt_id.attempt, am.id.epoch) == (1, 1)
    third = again.restart()
    assert states(third, app) == ("ACCEPTED", "LAUNCHED")


def test_after_a_restart_an_ended_attempt_is_followed_by_the_next(rm: StoredRM) -> None:
    """The attempt's failure was stored, but the application had not handled it yet."""
    app = rm.submit()
    rm.run_am(app)
    rm.disk.is_slow = True
    rm.send(FailApplicationAttempt(rm.call(), rm.attempt_id(app)))
    rm.disk.take(rm.disk.waiting.pop(0))
    rm.disk.is_slow = False
    again = rm.restart()
    assert states(again, app) == ("ACCEPTED", "SCHEDULED")
    assert again.attempt_id(app).attempt == 2
    assert attempt_report(again.core.context, rm.attempt_id(app)).diagnostics == (
        "Attempt recovered after RM restartAttempt failed by user."
    )


def test_the_final_status_of_a_finished_attempt_becomes_that_of_the_application(rm: StoredRM) -> None:
    app = rm.submit()
    rm.run_am(app)
    rm.disk.is_slow = True
    rm.finish(app)
    rm.disk.take(rm.disk.waiting.pop(0))
    rm.disk.is_slow = False
    again = rm.restart()
    assert states(again, app) == ("FINISHED", "FINISHED")
    assert application_report(again.core.context, app).final_status is FinalApplicationStatus.SUCCEEDED


# Changes by administrators and users


def test_changed_queues_and_priorities_are_recovered() -> None:
    rm = StoredRM({**TWO_QUEUES, "yarn.cluster.max-application-priority": "10"})
    rm.node("n1")
    app = rm.submit()
    rm.run_am(app)
    rm.send(MoveApplication(rm.call(), "ann", app, "other"))
    rm.send(UpdateApplicationPriority(rm.call(), app, 5, "ann"))
    again = rm.restart()
    report = application_report(again.core.context, app)
    assert (report.queue, report.priority) == ("root.other", 5)
    assert again.core.scheduler.applications[app].queue == "root.other"


def test_a_changed_lifetime_is_recovered(rm: StoredRM) -> None:
    app = rm.submit(lifetime_s=1000)
    rm.run_am(app)
    until_ms = rm.now_ms + 50_000
    rm.send(UpdateApplicationTimeouts(rm.call(), app, until_ms))
    again = rm.restart()
    assert again.core.context.apps[app].lifetime_ends_ms == until_ms
    again.wait(100_000)
    assert again.state(app) == "KILLED"


def test_the_labels_and_places_of_am_requests_are_recovered(rm: StoredRM) -> None:
    asks = (ResourceRequest(0, ANY, Resource(2048, 1), 1), ResourceRequest(0, "n1", Resource(2048, 1), 1))
    app = rm.submit(am_requests=asks)
    again = rm.restart()
    found = again.core.context.apps[app].am_requests
    assert found == rm.core.context.apps[app].am_requests
    assert [request.resource_name for request in found] == [ANY, "n1"]


def test_an_application_whose_queue_was_removed_is_killed() -> None:
    rm = StoredRM(TWO_QUEUES)
    rm.node("n1")
    app = rm.submit(queue="other")
    rm.run_am(app)
    # AttemptRecoveredTransition sends ATTEMPT_LAUNCHED after the KILL; RMAppImpl has no row for it in KILLING.
    again = rm.restart(NO_SETTLING, strict=False)
    assert states(again, app) == ("KILLED", "KILLED")
    assert application_report(again.core.context, app).diagnostics == (
        "Application killed on recovery as it was submitted to queue other which no longer exists after restart."
    )


def test_a_queue_stopped_before_the_restart_drains() -> None:
    """recoverDrainingState, also for the queues above; new applications are refused."""
    rm = StoredRM(TWO_QUEUES)
    rm.node("n1")
    app = rm.submit(queue="other")
    rm.run_am(app)
    again = rm.restart({**TWO_QUEUES, "yarn.scheduler.capacity.root.other.state": "STOPPED"})
    queue = again.core.scheduler.queues["root.other"]
    assert (again.state(app), queue.state) == ("ACCEPTED", QueueState.DRAINING)
    again.kill(app)
    assert (again.state(app), queue.state) == ("KILLED", QueueState.STOPPED)


def test_recovered_applications_are_exempt_from_submission_limits() -> None:
    rm = StoredRM(NO_SETTLING)
    rm.node("n1")
    apps = [rm.submit() for _ in range(3)]
    for app in apps:
        rm.run_am(app)
    again = rm.restart({**NO_SETTLING, "yarn.scheduler.capacity.maximum-applications": "1"})
    assert [again.state(app) for app in apps] == ["ACCEPTED"] * 3
    assert list(again.core.scheduler.applications) == apps


def test_an_attempt_goes_on_under_a_maximum_that_was_lowered(rm: StoredRM) -> None:
    """The maximum counts when an attempt fails (RMAppImpl.AttemptFailedTransition), not at its recovery (I-38)."""
    rm.node("n1")
    app = rm.submit()
    am = rm.run_am(app)
    rm.beat(ended=[done(am.id, 1)])
    rm.run_am(app)
    again = rm.restart({**NO_SETTLING, "yarn.resourcemanager.am.max-attempts": "1"})
    again.comes_back("n1")
    again.register(app)
    assert (again.attempt_id(app).attempt, again.state(app)) == (2, "RUNNING")
    again.beat(ended=[done(next(iter(again.nodes["n1"].running)), 1)])
    assert again.state(app) == "FAILED"


def test_a_dynamic_queue_is_created_again() -> None:
    rm = StoredRM({**NO_SETTLING, **ON_DEMAND})
    rm.node("n1")
    app = rm.submit(queue="root.users.ann")
    rm.run_am(app)
    again = rm.restart()
    assert again.core.scheduler.applications[app].queue == "root.users.ann"


def test_an_earlier_attempt_without_a_stored_end_is_failed(rm: StoredRM) -> None:
    app = rm.submit(max_app_attempts=2)
    am = rm.run_am(app)
    first = rm.attempt_id(app)
    rm.beat(ended=[done(am.id, 1)])
    rm.run_am(app)
    rm.disk.attempts[first] = replace(rm.disk.attempts[first], state=None)
    again = rm.restart()
    attempts = again.core.context.apps[app].attempts.values()
    assert [attempt.state.name for attempt in attempts] == ["FAILED", "LAUNCHED"]
    again.kill(app)
    assert states(again, app) == ("KILLED", "KILLED")


def test_an_application_whose_lifetime_ended_during_the_outage_is_killed(rm: StoredRM) -> None:
    app = rm.submit(lifetime_s=10)
    rm.run_am(app)
    again = rm.restart()
    assert again.core.context.apps[app].lifetime_ends_ms == START_MS + 10_000
    again.wait(60_000)
    assert again.state(app) == "KILLED"


# Without work-preserving recovery: NodeManagers kill their containers, and each application gets a new attempt


def test_without_work_preserving_recovery_the_exit_of_the_am_starts_a_new_attempt() -> None:
    rm = StoredRM(NOT_PRESERVING)
    rm.node("n1")
    app = rm.submit(max_app_attempts=2)
    am = rm.run_am(app)
    again = rm.restart()
    assert states(again, app) == ("ACCEPTED", "LAUNCHED")
    with pytest.raises(ApplicationAttemptNotFoundException):
        again.allocate(app)
    again.comes_back(ended={am.id: -106})
    assert (again.attempt_id(app).attempt, again.state(app)) == (2, "ACCEPTED")
    second = again.run_am(app)
    assert second.id.epoch == 0
    assert application_report(again.core.context, app).state is YarnApplicationState.RUNNING


def test_an_am_that_never_registers_again_expires(rm: StoredRM) -> None:
    app = rm.submit(max_app_attempts=2)
    rm.run_am(app)
    again = rm.restart()
    for _ in range(13):
        again.wait(100_000)
    assert again.attempt_id(app).attempt == 2
