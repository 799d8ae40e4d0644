"""Finds the queues whose percentages must keep their sum: those of one parent, in one partition. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from yarn.faults import Fault, Origin
from yarn.settings.scheduler import queue_key, queue_of
from yarnling.search.space import Dimension, Siblings


def siblings_of(
    dimensions: Sequence[Dimension], values: Mapping[str, str], origin: Origin
) -> tuple[tuple[Siblings, ...], list[Fault]]:
    """The siblings among the keys, and the faults of those whose sum cannot be kept. `values` {key: value} are those
    of the configuration.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for position, dimension in enumerate(dimensions):
        if (family := _family(dimension)) is not None:
            groups.setdefault(family, []).append(position)
    found, faults = [], []
    for (parent, name), positions in groups.items():
        members = [dimensions[position] for position in positions]
        problem = _problem(members, _others(parent, name, members, values))
        if problem is None:
            found.append(Siblings(tuple(positions), int(_left(members) / _step(members))))
        else:
            faults.append(Fault("change", ", ".join(each.key for each in members), origin, *problem))
    return tuple(found), faults


def _family(dimension: Dimension) -> tuple[str, str] | None:
    """(parent, what follows the path of the queue) of a percentage that is a part of a sum; None for other keys."""
    path = queue_of(dimension.key)
    if path is None or "." not in path or dimension.unit or dimension.key.endswith("maximum-capacity"):
        return None
    name = dimension.key.removeprefix(queue_key(path, ""))
    return (path.rpartition(".")[0], name) if name == "capacity" or name.endswith(".capacity") else None


def _others(parent: str, name: str, members: Sequence[Dimension], values: Mapping[str, str]) -> list[str]:
    """The names of the other queues of the parent."""
    listed = [each.strip() for each in values.get(queue_key(parent, "queues"), "").split(",") if each.strip()]
    keys = {each.key for each in members}
    return [each for each in listed if queue_key(f"{parent}.{each}", name) not in keys]


def _problem(members: Sequence[Dimension], others: Sequence[str]) -> tuple[str, str] | None:
    """(problem, remedy) if the sum of the percentages cannot be kept."""
    if any(each.step is None or each.number_before is None for each in members):
        return "are parts of a sum, and a list of values cannot keep it", "write `from: ..., to: ..., step: ...`"
    if len({each.step for each in members}) > 1:
        return "have different steps, and their sum must not change", "write the same step for all of them"
    if len(members) == 1:
        remedy = f"let the capacity of {' or '.join(others[:5])} change too" if others else "remove it"
        return "cannot change alone: the capacities of siblings keep their sum", remedy
    lowest, total = (sum(numbers, Decimal()) for numbers in (_bounds(members, 0), _before(members)))
    highest = sum(_bounds(members, -1), Decimal())
    if not lowest <= total <= highest:
        return f"sum up to {total}, but from {lowest} to {highest} within their bounds", "write other bounds"
    if _left(members) % _step(members):
        return f"sum up to {total}, which no steps of {_step(members)} from {lowest} reach", "write a smaller step"
    return None


def _left(members: Sequence[Dimension]) -> Decimal:
    """The percentage that the members have together above their lower bounds."""
    return sum(_before(members), Decimal()) - sum(_bounds(members, 0), Decimal())


def _before(members: Sequence[Dimension]) -> list[Decimal]:
    return [each.number_before for each in members if each.number_before is not None]


def _bounds(members: Sequence[Dimension], which: int) -> list[Decimal]:
    return [each.number(each.values[which]) for each in members]


def _step(members: Sequence[Dimension]) -> Decimal:
    return members[0].step or Decimal(1)
