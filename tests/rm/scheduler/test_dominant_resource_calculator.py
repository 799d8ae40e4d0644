"""DominantResourceCalculator: the largest share of the cluster decides."""

from __future__ import annotations

import math

import pytest

from yarn.resource import INT32_MAX, NONE, Resource
from yarn.resource_calculator import DominantResourceCalculator

CALCULATOR = DominantResourceCalculator(NONE)
CLUSTER = Resource(100, 10)
WITH_GPUS = Resource(100, 10, (("gpu", 4),))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (Resource(20, 1), Resource(10, 5), -1),
        (Resource(50, 1), Resource(10, 5), 0),
        (Resource(50, 2), Resource(10, 5), 1),
        (Resource(7, 7), Resource(7, 7), 0),
    ],
)
def test_the_dominant_share_decides_before_the_other(a: Resource, b: Resource, expected: int) -> None:
    assert CALCULATOR.compare(CLUSTER, a, b) == expected
    assert CALCULATOR.compare(CLUSTER, b, a) == -expected


def test_a_tie_returns_the_first_of_two_different_vectors() -> None:
    """Resources.min and max: two different vectors may have equal shares."""
    memory, vcores = Resource(50, 1), Resource(10, 5)
    assert CALCULATOR.min_of(CLUSTER, memory, vcores) is memory
    assert CALCULATOR.max_of(CLUSTER, vcores, memory) is vcores


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [(Resource(2, 2), Resource(1, 2), 1), (Resource(1, 2), Resource(2, 2), -1), (Resource(1, 2), Resource(2, 1), 0)],
)
def test_in_an_empty_cluster_components_are_compared(a: Resource, b: Resource, expected: int) -> None:
    assert CALCULATOR.compare(NONE, a, b) == expected


def test_more_types_are_compared_from_the_largest_share_down() -> None:
    one_gpu, all_memory = Resource(0, 0, (("gpu", 1),)), Resource(25, 1, (("gpu", 0),))
    assert CALCULATOR.compare(WITH_GPUS, one_gpu, all_memory) == -1
    assert CALCULATOR.compare(WITH_GPUS, all_memory, one_gpu) == 1


def test_types_that_the_cluster_lacks_are_skipped() -> None:
    without_gpus = Resource(100, 10, (("gpu", 0),))
    assert CALCULATOR.compare(without_gpus, Resource(20, 1, (("gpu", 0),)), Resource(10, 1, (("gpu", 0),))) == 1


def test_every_component_must_fit() -> None:
    assert not CALCULATOR.fits_in(Resource(1, 9), Resource(100, 8))
    assert CALCULATOR.fits_in(Resource(1, 8), Resource(100, 8))


def test_ratios_use_the_largest_component_and_are_never_negative() -> None:
    assert CALCULATOR.ratio(Resource(50, 9), Resource(100, 10)) == pytest.approx(0.9)
    assert CALCULATOR.ratio(Resource(-50, -9), Resource(100, 10)) == 0.0
    assert CALCULATOR.divide(CLUSTER, Resource(50, 1), Resource(10, 5)) == 1.0
    assert math.isnan(CALCULATOR.divide(CLUSTER, NONE, NONE))
    assert CALCULATOR.divide(CLUSTER, Resource(1, 0), NONE) == math.inf


def test_containers_are_counted_by_the_scarcest_type() -> None:
    assert CALCULATOR.available_containers(Resource(100, 3), Resource(10, 1)) == 3
    assert CALCULATOR.available_containers(Resource(100, 3), Resource(10, 0)) == 10
    assert CALCULATOR.available_containers(Resource(100, 3), NONE) == INT32_MAX
    assert CALCULATOR.available_containers(Resource(-100, 3), Resource(10, 1)) == -10


def test_each_component_is_rounded() -> None:
    """Products are 32-bit before the ceiling; a step of 0 leaves a type unchanged."""
    step = Resource(10, 0)
    assert CALCULATOR.normalize(Resource(11, 3), step, Resource(1000, 2), step) == Resource(20, 2)
    assert CALCULATOR.multiply_and_normalize_up(Resource(100, 5), 0.11, step) == Resource(20, 1)
    assert CALCULATOR.multiply_and_normalize_down(Resource(100, 5), 0.5, step) == Resource(50, 2)
    assert CALCULATOR.round_up(Resource(11, 3), Resource(10, 2)) == Resource(20, 4)
    assert CALCULATOR.round_down(Resource(-11, 3), Resource(10, 2)) == Resource(-10, 2)
    assert CALCULATOR.divide_and_ceil(Resource(10, 3), 4.0) == Resource(3, 1)
    assert CALCULATOR.divide_and_ceil(Resource(10, 3), 0.0) == NONE
    assert CALCULATOR.divide_and_ceil_by(Resource(10, 3), 4) == Resource(3, 1)


def test_a_positive_amount_of_any_type_counts() -> None:
    assert CALCULATOR.is_any_above_zero(Resource(-5, 1))
    assert not CALCULATOR.is_any_above_zero(Resource(-5, 0))
    assert CALCULATOR.is_some(CLUSTER, Resource(0, 1))
