"""DefaultResourceCalculator: only memory counts, and each computed vector has 1 vcore."""

from __future__ import annotations

import math

import pytest

from yarn.resource import NONE, Resource
from yarn.resource_calculator import DefaultResourceCalculator, multiplied, subtracted_non_negative

CALCULATOR = DefaultResourceCalculator(NONE)
STEP = Resource(1024, 1)
CLUSTER = Resource(102400, 100)


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        (Resource(0, 0), Resource(1024, 1)),
        (Resource(1, 7), Resource(1024, 1)),
        (Resource(4608, 2), Resource(5120, 1)),
        (Resource(5500, 1), Resource(6000, 1)),
    ],
)
def test_a_request_is_rounded_up_and_loses_its_vcores(requested: Resource, expected: Resource) -> None:
    """SchedulerUtils: at least the minimum, a multiple of it, at most the maximum, which need not be a multiple."""
    assert CALCULATOR.normalize(requested, STEP, Resource(6000, 4), STEP) == expected


def test_without_a_step_the_minimum_is_the_step() -> None:
    assert CALCULATOR.normalize(Resource(1500, 1), STEP, CLUSTER, NONE) == Resource(2048, 1)


def test_a_tie_returns_the_first() -> None:
    """Resources: min and max return a whole vector; vcores do not decide."""
    few, many = Resource(1024, 1), Resource(1024, 9)
    assert CALCULATOR.min_of(CLUSTER, few, many) is few
    assert CALCULATOR.max_of(CLUSTER, many, few) is many
    assert CALCULATOR.compare(CLUSTER, few, many) == 0


def test_comparisons_agree_with_compare() -> None:
    small, big = Resource(1, 9), Resource(2, 0)
    assert CALCULATOR.less(CLUSTER, small, big)
    assert CALCULATOR.less_or_equal(CLUSTER, small, small)
    assert CALCULATOR.greater(CLUSTER, big, small)
    assert CALCULATOR.greater_or_equal(CLUSTER, big, big)
    assert not CALCULATOR.is_some(CLUSTER, Resource(0, 5))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [(0, 0, 0.0), (5, 0, math.inf), (-5, 0, -math.inf), (1, 3, 0.3333333432674408)],
)
def test_ratios_are_32_bit(a: int, b: int, expected: float) -> None:
    assert CALCULATOR.ratio(Resource(a, 1), Resource(b, 1)) == expected
    assert CALCULATOR.divide(CLUSTER, Resource(a, 1), Resource(b, 1)) == expected


def test_a_ratio_converts_each_side_first() -> None:
    """divideSafelyAsFloat: 2^24 + 1 has no exact 32-bit representation."""
    assert CALCULATOR.ratio(Resource((1 << 24) + 1, 1), Resource(1 << 24, 1)) == 1.0


def test_products_are_rounded_half_up_then_to_the_step() -> None:
    """multiplyAndNormalizeUp adds a half before truncating; multiplyAndNormalizeDown only truncates."""
    assert CALCULATOR.multiply_and_normalize_up(Resource(2047, 5), 0.5, Resource(1, 1)) == Resource(1024, 1)
    assert CALCULATOR.multiply_and_normalize_down(Resource(2047, 5), 0.5, Resource(1, 1)) == Resource(1023, 1)
    assert CALCULATOR.multiply_and_normalize_up(Resource(1025, 1), 1.0, STEP) == Resource(2048, 1)


def test_rounding_of_negative_amounts_goes_towards_zero() -> None:
    """Java's integer division: -5 in steps of 4 is 0 upwards and -4 downwards."""
    assert CALCULATOR.round_up(Resource(-5, 1), Resource(4, 1)) == Resource(0, 0)
    assert CALCULATOR.round_down(Resource(-5, 1), Resource(4, 1)) == Resource(-4, 0)


def test_divisions_are_rounded_up() -> None:
    assert CALCULATOR.divide_and_ceil(Resource(1000, 9), 3.0) == Resource(334, 1)
    assert CALCULATOR.divide_and_ceil(Resource(1000, 9), 0.0) == Resource(0, 0)
    assert CALCULATOR.divide_and_ceil_by(Resource(1001, 9), 100) == Resource(11, 1)
    assert CALCULATOR.divide_and_ceil_by(Resource(1001, 9), 0) == Resource(0, 0)


def test_an_over_committed_node_fits_a_negative_number_of_containers() -> None:
    """RegularContainerAllocator.assignContainer: neither 0 nor positive, so the node is tried for a reservation."""
    assert CALCULATOR.available_containers(Resource(-2048, 0), STEP) == -2
    assert CALCULATOR.available_containers(Resource(3000, 0), STEP) == 2


def test_products_truncate_each_type() -> None:
    assert multiplied(Resource(102400, 10), 0.699999988079071) == Resource(71679, 6)
    assert multiplied(Resource(10, 10, (("gpu", 3),)), 0.5) == Resource(5, 5, (("gpu", 1),))


def test_only_differences_of_memory_and_vcores_stop_at_zero() -> None:
    left = subtracted_non_negative(Resource(1, 1, (("gpu", 1),)), Resource(2, 2, (("gpu", 2),)))
    assert left == Resource(0, 0, (("gpu", -1),))
