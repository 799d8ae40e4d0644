"""Workload runs are the same in all ways: each input of the cores with news, each decision, and the whole result."""

from __future__ import annotations

import pytest

from tests.yarnling.simulation.random_workloads import random_workload
from tests.yarnling.simulation.workload_ways import EXPLANATIONS, Way, first_difference, run_in

FEW_SEEDS = (1, 2, 3, 6)


@pytest.mark.slow
@pytest.mark.parametrize("number", FEW_SEEDS)
def test_a_run_without_quiet_heartbeats_is_the_run_with_all_of_them(number: int) -> None:
    workload = random_workload(number)
    every, quiet = run_in(Way.EVERY_HEARTBEAT, workload), run_in(Way.QUIET_LEFT_OUT, workload)
    assert not first_difference(every, quiet, ignored=EXPLANATIONS)
    assert every.result.events > quiet.result.events
