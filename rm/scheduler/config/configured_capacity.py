"""Reads the capacity of a queue on one partition: a percentage, a weight, amounts, or a unit for each resource type.

`60` is 60 % of the parent's capacity. `3w` is three parts of the sum of the weights of all siblings.
`[memory=8192,vcores=8]` are amounts. In Hadoop a queue with a weight or amounts has the percentage 0; the rules about
sums of percentages rely on this.

Without legacy queue mode each resource type has its own unit (QueueCapacityVector): `[memory=50%,vcores=2w]`. An amount
is taken as it is. `50%` is half of what is left of the parent's after the amounts of all siblings. `2w` is two parts of
what is left after amounts and percentages. `50` and `5w` without brackets apply to each type. A type that is not named
in brackets has the amount 0. Text that cannot be parsed counts as not configured, and before Hadoop 3.5.0 so do
brackets without memory.
"""

from __future__ import annotations

import re
from enum import Enum

from msgspec import Struct

from rm.scheduler.config.reader import Reader
from yarn.faults import untrimmed
from yarn.java.binary32 import f32, shortest
from yarn.java.hash_order import hash_order, string_hash
from yarn.java.values import parse_float
from yarn.resource import MEMORY_MB, VCORES, Resource, ResourceTypes

WEIGHT_NOT_SET = -1.0
DYNAMIC_WEIGHT = 1.0
"""The weight of a queue that was created on demand, unless its template sets another one."""
WEIGHT_MAX = 10_000
"""The largest weight that Hadoop accepts."""

_END = r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)"
"""The end of a value for Java's `$`: one line break may follow."""

_AMOUNTS = re.compile(r"\[[\w.,\-_= /]+\]" + _END, re.ASCII)
"""Amounts in brackets (CapacitySchedulerConfiguration.RESOURCE_PATTERN). As in Hadoop, the values are not trimmed."""

_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_UNIT = re.compile(r"[^\W\d_]+$")

_PERCENT_REMEDY = "write a percentage from 0 to 100"
_WEIGHT_REMEDY = f"write a weight from 0w to {WEIGHT_MAX}w"

_BRACKETS = re.compile(r"\[[\w.,\-%/]+=(?:[\w.,\-%/]{2,}=)*[\w.,\-%/]+\]" + _END, re.ASCII)
"""QueueCapacityConfigParser.RESOURCE_PATTERN, written so that it never backtracks far."""

_PLAIN = re.compile(r"([0-9.]+)(.*)")

UNIT_SIZES: dict[str, tuple[int, int]] = {
    **{prefix: (1000**power, 1) for power, prefix in enumerate(("", "k", "M", "G", "T", "P"))},
    **{prefix: (1, 1000**power) for power, prefix in enumerate(("m", "u", "n", "p"), 1)},
    **{prefix: (1024**power, 1) for power, prefix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi"), 1)},
}
"""{unit of sizes: its factor as (numerator, denominator)} (UnitsConversionUtil)."""


class CapacityUnit(Enum):
    """The unit of the capacity of one resource type; types are divided in the order of these units."""

    ABSOLUTE = ""
    PERCENTAGE = "%"
    WEIGHT = "w"


class CapacityEntry(Struct, frozen=True):
    """The capacity of one resource type: (50, PERCENTAGE) is 50 %."""

    amount: float
    unit: CapacityUnit


class CapacityVector(Struct, frozen=True):
    """A capacity with a unit for each resource type.

    `entries` {resource type: its capacity} has all types of the cluster, or none. `unknown`: types that were named and
    that the cluster does not have.
    """

    entries: dict[str, CapacityEntry]
    unknown: tuple[str, ...] = ()

    @property
    def units(self) -> frozenset[CapacityUnit]:
        """The units that are used."""
        return frozenset(entry.unit for entry in self.entries.values())

    @property
    def is_absolute(self) -> bool:
        """True if the vector has amounts for every type."""
        return self.units == frozenset({CapacityUnit.ABSOLUTE})

    @property
    def common_weight(self) -> float | None:
        """The weight if all types have the same one: `[memory=5w,vcores=5w]` is `5w`. None otherwise."""
        amounts = {entry.amount for entry in self.entries.values()}
        return amounts.pop() if self.units == frozenset({CapacityUnit.WEIGHT}) and len(amounts) == 1 else None

    def __str__(self) -> str:
        """The vector as Hadoop prints it, in the order of Java's hash map."""
        names = hash_order(self.entries, string_hash)
        return (
            "[" + ",".join(f"{name}={self.entries[name].amount}{self.entries[name].unit.value}" for name in names) + "]"
        )


NO_VECTOR = CapacityVector({})
"""The vector if nothing is configured, or nothing that can be parsed."""


def uniform(amount: float, unit: CapacityUnit, types: ResourceTypes) -> CapacityVector:
    """The vector with the same capacity for each resource type."""
    return CapacityVector(dict.fromkeys(types.none.amounts(), CapacityEntry(amount, unit)))


def is_in_brackets(text: str) -> bool:
    """True if the capacity is written as a vector (isCapacityVectorFormat)."""
    return _BRACKETS.match(text.replace(" ", "")) is not None


def parse_vector(text: str, types: ResourceTypes, *, needs_memory: bool = True) -> CapacityVector:
    """Parse a capacity as a vector (QueueCapacityConfigParser). Raises ValueError for an invalid number.

    `needs_memory`: brackets without memory count as not configured.
    """
    text = text.replace(" ", "")
    if brackets := _BRACKETS.match(text):
        vector = _in_brackets(brackets[0][1:-1], types)
        return vector if vector.entries[MEMORY_MB].amount or not needs_memory else NO_VECTOR
    plain = _PLAIN.match(text)
    units = {"": CapacityUnit.PERCENTAGE, "w": CapacityUnit.WEIGHT}
    if plain is None or plain[2] not in units:
        return NO_VECTOR
    return uniform(parse_float(plain[1]), units[plain[2]], types)


def _in_brackets(text: str, types: ResourceTypes) -> CapacityVector:
    entries = dict.fromkeys(types.none.amounts(), CapacityEntry(0.0, CapacityUnit.ABSOLUTE))
    for word in text.split(","):
        name, *values = word.split("=")
        entry = _entry(values[0]) if values and values[0] else None
        name = MEMORY_MB if name == "memory" else name
        if entry is not None:
            entries[name] = entry
    unknown = tuple(name for name in entries if name not in types.none.amounts())
    return CapacityVector(entries, unknown)


def _entry(text: str) -> CapacityEntry | None:
    """Parse a value such as `2.5w`; None if it does not start with a number.

    A size with a unit is converted to MiB; an unknown unit is ignored.
    """
    suffix = re.sub("[0-9.]", "", text)
    if not text.endswith(suffix):
        return None
    amount = parse_float(text[: len(text) - len(suffix)])
    if suffix and suffix in UNIT_SIZES:
        return CapacityEntry(f32(to_mib(int(amount), suffix)), CapacityUnit.ABSOLUTE)
    units: dict[str, CapacityUnit] = {unit.value: unit for unit in CapacityUnit}
    return CapacityEntry(amount, units.get(suffix, CapacityUnit.ABSOLUTE))


def to_mib(amount: int, unit: str) -> int:
    """UnitsConversionUtil.convert to Mi, truncated."""
    over, under = UNIT_SIZES[unit]
    return amount * over // (under * 1024**2)


class ConfiguredCapacity(Struct, frozen=True):
    """The capacity of a queue on one partition, as configured.

    `capacity`, `maximum_capacity`: 32-bit fractions of the parent's. `weight`: -1 = none. `minimum`, `maximum`:
    amounts, all zero if there are none. `is_absolute`: written as amounts, also if they count as not configured.
    `vector`, `maximum_vector`: the same for each resource type; they are used if legacy queue mode is off.
    """

    capacity: float
    maximum_capacity: float
    weight: float
    minimum: Resource
    maximum: Resource
    is_absolute: bool
    maximum_am_percent: float
    vector: CapacityVector
    maximum_vector: CapacityVector


class CapacityReader:
    """Reads the capacity of one queue on one partition. `prefix`: the part of its keys before `capacity`."""

    __slots__ = ("_label", "_legacy", "_path", "_prefix", "_reader", "_types")

    def __init__(
        self, reader: Reader, path: str, prefix: str, types: ResourceTypes, *, label: str, legacy: bool
    ) -> None:
        self._reader = reader
        self._legacy = legacy
        self._path = path
        self._prefix = prefix
        self._types = types
        self._label = label

    def read(self, *, is_root: bool, above: ConfiguredCapacity | None, maximum_am_percent: float) -> ConfiguredCapacity:
        """Read the capacity.

        `above`: the parent's capacity on the same partition; its maximum bounds amounts, and queues with amounts
        inherit it.
        """
        key, maximum_key = self._prefix + "capacity", self._prefix + "maximum-capacity"
        minimum, maximum = self._amounts(key), self._amounts(maximum_key)
        ceiling = above.maximum if above is not None else self._types.none
        if maximum.is_none() and not minimum.is_none():
            maximum = ceiling
        every = uniform(100.0, CapacityUnit.PERCENTAGE, self._types) if is_root else None
        weight, vector = self._weight(key), every or self._vector(key, NO_VECTOR)
        as_amounts = _AMOUNTS.match(self._reader.raw(key)) is not None
        return ConfiguredCapacity(
            capacity=1.0 if is_root else self._capacity(key),
            maximum_capacity=1.0 if is_root and self._label else self._maximum_capacity(maximum_key),
            weight=weight if vector.common_weight is None else vector.common_weight,
            minimum=minimum,
            maximum=maximum,
            is_absolute=as_amounts if self._legacy else vector.is_absolute,
            maximum_am_percent=maximum_am_percent,
            vector=vector,
            maximum_vector=every or self._vector(maximum_key, uniform(0.0, CapacityUnit.ABSOLUTE, self._types)),
        )

    def _vector(self, key: str, default: CapacityVector) -> CapacityVector:
        """The vector; `default` if nothing is configured, or nothing that can be parsed."""
        try:
            needs_memory = not self._reader.release.keeps_vectors_without_memory
            vector = parse_vector(self._reader.raw(key), self._types, needs_memory=needs_memory)
            return vector if vector.entries else default
        except ValueError as error:
            if key not in {fault.key for fault in self._reader.faults}:
                self._reader.fault(key, str(error), "write numbers, each alone or followed by % or w")
            return default

    def _capacity(self, key: str) -> float:
        """The capacity as a fraction of the parent's; 0 for the other notations."""
        text = self._reader.raw(key, "0")
        if text.endswith("w") or _AMOUNTS.match(text) or is_in_brackets(text):
            return 0.0
        percent = self._number(key, text, _PERCENT_REMEDY)
        return f32(percent / 100) if self._is_percentage(key, percent) else 0.0

    def _maximum_capacity(self, key: str) -> float:
        """The maximum as a fraction of the parent's maximum. As in Hadoop it may be below the capacity.

        On the default partition any number is accepted, and -1 means everything; on a label it must be a percentage.
        """
        text = self._reader.raw(key, "100")
        if _AMOUNTS.match(text) or is_in_brackets(text) or (self._label and text.endswith("w")):
            return 1.0
        percent = self._number(key, text, _PERCENT_REMEDY)
        if self._label:
            return f32(percent / 100) if self._is_percentage(key, percent) else 1.0
        return 1.0 if percent == -1 else f32(percent / 100)

    def _is_percentage(self, key: str, percent: float) -> bool:
        if 0 <= percent <= 100:
            return True
        if self._label:
            problem = (
                f"Illegal capacity of {shortest(percent)} for node-label={self._label} in queue={self._path}, valid "
                "capacity should in range of [0, 100]."
            )
        else:
            problem = f"Illegal capacity of {shortest(percent)} for queue {self._path}"
        self._reader.fault(key, problem, _PERCENT_REMEDY)
        return False

    def _weight(self, key: str) -> float:
        text = self._reader.raw(key)
        if not text.endswith("w"):
            return WEIGHT_NOT_SET
        weight = self._number(key, text[: text.index("w")], _WEIGHT_REMEDY)
        if (weight < -1e-6 and abs(weight + 1) > 1e-6) or weight > WEIGHT_MAX:
            problem = (
                f"Illegal weight={shortest(weight)} for queue={self._path}label={self._label}. "
                f"Acceptable values: [0, {WEIGHT_MAX}], -1 is same as not set"
            )
            self._reader.fault(key, problem, _WEIGHT_REMEDY)
            return WEIGHT_NOT_SET
        return weight

    def _number(self, key: str, text: str, remedy: str) -> float:
        try:
            return parse_float(text)
        except ValueError as error:
            self._reader.fault(key, untrimmed(text, str(error)), remedy)
            return 0.0

    def _amounts(self, key: str) -> Resource:
        """Parse `[memory=8Gi,vcores=8]`. Unknown types are ignored; without memory nothing is configured (3.4.1)."""
        text = self._reader.raw(key)
        amounts = dict.fromkeys(self._types.none.amounts(), 0)
        if self._legacy and not _AMOUNTS.match(text) and is_in_brackets(text) and _AMOUNTS.match(text.strip()):
            self._reader.warn(key, untrimmed(text, "counts as not configured"), "write [memory=MB,vcores=N]")
        if match := _AMOUNTS.match(text):
            for word in match[0][1:-1].split(","):
                name, *values = word.rstrip("=").split("=")
                name = MEMORY_MB if name.strip() == "memory" else name.strip()
                if values and name in amounts:
                    amounts[name] = self._amount(key, values[0], amounts[name])
        return Resource.of(amounts) if amounts[MEMORY_MB] else self._types.none

    def _amount(self, key: str, text: str, before: int) -> int:
        """An amount, in MiB if it has a unit, whatever the type; `before` if the unit is unknown."""
        match = _UNIT.search(text)
        unit = match[0] if match is not None else ""
        if unit not in UNIT_SIZES:
            return before
        number = text[: len(text) - len(unit)]
        if not _WHOLE.fullmatch(number):
            self._reader.fault(key, f"{text!r} is not a whole number", f"write memory=MB or {VCORES}=N")
            return before
        return to_mib(int(number), unit) if unit else int(number)
