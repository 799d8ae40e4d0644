"""How amounts of several resource types are compared, divided and rounded.

`DefaultResourceCalculator` looks at memory alone: whatever it makes new has 1 vcore (0 if there is no memory), the
vcores of what it was made from are lost. `DominantResourceCalculator` (see dominant_resource_calculator.py) compares
by the largest share of the cluster. Both are Hadoop's classes of the same names, to the rounding.

`min_of` and `max_of` return one of the two whole vectors, never a mix; on a tie the first.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from yarn.java.binary32 import ceiled, f32, quotient, truncated
from yarn.resource import Resource


class ResourceCalculator(ABC):
    """What the scheduler asks of a calculator; `cluster` is the whole against which shares are taken."""

    __slots__ = ("none",)

    def __init__(self, none: Resource) -> None:
        self.none = none

    @abstractmethod
    def compare(self, cluster: Resource, a: Resource, b: Resource) -> int:
        """Negative, 0 or positive as `a` is less, equal or more than `b`."""

    @abstractmethod
    def fits_in(self, small: Resource, big: Resource) -> bool:
        """True if `small` can be had out of `big`."""

    @abstractmethod
    def ratio(self, a: Resource, b: Resource) -> float:
        """a / b, 32 bits; 0 / 0 = 0, x / 0 = infinity."""

    @abstractmethod
    def divide(self, cluster: Resource, numerator: Resource, denominator: Resource) -> float:
        """numerator / denominator as shares of the cluster, 32 bits."""

    @abstractmethod
    def available_containers(self, available: Resource, required: Resource) -> int:
        """How many of `required` go into `available`; negative on an over-committed node."""

    @abstractmethod
    def is_any_above_zero(self, resource: Resource) -> bool:
        """isAnyMajorResourceAboveZero: some type that counts is above 0."""

    @abstractmethod
    def is_any_zero_or_negative(self, resource: Resource) -> bool:
        """isAnyMajorResourceZeroOrNegative: some type that counts is not above 0."""

    @abstractmethod
    def normalize(self, resource: Resource, smallest: Resource, largest: Resource, step: Resource) -> Resource:
        """An ask as it is served: at least `smallest`, a multiple of `step`, at most `largest`."""

    @abstractmethod
    def multiply_and_normalize_up(self, resource: Resource, by: float, step: Resource) -> Resource:
        """resource x by, rounded up to a multiple of `step`."""

    @abstractmethod
    def multiply_each_and_round_up(self, resource: Resource, by: Sequence[float]) -> Resource:
        """Each type times its own factor, in whole units (multiplyAndNormalizeUp with an array and steps of 1)."""

    @abstractmethod
    def multiply_and_normalize_down(self, resource: Resource, by: float, step: Resource) -> Resource:
        """resource x by, rounded down to a multiple of `step`."""

    @abstractmethod
    def round_up(self, resource: Resource, step: Resource) -> Resource:
        """The next multiple of `step`."""

    @abstractmethod
    def round_down(self, resource: Resource, step: Resource) -> Resource:
        """The multiple of `step` towards zero (normalizeDown is the same)."""

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
        """True if `resource` is greater than nothing."""
        return self.compare(cluster, resource, self.none) > 0

    def min_of(self, cluster: Resource, a: Resource, b: Resource) -> Resource:
        return a if self.compare(cluster, a, b) <= 0 else b

    def max_of(self, cluster: Resource, a: Resource, b: Resource) -> Resource:
        return a if self.compare(cluster, a, b) >= 0 else b


class DefaultResourceCalculator(ResourceCalculator):
    """Memory only."""

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

    # The same answers as from `compare`, without the second call: these are asked several times a container.

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


def of_memory(memory_mb: int) -> Resource:
    """Resources.createResource: an amount made new from memory alone has 1 vcore, or 0."""
    return Resource(memory_mb, 1 if memory_mb > 0 else 0)


def divided(a: int, b: int) -> float:
    """ResourceCalculator.divideSafelyAsFloat: each side becomes a 32-bit float first."""
    if b == 0:
        return 0.0 if a == 0 else math.copysign(math.inf, a)
    return f32(f32(a) / f32(b))


def divide_up(a: int, b: int) -> int:
    """ResourceCalculator.divideAndCeil of two longs."""
    return 0 if b == 0 else quotient(a + b - 1, b)


def multiplied(resource: Resource, by: float) -> Resource:
    """Resources.multiply: each component times `by`, cut off."""
    if not resource.extra:
        return Resource(truncated(resource.memory_mb * by), truncated(resource.vcores * by))
    return resource.with_values(truncated(value * by) for value in resource.values())


def subtracted_non_negative(a: Resource, b: Resource) -> Resource:
    """Resources.subtractNonNegative: memory and vcores do not go below 0, further types may."""
    rest = a - b
    return Resource(max(rest.memory_mb, 0), max(rest.vcores, 0), rest.extra)


def _up(value: int, step: int) -> int:
    return divide_up(value, step) * step


def _down(value: int, step: int) -> int:
    return quotient(value, step) * step if step else value
