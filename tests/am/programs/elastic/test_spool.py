"""A task in the spool is in exactly one place, even if several processes move tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from am.programs.elastic.core import SpoolScanned
from am.programs.elastic.spool import Spool
from tests.am.builders import container_id

ONE, OTHER = container_id(2), container_id(3)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    made = Spool(tmp_path)
    made.make()
    made.enqueue(1, 3)
    return made


def test_tasks_are_taken_in_order_by_one_worker_each(spool: Spool) -> None:
    assert [spool.take(ONE), spool.take(OTHER), spool.take(ONE), spool.take(OTHER)] == [1, 2, 3, None]
    assert spool.scan() == SpoolScanned(0, {ONE: 2, OTHER: 1}, 0)


def test_a_scan_counts_ended_tasks_and_names_the_first_failed_one(spool: Spool) -> None:
    for status in (0, 3):
        task = spool.take(ONE)
        assert task is not None
        assert spool.end(task, ONE, status)
    assert spool.scan() == SpoolScanned(1, {}, 2, "task 2 ended with 3")


def test_tasks_of_a_lost_worker_are_requeued_and_it_cannot_end_them(spool: Spool) -> None:
    assert (spool.take(ONE), spool.take(OTHER)) == (1, 2)
    spool.requeue(ONE)
    assert not spool.end(1, ONE, 0)
    assert spool.scan() == SpoolScanned(2, {OTHER: 1}, 0)
    assert spool.take(OTHER) == 1


def test_a_second_attempt_requeues_what_ran_and_enqueues_nothing_twice(spool: Spool) -> None:
    spool.take(ONE)
    spool.take(OTHER)
    spool.end(2, OTHER, 0)
    spool.requeue_all()
    spool.enqueue(1, 4)
    assert spool.count() == 4
    assert spool.scan() == SpoolScanned(3, {}, 1)
