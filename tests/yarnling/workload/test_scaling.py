"""The load factor multiplies applications."""

from __future__ import annotations

import pytest

from yarn.errors import YarnException
from yarn.resource import Resource
from yarnling.workload.model import TaskGroup, Workload, WorkloadApplication
from yarnling.workload.scaling import scaled

GROUP = TaskGroup(Resource(1024, 1), (1000,))
WORKLOAD = Workload(tuple(WorkloadApplication(f"a{i}", i * 1000, "u", "q", (GROUP,)) for i in range(1000)))


@pytest.mark.parametrize(("factor", "least", "most"), [(0, 0, 0), (0.3, 250, 350), (2, 2000, 2000), (2.5, 2400, 2600)])
def test_the_count_follows_the_factor(factor: float, least: int, most: int) -> None:
    result = scaled(WORKLOAD, factor)
    assert least <= len(result.applications) <= most
    assert len({each.name for each in result.applications}) == len(result.applications)
    assert list(result.applications) == sorted(result.applications, key=lambda each: each.submit_ms)
    assert f"multiplied by {factor:g}" in result.assumptions[-1]


def test_a_factor_of_one_changes_nothing() -> None:
    assert scaled(WORKLOAD, 1) is WORKLOAD


def test_a_larger_factor_keeps_the_applications_of_a_smaller_one() -> None:
    assert {each.name for each in scaled(WORKLOAD, 0.2).applications} <= {
        each.name for each in scaled(WORKLOAD, 0.6).applications
    }


@pytest.mark.parametrize("factor", [-1, float("inf"), float("nan"), 1e9])
def test_an_impossible_factor_is_refused(factor: float) -> None:
    with pytest.raises(YarnException, match="load factor"):
        scaled(WORKLOAD, factor)
