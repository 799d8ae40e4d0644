"""Compares answers with recorded ones: field by field, with the order of fields and the texts of numbers.

What depends on the run is masked: times, what was used by then, real use of the machine, versions and texts of ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from defusedxml.ElementTree import fromstring

MASKED = frozenset(
    {
        "clusterId",
        "cpuUtilization",
        "elapsedTime",
        "finishedTime",
        "hadoopBuildVersion",
        "health",
        "lastHealthUpdate",
        "launchTime",
        "memUtilization",
        "memorySeconds",
        "remainingTimeInSeconds",
        "nodeHostName",
        "resourceManagerBuildVersion",
        "resourceManagerVersionBuiltOn",
        "resourceSecondsMap",
        "resourceUtilization",
        "startTime",
        "startedOn",
        "startedTime",
        "vcoreSeconds",
    }
)
OF_HISTORY = frozenset({"AMResourceLimit", "amLimit", "userAMResourceLimit", "userAmLimit"})
"""Limits as last computed, which depends on everything that ran before."""

Pairs = list[tuple[str, Any]]


def pairs(text: str) -> Any:
    """The JSON value with objects as lists of pairs, and numbers as texts."""
    number = lambda digits: f"number {digits}"  # noqa: E731
    return json.loads(text, object_pairs_hook=list, parse_int=number, parse_float=number)


def differences(theirs: Any, ours: Any, path: str = "", *, masked: frozenset[str] = MASKED) -> list[str]:
    """A line for each field that differs."""
    if _is_object(theirs) and _is_object(ours):
        return _of_objects(theirs, ours, path, masked)
    if isinstance(theirs, list) and isinstance(ours, list):
        theirs, ours = _ordered(theirs), _ordered(ours)
        if len(theirs) != len(ours):
            return [f"{path}: {len(theirs)} elements, here {len(ours)}"]
        parts = zip(theirs, ours, strict=True)
        return [
            line for number, (a, b) in enumerate(parts) for line in differences(a, b, f"{path}/{number}", masked=masked)
        ]
    return [] if theirs == ours else [f"{path}: {theirs!r}, here {ours!r}"]


def xml_pairs(text: str) -> Any:
    """The root element as (name, content) pairs; content is a text, or the pairs of its children."""
    root = fromstring(text)
    return [(root.tag, _content(root))]


def _content(element: Any) -> Any:
    children = [(child.tag, _content(child)) for child in element]
    if children and len({tag for tag, _ in children}) == 1:
        children = [(children[0][0], content) for content in _ordered([content for _, content in children])]
    kind = [("xsi:type", value) for name, value in element.attrib.items() if name.endswith("}type")]
    return kind + children if children else (element.text or "")


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The recording with the names that its objects have here."""
    for theirs, ours in names.items():
        text = text.replace(theirs, ours)
    return text


def _of_objects(theirs: Pairs, ours: Pairs, path: str, masked: frozenset[str]) -> list[str]:
    names = [name for name, _ in theirs], [name for name, _ in ours]
    if names[0] != names[1]:
        return [f"{path}: fields {names[0]}, here {names[1]}"]
    found: list[str] = []
    for (name, a), (_, b) in zip(theirs, ours, strict=True):
        if name not in masked:
            found += differences(a, b, f"{path}/{name}", masked=masked)
    return found


def _is_object(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, tuple) for item in value)


def _ordered(values: list[Any]) -> list[Any]:
    """Queues and nodes come in the order of a hash map: by their names."""
    for name in ("queueName", "id", "state"):
        if values and all(_is_object(value) and name in dict(value) for value in values):
            return sorted(values, key=lambda value: str(dict(value)[name]))
    return values
