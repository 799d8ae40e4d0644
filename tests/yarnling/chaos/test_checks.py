"""What is found in histories that are wrong, and not found in those that are right."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tests.yarnling.chaos.stories import APP, Story
from yarn.states import FinalApplicationStatus, YarnApplicationState
from yarnling.chaos import checks
from yarnling.chaos.checks import Checked, check_all
from yarnling.chaos.history import Change, History, Role
from yarnling.chaos.plan import Expectations, Program

FENCE = Expectations(fence=5.0)
FAILED = FinalApplicationStatus.FAILED


def found(check: Callable[[History, Expectations], Checked], story: Story) -> tuple[str, ...]:
    return check(story.history, FENCE).violations


def test_a_run_without_fault_is_without_finding() -> None:
    story = Story(tasks=2).master(2.0, 59.0).lives(3.0, 4.0, number=2).lives(3.0, 4.0, number=3)
    assert [(check.name, check.violations, check.blind) for check in check_all(story.history, FENCE)] == [
        (check.name, (), "") for check in check_all(story.history, FENCE)
    ]


# Nothing acknowledged is lost


def test_an_application_that_nobody_knows_any_more_is_lost() -> None:
    (line,) = found(checks.check_acknowledged, Story().ends(0.0, None))
    assert line == f"{APP} (batch of ann) was accepted and is not known"


def test_an_application_that_does_not_end_is_lost_too() -> None:
    assert found(checks.check_drained, Story().ends(9.0, YarnApplicationState.RUNNING)) == (f"{APP} is still RUNNING",)


def test_what_was_never_acknowledged_is_owed_to_nobody() -> None:
    story = Story().ends(0.0, None)
    story.history.submissions[0] = replace(story.history.submissions[0], acknowledged_s=None)
    checked = checks.check_acknowledged(story.history, FENCE)
    assert (checked.violations, checked.blind) == ((), "no submission was acknowledged")


def test_a_refusal_is_told() -> None:
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
    assert not found(checks.check_outcomes, Story(Program.SERVICE).ends(*killed))


def test_what_succeeded_was_done() -> None:
    assert not found(checks.check_work_is_done, Story(tasks=1).lives(2.0, 3.0))
    assert found(checks.check_work_is_done, Story(tasks=2).lives(2.0, 3.0).lives(3.0, 4.0, number=3, status=None)) == (
        f"{APP} succeeded with 1 of 2 containers done",
    )
    tasks = Story(Program.TASKS, tasks=2).lives(2.0, 3.0, role=Role.TASK, task=1)
    assert found(checks.check_work_is_done, tasks) == (f"{APP} succeeded without task 2",)
    assert found(checks.check_work_is_done, Story(Program.WORDCOUNT).ends(9.0, right=False))
    assert not found(checks.check_work_is_done, Story(Program.WORDCOUNT).ends(9.0, right=True))


def test_an_end_that_is_taken_back() -> None:
    story = Story().ends(9.0)
    story.history.changes.append(Change(10.0, str(APP), "ACCEPTED", 2))
    assert found(checks.check_final_is_final, story) == (f"{APP} was FINISHED and then ACCEPTED",)


# Nothing runs twice


def test_a_container_that_was_started_twice() -> None:
    story = Story().lives(2.0, 3.0).lives(5.0, 6.0)
    assert found(checks.check_started_once, story) == (f"{story.history.lives[0].container_id} was started 2 times",)


def test_tasks_of_one_worker_are_no_second_start() -> None:
    story = Story().lives(2.0, 3.0, role=Role.TASK, task=1).lives(3.0, 4.0, role=Role.TASK, task=2)
    assert not found(checks.check_started_once, story)
    assert checks.check_started_once(story.history, FENCE).blind == "no container was started"


def test_two_masters_side_by_side_beyond_the_window() -> None:
    assert not found(checks.check_one_master, Story().master(2.0, 14.9).master(10.0, 30.0, 2))
    (line,) = found(checks.check_one_master, Story().master(2.0, 15.1).master(10.0, 30.0, 2))
    assert "ran on for 5.1 s after the master container_1_0001_02_000001 began; it had to end 5.0 s after" in line


def test_the_window_lasts_while_a_fault_hides_the_node() -> None:
    def story(kind: str, node: int, until_s: float) -> Story:
        told = Story().master(2.0, 24.0, node=3).master(10.0, 30.0, 2, node=1)
        return told.struck(kind, 5.0, until_s, node) if node else told.struck(kind, 5.0, until_s)

    assert not found(checks.check_one_master, story("pause-node", 3, 20.0))
    assert not found(checks.check_one_master, story("partition-node", 3, 20.0))
    assert not found(checks.check_one_master, story("pause-rm", 0, 20.0)), "nobody can end anything without it"
    assert found(checks.check_one_master, story("pause-node", 3, 18.0)), "it had 5 s after the fault's end"
    assert found(checks.check_one_master, story("pause-node", 2, 20.0)), "that was another node"
    assert found(checks.check_one_master, story("partition-masters-from-rm", 3, 20.0)), "its NodeManager was there"


def test_a_fault_that_fell_on_nobody_hides_nothing() -> None:
    told = Story().master(2.0, 24.0, node=3).master(10.0, 30.0, 2, node=1)
    assert found(checks.check_one_master, told.struck("pause-node", 5.0, 20.0, 3, skipped=True))


def test_faults_one_after_another_are_one_window_if_no_time_is_between() -> None:
    told = Story().master(2.0, 34.0, node=3).master(10.0, 30.0, 2, node=1)
    told.struck("pause-node", 5.0, 20.0, 3).struck("partition-node", 24.0, 30.0, 3)
    assert not found(checks.check_one_master, told)
    told = Story().master(2.0, 34.0, node=3).master(10.0, 30.0, 2, node=1)
    told.struck("pause-node", 5.0, 20.0, 3).struck("partition-node", 26.0, 30.0, 3)
    assert found(checks.check_one_master, told)


def test_work_of_an_attempt_that_is_over() -> None:
    story = Story().master(2.0, 9.0).master(10.0, 30.0, 2).lives(3.0, 16.0)
    (line,) = found(checks.check_superseded_attempts, story)
    assert "ran on for 6.0 s after the next attempt's master began" in line
    story.history.submissions[0] = replace(story.history.submissions[0], keep_containers=True)
    assert not found(checks.check_superseded_attempts, story)


def test_a_task_beside_its_second_run() -> None:
    def story(to_s: float) -> Story:
        first = Story(Program.TASKS).lives(2.0, to_s, role=Role.TASK, task=1, number=2)
        return first.lives(10.0, 12.0, role=Role.TASK, task=1, number=3).lives(3.0, 40.0, role=Role.TASK, task=2)

    assert not found(checks.check_tasks_run_once, story(14.0))
    (line,) = found(checks.check_tasks_run_once, story(16.0))
    assert line.startswith("task 1 in container_1_0001_01_000002 on nm-1 ran on for 6.0 s after task 1 was begun again")


def test_a_service_that_is_wider_than_asked() -> None:
    service = Story(Program.SERVICE, tasks=2).lives(2.0, 40.0, number=2).lives(2.0, 40.0, number=3)
    assert not found(checks.check_services_are_no_wider, service)
    (line,) = found(checks.check_services_are_no_wider, service.lives(10.0, 40.0, number=4))
    assert line == f"{APP}: container_1_0001_01_000004 began beside 2 containers that ran on, of 2 there may be"


def test_a_replacement_beside_a_container_that_cannot_be_reached() -> None:
    service = Story(Program.SERVICE, tasks=2).lives(2.0, 22.0, number=2, node=3).lives(2.0, 40.0, number=3)
    service.lives(10.0, 40.0, number=4)
    assert found(checks.check_services_are_no_wider, service)
    assert not found(checks.check_services_are_no_wider, service.struck("pause-node", 5.0, 20.0, 3))


def test_what_runs_on_when_its_application_is_over() -> None:
    story = Story().ends(10.0).lives(3.0, 16.0)
    (line,) = found(checks.check_nothing_after_the_end, story)
    assert "ran on for 6.0 s after its application was over" in line


@pytest.mark.parametrize("kind", ["partition-masters-from-rm", "pause-master"])
def test_a_master_that_cannot_hear_that_all_is_over_asks_on(kind: str) -> None:
    """It has unregistered and never heard the answer: the ResourceManager leaves it the time to ask again."""

    def story(to_s: float, state: YarnApplicationState = YarnApplicationState.FINISHED) -> Story:
        told = Story().ends(10.0, state).master(3.0, to_s)
        nodes = (1,) if kind != "pause-master" else ()
        return told.struck(kind, 9.0, 20.0, *nodes, whom="container_1_0001_01_000001")

    assert not found(checks.check_nothing_after_the_end, story(24.0))
    assert found(checks.check_nothing_after_the_end, story(26.0))
    assert found(checks.check_nothing_after_the_end, story(24.0, YarnApplicationState.KILLED))
    assert found(checks.check_nothing_after_the_end, story(24.0).lives(3.0, 16.0))
    elsewhere = Story().ends(10.0).master(3.0, 24.0, node=2).struck(kind, 9.0, 20.0, 1, whom="another")
    assert found(checks.check_nothing_after_the_end, elsewhere)


@pytest.mark.parametrize(
    ("field", "check"),
    [
        ("died", checks.check_daemons_live),
        ("unhealed", checks.check_healed),
        ("undrained", checks.check_drained),
        ("left", checks.check_nothing_is_left),
    ],
)
def test_what_the_runner_saw_is_told(field: str, check: Callable[[History, Expectations], Checked]) -> None:
    story = Story()
    getattr(story.history, field).append("something")
    assert found(check, story) == ("something",)
