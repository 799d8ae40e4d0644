"""Times that AMs and tasks take to start: a constant, or a distribution from which each AM and each task has its own.

A start time is a quantile, and its share is a number made of the run's seed and the name of the AM or task. So neither
the order of events nor the configuration changes it: a task takes equally long to start before and after a change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

from yarnling.workload.distribution import Distribution, Lognormal
from yarnling.workload.limits import TIME_MS_MAX

StartTime = int | Distribution
"""A constant, or a distribution, of ms."""
NumberFor = Callable[[str], float]
"""The random number of something with this name, from 0 to 1, always the same in one run."""

REAL_AM_START = Lognormal.of_percentiles(median=3000, p95=5000)
"""From the start of an AM's container to its registration: the JVMs of MapReduce, Tez and Spark take 2 to 5 s."""
REAL_TASK_START = 1000
"""From the start of a container to its work: the start of a JVM."""


def with_mean(mean_ms: int) -> StartTime:
    """Start times of AMs with this mean, in ms, spread as those of real AMs are."""
    spread = math.sqrt(math.expm1(REAL_AM_START.sigma**2))
    return Lognormal.of_mean(mean_ms, spread * mean_ms) if mean_ms > 0 else 0


def drawn_ms(start: StartTime, number_for: NumberFor, name: str) -> int:
    """The start time, in ms, of the AM or task of this name."""
    if isinstance(start, int):
        return start
    return min(max(round(start.quantile(number_for(name))), 0), TIME_MS_MAX)


def median_ms(start: StartTime) -> int:
    """The median of a start time, in ms."""
    return drawn_ms(start, lambda _: 0.5, "")


def described(starts: Collection[StartTime], shown: Callable[[int], str]) -> str:
    """Describe start times: the only one, with its 95th percentile if it is drawn, or the range of their medians."""
    different = set(starts) or {0}
    if len(different) > 1:
        low, *_, high = sorted(map(median_ms, different))
        medians = "" if all(isinstance(start, int) for start in different) else " in the median"
        return f"{shown(low)} to {shown(high)}{medians}"
    (start,) = different
    if isinstance(start, int):
        return shown(start)
    return f"{shown(median_ms(start))} (p95 {shown(drawn_ms(start, lambda _: 0.95, ''))})"
