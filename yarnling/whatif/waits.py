"""Waiting times of containers: from the request until the allocation.

A container that never was allocated waited at least until the simulation, its application, or the attempt that
requested it, ended. Its wait counts with that length, as a lower bound: leaving it out would make a queue look better
the more it starves. A percentile is itself a lower bound if it would be another one had these containers waited for
ever. Example: waits of 1, 2, 3 and at least 2 minutes; the median is 2 min, and the longest wait is at least 3 min,
because the unfinished one may exceed it.
"""

from __future__ import annotations

import math
from array import array

from msgspec import Struct

from yarn.times import duration
from yarnling.whatif.containers import ContainerOutcome

AT_LEAST = "\u2265 "
"""Written before a wait that is a lower bound."""

NEGLIGIBLE_FRACTION = 0.01
"""A percentile that unfinished waits could change by no more than this is not called a lower bound."""


class Wait(Struct, frozen=True, order=True):
    """A waiting time. `at_least`: it is a lower bound. Ordered by length, lower bounds after equal exact times."""

    ms: int
    at_least: bool = False

    def __str__(self) -> str:
        return f"{AT_LEAST if self.at_least else ''}{duration(self.ms)}"


class Waits(Struct, frozen=True):
    """Waits of a group of containers. `unfinished`: how many were never allocated. The percentiles are None without
    containers. `total_ms`: the sum of all waits.
    """

    count: int = 0
    unfinished: int = 0
    p50: Wait | None = None
    p95: Wait | None = None
    p99: Wait | None = None
    longest: Wait | None = None
    total_ms: int = 0


class WaitTimes:
    """Waits of many containers, 8 bytes each. `exact`: those that are over; `lower_bounds`: the others; in ms."""

    __slots__ = ("exact", "lower_bounds")

    def __init__(self) -> None:
        self.exact, self.lower_bounds = array("q"), array("q")

    def __len__(self) -> int:
        return len(self.exact) + len(self.lower_bounds)

    def add(self, wait: Wait) -> None:
        (self.lower_bounds if wait.at_least else self.exact).append(wait.ms)

    def add_all(self, other: WaitTimes) -> None:
        self.exact.extend(other.exact)
        self.lower_bounds.extend(other.lower_bounds)


def wait_of(container: ContainerOutcome, until_ms: int) -> Wait:
    """The wait of a container; the simulation ended at `until_ms`."""
    if container.allocated_ms is not None:
        return Wait(container.allocated_ms - container.requested_ms)
    end_ms = until_ms if container.withdrawn_ms is None else container.withdrawn_ms
    return Wait(max(0, end_ms - container.requested_ms), at_least=True)


def summarize(waits: WaitTimes) -> Waits:
    """The percentiles of some waits, by the nearest-rank method."""
    if not len(waits):
        return Waits()
    ordered = sorted((*waits.exact, *waits.lower_bounds))
    exact = sorted(waits.exact) if waits.lower_bounds else ordered

    def percentile(fraction: float) -> Wait:
        rank = max(1, math.ceil(fraction * len(ordered)))
        shortest = ordered[rank - 1]
        longest = exact[rank - 1] if rank <= len(exact) else math.inf
        return Wait(shortest, longest > shortest * (1 + NEGLIGIBLE_FRACTION))

    return Waits(
        count=len(ordered),
        unfinished=len(waits.lower_bounds),
        p50=percentile(0.5),
        p95=percentile(0.95),
        p99=percentile(0.99),
        longest=percentile(1),
        total_ms=sum(ordered),
    )
