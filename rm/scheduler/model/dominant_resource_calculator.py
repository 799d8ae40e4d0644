"""Amounts compared by their dominant share: the largest part of the cluster that any of their types takes.

On a cluster of 100 GB and 10 vcores <20 GB, 1> has the shares 0.2 and 0.1, <10 GB, 5> has 0.1 and 0.5: the second is
the larger, though it has less memory. So `less` and `greater` are an order, not a comparison of components: a queue
can be over its limit in vcores and yet not greater than it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rm.scheduler.model.resource_calculator import ResourceCalculator, divide_up, divided
from yarn.java.binary32 import ceiled, f32, quotient, truncated
from yarn.resource import INT32_MAX, Resource


class DominantResourceCalculator(ResourceCalculator):
    """All types count."""

    __slots__ = ()

    def compare(self, cluster: Resource, a: Resource, b: Resource) -> int:
        if a == b:
            return 0
        if not any(cluster.values()):
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
        return resource.with_values(min(_up(max(value, low), by), high) for value, low, high, by in rows)

    def multiply_and_normalize_up(self, resource: Resource, by: float, step: Resource) -> Resource:
        rows = zip(resource.values(), step.values(), strict=True)
        return resource.with_values(_up(ceiled(f32(value * by)), unit) for value, unit in rows)

    def multiply_each_and_round_up(self, resource: Resource, by: Sequence[float]) -> Resource:
        return resource.with_values(ceiled(value * factor) for value, factor in zip(resource.values(), by, strict=True))

    def multiply_and_normalize_down(self, resource: Resource, by: float, step: Resource) -> Resource:
        rows = zip(resource.values(), step.values(), strict=True)
        return resource.with_values(_down(truncated(value * by), unit) for value, unit in rows)

    def round_up(self, resource: Resource, step: Resource) -> Resource:
        return resource.with_values(map(_up, resource.values(), step.values()))

    def round_down(self, resource: Resource, step: Resource) -> Resource:
        return resource.with_values(map(_down, resource.values(), step.values()))

    def divide_and_ceil(self, resource: Resource, by: float) -> Resource:
        if by == 0:
            return resource * 0
        return resource.with_values(ceiled(f32(f32(value) / by)) for value in resource.values())

    def divide_and_ceil_by(self, resource: Resource, by: int) -> Resource:
        return resource.with_values(divide_up(value, by) for value in resource.values())


def _share(whole: int, value: int) -> float:
    return value / whole if whole else math.inf


def _shares(cluster: Resource, resource: Resource) -> list[float]:
    return list(map(_share, cluster.values(), resource.values()))


def _largest_share(cluster: Resource, resource: Resource) -> float:
    """Types that the cluster has none of do not count, nor do negative shares."""
    return max([0.0, *(share for share in _shares(cluster, resource) if share != math.inf)])


def _compare_two(cluster: Resource, a: Resource, b: Resource) -> int:
    """Memory and vcores: the dominant shares decide, then the others."""
    a_memory, a_vcores = _share(cluster.memory_mb, a.memory_mb), _share(cluster.vcores, a.vcores)
    b_memory, b_vcores = _share(cluster.memory_mb, b.memory_mb), _share(cluster.vcores, b.vcores)
    a_pair = (a_vcores, a_memory) if a_vcores > a_memory else (a_memory, a_vcores)
    b_pair = (b_vcores, b_memory) if b_vcores > b_memory else (b_memory, b_vcores)
    return (a_pair > b_pair) - (a_pair < b_pair)


def _compare_many(a_shares: list[float], b_shares: list[float]) -> int:
    """From the largest share down, passing over what is infinite on either side."""
    for a, b in zip(sorted(a_shares, reverse=True), sorted(b_shares, reverse=True), strict=True):
        if math.inf not in (a, b) and a != b:
            return 1 if a > b else -1
    return 0


def _compare_without_shares(a: Resource, b: Resource) -> int:
    """In a cluster of nothing: larger in some type and smaller in none."""
    pairs = list(zip(a.values(), b.values(), strict=True))
    greater, smaller = any(x > y for x, y in pairs), any(x < y for x, y in pairs)
    return 0 if greater and smaller else int(greater) - int(smaller)


def _up(value: int, step: int) -> int:
    return divide_up(value, step) * step if step else value


def _down(value: int, step: int) -> int:
    return quotient(value, step) * step if step else value
