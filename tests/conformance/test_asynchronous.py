"""With asynchronous scheduling queues and nodes get as many containers as in Hadoop, over RUNS runs of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from statistics import mean, stdev

import pytest

from tests.conformance.asynchronous import RECORDED, RUNS, SCENARIOS, Counts, by_node, by_queue, ours

STANDARD_ERRORS = 4
"""So far means may be apart, in standard errors of their difference: by chance that is 1 in 15,000."""
LEAST = 0.25
"""Containers by which means may differ in any case; where no run differs, there is no standard error."""


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("part", [by_queue, by_node, dict], ids=["queues", "nodes", "queues on nodes"])
def test_as_many_containers_as_in_hadoop(name: str, part: Callable[[Counts], Counts]) -> None:
    hadoops = [part(run) for run in json.loads(RECORDED.read_text())[name]]
    own = [part(run) for run in _runs(name)]
    assert len(hadoops) == RUNS
    apart = {
        place: (mean(theirs), mean(these))
        for place in {key for run in (*hadoops, *own) for key in run}
        for theirs, these in [([run.get(place, 0) for run in hadoops], [run.get(place, 0) for run in own])]
        if abs(mean(theirs) - mean(these)) > max(LEAST, STANDARD_ERRORS * _error(theirs, these))
    }
    assert not apart, apart


@cache
def _runs(name: str) -> list[Counts]:
    return [ours(SCENARIOS[name], seed) for seed in range(RUNS)]


def _error(one: list[int], other: list[int]) -> float:
    """The standard error of the difference of two means."""
    return float((stdev(one) ** 2 / len(one) + stdev(other) ** 2 / len(other)) ** 0.5)
