"""Java's floats and casts."""

from __future__ import annotations

import math

import pytest

from yarn.java.binary32 import ceiled, f32, quotient, shortest, truncated
from yarn.java.values import LONG_MIN
from yarn.resource import INT64_MAX


def test_a_product_of_70_percent_is_one_less_than_exact() -> None:
    """Java's float: 70 % of 102400 MB is 71679 MB, because 0.7 has no exact 32-bit representation."""
    assert truncated(102400 * f32(f32(70) / 100)) == 71679
    assert truncated(102400 * f32(f32(10) / 100)) == 10240


def test_a_value_beyond_the_range_is_infinite() -> None:
    assert f32(1e39) == math.inf
    assert f32(-1e39) == -math.inf


@pytest.mark.parametrize(
    ("number", "expected"),
    [(2.9, 2), (-2.9, -2), (math.nan, 0), (math.inf, INT64_MAX), (-math.inf, LONG_MIN), (1e300, INT64_MAX)],
)
def test_a_cast_truncates_towards_zero(number: float, expected: int) -> None:
    assert truncated(number) == expected


@pytest.mark.parametrize(("number", "expected"), [(2.1, 3), (-2.9, -2), (math.nan, 0), (math.inf, INT64_MAX)])
def test_a_ceiling_is_cast_too(number: float, expected: int) -> None:
    assert ceiled(number) == expected


@pytest.mark.parametrize(("a", "b", "expected"), [(7, 2, 3), (-7, 2, -3), (7, -2, -3), (-7, -2, 3), (0, 5, 0)])
def test_division_truncates_towards_zero(a: int, b: int, expected: int) -> None:
    assert quotient(a, b) == expected


def test_division_by_zero_raises() -> None:
    with pytest.raises(ZeroDivisionError):
        quotient(1, 0)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (f32(1.1), "1.1"),
        (100.0, "100.0"),
        (0.0, "0.0"),
        (f32(0.1), "0.1"),
        (f32(1 / 3), "0.33333334"),
        (f32(1e-4), "1.0E-4"),
        (f32(12345678.0), "1.2345678E7"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_a_float_is_printed_with_the_shortest_decimal_as_in_java(number: float, expected: str) -> None:
    assert shortest(number) == expected
