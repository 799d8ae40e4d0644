"""Distributions: their quantiles, and how they are written."""

from __future__ import annotations

from random import Random
from statistics import fmean, median, pstdev

import pytest

from yarnling.workload.distribution import (
    Choice,
    Distribution,
    Exponential,
    Fixed,
    KnownPercentiles,
    Lognormal,
    Normal,
    Uniform,
    weighted,
)


def values(of: Distribution) -> list[float]:
    random = Random("test")
    return [of.quantile(random.random()) for _ in range(20_000)]


@pytest.mark.parametrize(
    ("of", "mean", "stddev"),
    [
        (Fixed(5), 5, 0),
        (Uniform(10, 20), 15, 10 / 12**0.5),
        (Normal(100, 10), 100, 10),
        (Lognormal.of_mean(60, 30), 60, 30),
        (Exponential(40), 40, 40),
        (Choice((1, 3), (1, 1)), 2, 1),
    ],
)
def test_values_have_the_mean_and_deviation(of: Distribution, mean: float, stddev: float) -> None:
    drawn = values(of)
    assert fmean(drawn) == pytest.approx(mean, rel=0.03)
    assert pstdev(drawn) == pytest.approx(stddev, rel=0.05, abs=1e-9)


def test_a_lognormal_distribution_has_the_percentiles_it_is_made_of() -> None:
    of = Lognormal.of_percentiles(60, 600)
    assert of.quantile(0.5) == pytest.approx(60)
    assert of.quantile(0.95) == pytest.approx(600)
    assert median(values(of)) == pytest.approx(60, rel=0.05)


def test_percentiles_are_joined_by_straight_lines() -> None:
    of = KnownPercentiles(((0.5, 10), (0.9, 50)))
    assert [of.quantile(share) for share in (0, 0.5, 0.7, 0.9, 1)] == pytest.approx([10, 10, 30, 50, 50])


@pytest.mark.parametrize("of", [Normal(1, 5), Exponential(3), Lognormal(0, 4), Uniform(0, 1)])
def test_the_ends_are_finite_and_not_negative(of: Distribution) -> None:
    assert 0 <= of.quantile(0) <= of.quantile(1) < 1e40


def test_a_weight_of_zero_is_never_chosen() -> None:
    assert {weighted((0, 1, 0, 2, 0), share / 100) for share in range(101)} == {1, 3}
