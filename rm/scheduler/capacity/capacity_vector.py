"""A capacity with a unit for each resource type (QueueCapacityVector): `[memory=50%,vcores=2w]`.

An amount is that much, `50%` is half of what the amounts of all siblings leave of the parent's, `2w` two parts of what
amounts and percentages leave. `50` and `5w` without brackets say the same of each type. A type that is not named in
brackets is given the amount 0; brackets that name no memory say nothing at all, as does what is not understood.
"""

from __future__ import annotations

import re
from enum import Enum

from msgspec import Struct

from yarn.java.binary32 import f32
from yarn.java.hash_order import hash_order, string_hash
from yarn.java.values import parse_float
from yarn.resource import MEMORY_MB, ResourceTypes

_BRACKETS = re.compile(r"\[[\w.,\-%/]+=(?:[\w.,\-%/]{2,}=)*[\w.,\-%/]+\]", re.ASCII)
"""QueueCapacityConfigParser.RESOURCE_PATTERN, said so that a text that does not match is found out quickly."""

_PLAIN = re.compile(r"([0-9.]+)(.*)")

UNIT_SIZES: dict[str, tuple[int, int]] = {
    **{prefix: (1000**power, 1) for power, prefix in enumerate(("", "k", "M", "G", "T", "P"))},
    **{prefix: (1, 1000**power) for power, prefix in enumerate(("m", "u", "n", "p"), 1)},
    **{prefix: (1024**power, 1) for power, prefix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi"), 1)},
}
"""{unit: (numerator, denominator)} (UnitsConversionUtil)."""


class CapacityUnit(Enum):
    """What a capacity of one resource type is written in, in the order in which the types are handed out."""

    ABSOLUTE = ""
    PERCENTAGE = "%"
    WEIGHT = "w"


class CapacityEntry(Struct, frozen=True):
    """One resource type's capacity: 50 and PERCENTAGE are 50 %."""

    amount: float
    unit: CapacityUnit


class CapacityVector(Struct, frozen=True):
    """`entries` {resource type: its capacity}: all of the cluster's types, or none at all.

    `unknown`: further types among the entries, that were named and that the cluster does not have.
    """

    entries: dict[str, CapacityEntry]
    unknown: tuple[str, ...] = ()

    @property
    def units(self) -> frozenset[CapacityUnit]:
        """What the capacities of its types are written in."""
        return frozenset(entry.unit for entry in self.entries.values())

    @property
    def is_absolute(self) -> bool:
        """True if it gives amounts of every type."""
        return self.units == {CapacityUnit.ABSOLUTE}

    @property
    def common_weight(self) -> float | None:
        """The weight that all types have: `[memory=5w,vcores=5w]` is `5w`. None if they differ or have other units."""
        amounts = {entry.amount for entry in self.entries.values()}
        return amounts.pop() if self.units == {CapacityUnit.WEIGHT} and len(amounts) == 1 else None

    def __str__(self) -> str:
        """As Hadoop prints it, in the order of its hash map."""
        names = hash_order(self.entries, string_hash)
        return (
            "[" + ",".join(f"{name}={self.entries[name].amount}{self.entries[name].unit.value}" for name in names) + "]"
        )


NO_VECTOR = CapacityVector({})
"""Nothing is configured, or nothing that is understood."""


def uniform(amount: float, unit: CapacityUnit, types: ResourceTypes) -> CapacityVector:
    """The same of each resource type."""
    return CapacityVector(dict.fromkeys(types.none.amounts(), CapacityEntry(amount, unit)))


def is_in_brackets(text: str) -> bool:
    """True if it is written as a vector (isCapacityVectorFormat)."""
    return _BRACKETS.fullmatch(text.replace(" ", "")) is not None


def parse_vector(text: str, types: ResourceTypes) -> CapacityVector:
    """A capacity as a vector (QueueCapacityConfigParser). Raises ValueError for a number that is none."""
    text = text.replace(" ", "")
    if _BRACKETS.fullmatch(text):
        return _in_brackets(text[1:-1], types)
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
    return CapacityVector(entries, unknown) if entries[MEMORY_MB].amount else NO_VECTOR


def _entry(text: str) -> CapacityEntry | None:
    """`2.5w`; a unit of sizes makes MiB of it, an unknown one nothing. None if the number does not come first."""
    suffix = re.sub("[0-9.]", "", text)
    if not text.endswith(suffix):
        return None
    amount = parse_float(text[: len(text) - len(suffix)])
    if suffix and suffix in UNIT_SIZES:
        return CapacityEntry(f32(to_mib(int(amount), suffix)), CapacityUnit.ABSOLUTE)
    units: dict[str, CapacityUnit] = {unit.value: unit for unit in CapacityUnit}
    return CapacityEntry(amount, units.get(suffix, CapacityUnit.ABSOLUTE))


def to_mib(amount: int, unit: str) -> int:
    """UnitsConversionUtil.convert to Mi, cut off."""
    over, under = UNIT_SIZES[unit]
    return amount * over // (under * 1024**2)
