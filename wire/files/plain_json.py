"""Records as JSON for people and programs outside: without the names of classes, so it cannot be read back."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from enum import Enum
from typing import Any

from msgspec import Struct

from yarn.errors import YarnException
from yarn.records import shown_fields
from yarn.resource import Resource


def plain(value: object) -> Any:
    """Convert `value` for JSON: records to objects, enums to names, ids to text, resources to {type: amount}."""
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, str | bool | int | float):
        return value
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
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
