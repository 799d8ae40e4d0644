"""The resource types by which an amount is above a limit.

The DominantResourceCalculator compares shares of the cluster, not amounts. In a cluster of 100 GB and 20 vcores a limit
of <10 GB, 10 vcores> is half of the cluster, so a user may hold 42 GB in 8 vcores: only 42 % of the cluster. Above the
limit, the dominant type of what is held is what binds: 11 of 10 vcores, or 51 of 50 GB, half of the memory. "42 of
10 GB" would name a bound that nothing is compared with.
"""

from __future__ import annotations

from msgspec import Struct

from rm.scheduler.model.context import SchedulerContext
from yarn.resource import MEMORY_MB, Resource
from yarn.resource_calculator import DefaultResourceCalculator


class Binding(Struct, frozen=True):
    """A resource type whose amount has reached its bound.

    `limit_type`: the dominant type of the limit, and `limit_amount` how much of it, if the bound is as large a share of
    the cluster as that; "" if the limit has the bound itself.
    """

    type_name: str
    amount: int
    bound: int
    limit_type: str = ""
    limit_amount: int = 0


def bindings_of(context: SchedulerContext, amount: Resource, limit: Resource) -> tuple[Binding, ...]:
    """The types that bind where `ResourceCalculator.compare` finds that `amount` is not below `limit`.

    Several if their shares are equal; none if the cluster has nothing.
    """
    amounts, limits = amount.amounts(), limit.amounts()
    if isinstance(context.calculator, DefaultResourceCalculator):
        return (Binding(MEMORY_MB, amount.memory_mb, limit.memory_mb),)
    whole = {name: total for name, total in context.cluster_resource.amounts().items() if total > 0}
    dominant, of_limit = _largest(amounts, whole), _largest(limits, whole)
    if not dominant or set(dominant) & set(of_limit):
        return tuple(Binding(name, amounts[name], limits[name]) for name in dominant if name in of_limit)
    first = of_limit[0]
    return tuple(
        Binding(name, amounts[name], limits[first] * whole[name] // whole[first], first, limits[first])
        for name in dominant
    )


def _largest(amounts: dict[str, int], whole: dict[str, int]) -> list[str]:
    """The types with the largest share of the whole."""
    shares = {name: amounts.get(name, 0) / total for name, total in whole.items()}
    return [name for name, share in shares.items() if share == max(shares.values())]
