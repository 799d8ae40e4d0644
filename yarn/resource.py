"""Amounts of memory, vcores and any number of further resource types.

A `Resource` is a plain value: two integers that every cluster has, and a tuple of named amounts for the types that only
some clusters have. The tuple contains the names, so a resource can be printed and sent without a table of types. Inside
one daemon all resources have the same names in the same order, because `ResourceTypes.complete` is called for each
resource from outside; so arithmetic need not look up names.

Rejected alternative: one tuple for all types. It is harder to read (`r[0]` for memory) and slower for the two types
that nearly every cluster has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from yarn.errors import ResourceNotFoundException

MEMORY_MB = "memory-mb"
VCORES = "vcores"
INT64_MAX = (1 << 63) - 1
INT32_MAX = (1 << 31) - 1
INT32_MIN = -(1 << 31)

Extra = tuple[tuple[str, int], ...]


class Resource:
    """An immutable amount: `memory_mb` (MiB), `vcores`, and `extra` ((type name, amount), ...).

    Components may be negative (a headroom, an over-committed node).
    """

    __slots__ = ("extra", "memory_mb", "vcores")

    def __init__(self, memory_mb: int, vcores: int, extra: Extra = ()) -> None:
        self.memory_mb = memory_mb
        self.vcores = vcores
        self.extra = extra

    @staticmethod
    def of(amounts: Mapping[str, int]) -> Resource:
        """The resource with these amounts by type name ({"memory-mb": MiB, "vcores": n, ...}); missing types are 0."""
        extra = tuple((name, amount) for name, amount in amounts.items() if name not in (MEMORY_MB, VCORES))
        return Resource(amounts.get(MEMORY_MB, 0), amounts.get(VCORES, 0), extra)

    def amounts(self) -> dict[str, int]:
        """{type name: amount}, memory-mb and vcores first."""
        return {MEMORY_MB: self.memory_mb, VCORES: self.vcores, **dict(self.extra)}

    def values(self) -> tuple[int, ...]:
        """The amounts in the order of the types."""
        if not self.extra:
            return (self.memory_mb, self.vcores)
        return (self.memory_mb, self.vcores, *(amount for _, amount in self.extra))

    def with_values(self, values: Iterable[int]) -> Resource:
        """A resource of the same types with these amounts, in the order of the types."""
        if not self.extra:
            memory_mb, vcores = values
            return Resource(memory_mb, vcores)
        memory_mb, vcores, *rest = values
        return Resource(memory_mb, vcores, tuple((e[0], v) for e, v in zip(self.extra, rest, strict=True)))

    def __add__(self, other: Resource) -> Resource:
        if self.extra or other.extra:
            return Resource(
                self.memory_mb + other.memory_mb,
                self.vcores + other.vcores,
                _combine(self.extra, other.extra, 1),
            )
        return Resource(self.memory_mb + other.memory_mb, self.vcores + other.vcores)

    def __sub__(self, other: Resource) -> Resource:
        if self.extra or other.extra:
            return Resource(
                self.memory_mb - other.memory_mb,
                self.vcores - other.vcores,
                _combine(self.extra, other.extra, -1),
            )
        return Resource(self.memory_mb - other.memory_mb, self.vcores - other.vcores)

    def __mul__(self, count: int) -> Resource:
        return Resource(self.memory_mb * count, self.vcores * count, tuple((n, v * count) for n, v in self.extra))

    def __neg__(self) -> Resource:
        return self * -1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Resource):
            return NotImplemented
        return self.memory_mb == other.memory_mb and self.vcores == other.vcores and self.extra == other.extra

    def __hash__(self) -> int:
        return hash((self.memory_mb, self.vcores, self.extra))

    def fits_in(self, room: Resource) -> bool:
        """True if no component is larger than that of `room` (Resources.fitsIn without a calculator)."""
        if self.memory_mb > room.memory_mb or self.vcores > room.vcores:
            return False
        # Without a generator: most resources have no more than memory and vcores.
        for mine, theirs in zip(self.extra, room.extra, strict=False) if self.extra else ():
            if mine[1] > theirs[1]:
                return False
        return True

    def __deepcopy__(self, _: object) -> Resource:
        return self

    def __reduce__(self) -> tuple[type[Resource], tuple[int, int, Extra]]:
        """Support pickle, which cannot make objects of a compiled class without their arguments."""
        return Resource, (self.memory_mb, self.vcores, self.extra)

    def is_none(self) -> bool:
        """True if every component is zero."""
        if self.memory_mb or self.vcores:
            return False
        return not self.extra or not any(amount for _, amount in self.extra)

    def __str__(self) -> str:
        """The resource as Hadoop prints it: `<memory:1024, vCores:1>`, with further types at the end."""
        rest = "".join(f", {name}: {amount}" for name, amount in self.extra)
        return f"<memory:{self.memory_mb}, vCores:{self.vcores}{rest}>"

    def __repr__(self) -> str:
        return f"Resource{self}"


NONE = Resource(0, 0)
"""The zero resource of a cluster with two types; for other clusters `ResourceTypes.none`."""


def componentwise_min(a: Resource, b: Resource) -> Resource:
    """The smaller amount of each type."""
    return a.with_values(map(min, a.values(), b.values()))


def componentwise_max(a: Resource, b: Resource) -> Resource:
    """The larger amount of each type."""
    return a.with_values(map(max, a.values(), b.values()))


class ResourceTypes:
    """The resource types of one cluster, in their fixed order: memory-mb, vcores, then `extra_names`."""

    __slots__ = ("extra_names", "none")

    def __init__(self, extra_names: tuple[str, ...] = ()) -> None:
        self.extra_names = extra_names
        self.none = Resource(0, 0, tuple((name, 0) for name in extra_names))

    def complete(self, resource: Resource) -> Resource:
        """`resource` with all types of the cluster in the cluster's order, missing ones 0.

        Raises ResourceNotFoundException for a type that the cluster does not know.
        """
        if not self.extra_names and not resource.extra:
            return resource
        given = dict(resource.extra)
        unknown = sorted(given.keys() - set(self.extra_names))
        if unknown:
            known = ", ".join((MEMORY_MB, VCORES, *self.extra_names))
            raise ResourceNotFoundException(
                f"Unknown resource '{unknown[0]}'. Known resources are [{known}] "
                f"(add it to yarn.resource-types of the ResourceManager)"
            )
        extra = tuple((name, given.get(name, 0)) for name in self.extra_names)
        return Resource(resource.memory_mb, resource.vcores, extra)


def _combine(a: Extra, b: Extra, sign: int) -> Extra:
    """Add further types, by position; by name if one operand, from outside, lacks some."""
    if len(a) == len(b) and all(x[0] == y[0] for x, y in zip(a, b, strict=True)):
        return tuple((x[0], x[1] + sign * y[1]) for x, y in zip(a, b, strict=True))
    total = dict(a)
    for name, amount in b:
        total[name] = total.get(name, 0) + sign * amount
    return tuple(total.items())
