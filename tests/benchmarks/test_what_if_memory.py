"""The memory of containers that have ended."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from benchmarks.what_if_memory import growth


@pytest.mark.slow
@pytest.mark.unmeasured
def test_a_container_that_has_ended_costs_at_most_100_bytes() -> None:
    # In a process of its own: what earlier tests have left in this one grows and shrinks, too.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        extra_bytes, containers = pool.submit(measured).result()
    assert containers > 1_000
    assert extra_bytes <= 100 * containers


def measured() -> tuple[int, int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rm.scheduler.model.ended_containers.ENDED_MAX", 100)
        return growth(nodes=10, minutes=4, container_s=30)
