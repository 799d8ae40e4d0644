"""The lifecycle of a task, and what a second attempt of the AM recovers: only what journal and files confirm."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from am.programs.mapreduce.core.job import TaskAttemptId, TaskId, TaskKind
from am.programs.mapreduce.core.tasks import (
    TASK_LIFECYCLE,
    AttemptRecord,
    AttemptState,
    Task,
    recover,
)
from tests.am.builders import APP, GB, container_id, node_id
from yarn.machine import IllegalTransition, complement


def attempt(task: int, number: int, state: AttemptState, kind: TaskKind = TaskKind.MAP) -> AttemptRecord:
    attempt_id = TaskAttemptId(TaskId(APP, kind, task), number)
    return AttemptRecord(attempt_id, container_id(2), node_id("n1"), GB, started_ms=1, state=state, output="/local")


RUNNING, SUCCEEDED, FAILED, KILLED = (
    AttemptState.RUNNING,
    AttemptState.SUCCEEDED,
    AttemptState.FAILED,
    AttemptState.KILLED,
)


def test_a_succeeded_task_is_recovered_with_its_earlier_attempts() -> None:
    first, second = attempt(0, 0, FAILED), attempt(0, 1, SUCCEEDED)
    recovery = recover([attempt(0, 0, RUNNING), first, attempt(0, 1, RUNNING), second], lambda _: True, 9)
    assert recovery.tasks == {first.id.task_id: (first, second)}
    assert recovery.attempts == ()


def test_output_that_was_lost_or_is_gone_is_not_recovered() -> None:
    lost = [attempt(0, 0, SUCCEEDED), attempt(0, 0, KILLED)]
    assert recover(lost, lambda _: True, 9).tasks == {}
    gone = recover([attempt(0, 0, SUCCEEDED)], lambda _: False, 9)
    assert gone.tasks == {}
    assert gone.attempts == (attempt(0, 0, SUCCEEDED),)


def test_a_task_that_ran_again_after_its_output_was_lost_is_recovered() -> None:
    records = [attempt(0, 0, SUCCEEDED), attempt(0, 0, KILLED), attempt(0, 1, SUCCEEDED)]
    (attempts,) = recover(records, lambda _: True, 9).tasks.values()
    assert [(a.id.number, a.state) for a in attempts] == [(0, KILLED), (1, SUCCEEDED)]


def test_of_two_attempts_that_succeeded_the_last_one_with_output_counts() -> None:
    """The second AM could not read the output of the first one's attempt, and ran the map again; now both succeeded."""
    records = [attempt(0, 0, SUCCEEDED), attempt(0, 1000, SUCCEEDED), attempt(0, 1000, SUCCEEDED)]
    for readable, expected in (((0, 1000), 1000), ((1000,), 1000), ((0,), 0)):
        (attempts,) = recover(records, lambda one, readable=readable: one.id.number in readable, 9).tasks.values()
        *others, done = attempts
        assert (done.id.number, done.state) == (expected, SUCCEEDED)
        assert [(other.state, other.output_lost) for other in others] == [(KILLED, True)]


def test_attempts_that_ran_when_the_am_ended_were_killed() -> None:
    (killed,) = recover([attempt(0, 0, RUNNING)], lambda _: True, 9).attempts
    assert killed == replace(attempt(0, 0, KILLED), finished_ms=9, why="its ApplicationMaster ended")


def test_maps_are_recovered_before_reduces_and_other_records_are_skipped() -> None:
    records = [attempt(1, 0, SUCCEEDED, TaskKind.REDUCE), "what", attempt(3, 0, SUCCEEDED), attempt(2, 0, SUCCEEDED)]
    tasks = recover(records, lambda _: True, 9).tasks
    assert [(task_id.kind, task_id.number) for task_id in tasks] == [
        (TaskKind.MAP, 2),
        (TaskKind.MAP, 3),
        (TaskKind.REDUCE, 1),
    ]


def test_illegal_events_of_a_task() -> None:
    illegal = complement(TASK_LIFECYCLE)
    assert illegal
    for state, event in illegal:
        task = Task(TaskId(APP, TaskKind.MAP, 0))
        task.machine.state = state
        with pytest.raises(IllegalTransition):
            task.take(event(), 0)
        assert task.state is state
