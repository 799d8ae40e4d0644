"""Records are msgspec structs: immutable, compared by value, made in C.

    class Tick(Struct, frozen=True): ...

A record that carries a secret derives from SecretRecord and names the fields that must never be shown.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class SecretRecord(Struct, frozen=True):
    """A record whose `secret_fields` are omitted in its repr, in event logs and in JSON."""

    secret_fields: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        parts = [f"{name}={getattr(self, name)!r}" for name in shown_fields(type(self))]
        return f"{type(self).__qualname__}({', '.join(parts)})"


def shown_fields(kind: type[Struct]) -> tuple[str, ...]:
    """The names of a record's fields that are not secret, in order."""
    if not issubclass(kind, SecretRecord):
        return kind.__struct_fields__
    return tuple(name for name in kind.__struct_fields__ if name not in kind.secret_fields)


def required_fields(kind: type[Struct]) -> tuple[str, ...]:
    """The names of a record's fields without a default, in order."""
    return kind.__struct_fields__[: len(kind.__struct_fields__) - len(kind.__struct_defaults__)]
