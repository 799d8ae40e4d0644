"""Distributions of one number, each given by its quantile function: the value below which a share of all values lies.

A value is drawn by asking for the quantile of one uniform random number. So every value costs exactly one number of the
stream, whatever the distribution is.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from statistics import NormalDist

from msgspec import Struct

_LEAST_SHARE = 1e-12
"""Shares are kept this far from 0 and 1, where unbounded distributions are infinite."""


class Fixed(Struct, frozen=True):
    """Always the same value."""

    value: float

    def quantile(self, _: float) -> float:
        return self.value


class Uniform(Struct, frozen=True):
    """Every value from `least` to `most` is equally likely."""

    least: float
    most: float

    def quantile(self, share: float) -> float:
        return self.least + share * (self.most - self.least)


class Normal(Struct, frozen=True):
    """A normal distribution, cut off at 0."""

    mean: float
    stddev: float

    def quantile(self, share: float) -> float:
        return max(0.0, self.mean + self.stddev * _standard_normal(share))


class Lognormal(Struct, frozen=True):
    """The logarithm of the value is normal, with mean `mu` and standard deviation `sigma`."""

    mu: float
    sigma: float

    @staticmethod
    def of_mean(mean: float, stddev: float) -> Lognormal:
        """The distribution whose values themselves have this mean and this standard deviation."""
        variance = math.log1p((stddev / mean) ** 2)
        return Lognormal(math.log(mean) - variance / 2, math.sqrt(variance))

    @staticmethod
    def of_percentiles(median: float, p95: float) -> Lognormal:
        """The distribution with this median and this 95th percentile."""
        return Lognormal(math.log(median), math.log(p95 / median) / NormalDist().inv_cdf(0.95))

    def quantile(self, share: float) -> float:
        return math.exp(min(self.mu + self.sigma * _standard_normal(share), 700.0))


class Exponential(Struct, frozen=True):
    """The time between events that happen independently of one another."""

    mean: float

    def quantile(self, share: float) -> float:
        return -self.mean * math.log1p(-min(share, 1 - _LEAST_SHARE))


class KnownPercentiles(Struct, frozen=True):
    """Known (share, value) pairs in order, with a straight line between neighbours, and constant beyond both ends."""

    points: tuple[tuple[float, float], ...]

    def quantile(self, share: float) -> float:
        at = bisect_right(self.points, (share, math.inf))
        if at in (0, len(self.points)):
            return self.points[0 if at == 0 else -1][1]
        (share_before, value_before), (share_after, value_after) = self.points[at - 1], self.points[at]
        part = (share - share_before) / (share_after - share_before)
        return value_before + part * (value_after - value_before)


class Choice(Struct, frozen=True):
    """Draw one of some values, each as likely as its weight says. The sum of the weights is more than 0."""

    values: tuple[float, ...]
    weights: tuple[float, ...]

    def quantile(self, share: float) -> float:
        return self.values[weighted(self.weights, share)]


Distribution = Fixed | Uniform | Normal | Lognormal | Exponential | KnownPercentiles | Choice


def weighted(weights: tuple[float, ...], share: float) -> int:
    """The position whose part of the sum of all weights contains `share`."""
    rest = share * sum(weights)
    for position, weight in enumerate(weights):
        rest -= weight
        if rest < 0:
            return position
    return max(position for position, weight in enumerate(weights) if weight > 0)


def _standard_normal(share: float) -> float:
    return NormalDist().inv_cdf(min(max(share, _LEAST_SHARE), 1 - _LEAST_SHARE))
