"""Reads the resource types besides memory and vcores, and the smallest and largest allocation (ResourceUtils)."""

from __future__ import annotations

import re

from rm.scheduler.config.configured_capacity import UNIT_SIZES
from rm.scheduler.config.reader import Reader
from yarn.faults import Concern
from yarn.java.hash_order import hash_order, string_hash
from yarn.resource import INT64_MAX, MEMORY_MB, VCORES, Resource, ResourceTypes
from yarn.settings import scheduler

_TYPES = scheduler.RESOURCE_TYPES.key
_MANDATORY = ("memory", MEMORY_MB, VCORES)
_COUNTABLE = "COUNTABLE"
_WITHOUT_UNIT = ("yarn.io/gpu", "yarn.io/fpga")
"""Types that Hadoop knows, and that have no unit (ResourceInformation.SPECIAL_RESOURCES)."""

_GROUP = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_NAME = re.compile(rf"(?:{_GROUP}(?:\.{_GROUP})*/)?[A-Za-z][\w.-]*", re.ASCII)
"""A name with an optional name space (ResourceUtils.RESOURCE_NAME_PATTERN)."""


def extra_types(reader: Reader) -> tuple[str, ...]:
    """The resource types besides memory and vcores, in the order of Hadoop's map (updateKnownResources).

    A name with a fault is omitted.
    """
    listed = reader.words(_TYPES)
    valid: dict[str, None] = {}
    for name in listed:
        problem = f"Error in config, key {name!r} specified twice" if name in valid else _problem_of(name)
        if problem is not None:
            reader.fault(_TYPES, problem, _REMEDY)
        else:
            valid[name] = None
            _check_attributes(reader, name)
    names = dict.fromkeys((*valid, MEMORY_MB, VCORES))
    return tuple(name for name in hash_order(names, string_hash) if name not in (MEMORY_MB, VCORES))


_REMEDY = f"list each type once, without {MEMORY_MB} and {VCORES}, which always exist, and without an extra comma"


def _problem_of(name: str) -> str | None:
    """The reason why Hadoop's ResourceManager does not start with a resource type of this name; None if it does."""
    if not name:
        return f"Incomplete configuration for resource type {name!r}"
    if not _NAME.fullmatch(name):
        return (
            f"{name!r} is not a valid resource name. A valid resource name must begin with a letter and contain only "
            "letters, numbers, and any of: '.', '_', or '-'. It may be preceded by a name space and a slash"
        )
    return f"Attempt to re-define mandatory resource {name!r}" if name in _MANDATORY else None


def _check_attributes(reader: Reader, name: str) -> None:
    """Add the faults of a type's unit, kind and tags. Hadoop trims neither the unit nor the kind."""
    units_key, type_key, tags_key = (f"{_TYPES}.{name}.{attribute}" for attribute in ("units", "type", "tags"))
    units = reader.configuration.get(units_key) or ""
    kind = reader.configuration.get(type_key)
    if units not in UNIT_SIZES:
        known = ", ".join(sorted(UNIT_SIZES))
        reader.fault(units_key, f"Unknown unit {units!r}. Known units are [{known}]", "write one of them, or remove it")
    elif units and name in _WITHOUT_UNIT:
        reader.fault(units_key, f"{name} has no unit in Hadoop, which refuses another definition", "remove it")
    elif units:
        effect = "a request for this type must be written in the unit of the type: no unit is converted"
        reader.unsupported(
            units_key, "units of resource types are not converted", effect, "remove it", concern=Concern.ADMISSION
        )
    if kind is not None and kind != _COUNTABLE:
        reader.fault(type_key, f"No enum constant ResourceTypes.{kind}", f"write {_COUNTABLE}, the only type")
    if reader.words(tags_key):
        effect = "the type is counted like any other; requests cannot select it by its tags"
        reader.unsupported(
            tags_key, "tags of resource types are not used", effect, "remove it", concern=Concern.ADMISSION
        )


def minimum_allocation(reader: Reader, types: ResourceTypes) -> Resource:
    memory_mb = _own_or(reader, MEMORY_MB, "minimum", reader.value(scheduler.MINIMUM_ALLOCATION_MB))
    vcores = _own_or(reader, VCORES, "minimum", reader.value(scheduler.MINIMUM_ALLOCATION_VCORES))
    extra = tuple((name, reader.long(f"{_TYPES}.{name}.minimum-allocation", 0)) for name in types.extra_names)
    return Resource(memory_mb, vcores, extra)


def maximum_allocation(reader: Reader, types: ResourceTypes) -> Resource:
    memory_mb = _own_or(reader, MEMORY_MB, "maximum", reader.value(scheduler.MAXIMUM_ALLOCATION_MB))
    vcores = _own_or(reader, VCORES, "maximum", reader.value(scheduler.MAXIMUM_ALLOCATION_VCORES))
    extra = tuple((name, reader.long(f"{_TYPES}.{name}.maximum-allocation", INT64_MAX)) for name in types.extra_names)
    return Resource(memory_mb, vcores, extra)


def _own_or(reader: Reader, name: str, end: str, default: int) -> int:
    """The value of the own key of memory or vcores, or the scheduler's if that is -1 (not set)."""
    value = reader.long(f"{_TYPES}.{name}.{end}-allocation", -1)
    return default if value == -1 else value
