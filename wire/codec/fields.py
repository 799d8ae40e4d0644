"""Reads fields of messages from outside: required fields, text, and enum members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, TypeVar

from google.protobuf.message import Message

from yarn.errors import InvalidArgumentException
from yarn.resource import INT32_MAX, INT64_MAX

TEXT_LENGTH_MAX = 1 << 20
"""The maximum of characters in one text: far more than any reasonable command line or diagnostics (see YARN-8972)."""

_INT32_MIN = -INT32_MAX - 1
_INT64_MIN = -INT64_MAX - 1

_E = TypeVar("_E", bound=Enum)


def name_of(proto: Message, field: str) -> str:
    """The name of a field in errors: `NodeIdProto.host`."""
    return f"{proto.DESCRIPTOR.name}.{field}"


def text(proto: Message, field: str) -> str:
    """The value of a string field. Raises InvalidArgumentException if it is not UTF-8 or too long."""
    value = getattr(proto, field)
    # protobuf returns bytes if a proto2 string is not UTF-8.
    if not isinstance(value, str):
        raise InvalidArgumentException(f"{name_of(proto, field)} is not UTF-8: {bytes(value)[:40]!r}")
    if len(value) > TEXT_LENGTH_MAX:
        raise InvalidArgumentException(
            f"{name_of(proto, field)} has {len(value)} characters, at most {TEXT_LENGTH_MAX} are accepted"
        )
    return value


def optional_text(proto: Message, field: str) -> str | None:
    """The value of a string field; None if it was not sent."""
    return text(proto, field) if proto.HasField(field) else None


def texts(proto: Message, field: str) -> tuple[str, ...]:
    """The values of a repeated string field. Raises as `text`."""
    values: Iterable[object] = getattr(proto, field)
    checked = []
    for number, value in enumerate(values):
        if not isinstance(value, str):
            raise InvalidArgumentException(f"{name_of(proto, field)}[{number}] is not UTF-8")
        if len(value) > TEXT_LENGTH_MAX:
            raise InvalidArgumentException(
                f"{name_of(proto, field)}[{number}] has {len(value)} characters, at most {TEXT_LENGTH_MAX} are accepted"
            )
        checked.append(value)
    return tuple(checked)


def required(proto: Message, field: str) -> Any:
    """A required submessage. Raises InvalidArgumentException if it was not sent."""
    if not proto.HasField(field):
        raise InvalidArgumentException(f"{name_of(proto, field)} is missing")
    return getattr(proto, field)


def optional_int(proto: Message, field: str) -> int | None:
    """The value of a number field; None if it was not sent."""
    return int(getattr(proto, field)) if proto.HasField(field) else None


def members(kind: type[_E]) -> Mapping[int, _E]:
    """{number on the wire: member}. A look-up here is several times faster than calling the Enum."""
    return {member.value: member for member in kind}


def member(table: Mapping[int, _E], proto: Message, field: str) -> _E:
    """A required enum field.

    Raises InvalidArgumentException if it was not sent, or is a number unknown to the schema.
    """
    if not proto.HasField(field):
        known = ", ".join(found.name for found in table.values())
        raise InvalidArgumentException(f"{name_of(proto, field)} is missing or not one of {known}")
    return table[getattr(proto, field)]


def optional_member(table: Mapping[int, _E], proto: Message, field: str) -> _E | None:
    """An enum field; None if it was not sent."""
    return table[getattr(proto, field)] if proto.HasField(field) else None


def refuse_too_many(proto: Message, field: str, limit: int) -> None:
    """Raises InvalidArgumentException if a repeated field has more than `limit` entries."""
    count = len(getattr(proto, field))
    if count > limit:
        raise InvalidArgumentException(
            f"{name_of(proto, field)} has {count} entries, at most {limit} are accepted (send several messages)"
        )


def int32(value: int) -> int:
    """`value` limited to 32 bits: a larger number becomes the largest one, as in Hadoop's casts of amounts."""
    return max(_INT32_MIN, min(INT32_MAX, value))


def int64(value: int) -> int:
    """`value` limited to 64 bits. A sum of valid sizes may exceed them, and must not make a reply fail."""
    return max(_INT64_MIN, min(INT64_MAX, value))


def number(kind: Enum) -> Any:
    """The number of an enum member on the wire, with the type that the generated code requires."""
    return kind.value
