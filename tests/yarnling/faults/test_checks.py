"""Each check reports the violations in a wrong history, and none in a right one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from am.programs.custom.journal import JournalEntry
from tests.yarnling.faults.stories import APP, FENCE, Story, found
from yarn.states import FinalApplicationStatus, YarnApplicationState
from yarnling.faults import checks
from yarnling.faults.checks import CheckResult, check_all
from yarnling.faults.history import History, ObservedChange, ProcessRole
from yarnling.faults.plan import Expectations, WorkProgram

FAILED = FinalApplicationStatus.FAILED


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (JournalEntry(1, 3.0, 1), ""),
        (JournalEntry(1, 2.5, 1), "task 1 was confirmed before a container had done it"),
        (JournalEntry(2, 4.0, 1, was_known=True), "attempt 2: task 1 was confirmed again"),
        (JournalEntry(1, 4.0, held=("c2",)), "the job ended while its AM held c2"),
    ],
)
def test_a_custom_program_confirms_each_task_once(entry: JournalEntry, message: str) -> None:
    story = Story(WorkProgram.CUSTOM).process(2.0, 3.0, role=ProcessRole.TASK, task=1)
    story.history.journals[APP] = [JournalEntry(1, 3.0, 1), entry]
    violations = found(checks.check_confirmed, story)
    assert len(violations) == bool(message)
    assert all(message in line for line in violations)
    story.history.journals[APP] = []
    assert found(checks.check_confirmed, story) == (f"{APP} succeeded, but task 1 is not confirmed",)


def test_a_correct_run_has_no_violations() -> None:
    story = Story(tasks=2).am(2.0, 59.0).process(3.0, 4.0, number=2).process(3.0, 4.0, number=3)
    assert [(check.name, check.violations, check.blind) for check in check_all(story.history, FENCE)] == [
        (check.name, (), "") for check in check_all(story.history, FENCE)
    ]


# No acknowledged application is lost


def test_an_acknowledged_application_that_is_unknown_at_the_end_is_lost() -> None:
    (line,) = found(checks.check_acknowledged, Story().ends(0.0, None))
    assert line == f"{APP} (batch of ann) was accepted but is unknown at the end"


def test_an_application_that_does_not_end_is_a_violation() -> None:
    assert found(checks.check_drained, Story().ends(9.0, YarnApplicationState.RUNNING)) == (f"{APP} is still RUNNING",)


def test_an_unacknowledged_submission_may_be_lost() -> None:
    story = Story().ends(0.0, None)
    story.history.submissions[0] = replace(story.history.submissions[0], acknowledged_s=None)
    checked = checks.check_acknowledged(story.history, FENCE)
    assert (checked.violations, checked.blind) == ((), "no submission was acknowledged")


def test_a_refusal_is_a_violation_unless_the_application_may_fail() -> None:
    story = Story()
    story.history.submissions[0] = replace(story.history.submissions[0], refusal="no such queue")
    assert found(checks.check_acknowledged, story) == (f"{APP}: refused: no such queue",)
    story.history.submissions[0] = replace(story.history.submissions[0], may_fail=True)
    assert not found(checks.check_acknowledged, story)


def test_applications_succeed_unless_they_may_fail() -> None:
    finished = YarnApplicationState.FINISHED
    (line,) = found(checks.check_outcomes, Story().ends(9.0, finished, FAILED))
    assert line == f"{APP} (batch) ended as FAILED: because"
    assert not found(checks.check_outcomes, Story(may_fail=True).ends(9.0, finished, FAILED))
    killed = (9.0, YarnApplicationState.KILLED, FinalApplicationStatus.KILLED)
    assert found(checks.check_outcomes, Story().ends(*killed))
    assert not found(checks.check_outcomes, Story(WorkProgram.SERVICE).ends(*killed))


def test_successful_work_is_complete() -> None:
    assert not found(checks.check_work_is_done, Story(tasks=1).process(2.0, 3.0))
    assert found(
        checks.check_work_is_done, Story(tasks=2).process(2.0, 3.0).process(3.0, 4.0, number=3, status=None)
    ) == (f"{APP} succeeded with 1 of 2 containers done",)
    tasks = Story(WorkProgram.TASKS, tasks=2).process(2.0, 3.0, role=ProcessRole.TASK, task=1)
    assert found(checks.check_work_is_done, tasks) == (f"{APP} succeeded without task 2",)
    assert found(checks.check_work_is_done, Story(WorkProgram.WORDCOUNT).ends(9.0, right=False))
    assert not found(checks.check_work_is_done, Story(WorkProgram.WORDCOUNT).ends(9.0, right=True))


def test_a_final_state_that_changes_is_a_violation() -> None:
    story = Story().ends(9.0)
    story.history.changes.append(ObservedChange(10.0, str(APP), "ACCEPTED", 2))
    assert found(checks.check_final_is_final, story) == (f"{APP} was FINISHED, then ACCEPTED",)


@pytest.mark.parametrize(
    ("from_s", "to_s", "node", "skipped", "is_excused"),
    [
        (9.0, 25.0, 1, False, True),
        (9.0, 15.0, 1, False, True),
        (9.0, 9.8, 1, False, False),  # it was over before
        (10.1, 25.0, 1, False, False),  # a node that is being decommissioned does not become UNHEALTHY
        (9.0, 25.0, 2, False, False),  # that was another node
        (9.0, 25.0, 1, True, False),
    ],
)
def test_an_application_may_wait_for_a_node_that_was_recommissioned_while_unhealthy(
    from_s: float, to_s: float, node: int, skipped: bool, is_excused: bool
) -> None:
    """Random simulation 3429395: the scheduler had removed the node, and is not told to add it again."""
    story = Story().ends(90.0, YarnApplicationState.ACCEPTED)
    story.fault("decommission-node", 10.0, 20.0, node, skipped=skipped)
    story.history.changes += [ObservedChange(from_s, "nm-1", "UNHEALTHY"), ObservedChange(to_s, "nm-1", "RUNNING")]
    story.history.not_drained.append("not within 120 s")
    assert bool(found(checks.check_drained, story)) is not is_excused


# Nothing runs twice


def test_a_container_that_starts_twice_is_a_violation() -> None:
    story = Story().process(2.0, 3.0).process(5.0, 6.0)
    assert found(checks.check_started_once, story) == (f"{story.history.spans[0].container_id} was started 2 times",)


@pytest.mark.parametrize(
    ("lost_s", "skipped", "is_excused"), [(0.5, False, True), (0.5, True, False), (1.5, False, False)]
)
def test_containers_of_an_application_that_was_lost_and_submitted_again_may_start_again(
    lost_s: float, skipped: bool, is_excused: bool
) -> None:
    """The ResourceManager lost its state before the client had an answer: then the id was new to it."""
    story = Story().process(0.4, 0.5).process(5.0, 6.0).fault("lose-store", lost_s, lost_s, skipped=skipped)
    assert bool(found(checks.check_started_once, story)) is not is_excused
    assert found(checks.check_started_once, story.process(7.0, 8.0))


def test_several_tasks_of_one_worker_are_not_a_second_start() -> None:
    story = Story().process(2.0, 3.0, role=ProcessRole.TASK, task=1).process(3.0, 4.0, role=ProcessRole.TASK, task=2)
    assert not found(checks.check_started_once, story)
    assert checks.check_started_once(story.history, FENCE).blind == "no container was started"


def test_two_ams_may_overlap_only_within_the_fencing_window() -> None:
    assert not found(checks.check_one_master, Story().am(2.0, 14.9).am(10.0, 30.0, 2))
    (line,) = found(checks.check_one_master, Story().am(2.0, 15.1).am(10.0, 30.0, 2))
    assert (
        "ran on for 5.1 s after the ApplicationMaster container_1_0001_02_000001 started; the limit was 5.0 s" in line
    )


def test_an_am_that_starts_late_has_the_fencing_window_from_its_start() -> None:
    """A fault held back the call that starts it, and meanwhile the attempt was given up."""
    assert not found(checks.check_one_master, Story().am(20.0, 24.9).am(10.0, 40.0, 2))
    assert found(checks.check_one_master, Story().am(20.0, 25.1).am(10.0, 40.0, 2))


def test_the_fencing_window_is_extended_while_a_fault_hides_the_node() -> None:
    def story(kind: str, node: int, until_s: float) -> Story:
        run = Story().am(2.0, 24.0, node=3).am(10.0, 30.0, 2, node=1)
        return run.fault(kind, 5.0, until_s, node) if node else run.fault(kind, 5.0, until_s)

    assert not found(checks.check_one_master, story("pause-node", 3, 20.0))
    assert not found(checks.check_one_master, story("partition-node", 3, 20.0))
    assert not found(checks.check_one_master, story("pause-rm", 0, 20.0)), (
        "nothing can be stopped without the ResourceManager"
    )
    assert found(checks.check_one_master, story("pause-node", 3, 18.0)), "it had 5 s after the end of the fault"
    assert found(checks.check_one_master, story("pause-node", 2, 20.0)), "that was another node"
    assert found(checks.check_one_master, story("partition-masters-from-rm", 3, 20.0)), "its NodeManager was reachable"


def test_a_skipped_fault_does_not_extend_the_fencing_window() -> None:
    run = Story().am(2.0, 24.0, node=3).am(10.0, 30.0, 2, node=1)
    assert found(checks.check_one_master, run.fault("pause-node", 5.0, 20.0, 3, skipped=True))


def test_consecutive_faults_extend_one_window_if_they_leave_no_time_between() -> None:
    run = Story().am(2.0, 34.0, node=3).am(10.0, 30.0, 2, node=1)
    run.fault("pause-node", 5.0, 20.0, 3).fault("partition-node", 24.0, 30.0, 3)
    assert not found(checks.check_one_master, run)
    run = Story().am(2.0, 34.0, node=3).am(10.0, 30.0, 2, node=1)
    run.fault("pause-node", 5.0, 20.0, 3).fault("partition-node", 26.0, 30.0, 3)
    assert found(checks.check_one_master, run)


def test_a_killed_node_manager_of_a_node_that_is_decommissioned_is_down_until_it_is_recommissioned() -> None:
    """Nothing can end its containers before that (seed 3404899 with all faults)."""

    def run(kind: str) -> Story:
        story = Story().am(2.0, 24.0, node=3).am(10.0, 30.0, 2, node=1)
        return story.fault(kind, 5.0, 6.0, 3)

    assert found(checks.check_one_master, run("kill-node"))
    assert found(checks.check_one_master, run("kill-node").fault("decommission-node", 7.0, 20.0, 3))
    assert found(checks.check_one_master, run("kill-node").fault("decommission-node", 4.0, 20.0, 2))
    assert not found(checks.check_one_master, run("kill-node").fault("decommission-node", 4.0, 20.0, 3))
    assert found(checks.check_one_master, run("pause-node").fault("decommission-node", 4.0, 20.0, 3))


def test_work_of_a_superseded_attempt_is_a_violation() -> None:
    story = Story().am(2.0, 9.0).am(10.0, 30.0, 2).process(3.0, 16.0)
    (line,) = found(checks.check_superseded_attempts, story)
    assert "ran on for 6.0 s after the next attempt's ApplicationMaster started" in line
    story.history.submissions[0] = replace(story.history.submissions[0], keep_containers=True)
    assert not found(checks.check_superseded_attempts, story)


def test_an_earlier_run_of_a_task_beside_its_retry_is_a_violation() -> None:
    def story(to_s: float) -> Story:
        first = Story(WorkProgram.TASKS).process(2.0, to_s, role=ProcessRole.TASK, task=1, number=2)
        return first.process(10.0, 12.0, role=ProcessRole.TASK, task=1, number=3).process(
            3.0, 40.0, role=ProcessRole.TASK, task=2
        )

    assert not found(checks.check_tasks_run_once, story(14.0))
    (line,) = found(checks.check_tasks_run_once, story(16.0))
    assert line.startswith("task 1 in container_1_0001_01_000002 on nm-1 ran on for 6.0 s after task 1 was restarted")


def test_an_extra_container_of_a_service_is_a_violation() -> None:
    service = Story(WorkProgram.SERVICE, tasks=2).process(2.0, 40.0, number=2).process(2.0, 40.0, number=3)
    assert not found(checks.check_service_size, service)
    (line,) = found(checks.check_service_size, service.process(10.0, 40.0, number=4))
    assert line == f"{APP}: container_1_0001_01_000004 started beside 2 running containers; 2 are allowed"


def test_a_replacement_may_run_beside_an_unreachable_container() -> None:
    service = Story(WorkProgram.SERVICE, tasks=2).process(2.0, 22.0, number=2, node=3).process(2.0, 40.0, number=3)
    service.process(10.0, 40.0, number=4)
    assert found(checks.check_service_size, service)
    assert not found(checks.check_service_size, service.fault("pause-node", 5.0, 20.0, 3))


def test_a_container_that_an_unreachable_node_starts_late_and_ends_is_not_an_extra_one() -> None:
    """A NodeManager that was paused first carries out the calls that arrived meanwhile, then learns what is over."""

    def story(to_s: float) -> Story:
        service = Story(WorkProgram.SERVICE, tasks=1).process(10.0, 40.0, attempt=2)
        return service.process(20.1, to_s, number=6, node=3)

    assert found(checks.check_service_size, story(20.2))
    assert not found(checks.check_service_size, story(20.2).fault("pause-node", 5.0, 20.0, 3))
    assert found(checks.check_service_size, story(20.2).fault("pause-node", 5.0, 20.0, 2)), "that was another node"
    assert found(checks.check_service_size, story(20.2).fault("pause-node", 5.0, 15.0, 3)), "it was reachable again"
    assert found(checks.check_service_size, story(26.0).fault("pause-node", 5.0, 20.0, 3)), "it was not ended"


@pytest.mark.parametrize("fault", ["partition-nm-from-masters", "stop-node", "decommission-node"])
def test_a_container_whose_start_was_held_back_is_not_an_extra_one(fault: str) -> None:
    """Random simulation 3300030: the call was on its way when the ResourceManager gave the container up."""

    def story(to_s: float) -> Story:
        service = Story(WorkProgram.SERVICE, tasks=1).process(10.0, 40.0, number=3)
        return service.process(20.1, to_s, number=2, node=3)

    assert found(checks.check_service_size, story(20.2))
    assert not found(checks.check_service_size, story(20.2).fault(fault, 5.0, 20.0, 3))
    assert found(checks.check_service_size, story(20.2).fault(fault, 5.0, 20.0, 2)), "that was another node"
    assert found(checks.check_service_size, story(20.2).fault(fault, 5.0, 18.0, 3)), "it was reachable again"
    assert found(checks.check_service_size, story(20.2).fault(fault, 5.0, 25.0, 3)), "the call was not held back"
    assert found(checks.check_service_size, story(26.0).fault(fault, 5.0, 20.0, 3)), "it was not ended"


@pytest.mark.parametrize(
    ("unhealthy_s", "silent_s", "node", "is_excused"),
    [(9.0, 9.1, 1, True), (9.0, 11.0, 1, False), (9.1, 9.0, 1, False), (9.0, 9.1, 2, False), (1.0, 1.1, 1, False)],
)
def test_a_container_whose_end_the_resource_manager_forgot_is_excused(
    unhealthy_s: float, silent_s: float, node: int, is_excused: bool
) -> None:
    """The ResourceManager ended it with its node, and was killed before it could tell the node."""
    service = Story(WorkProgram.SERVICE, tasks=1).process(2.0, 40.0).process(10.0, 40.0, number=3, node=3)
    service.history.changes += [
        ObservedChange(unhealthy_s, f"nm-{node}", "UNHEALTHY"),
        ObservedChange(unhealthy_s + 0.5, f"nm-{node}", "RUNNING"),
        ObservedChange(silent_s, "rm", "SILENT"),
    ]
    assert bool(found(checks.check_service_size, service)) is not is_excused


@pytest.mark.parametrize(
    ("starts_s", "node", "to_s", "is_excused"),
    [
        (9.2, 1, 40.0, True),  # until the node is healthy, and the fencing window
        (8.8, 1, 40.0, True),  # a poll sees that the node is UNHEALTHY a little later
        (8.0, 1, 40.0, False),  # it ran when the node became unhealthy, and the order to end it found it
        (9.2, 2, 40.0, False),  # that was another node
        (9.2, 1, 44.0, False),  # it was not ended when the node was healthy again
    ],
)
def test_a_container_that_an_unhealthy_node_starts_late_is_excused(
    starts_s: float, node: int, to_s: float, is_excused: bool
) -> None:
    """The ResourceManager ended it with the node; the order to end it reached the node before the call to start it."""
    service = Story(WorkProgram.SERVICE, tasks=1).process(starts_s, to_s).process(10.0, 60.0, number=3, node=3)
    service.history.changes += [
        ObservedChange(9.0, f"nm-{node}", "UNHEALTHY"),
        ObservedChange(35.0, f"nm-{node}", "RUNNING"),
    ]
    assert bool(found(checks.check_service_size, service)) is not is_excused


@pytest.mark.parametrize(
    ("silent_s", "node", "is_excused"),
    [(12.0, 1, True), (20.9, 1, True), (21.1, 1, False), (8.0, 1, False), (12.0, 2, False)],
)
def test_a_container_of_a_lost_node_that_the_next_resource_manager_recovers_is_excused(
    silent_s: float, node: int, is_excused: bool
) -> None:
    """The ResourceManager was killed after the loss of the node, and before it told the node that came back."""
    service = Story(WorkProgram.SERVICE, tasks=1).process(2.0, 40.0).process(10.0, 40.0, number=3, node=3)
    service.history.changes += [
        ObservedChange(9.0, f"nm-{node}", "LOST"),
        ObservedChange(20.0, f"nm-{node}", "RUNNING"),
        ObservedChange(silent_s, "rm", "SILENT"),
    ]
    assert bool(found(checks.check_service_size, service)) is not is_excused


@pytest.mark.parametrize(
    ("cut_off_s", "node", "silent_s", "is_excused"),
    [
        (20.5, 1, 24.0, True),  # until the fault is over
        (20.5, 1, 25.9, True),  # and some heartbeats
        (20.5, 1, 26.1, False),  # then the node was told
        (21.5, 1, 24.0, False),  # it was told before the fault
        (20.5, 2, 24.0, False),  # that was another node
    ],
)
def test_a_lost_node_that_is_cut_off_again_is_told_afterwards(
    cut_off_s: float, node: int, silent_s: float, is_excused: bool
) -> None:
    """Random simulation 3416244: what it has to end would have come with its second heartbeat."""
    service = Story(WorkProgram.SERVICE, tasks=1).process(2.0, 60.0).process(10.0, 60.0, number=3, node=3)
    service.fault("partition-node", cut_off_s, 25.0, node)
    service.history.changes += [
        ObservedChange(9.0, "nm-1", "LOST"),
        ObservedChange(20.0, "nm-1", "RUNNING"),
        ObservedChange(silent_s, "rm", "SILENT"),
    ]
    assert bool(found(checks.check_service_size, service)) is not is_excused


@pytest.mark.parametrize("state", ["LOST", "UNHEALTHY"])
@pytest.mark.parametrize(
    ("starts_s", "silent_s", "is_excused"),
    [
        (12.0, 11.0, True),  # before it started
        (12.0, 20.9, True),  # before the node was told
        (12.0, 21.1, False),
        (12.0, 8.9, False),  # before it was ended
        (22.0, 11.0, False),  # the node got it later
    ],
)
def test_a_container_that_was_ended_with_its_node_before_it_started_is_excused(
    state: str, starts_s: float, silent_s: float, is_excused: bool
) -> None:
    """Random simulation 3416244: a fault held back the call that starts it until the node was LOST."""
    service = Story(WorkProgram.SERVICE, tasks=1).process(10.0, 60.0, number=3, node=3).process(starts_s, 60.0)
    service.history.changes += [
        ObservedChange(9.0, "nm-1", state),
        ObservedChange(20.0, "nm-1", "RUNNING"),
        ObservedChange(silent_s, "rm", "SILENT"),
    ]
    assert bool(found(checks.check_service_size, service)) is not is_excused


@pytest.mark.parametrize(
    ("am_to_s", "next_am_s", "is_excused"),
    [(14.0, 37.0, True), (14.0, 30.0, False), (16.0, 37.0, False), (40.0, None, False)],
)
def test_a_container_that_was_given_up_is_excused_while_there_is_no_master(
    am_to_s: float, next_am_s: float | None, is_excused: bool
) -> None:
    """The AM would have stopped it within the fencing window, had its own node not ended."""
    service = Story(WorkProgram.SERVICE, tasks=1).am(1.0, am_to_s, node=2)
    service.process(2.0, 41.0).process(10.0, 41.0, number=3, node=3)
    if next_am_s is not None:
        service.am(next_am_s, 41.0, 2, node=3)
    assert bool(found(checks.check_service_size, service)) is not is_excused


@pytest.mark.parametrize(
    ("starts_s", "node", "is_ignored"), [(12.0, 1, True), (12.0, 2, False), (9.0, 1, False), (31.0, 1, False)]
)
def test_a_start_on_an_unhealthy_node_after_the_end_of_the_application_is_ignored(
    starts_s: float, node: int, is_ignored: bool
) -> None:
    """The ResourceManager does not learn that the node has the application again."""
    story = Story().ends(10.0).process(starts_s, starts_s + 1.0)
    story.history.changes += [
        ObservedChange(8.0, f"nm-{node}", "UNHEALTHY"),
        ObservedChange(30.0, f"nm-{node}", "RUNNING"),
    ]
    assert story.history.ignores_start(APP, 1) is is_ignored
    assert not story.history.ignores_start(APP, 3)


def test_a_container_of_an_ended_application_is_a_violation() -> None:
    story = Story().ends(10.0).process(3.0, 16.0)
    (line,) = found(checks.check_nothing_after_the_end, story)
    assert "ran on for 6.0 s after its application ended" in line


@pytest.mark.parametrize("kind", ["partition-masters-from-rm", "pause-master"])
def test_an_isolated_am_may_retry_its_unregistration(kind: str) -> None:
    """The AM never received the answer, and the ResourceManager gives it time to retry."""

    def story(to_s: float, state: YarnApplicationState = YarnApplicationState.FINISHED) -> Story:
        run = Story().ends(10.0, state).am(3.0, to_s)
        nodes = (1,) if kind != "pause-master" else ()
        return run.fault(kind, 9.0, 20.0, *nodes, target="container_1_0001_01_000001")

    assert not found(checks.check_nothing_after_the_end, story(24.0))
    assert found(checks.check_nothing_after_the_end, story(26.0))
    assert found(checks.check_nothing_after_the_end, story(24.0, YarnApplicationState.KILLED))
    assert found(checks.check_nothing_after_the_end, story(24.0).process(3.0, 16.0))
    elsewhere = Story().ends(10.0).am(3.0, 24.0, node=2).fault(kind, 9.0, 20.0, 1, target="another")
    assert found(checks.check_nothing_after_the_end, elsewhere)


@pytest.mark.parametrize(
    ("field", "check"),
    [
        ("crashed", checks.check_daemons_live),
        ("not_recovered", checks.check_recovered),
        ("not_drained", checks.check_drained),
        ("left", checks.check_nothing_is_left),
    ],
)
def test_findings_of_the_runner_are_violations(
    field: str, check: Callable[[History, Expectations], CheckResult]
) -> None:
    story = Story()
    getattr(story.history, field).append("something")
    assert found(check, story) == ("something",)
