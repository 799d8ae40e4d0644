"""The configurations that a search may try: keys with the values that each may have. Pure.

Percentages of siblings must keep their sum. The siblings that a search may change share what is not at their lower
bounds: with bounds 30..70, 10..50, 10..50 and a sum of 100, fifty percent are left to divide. A point of the space is a
wish for each key, the number of a value. Wishes of siblings are fulfilled in turn, as far as what is left allows; the
last sibling gets the rest. So each point is a valid configuration, and each valid configuration is a point.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice, product
from typing import TypeAlias

from msgspec import Struct

Point: TypeAlias = tuple[int, ...]
"""The number of the value of each key, from 0."""
Settings: TypeAlias = dict[str, str]
"""{key: value} of the keys whose value is not that before."""
PRODUCT_MAX = 1_000_000
"""A space with more combinations of values, valid or not, is not enumerated."""


class Dimension(Struct, frozen=True):
    """A key with its values. `unit` follows each number of a range; `step`: between two values of a range, None for a
    list of values. `before`: the value before the search, None if the key is not set; `number_before`: that value, or
    the default, as a number.
    """

    key: str
    values: tuple[str, ...]
    before: str | None = None
    step: Decimal | None = None
    unit: str = ""
    number_before: Decimal | None = None

    def number(self, value: str) -> Decimal:
        """The number of a value of a range."""
        return Decimal(value.removesuffix(self.unit))

    def text(self, number: Decimal) -> str:
        """The value of a number."""
        return f"{number.normalize():f}{self.unit}"

    def is_before(self, value: str) -> bool:
        """True if the value is the one before the search, however that is written."""
        if self.step is not None and self.number_before is not None:
            return self.number(value) == self.number_before
        return value == self.before


class Siblings(Struct, frozen=True):
    """Percentages of queues that keep their sum: positions of dimensions with the same step. `steps`: how many steps
    they have together above their lower bounds.
    """

    positions: tuple[int, ...]
    steps: int


class Space(Struct, frozen=True):
    """The keys that may change, and which of them are siblings. No key is twice in it."""

    dimensions: tuple[Dimension, ...]
    siblings: tuple[Siblings, ...] = ()

    def nearest(self, wishes: Sequence[int]) -> Point:
        """The point with these wishes, those of siblings as far as their sum allows."""
        found = list(wishes)
        for group in self.siblings:
            left = group.steps
            room = sum(self._last(position) for position in group.positions)
            for position in group.positions:
                room -= self._last(position)
                found[position] = min(max(found[position], left - room, 0), self._last(position), left)
                left -= found[position]
        return tuple(found)

    def settings(self, point: Point) -> Settings:
        """The keys that differ from before, with their values."""
        chosen = ((each, each.values[number]) for each, number in zip(self.dimensions, point, strict=True))
        return {each.key: value for each, value in chosen if not each.is_before(value)}

    def point_before(self) -> Point | None:
        """The point of the configuration before the search; None if a value is out of bounds or between two steps."""
        found = []
        for each in self.dimensions:
            numbers = [number for number, value in enumerate(each.values) if each.is_before(value)]
            if not numbers:
                return None
            found.append(numbers[0])
        return tuple(found) if self.nearest(found) == tuple(found) else None

    def all_points(self, most: int) -> list[Point] | None:
        """All points of a space that has no more than `most`; None if it has more."""
        if math.prod(len(each.values) for each in self.dimensions) > PRODUCT_MAX:
            return None
        found = list(islice(self._valid(), most + 1))
        return found if len(found) <= most else None

    def size(self, settings: Mapping[str, str]) -> float:
        """The size of a difference: the number of keys, and less than one more for how far they are from before."""
        moved = sum(self._moved(each, settings[each.key]) for each in self.dimensions if each.key in settings)
        return len(settings) + moved / (1 + moved)

    def reductions(self, settings: Settings) -> Iterator[Settings]:
        """Smaller differences, each with one change taken back, wholly or in part: the largest reduction first."""
        parts = [*self._single_reductions(settings), *self._sibling_reductions(settings)]
        different = {tuple(sorted(each.items())): each for each in parts if each != settings}
        yield from sorted(different.values(), key=self.size)

    def _valid(self) -> Iterator[Point]:
        for point in product(*(range(len(each.values)) for each in self.dimensions)):
            if all(sum(point[position] for position in group.positions) == group.steps for group in self.siblings):
                yield point

    def _last(self, position: int) -> int:
        return len(self.dimensions[position].values) - 1

    def _moved(self, dimension: Dimension, value: str) -> float:
        if dimension.step is None or dimension.number_before is None:
            return 1.0
        span = dimension.number(dimension.values[-1]) - dimension.number(dimension.values[0])
        return float(abs(dimension.number(value) - dimension.number_before) / (span or 1))

    def _single_reductions(self, settings: Settings) -> Iterator[Settings]:
        among_siblings = {position for group in self.siblings for position in group.positions}
        for position, each in enumerate(self.dimensions):
            if position in among_siblings or each.key not in settings:
                continue
            yield {key: value for key, value in settings.items() if key != each.key}
            if each.step is None or each.number_before is None:
                continue
            number = each.number(settings[each.key])
            for part in _parts(abs(number - each.number_before), each.step):
                back = part if number < each.number_before else -part
                yield {**settings, each.key: each.text(number + back)}

    def _sibling_reductions(self, settings: Settings) -> Iterator[Settings]:
        for group in self.siblings:
            members = [self.dimensions[position] for position in group.positions]
            yield {key: value for key, value in settings.items() if all(key != each.key for each in members)}
            numbers = [(each, _number_now(each, settings)) for each in members]
            gained = {each: now - each.number_before for each, now in numbers if each.number_before is not None}
            pairs = [(one, other) for one in gained for other in gained if gained[one] > 0 > gained[other]]
            for one, other in pairs:
                together = min(gained[one], -gained[other])
                for part in (together, *_parts(together, one.step or together)):
                    yield self._moved_back(settings, gained, (one, other), part)

    def _moved_back(
        self, settings: Settings, gained: Mapping[Dimension, Decimal], pair: tuple[Dimension, Dimension], part: Decimal
    ) -> Settings:
        """The settings after `part` of what the first of a pair has gained was given back to the second."""
        found = dict(settings)
        for each, change in zip(pair, (gained[pair[0]] - part, gained[pair[1]] + part), strict=True):
            assert each.number_before is not None
            found[each.key] = each.text(each.number_before + change)
            if not change:
                del found[each.key]
        return found


def _number_now(dimension: Dimension, settings: Mapping[str, str]) -> Decimal:
    if dimension.key in settings:
        return dimension.number(settings[dimension.key])
    assert dimension.number_before is not None, "siblings have percentages before the search"
    return dimension.number_before


def _parts(whole: Decimal, step: Decimal) -> Iterator[Decimal]:
    """Half of the amount and a single step, where they are less than the whole."""
    half = whole // 2 // step * step
    if step < half:
        yield half
    if step < whole:
        yield step
