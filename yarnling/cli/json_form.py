"""Our records as JSON for programs: enums by name, ids as Hadoop prints them, resources by their types."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from msgspec import Struct

from yarn.errors import YarnException
from yarn.records import shown_fields
from yarn.resource import Resource


def text(value: object) -> str:
    """`value` as indented JSON."""
    return json.dumps(plain(value), indent=2)


def plain(value: object) -> Any:
    """`value` in what JSON has. TypeError for what is none of our records."""
    if value is None or isinstance(value, str | bool | float) or (isinstance(value, int) and not _is_enum(value)):
        return value
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Resource):
        return value.amounts()
    if isinstance(value, Struct):
        return {name: plain(getattr(value, name)) for name in shown_fields(type(value))}
    if isinstance(value, YarnException):
        return {"exception": value.java_class, "message": value.message}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return str(value)
    if isinstance(value, frozenset | set):
        return sorted(plain(entry) for entry in value)
    if isinstance(value, tuple | list):
        return [plain(entry) for entry in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _is_enum(value: object) -> bool:
    return isinstance(value, Enum)
