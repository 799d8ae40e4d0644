"""Compares, divides and rounds amounts of several resource types.

`DefaultResourceCalculator` uses memory only: each amount that it computes has 1 vcore (0 without memory), whatever its
operands had. `DominantResourceCalculator` compares by the largest share of the cluster. Both follow Hadoop's classes of
the same names, including their rounding. `min_of` and `max_of` return one of the two operands, never a mix; if they are
equal, the first.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from yarn.java.binary32 import ceiled, f32, quotient, truncated
from yarn.resource import INT32_MAX, INT64_MAX, Resource


class ResourceCalculator(ABC):
    """The operations that the scheduler needs; `cluster` is the total of which shares are computed."""

    __slots__ = ("none",)

    def __init__(self, none: Resource) -> None:
        self.none = none

    @abstractmethod
    def compare(self, cluster: Resource, a: Resource, b: Resource) -> int:
        """Negative, 0 or positive if `a` is less than, equal to or greater than `b`."""

    @abstractmethod
    def fits_in(self, small: Resource, big: Resource) -> bool:
        """True if `small` fits in `big`."""

    @abstractmethod
    def ratio(self, a: Resource, b: Resource) -> float:
        """a / b as a 32-bit float; 0 / 0 = 0, x / 0 = infinity."""

    @abstractmethod
    def divide(self, cluster: Resource, numerator: Resource, denominator: Resource) -> float:
        """The numerator's share of the cluster divided by the denominator's, as a 32-bit float."""

    @abstractmethod
    def available_containers(self, available: Resource, required: Resource) -> int:
        """The number of containers of `required` that fit in `available`; negative on an over-committed node."""

    @abstractmethod
    def is_any_above_zero(self, resource: Resource) -> bool:
        """True if a type that the calculator uses is above 0 (isAnyMajorResourceAboveZero)."""

    @abstractmethod
    def is_any_zero_or_negative(self, resource: Resource) -> bool:
        """True if a type that the calculator uses is not above 0 (isAnyMajorResourceZeroOrNegative)."""

    @abstractmethod
    def normalize(self, resource: Resource, smallest: Resource, largest: Resource, step: Resource) -> Resource:
        """The size that is allocated for a request: at least `smallest`, a multiple of `step`, at most `largest`."""

    @abstractmethod
    def multiply_and_normalize_up(self, resource: Resource, by: float, step: Resource) -> Resource:
        """resource x by, rounded up to a multiple of `step`."""

    @abstractmethod
    def multiply_each_and_round_up(self, resource: Resource, by: Sequence[float]) -> Resource:
        """Multiply each type by its own factor, and round up to whole units (multiplyAndNormalizeUp)."""

    @abstractmethod
    def multiply_and_normalize_down(self, resource: Resource, by: float, step: Resource) -> Resource:
        """resource x by, rounded down to a multiple of `step`."""

    @abstractmethod
    def round_up(self, resource: Resource, step: Resource) -> Resource:
        """Round each amount up to a multiple of `step`. A multiple of `step` stays as it is."""

    @abstractmethod
    def round_down(self, resource: Resource, step: Resource) -> Resource:
        """Round each amount towards zero to a multiple of `step` (Hadoop's normalizeDown is the same)."""

    @abstractmethod
    def divide_and_ceil(self, resource: Resource, by: float) -> Resource:
        """resource / by for a 32-bit `by`, rounded up; 0 for 0."""

    @abstractmethod
    def divide_and_ceil_by(self, resource: Resource, by: int) -> Resource:
        """resource / by for an integer, rounded up; 0 for 0."""

    def less(self, cluster: Resource, a: Resource, b: Resource) -> bool:
        return self.compare(cluster, a, b) < 0

    def less_or_equal(self, cluster: Resource, a: Resource, b: Resource) -> bool:
        return self.compare(cluster, a, b) <= 0

    def greater(self, cluster: Resource, a: Resource, b: Resource) -> bool:
        return self.compare(cluster, a, b) > 0

    def greater_or_equal(self, cluster: Resource, a: Resource, b: Resource) -> bool:
        return self.compare(cluster, a, b) >= 0

    def is_some(self, cluster: Resource, resource: Resource) -> bool:
        """True if `resource` is greater than zero."""
        return self.compare(cluster, resource, self.none) > 0

    def min_of(self, cluster: Resource, a: Resource, b: Resource) -> Resource:
        return a if self.compare(cluster, a, b) <= 0 else b

    def max_of(self, cluster: Resource, a: Resource, b: Resource) -> Resource:
        return a if self.compare(cluster, a, b) >= 0 else b


class DefaultResourceCalculator(ResourceCalculator):
    """A calculator that considers memory only."""

    __slots__ = ()

    def compare(self, cluster: Resource, a: Resource, b: Resource) -> int:
        return a.memory_mb - b.memory_mb

    def fits_in(self, small: Resource, big: Resource) -> bool:
        return small.memory_mb <= big.memory_mb

    def ratio(self, a: Resource, b: Resource) -> float:
        return divided(a.memory_mb, b.memory_mb)

    def divide(self, cluster: Resource, numerator: Resource, denominator: Resource) -> float:
        return divided(numerator.memory_mb, denominator.memory_mb)

    def available_containers(self, available: Resource, required: Resource) -> int:
        return quotient(available.memory_mb, required.memory_mb)

    def is_any_above_zero(self, resource: Resource) -> bool:
        return resource.memory_mb > 0

    def is_any_zero_or_negative(self, resource: Resource) -> bool:
        return resource.memory_mb <= 0

    def normalize(self, resource: Resource, smallest: Resource, largest: Resource, step: Resource) -> Resource:
        multiple = step.memory_mb or smallest.memory_mb
        raised = _up(max(resource.memory_mb, smallest.memory_mb), multiple)
        return of_memory(min(raised, largest.memory_mb))

    def multiply_and_normalize_up(self, resource: Resource, by: float, step: Resource) -> Resource:
        return of_memory(_up(truncated(resource.memory_mb * by + 0.5), step.memory_mb))

    def multiply_each_and_round_up(self, resource: Resource, by: Sequence[float]) -> Resource:
        return of_memory(truncated(resource.memory_mb * by[0] + 0.5))

    def multiply_and_normalize_down(self, resource: Resource, by: float, step: Resource) -> Resource:
        return of_memory(_down(truncated(resource.memory_mb * by), step.memory_mb))

    def round_up(self, resource: Resource, step: Resource) -> Resource:
        return of_memory(_up(resource.memory_mb, step.memory_mb))

    def round_down(self, resource: Resource, step: Resource) -> Resource:
        return of_memory(_down(resource.memory_mb, step.memory_mb))

    def divide_and_ceil(self, resource: Resource, by: float) -> Resource:
        return of_memory(ceiled(f32(f32(resource.memory_mb) / by)) if by != 0 else 0)

    def divide_and_ceil_by(self, resource: Resource, by: int) -> Resource:
        return of_memory(divide_up(resource.memory_mb, by))

    # The base class has these, too. Here they do not call `compare`, because they run several times for each container.

    def less(self, cluster: Resource, a: Resource, b: Resource) -> bool:
        return a.memory_mb < b.memory_mb

    def less_or_equal(self, cluster: Resource, a: Resource, b: Resource) -> bool:
        return a.memory_mb <= b.memory_mb

    def greater(self, cluster: Resource, a: Resource, b: Resource) -> bool:
        return a.memory_mb > b.memory_mb

    def greater_or_equal(self, cluster: Resource, a: Resource, b: Resource) -> bool:
        return a.memory_mb >= b.memory_mb

    def is_some(self, cluster: Resource, resource: Resource) -> bool:
        return resource.memory_mb > 0

    def min_of(self, cluster: Resource, a: Resource, b: Resource) -> Resource:
        return a if a.memory_mb <= b.memory_mb else b

    def max_of(self, cluster: Resource, a: Resource, b: Resource) -> Resource:
        return a if a.memory_mb >= b.memory_mb else b


class DominantResourceCalculator(ResourceCalculator):
    """Compares by the dominant share: the largest part of the cluster that any of the types takes.

    On a cluster of 100 GB and 10 vcores <20 GB, 1> has the shares 0.2 and 0.1, <10 GB, 5> has 0.1 and 0.5: the second
    is the larger, though it has less memory. So `less` and `greater` are an order, not a comparison of components: a
    queue can be over its limit in vcores and yet not greater than it.
    """

    __slots__ = ()

    def compare(self, cluster: Resource, a: Resource, b: Resource) -> int:
        if a == b:
            return 0
        if cluster.is_none():
            return _compare_without_shares(a, b)
        if cluster.extra:
            return _compare_many(_shares(cluster, a), _shares(cluster, b))
        return _compare_two(cluster, a, b)

    def fits_in(self, small: Resource, big: Resource) -> bool:
        return small.fits_in(big)

    def ratio(self, a: Resource, b: Resource) -> float:
        return max(0.0, *map(divided, a.values(), b.values()))

    def divide(self, cluster: Resource, numerator: Resource, denominator: Resource) -> float:
        over, under = _largest_share(cluster, numerator), _largest_share(cluster, denominator)
        if under == 0:
            return math.inf if over > 0 else math.nan
        return f32(over / under)

    def available_containers(self, available: Resource, required: Resource) -> int:
        counts = [quotient(a, r) for a, r in zip(available.values(), required.values(), strict=True) if r != 0]
        return min([*counts, INT32_MAX])

    def is_any_above_zero(self, resource: Resource) -> bool:
        return any(value > 0 for value in resource.values())

    def is_any_zero_or_negative(self, resource: Resource) -> bool:
        return any(value <= 0 for value in resource.values())

    def normalize(self, resource: Resource, smallest: Resource, largest: Resource, step: Resource) -> Resource:
        rows = zip(resource.values(), smallest.values(), largest.values(), step.values(), strict=True)
        return resource.with_values(min(_up_unless_0(max(value, low), by), high) for value, low, high, by in rows)

    def multiply_and_normalize_up(self, resource: Resource, by: float, step: Resource) -> Resource:
        rows = zip(resource.values(), step.values(), strict=True)
        return resource.with_values(_up_unless_0(ceiled(f32(value * by)), unit) for value, unit in rows)

    def multiply_each_and_round_up(self, resource: Resource, by: Sequence[float]) -> Resource:
        return resource.with_values(ceiled(value * factor) for value, factor in zip(resource.values(), by, strict=True))

    def multiply_and_normalize_down(self, resource: Resource, by: float, step: Resource) -> Resource:
        rows = zip(resource.values(), step.values(), strict=True)
        return resource.with_values(_down(truncated(value * by), unit) for value, unit in rows)

    def round_up(self, resource: Resource, step: Resource) -> Resource:
        return resource.with_values(map(_up_unless_0, resource.values(), step.values()))

    def round_down(self, resource: Resource, step: Resource) -> Resource:
        return resource.with_values(map(_down, resource.values(), step.values()))

    def divide_and_ceil(self, resource: Resource, by: float) -> Resource:
        if by == 0:
            return resource * 0
        return resource.with_values(ceiled(f32(f32(value) / by)) for value in resource.values())

    def divide_and_ceil_by(self, resource: Resource, by: int) -> Resource:
        return resource.with_values(divide_up(value, by) for value in resource.values())


def of_memory(memory_mb: int) -> Resource:
    """The resource with this memory: 1 vcore, or 0 without memory (Resources.createResource)."""
    return Resource(memory_mb, 1 if memory_mb > 0 else 0)


def divided(a: int, b: int) -> float:
    """ResourceCalculator.divideSafelyAsFloat: each operand is converted to a 32-bit float first."""
    if b == 0:
        return 0.0 if a == 0 else math.copysign(math.inf, a)
    return f32(f32(a) / f32(b))


def divide_up(a: int, b: int) -> int:
    """The quotient of two longs, rounded up (ResourceCalculator.divideAndCeil). Like Java's, the sum overflows: a user
    limit of infinity becomes a negative size.
    """
    total = a + b - 1
    return 0 if b == 0 else quotient(total if total <= INT64_MAX else total - 2**64, b)


def multiplied(resource: Resource, by: float) -> Resource:
    """Multiply each component by `by`, truncated (Resources.multiply)."""
    if not resource.extra:
        return Resource(truncated(resource.memory_mb * by), truncated(resource.vcores * by))
    return resource.with_values(truncated(value * by) for value in resource.values())


def subtracted_non_negative(a: Resource, b: Resource) -> Resource:
    """The difference; memory and vcores do not go below 0, other types may (Resources.subtractNonNegative)."""
    rest = a - b
    return Resource(max(rest.memory_mb, 0), max(rest.vcores, 0), rest.extra)


def _up(value: int, step: int) -> int:
    return divide_up(value, step) * step


def _down(value: int, step: int) -> int:
    return quotient(value, step) * step if step else value


def _share(whole: int, value: int) -> float:
    return value / whole if whole else math.inf


def _shares(cluster: Resource, resource: Resource) -> list[float]:
    return list(map(_share, cluster.values(), resource.values()))


def _largest_share(cluster: Resource, resource: Resource) -> float:
    """The largest of the shares; types that the cluster does not have, and negative shares, are ignored."""
    return max([0.0, *(share for share in _shares(cluster, resource) if share != math.inf)])


def _compare_two(cluster: Resource, a: Resource, b: Resource) -> int:
    """Compare amounts of memory and vcores: first the dominant shares, then the other shares."""
    a_memory, a_vcores = _share(cluster.memory_mb, a.memory_mb), _share(cluster.vcores, a.vcores)
    b_memory, b_vcores = _share(cluster.memory_mb, b.memory_mb), _share(cluster.vcores, b.vcores)
    a_pair = (a_vcores, a_memory) if a_vcores > a_memory else (a_memory, a_vcores)
    b_pair = (b_vcores, b_memory) if b_vcores > b_memory else (b_memory, b_vcores)
    return (a_pair > b_pair) - (a_pair < b_pair)


def _compare_many(a_shares: list[float], b_shares: list[float]) -> int:
    """Compare from the largest share down, ignoring positions that are infinite on either side."""
    for a, b in zip(sorted(a_shares, reverse=True), sorted(b_shares, reverse=True), strict=True):
        if math.inf not in (a, b) and a != b:
            return 1 if a > b else -1
    return 0


def _compare_without_shares(a: Resource, b: Resource) -> int:
    """Compare amounts for an empty cluster: greater means larger in some type and smaller in none."""
    pairs = list(zip(a.values(), b.values(), strict=True))
    greater, smaller = any(x > y for x, y in pairs), any(x < y for x, y in pairs)
    return 0 if greater and smaller else int(greater) - int(smaller)


def _up_unless_0(value: int, step: int) -> int:
    """Round `value` up to a multiple of `step`; a step of 0 leaves it unchanged."""
    return divide_up(value, step) * step if step else value
