"""Records as JSON and back: records, enum members, ids, resources, configurations and errors of our packages.

    {"$": "yarn.machine.dispatcher.Tick"}                      a record: its fields beside its name
    {"$": "yarn.states.NodeState", "is": "RUNNING"}            an enum member
    {"$": "yarn.ids.NodeId", "of": ["127.0.0.2", 45454]}       a named tuple
    {"$": "yarn.errors.InvalidToken", "message": "..."}        an error
    {"$id": "container_1700000000000_0001_01_000001"}          an id that can be printed and parsed

Names are looked up only in our own packages and only for such classes, so reading a file runs no code that it names.
Secret fields (yarn.records.SecretRecord) are left out, and read as their default or as b"".
"""

from __future__ import annotations

import base64
import importlib
import json
import math
from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from yarn.configuration import Configuration, Entry, Fault
from yarn.errors import InvalidArgumentException, YarnException
from yarn.ids import EPOCH_BITS, ApplicationAttemptId, ApplicationId, ContainerId
from yarn.records import required_fields, shown_fields
from yarn.resource import Resource

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

PACKAGES = frozenset({"yarn", "wire", "rm", "nm", "am", "sim"})
"""The packages in which classes are looked up."""

_PARSERS: dict[str, Callable[[str], object]] = {
    "application": ApplicationId.parse,
    "appattempt": ApplicationAttemptId.parse,
    "container": ContainerId.parse,
}


def fields_text(record: Struct, without: str = "") -> str:
    """The fields of a record as compact JSON, without the name of its class. `without`: one that is kept elsewhere."""
    names = (name for name in record.__struct_fields__ if name != without)
    return json.dumps({name: to_json(getattr(record, name)) for name in names}, separators=(",", ":"))


def fields_of(text: str) -> dict[str, Any]:
    """The fields of a record as `fields_text` wrote them. Raises ValueError and TypeError for other text."""
    return {name: from_json(value) for name, value in json.loads(text).items()}


def to_json(value: object) -> Json:
    """`value` as plain JSON. Raises TypeError for objects of other packages."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Enum):
        return {"$": _name(type(value)), "is": value.name}
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    encode = _ENCODERS.get(type(value))
    if encode is not None:
        return encode(value)
    if isinstance(value, tuple):
        return {"$": _name(type(value)), "of": [to_json(part) for part in value]}
    if isinstance(value, YarnException):
        return {"$": _name(type(value)), "message": value.message}
    if isinstance(value, Struct):
        return _struct_to_json(value)
    raise TypeError(f"{type(value).__qualname__} cannot be written as JSON: it is not a record of yarnling")


def from_json(data: Json) -> Any:
    """Decode the output of `to_json`. Raises InvalidArgumentException if `data` is not such output."""
    if isinstance(data, list):
        return tuple(from_json(part) for part in data)
    if not isinstance(data, dict):
        return data
    try:
        if "$" in data:
            return _object(data)
        return _DECODERS[next(iter(data))](next(iter(data.values())))
    except InvalidArgumentException:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, StopIteration) as error:
        raise InvalidArgumentException(f"{str(data)[:200]} is not a valid record: {error}") from None


class _Shape(NamedTuple):
    """The written form of a class: its name, the fields that are shown, and the secret fields without a default."""

    name: str
    shown: tuple[str, ...]
    secret: tuple[str, ...]


_shapes: dict[type[Any], _Shape] = {}
"""{class: its shape}, filled when a class is first used. It is bounded by the number of our classes."""


def _shape(kind: type[Any]) -> _Shape:
    shape = _shapes.get(kind)
    if shape is None:
        if kind.__module__.partition(".")[0] not in PACKAGES:
            raise TypeError(f"{kind.__module__}.{kind.__qualname__} is not of {', '.join(sorted(PACKAGES))}")
        shown: tuple[str, ...] = ()
        secret: tuple[str, ...] = ()
        if issubclass(kind, Struct):
            shown = shown_fields(kind)
            secret = tuple(name for name in required_fields(kind) if name not in shown)
        shape = _shapes[kind] = _Shape(f"{kind.__module__}.{kind.__qualname__}", shown, secret)
    return shape


def _name(kind: type[Any]) -> str:
    return _shape(kind).name


def _struct_to_json(value: Struct) -> Json:
    shape = _shape(type(value))
    out: dict[str, Json] = {"$": shape.name}
    for name in shape.shown:
        out[name] = to_json(getattr(value, name))
    return out


@lru_cache(maxsize=1024)
def _class_of(name: str) -> type[Any]:
    module, _, simple = name.rpartition(".")
    if module.partition(".")[0] not in PACKAGES or "__" in name:
        raise InvalidArgumentException(f"{name} is not of {', '.join(sorted(PACKAGES))}")
    try:
        found = getattr(importlib.import_module(module), simple)
    except (ImportError, AttributeError):
        raise InvalidArgumentException(f"unknown class {name}") from None
    if not isinstance(found, type) or found.__module__ != module or not _is_record(found):
        raise InvalidArgumentException(f"{name} is not a record")
    return found


def _is_record(kind: type[Any]) -> bool:
    if issubclass(kind, (Struct, Enum, YarnException)):
        return True
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _object(data: Mapping[str, Any]) -> Any:
    kind = _class_of(data["$"])
    if issubclass(kind, Enum):
        return kind[data["is"]]
    if issubclass(kind, YarnException):
        return kind(data["message"])
    if issubclass(kind, tuple):
        return kind(*(from_json(part) for part in data["of"]))
    values = {name: from_json(part) for name, part in data.items() if name != "$"}
    values.update(dict.fromkeys(_shape(kind).secret, b""))
    return kind(**values)


def _id_to_json(value: Any) -> Json:
    """The printed id; its parts if the printed id cannot be parsed (numbers below 0 stand for `none yet`)."""
    if _is_printable(value):
        return {"$id": str(value)}
    return {"$": _name(type(value)), "of": [to_json(part) for part in value]}


def _is_printable(value: Any) -> bool:
    if isinstance(value, ApplicationId):
        return value.cluster_timestamp >= 0 and 0 <= value.id < 10**10 and value.cluster_timestamp < 10**19
    if isinstance(value, ApplicationAttemptId):
        return 0 <= value.attempt < 10**10 and _is_printable(value.application_id)
    return 0 <= value.number < 10**10 << EPOCH_BITS and _is_printable(value.attempt_id)


def _id_from_json(text: str) -> object:
    return _PARSERS[text.partition("_")[0]](text)


def _resource_to_json(value: Any) -> Json:
    return {"$resource": [value.memory_mb, value.vcores, *([name, amount] for name, amount in value.extra)]}


def _resource_from_json(data: Any) -> Resource:
    return Resource(data[0], data[1], tuple((name, amount) for name, amount in data[2:]))


def _configuration_to_json(value: Any) -> Json:
    entries = {key: to_json(value.entry(key)) for key in value}
    return {
        "$configuration": {
            "entries": entries,
            "defaults": dict(value.defaults),
            "notes": [to_json(note) for note in value.notes],
        }
    }


def _configuration_from_json(data: Any) -> Configuration:
    entries: dict[str, Entry] = {key: from_json(entry) for key, entry in data["entries"].items()}
    notes: tuple[Fault, ...] = from_json(data["notes"])
    return Configuration(entries, defaults=data["defaults"], notes=notes)


def _set_to_json(value: Any) -> Json:
    # Sorted by their JSON, because the order of a set changes from run to run.
    return {"$set": sorted((to_json(part) for part in value), key=str)}


_ENCODERS: dict[type[Any], Callable[[Any], Json]] = {
    tuple: lambda value: [to_json(part) for part in value],
    list: lambda value: {"$list": [to_json(part) for part in value]},
    dict: lambda value: {"$dict": [[to_json(key), to_json(part)] for key, part in value.items()]},
    frozenset: _set_to_json,
    bytes: lambda value: {"$bytes": base64.b64encode(value).decode()},
    ApplicationId: _id_to_json,
    ApplicationAttemptId: _id_to_json,
    ContainerId: _id_to_json,
    Resource: _resource_to_json,
    Configuration: _configuration_to_json,
}

_DECODERS: dict[str, Callable[[Any], Any]] = {
    "$float": float,
    "$id": _id_from_json,
    "$list": lambda data: [from_json(part) for part in data],
    "$dict": lambda data: {from_json(key): from_json(part) for key, part in data},
    "$set": lambda data: frozenset(from_json(part) for part in data),
    "$bytes": base64.b64decode,
    "$resource": _resource_from_json,
    "$configuration": _configuration_from_json,
}
