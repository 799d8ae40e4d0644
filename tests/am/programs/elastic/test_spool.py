"""The spool: a task is in one place, whoever moves it."""

from __future__ import annotations

from pathlib import Path

import pytest

from am.programs.elastic.core import BacklogSeen
from am.programs.elastic.spool import Spool
from tests.am.builders import container_id

ONE, OTHER = container_id(2), container_id(3)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    made = Spool(tmp_path)
    made.make()
    made.put(1, 3)
    return made


def test_tasks_are_taken_in_order_by_one_worker_each(spool: Spool) -> None:
    assert [spool.take(ONE), spool.take(OTHER), spool.take(ONE), spool.take(OTHER)] == [1, 2, 3, None]
    assert spool.seen() == BacklogSeen(0, {ONE: 2, OTHER: 1}, 0)


def test_what_ended_and_what_failed_is_seen(spool: Spool) -> None:
    for status in (0, 3):
        task = spool.take(ONE)
        assert task is not None
        assert spool.end(task, ONE, status)
    assert spool.seen() == BacklogSeen(1, {}, 2, "task 2 ended with 3")


def test_a_lost_workers_tasks_wait_again_and_it_cannot_end_them(spool: Spool) -> None:
    assert (spool.take(ONE), spool.take(OTHER)) == (1, 2)
    spool.put_back(ONE)
    assert not spool.end(1, ONE, 0)
    assert spool.seen() == BacklogSeen(2, {OTHER: 1}, 0)
    assert spool.take(OTHER) == 1


def test_a_second_attempt_has_all_wait_that_ran_and_puts_nothing_twice(spool: Spool) -> None:
    spool.take(ONE)
    spool.take(OTHER)
    spool.end(2, OTHER, 0)
    spool.put_back_all()
    spool.put(1, 4)
    assert spool.count() == 4
    assert spool.seen() == BacklogSeen(3, {}, 1)
