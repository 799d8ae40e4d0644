"""Workload runs are the same in all ways: each input of the cores with news, each decision, and the whole result.

`scripts/same-runs` compares more workloads.
"""

from __future__ import annotations

import pytest

from tests.yarnling.simulation.random_workloads import (
    ASYNCHRONOUS,
    ASYNCHRONOUS_KEY,
    CHANGING,
    PREEMPTING,
    SEEDS,
    random_workload,
)
from tests.yarnling.simulation.workload_ways import EXPLANATIONS, Way, WorkloadRun, first_difference, run_in
from yarnling.whatif.containers import End

FEW_SEEDS = (1, 2, 3, 511, 594)
"""In 511 each AM's lookup of its headroom stores limits for several seconds; in 594 a node has left when its heartbeat
would run a round of preemption.
"""
QUICK_SEEDS = (4, 38, 39)


def test_there_are_enough_workloads_of_each_kind() -> None:
    assert len(SEEDS) >= 60
    assert len(PREEMPTING) >= 15
    assert len(ASYNCHRONOUS) >= 10
    assert len(CHANGING) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("number", FEW_SEEDS)
def test_a_run_without_quiet_heartbeats_is_the_run_with_all_of_them(number: int) -> None:
    workload = random_workload(number)
    every, quiet = run_in(Way.EVERY_HEARTBEAT, workload), run_in(Way.QUIET_LEFT_OUT, workload)
    assert not first_difference(every, quiet, ignored=EXPLANATIONS)
    assert every.result.events > quiet.result.events


def compare_played(number: int) -> WorkloadRun:
    workload = random_workload(number)
    full, played = run_in(Way.QUIET_LEFT_OUT, workload), run_in(Way.PLAYED, workload)
    assert not first_difference(full, played), f"seed {number}"
    assert full.result.events > played.result.events
    return full


@pytest.mark.parametrize("number", QUICK_SEEDS)
def test_a_played_run_is_the_full_run(number: int) -> None:
    compare_played(number)


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("number", SEEDS)
def test_played_runs_are_the_full_runs(number: int) -> None:
    """And the workloads are what they are meant to be: their counts alone would not show it."""
    full = compare_played(number)
    if number in PREEMPTING:
        assert any(one.end is End.PREEMPTED for one in full.result.containers)
    if number in ASYNCHRONOUS:
        assert random_workload(number).settings[ASYNCHRONOUS_KEY] == "true"
    if number in CHANGING:
        assert full.changes.keys() >= {"DECOMMISSIONED", "DECOMMISSIONING", "LOST"}
