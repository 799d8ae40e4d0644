"""Applications and attempts: submission, retries and which failures count, kills, expiry, diagnostics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rm.core.effects import CleanUpAM, Effect, LaunchAM
from rm.core.events import (
    AMLaunched,
    AMLaunchFailed,
    FailApplicationAttempt,
    KillApplication,
    SubmitApplication,
    UnregisterNode,
)
from rm.core.reports.applications import application_report, attempt_report
from tests.rm.builders import RM, done, resource_request
from yarn.containers import ANY, ContainerStatus, ResourceRequest
from yarn.errors import (
    ApplicationAttemptNotFoundException,
    ApplicationNotFoundException,
    InvalidResourceRequestException,
    YarnException,
)
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.machine import IllegalTransition, StateChanged, Warn
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus, YarnApplicationState

AM_EXPIRY_MS = 900_000
ALLOCATION_EXPIRY_MS = 600_000


@pytest.fixture
def rm() -> RM:
    rm = RM()
    rm.node("n1")
    return rm


def crash(rm: RM, am: ContainerId, exit_status: int = 1, diagnostics: str = "") -> None:
    rm.beat(ended=[done(am, exit_status, diagnostics)])


def beats(rm: RM, duration_ms: int, app: ApplicationId | None = None) -> None:
    """Let time pass while n1 (and the application's AM) send heartbeats."""
    for _ in range(duration_ms // 100_000):
        rm.wait(100_000)
        rm.beat()
        if app is not None:
            rm.allocate(app)


# From submission to completion


@pytest.mark.case("I1")
def test_a_successful_application_passes_its_states_in_hadoops_order(rm: RM) -> None:
    """Every state of an application and its attempt, in order."""
    app = rm.submit()
    seen = [(e.kind, e.target) for e in rm.effects if isinstance(e, StateChanged)]
    assert seen == [
        ("RMApp", "NEW_SAVING"),
        ("RMApp", "SUBMITTED"),
        ("RMApp", "ACCEPTED"),
        ("RMAppAttempt", "SUBMITTED"),
        ("RMAppAttempt", "SCHEDULED"),
    ]
    rm.beat()
    seen = [(e.kind, e.target) for e in rm.effects if isinstance(e, StateChanged)]
    assert seen == [("RMAppAttempt", "ALLOCATED_SAVING"), ("RMAppAttempt", "ALLOCATED")]
    (launch,) = [e for e in rm.effects if isinstance(e, LaunchAM)]
    rm.send(AMLaunched(launch.attempt_id))
    rm.run(launch.container)
    rm.register(app)
    assert (rm.state(app), rm.attempt_state(app)) == ("RUNNING", "RUNNING")
    rm.finish(app)
    assert (rm.state(app), rm.attempt_state(app)) == ("FINISHING", "FINISHING")
    crash(rm, launch.container.id, 0)
    assert (rm.state(app), rm.attempt_state(app)) == ("FINISHED", "FINISHED")
    report = application_report(rm.core.context, app)
    assert (report.state, report.final_status) == (YarnApplicationState.FINISHED, FinalApplicationStatus.SUCCEEDED)
    assert (report.diagnostics, report.progress) == ("all done", 1.0)


def test_submitting_again_with_the_same_id_has_no_effect(rm: RM) -> None:
    app = rm.submit()
    known = rm.core.context.apps[app]
    assert rm.send(SubmitApplication(rm.call(), "ann", known.submission)) is None
    assert rm.core.context.apps[app] is known


def test_get_new_application_returns_increasing_ids(rm: RM) -> None:
    assert [rm.submit().id for _ in range(3)] == [1, 2, 3]


# Refused submissions


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (
            {"tags": frozenset(f"t{i}" for i in range(11))},
            "java.lang.IllegalArgumentException: Too many applicationTags, a maximum of only 10 are allowed!",
        ),
        (
            {"tags": frozenset(["x" * 101])},
            f"java.lang.IllegalArgumentException: Tag {'x' * 101} is too long, maximum allowed length of a tag is 100",
        ),
        (
            {"tags": frozenset(["été"])},
            "java.lang.IllegalArgumentException: A tag can only have ASCII characters! Invalid tag - été",
        ),
        ({"lifetime_s": 0}, "Invalid application timeout, value=0 for type=LIFETIME"),
        ({"lifetime_s": -5}, "Invalid application timeout, value=-5 for type=LIFETIME"),
    ],
)
def test_invalid_submissions_are_refused_with_hadoops_messages(rm: RM, context: dict[str, Any], message: str) -> None:
    """As on a real cluster; a refused submission leaves nothing behind."""
    with pytest.raises(YarnException) as refused:
        rm.submit(**context)
    assert refused.value.message == message
    assert rm.core.context.apps == {}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["n1"], "Invalid resource request, no resource request specified with *"),
        ([ANY, ANY], "Invalid resource request, only one resource request with * is allowed"),
    ],
)
def test_an_am_needs_exactly_one_request_for_anywhere(rm: RM, names: list[str], message: str) -> None:
    asks = tuple(ResourceRequest(0, name, Resource(1024, 1), 1) for name in names)
    with pytest.raises(InvalidResourceRequestException) as refused:
        rm.submit(am_requests=asks)
    assert refused.value.message == message


def test_an_am_larger_than_the_maximum_is_refused(rm: RM) -> None:
    with pytest.raises(InvalidResourceRequestException, match=r"Requested resource type=\[memory-mb\]"):
        rm.submit(resource=Resource(99_999, 1))


def test_an_unknown_queue_fails_the_application_after_the_call(rm: RM) -> None:
    app = rm.submit(queue="nosuch")
    assert rm.state(app) == "FAILED"
    report = application_report(rm.core.context, app)
    assert report.diagnostics == f"Application {app} submitted by user ann to unknown queue: nosuch"
    assert (report.queue, report.final_status) == ("nosuch", FinalApplicationStatus.FAILED)


@pytest.mark.parametrize(("wanted", "maximum", "given"), [(None, 10, 0), (5, 10, 5), (50, 10, 10), (5, 0, 0)])
def test_priorities_are_limited_to_the_clusters_maximum(wanted: int | None, maximum: int, given: int) -> None:
    rm = RM({"yarn.cluster.max-application-priority": str(maximum)})
    app = rm.submit(priority=wanted)
    assert rm.core.context.apps[app].priority == given


# Retries


@pytest.mark.case("I3")
def test_an_application_fails_after_its_second_am_crash(rm: RM) -> None:
    """As on a real cluster: `AM exits 1, 2 attempts (the default)`."""
    app = rm.submit()
    crash(rm, rm.launch(app).id, 1, "first\n")
    assert (rm.state(app), rm.attempt_id(app).attempt) == ("ACCEPTED", 2)
    am = rm.launch(app)
    crash(rm, am.id, 1, "second\n")
    report = application_report(rm.core.context, app)
    assert (report.state, report.progress) == (YarnApplicationState.FAILED, 0.0)
    page = f"http://{rm.core.context.settings.web_address}/cluster/app/{app}"
    assert report.diagnostics == (
        f"Application {app} failed 2 times due to AM Container for {rm.attempt_id(app)} exited with  exitCode: 1\n"
        "Failing this attempt.Diagnostics: second\n"
        f"For more detailed output, check the application tracking page: {page}"
        " Then click on links to logs of each attempt.\n. Failing the application."
    )
    assert report.tracking_url == page


def test_an_application_with_one_attempt_fails_at_the_first_am_exit(rm: RM) -> None:
    """As on a real cluster: `AM exits 0 without registering, 1 attempt`."""
    app = rm.submit(max_app_attempts=1)
    crash(rm, rm.launch(app).id, 0)
    assert application_report(rm.core.context, app).diagnostics.startswith(
        f"Application {app} failed 1 times (global limit =2; local limit is =1) due to AM Container for "
    )


def test_a_client_cannot_have_more_attempts_than_the_global_limit(rm: RM) -> None:
    app = rm.submit(max_app_attempts=5)
    assert rm.core.context.apps[app].max_attempts == 2


@pytest.mark.parametrize("exit_status", [-100, -101, -102, -106])
def test_exits_that_the_am_did_not_cause_are_not_failures(rm: RM, exit_status: int) -> None:
    app = rm.submit()
    for _ in range(5):
        crash(rm, rm.launch(app).id, exit_status)
    assert (rm.state(app), rm.attempt_id(app).attempt) == ("ACCEPTED", 6)


@pytest.mark.parametrize("exit_status", [0, 1, 137, -103, -104, -105, -1000])
def test_other_exits_are_failures(rm: RM, exit_status: int) -> None:
    app = rm.submit()
    for _ in range(2):
        crash(rm, rm.launch(app).id, exit_status)
    assert rm.state(app) == "FAILED"


def test_with_one_attempt_even_a_lost_node_is_fatal(rm: RM) -> None:
    """An application may rely on its AM not being started twice."""
    app = rm.submit(max_app_attempts=1)
    crash(rm, rm.launch(app).id, -100)
    assert rm.state(app) == "FAILED"


def test_failures_outside_the_validity_interval_do_not_count(rm: RM) -> None:
    app = rm.submit(attempt_failures_validity_interval_ms=60_000)
    for _ in range(4):
        crash(rm, rm.launch(app).id)
        beats(rm, 100_000)
    assert rm.state(app) == "ACCEPTED"
    crash(rm, rm.launch(app).id)
    crash(rm, rm.launch(app).id)
    assert rm.state(app) == "FAILED"
    assert (
        " failed 2 times in previous 60000 milliseconds due to " in application_report(rm.core.context, app).diagnostics
    )


def test_a_failed_launch_is_a_failure(rm: RM) -> None:
    app = rm.submit(max_app_attempts=1)
    rm.beat()
    rm.send(AMLaunchFailed(rm.attempt_id(app), "no route to host"))
    assert application_report(rm.core.context, app).diagnostics == (
        f"Application {app} failed 1 times (global limit =2; local limit is =1) due to no route to host."
        " Failing the application."
    )


def test_a_client_can_fail_an_attempt(rm: RM) -> None:
    """As on a real cluster: `attempt failed by failApplicationAttempt, 1 attempt`."""
    app = rm.submit(max_app_attempts=1)
    rm.run_am(app)
    rm.send(FailApplicationAttempt(rm.call(), rm.attempt_id(app)))
    assert application_report(rm.core.context, app).diagnostics == (
        f"Application {app} failed 1 times (global limit =2; local limit is =1) due to Attempt failed by user.."
        " Failing the application."
    )
    assert rm.send(FailApplicationAttempt(rm.call(), rm.attempt_id(app))) is None


def test_unknown_ids_are_refused(rm: RM) -> None:
    stranger = ApplicationId(1, 1)
    with pytest.raises(ApplicationNotFoundException) as refused:
        rm.send(KillApplication(rm.call(), stranger, ""))
    assert refused.value.message == "Trying to kill an absent application application_1_0001"
    with pytest.raises(ApplicationNotFoundException, match="Please check that the job submission was successful"):
        rm.send(FailApplicationAttempt(rm.call(), ApplicationAttemptId(stranger, 1)))
    app = rm.submit()
    with pytest.raises(ApplicationAttemptNotFoundException):
        rm.send(FailApplicationAttempt(rm.call(), ApplicationAttemptId(app, 7)))


# Kept containers


def test_without_keep_containers_the_next_attempt_starts_with_none(rm: RM) -> None:
    app = rm.submit()
    am = rm.run_am(app)
    task = rm.get(app, 1)[0]
    crash(rm, am.id)
    assert task.id in rm.beat().containers_to_clean_up
    rm.launch(app)
    assert rm.register(app).containers_from_previous_attempts == ()
    assert rm.allocate(app).completed == ()


@pytest.mark.case("I3")
def test_kept_containers_go_to_the_next_attempt(rm: RM) -> None:
    """Running containers are kept, allocated ones killed; completions not yet reported go to the new AM."""
    app = rm.submit(keep_containers_across_attempts=True)
    am = rm.run_am(app)
    kept, ended, unreported = rm.get(app, 3)
    rm.allocate(app, [resource_request(1)])
    rm.beat(ended=[done(ended.id, 5)])
    assert [status.container_id for status in rm.allocate(app).completed] == [ended.id]
    rm.beat(ended=[done(unreported.id, 6)])
    crash(rm, am.id)
    rm.beat()
    rm.launch(app)
    reply = rm.register(app)
    assert [container.id for container in reply.containers_from_previous_attempts] == [kept.id]
    assert [token.node_id.host for token in reply.nm_tokens] == ["n1"]
    reported = {status.container_id: status.exit_status for status in rm.allocate(app).completed}
    assert reported.pop(ended.id) == 5
    assert reported.pop(unreported.id) == 6
    rm.allocate(app, release=[kept.id])
    assert kept.id in rm.beat().containers_to_clean_up


# Killing


def test_a_kill_ends_the_attempt_first_and_is_repeated_until_stored(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app)
    assert rm.kill(app) is False
    assert (rm.state(app), rm.attempt_state(app)) == ("KILLED", "KILLED")
    assert any(isinstance(effect, CleanUpAM) for effect in rm.effects)
    assert rm.kill(app) is True
    report = application_report(rm.core.context, app)
    assert (report.diagnostics, report.progress) == (f"Application {app} was killed by user ann", 1.0)
    assert report.final_status is FinalApplicationStatus.KILLED


def test_an_application_can_be_killed_before_its_am_has_a_container(rm: RM) -> None:
    app = rm.submit()
    rm.kill(app)
    report = application_report(rm.core.context, app)
    assert (report.state, report.progress) == (YarnApplicationState.KILLED, 0.0)


def test_all_containers_of_a_killed_application_are_cleaned_up(rm: RM) -> None:
    app = rm.submit()
    am = rm.run_am(app)
    tasks = rm.get(app, 2)
    rm.kill(app)
    reply = rm.beat()
    assert reply.containers_to_clean_up == (am.id, *(task.id for task in tasks))
    assert reply.applications_to_clean_up == (app,)


def test_a_lifetime_ends_the_application(rm: RM) -> None:
    """At the first check of the monitor (every 3 s) after the lifetime, counted from the submission."""
    app = rm.submit(lifetime_s=6)
    rm.run_am(app)
    rm.wait(8_999)
    assert rm.state(app) == "RUNNING"
    rm.wait(1)
    report = application_report(rm.core.context, app)
    assert (report.state, report.progress) == (YarnApplicationState.KILLED, 1.0)
    assert report.diagnostics == "Application is killed by ResourceManager as it has exceeded the lifetime period."


def test_a_queue_gives_its_applications_a_lifetime() -> None:
    """RMAppNewlySavingTransition: the requested lifetime is cut to the queue's maximum."""
    rm = RM(
        {
            "yarn.scheduler.capacity.root.default.maximum-application-lifetime": "60",
            "yarn.scheduler.capacity.root.default.default-application-lifetime": "6",
        }
    )
    unasked, asked = rm.submit(), rm.submit(lifetime_s=3600)
    rm.wait(9_000)
    assert (rm.state(unasked), rm.state(asked)) == ("KILLED", "ACCEPTED")
    rm.wait(54_000)
    assert rm.state(asked) == "KILLED"


def test_a_lifetime_does_not_end_an_application_that_unregistered(rm: RM) -> None:
    app = rm.submit(lifetime_s=6)
    rm.run_am(app)
    rm.finish(app)
    rm.wait(20_000)
    assert rm.state(app) == "FINISHING"


# Expiry


def test_an_am_that_never_registers_expires(rm: RM) -> None:
    """An AM that stops calling, as on a real cluster."""
    app = rm.submit(max_app_attempts=1)
    rm.launch(app)
    beats(rm, AM_EXPIRY_MS + 300_000)
    report = application_report(rm.core.context, app)
    assert (report.state, report.progress) == (YarnApplicationState.FAILED, 1.0)
    attempt_id = rm.attempt_id(app)
    assert report.diagnostics == (
        f"Application {app} failed 1 times (global limit =2; local limit is =1) due to "
        f"ApplicationMaster for attempt {attempt_id} timed out. Failing the application."
    )
    attempt = attempt_report(rm.core.context, attempt_id)
    assert attempt.diagnostics == f"ApplicationMaster for attempt {attempt_id} timed out"


def test_an_am_that_calls_allocate_does_not_expire(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app)
    beats(rm, 3 * AM_EXPIRY_MS, app)
    assert rm.state(app) == "RUNNING"


def test_an_am_that_unregistered_but_does_not_exit_is_killed(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app)
    rm.finish(app)
    beats(rm, AM_EXPIRY_MS + 300_000)
    assert (rm.state(app), rm.attempt_state(app)) == ("FINISHED", "FINISHED")


def test_an_acquired_container_that_is_never_started_expires(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app)
    rm.allocate(app, [resource_request(1)])
    rm.beat()
    (container,) = rm.allocate(app).allocated
    beats(rm, ALLOCATION_EXPIRY_MS + 200_000, app)
    reported = [status for _, _, effects in rm.log for status in _completed(effects)]
    assert [(status.container_id, status.exit_status) for status in reported] == [(container.id, -100)]
    assert reported[0].diagnostics == "Container expired since it was unused"


def _completed(effects: Sequence[Effect]) -> list[ContainerStatus]:
    return [status for effect in effects for status in getattr(getattr(effect, "value", None), "completed", ())]


def test_a_container_that_was_started_does_not_expire(rm: RM) -> None:
    app = rm.submit()
    rm.run_am(app)
    container = rm.get(app, 1)[0]
    beats(rm, 2 * ALLOCATION_EXPIRY_MS, app)
    assert rm.core.scheduler.container(container.id) is not None


# Reports


def test_the_diagnostics_of_a_waiting_attempt_say_what_it_waits_for(rm: RM) -> None:
    app = rm.submit()
    rm.launch(app)
    report = application_report(rm.core.context, app)
    assert report.diagnostics == "AM container is launched, waiting for AM container to Register with RM"
    assert (report.host, report.rpc_port, report.original_tracking_url) == ("N/A", -1, "N/A")
    rm.register(app)
    assert application_report(rm.core.context, app).diagnostics == ""


def test_usage_is_counted_in_whole_seconds_of_each_container(rm: RM) -> None:
    """Completed and running containers (here the AM) count, up to the last step."""
    app = rm.submit()
    rm.run_am(app)
    task = rm.get(app, 1)[0]
    rm.wait(2_900)
    rm.beat(ended=[done(task.id)])
    usage = application_report(rm.core.context, app).usage
    assert usage.memory_seconds == 2 * (1024 * 2_900 // 1000)
    assert usage.vcore_seconds == 2 * 2


def test_completed_applications_are_forgotten_oldest_first() -> None:
    rm = RM({"yarn.resourcemanager.max-completed-applications": "2"})
    rm.node("n1")
    apps = [rm.submit() for _ in range(4)]
    for app in apps:
        rm.kill(app)
    assert list(rm.core.context.apps) == apps[2:]


# Illegal events


def test_an_illegal_event_is_reported_and_changes_nothing() -> None:
    rm = RM(strict=False)
    rm.node("n1")
    app = rm.submit()
    rm.send(AMLaunched(rm.attempt_id(app)))
    (warning,) = [effect for effect in rm.effects if isinstance(effect, Warn)]
    assert "LAUNCHED is illegal in SCHEDULED" in warning.text
    assert rm.attempt_state(app) == "SCHEDULED"


def test_a_strict_core_raises_for_an_illegal_event(rm: RM) -> None:
    app = rm.submit()
    with pytest.raises(IllegalTransition):
        rm.send(AMLaunched(rm.attempt_id(app)))


def test_an_attempt_fails_with_its_ams_node(rm: RM) -> None:
    """The attempt fails without counting; the next waits for a node."""
    app = rm.submit()
    rm.run_am(app)
    rm.send(UnregisterNode(rm.call(), rm.nodes["n1"].node_id))
    assert (rm.state(app), rm.attempt_id(app).attempt) == ("ACCEPTED", 2)
    rm.node("n2")
    rm.run_am(app, "n2")
    assert rm.state(app) == "RUNNING"
