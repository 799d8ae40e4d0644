"""The whole state of a core as text, for comparison: the fields of all reachable objects, in order."""

from __future__ import annotations

import types
from collections.abc import Iterator
from enum import Enum
from typing import Any

from rm.core.resource_manager import ResourceManagerCore
from tests.compiled import attribute_names

NOT_STATE = frozenset(
    {
        *("effects", "history", "_audit", "watch"),
        *("change_count", "confined_count", "own_change_count", "shared_change_count", "stored_limit_count"),
        *("_memo", "listener", "version", "limits", "user_limits", "ratios", "_passes", "in_pass"),
    }
)
"""Not compared: effects, histories and listeners; and caches, which follow from the rest of the state."""

_PLAIN = (int, float, str, bytes, bool, type(None), Enum)
_CODE = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, type)


def digest(core: ResourceManagerCore) -> list[str]:
    """A line for each plain value, with the path to it. Two cores with equal lines are in the same state."""
    return list(_lines("core", core, {}))


def _lines(path: str, value: Any, seen: dict[int, str]) -> Iterator[str]:
    if isinstance(value, _PLAIN):
        yield f"{path} = {value!r}"
    elif isinstance(value, _CODE):
        yield f"{path} = {getattr(value, '__qualname__', value)}"
    elif id(value) in seen:
        yield f"{path} is {seen[id(value)]}"
    else:
        if not _is_record(value):
            seen[id(value)] = path
        yield f"{path}: {type(value).__name__}"
        for name, part in _parts(value):
            yield from _lines(f"{path}.{name}", part, seen)


def _is_record(value: Any) -> bool:
    """True for a value that is compared by its content and not by identity."""
    return type(value).__hash__ not in (None, object.__hash__)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for number, (key, part) in enumerate(value.items()):
            yield f"[{number}]", key
            yield f"[{number}]->", part
    elif isinstance(value, (set, frozenset)):
        for part in sorted(value, key=repr):
            yield "{}", part
    elif isinstance(value, (list, tuple)) or hasattr(value, "popleft"):
        for number, part in enumerate(value):
            yield f"({number})", part
    names = [name for kind in type(value).__mro__ for name in attribute_names(kind)]
    for name in (*dict.fromkeys(names), *getattr(value, "__dict__", ())):
        if name not in NOT_STATE and hasattr(value, name) and not name.startswith("__"):
            yield name, getattr(value, name)
