"""What the configuration gives a queue of one partition: a percentage, a weight, or amounts.

`60` is 60 % of what the parent has, `3w` three parts of what the weights of all siblings make together, and
`[memory=8192,vcores=8]` just that. A queue with a weight or amounts has the percentage 0 in Hadoop, which the rules
about sums of percentages rely on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rm.scheduler.binary32 import f32, shortest
from rm.scheduler.reading import Reader
from yarn.java_values import parse_float
from yarn.resource import MEMORY_MB, VCORES, Resource, ResourceTypes

WEIGHT_NOT_SET = -1.0
WEIGHT_MAX = 10_000
"""The largest weight that Hadoop takes."""

_AMOUNTS = re.compile(r"\[[\w.,\-_= /]+\]", re.ASCII)
"""CapacitySchedulerConfiguration.RESOURCE_PATTERN."""

_VECTOR = re.compile(r"\[[\w.,\-_%= /]+\]", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_UNIT = re.compile(r"[^\W\d_]+$")

_PERCENT_REMEDY = "write a percentage from 0 to 100"
_WEIGHT_REMEDY = f"write a weight from 0w to {WEIGHT_MAX}w"

_UNIT_SIZES = {
    **{prefix: (1000**power, 1) for power, prefix in enumerate(("", "k", "M", "G", "T", "P"))},
    **{prefix: (1, 1000**power) for power, prefix in enumerate(("m", "u", "n", "p"), 1)},
    **{prefix: (1024**power, 1) for power, prefix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi"), 1)},
}
"""{unit: (numerator, denominator)} (UnitsConversionUtil)."""


@dataclass(frozen=True, slots=True)
class ConfiguredCapacity:
    """One partition's share of a queue, as written.

    `capacity`, `maximum_capacity`: 32-bit fractions of the parent's. `weight` -1 = none. `minimum`, `maximum`: the
    amounts, all zero if there are none. `is_absolute`: written as amounts, even such that count as not configured.
    """

    capacity: float
    maximum_capacity: float
    weight: float
    minimum: Resource
    maximum: Resource
    is_absolute: bool
    maximum_am_percent: float


class CapacityReader:
    """Reads the capacity of one queue on one partition; `prefix` is its keys' up to `capacity`."""

    __slots__ = ("_path", "_prefix", "_reader", "_types")

    def __init__(self, reader: Reader, path: str, prefix: str, types: ResourceTypes) -> None:
        self._reader = reader
        self._path = path
        self._prefix = prefix
        self._types = types

    def read(self, *, is_root: bool, above: ConfiguredCapacity | None, maximum_am_percent: float) -> ConfiguredCapacity:
        """`above`: the parent's on the same partition, whose maximum bounds amounts and is inherited by them."""
        key, maximum_key = self._prefix + "capacity", self._prefix + "maximum-capacity"
        minimum, maximum = self._amounts(key), self._amounts(maximum_key)
        ceiling = above.maximum if above is not None else self._types.none
        if maximum.is_none() and not minimum.is_none():
            maximum = ceiling
        return ConfiguredCapacity(
            capacity=1.0 if is_root else self._capacity(key),
            maximum_capacity=self._maximum_capacity(maximum_key),
            weight=self._weight(key),
            minimum=minimum,
            maximum=maximum,
            is_absolute=_AMOUNTS.fullmatch(self._reader.text(key)) is not None,
            maximum_am_percent=maximum_am_percent,
        )

    def _capacity(self, key: str) -> float:
        """The fraction of the parent's; 0 for the other notations."""
        text = self._reader.text(key, "0")
        if text.endswith("w") or _VECTOR.fullmatch(text):
            return 0.0
        percent = self._number(key, text, _PERCENT_REMEDY)
        if not 0 <= percent <= 100:
            self._reader.fault(key, f"Illegal capacity of {shortest(percent)} for queue {self._path}", _PERCENT_REMEDY)
            return 0.0
        return f32(percent / 100)

    def _maximum_capacity(self, key: str) -> float:
        """The fraction of the parent's maximum; -1 means all. As in Hadoop it is not held against the capacity."""
        text = self._reader.text(key, "100")
        if _VECTOR.fullmatch(text):
            return 1.0
        percent = self._number(key, text, _PERCENT_REMEDY)
        return 1.0 if percent == -1 else f32(percent / 100)

    def _weight(self, key: str) -> float:
        text = self._reader.text(key)
        if not text.endswith("w"):
            return WEIGHT_NOT_SET
        weight = self._number(key, text[: text.index("w")], _WEIGHT_REMEDY)
        if (weight < -1e-6 and abs(weight + 1) > 1e-6) or weight > WEIGHT_MAX:
            problem = (
                f"Illegal weight={shortest(weight)} for queue={self._path}label=. "
                f"Acceptable values: [0, {WEIGHT_MAX}], -1 is same as not set"
            )
            self._reader.fault(key, problem, _WEIGHT_REMEDY)
            return WEIGHT_NOT_SET
        return weight

    def _number(self, key: str, text: str, remedy: str) -> float:
        try:
            return parse_float(text)
        except ValueError as error:
            self._reader.fault(key, str(error), remedy)
            return 0.0

    def _amounts(self, key: str) -> Resource:
        """`[memory=8Gi,vcores=8]`; what is not known is passed over, and without memory nothing counts (3.4.1)."""
        text = self._reader.text(key)
        amounts = dict.fromkeys(self._types.none.amounts(), 0)
        if _AMOUNTS.fullmatch(text):
            for word in text[1:-1].split(","):
                name, equals, value = word.partition("=")
                name = MEMORY_MB if name.strip() == "memory" else name.strip()
                if equals and name in amounts:
                    amounts[name] = self._amount(key, value, amounts[name])
        return Resource.of(amounts) if amounts[MEMORY_MB] else self._types.none

    def _amount(self, key: str, text: str, before: int) -> int:
        """In MiB if it has a unit, whatever the type; `before` if the unit is unknown."""
        match = _UNIT.search(text)
        unit = match[0] if match is not None else ""
        if unit not in _UNIT_SIZES:
            return before
        number = text[: len(text) - len(unit)]
        if not _WHOLE.fullmatch(number):
            self._reader.fault(key, f"{text!r} is not a whole number", f"write memory=MB or {VCORES}=N")
            return before
        over, under = _UNIT_SIZES[unit]
        value = int(number)
        return value * over // (under * 1024**2) if unit else value
