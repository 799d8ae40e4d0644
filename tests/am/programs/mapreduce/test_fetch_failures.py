"""When a reduce gives up on a map's output: soon if its node answers, late if it does not."""

from __future__ import annotations

from am.programs.mapreduce.core.fetch_failures import (
    REFUSALS_MAX,
    UNREACHABLE_MS_MAX,
    UNREACHABLE_RETRY_MS,
    FetchFailures,
)
from am.programs.mapreduce.core.job import TaskAttemptId, TaskId, TaskKind
from tests.am.builders import APP

ATTEMPT = TaskAttemptId(TaskId(APP, TaskKind.MAP, 1), 0)
OTHER = TaskAttemptId(TaskId(APP, TaskKind.MAP, 2), 0)
NOW_MS = 5_000_000


def test_a_few_refusals_are_enough() -> None:
    failures = FetchFailures()
    for _ in range(REFUSALS_MAX - 1):
        failures.refused(ATTEMPT)
        failures.refused(OTHER)
    assert failures.given_up() == ()
    failures.refused(ATTEMPT)
    assert failures.given_up() == (ATTEMPT,)
    assert failures.is_due(OTHER, NOW_MS)


def test_a_node_that_does_not_answer_is_given_time() -> None:
    failures = FetchFailures()
    failures.unreachable(ATTEMPT, NOW_MS)
    assert not failures.is_due(ATTEMPT, NOW_MS + UNREACHABLE_RETRY_MS - 1)
    assert failures.is_due(ATTEMPT, NOW_MS + UNREACHABLE_RETRY_MS)
    failures.unreachable(ATTEMPT, NOW_MS + UNREACHABLE_MS_MAX - 1)
    assert failures.given_up() == ()
    failures.unreachable(ATTEMPT, NOW_MS + UNREACHABLE_MS_MAX)
    assert failures.given_up() == (ATTEMPT,)


def test_a_fetch_ends_the_count() -> None:
    failures = FetchFailures()
    for _ in range(REFUSALS_MAX):
        failures.refused(ATTEMPT)
    failures.unreachable(ATTEMPT, NOW_MS)
    failures.unreachable(ATTEMPT, NOW_MS + UNREACHABLE_MS_MAX)
    failures.fetched(ATTEMPT)
    assert failures.given_up() == ()
    assert failures.is_due(ATTEMPT, NOW_MS)
