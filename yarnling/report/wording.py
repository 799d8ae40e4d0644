"""Writes figures: counts, shares and amounts of memory, each short and with its unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from yarn.resource import MEMORY_MB
from yarn.times import HOUR_MS, MINUTE_MS, SECOND_MS, short_number

DURATION_UNITS = {"ms": 1, "s": SECOND_MS, "min": MINUTE_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": 24 * HOUR_MS}
"""{unit: milliseconds}, as durations are read."""
_GB_MB = 1024
LABEL_MAX = 26
"""The most characters of a name in a picture."""


def clock(ms: int) -> str:
    """A time since the start of the workload as hours and minutes: "07:30"; hours may exceed 24."""
    minutes = ms // MINUTE_MS
    return f"{minutes // 60:02}:{minutes % 60:02}"


def count(number: float) -> str:
    """A whole number with a comma between thousands."""
    return f"{round(number):,}"


def counted(number: float, noun: str) -> str:
    """A number with its noun, in the plural unless the number is one."""
    return f"{count(number)} {noun}{'' if round(number) == 1 else 's'}"


def share(fraction: float) -> str:
    """A fraction in percent: "62 %"; below 1 % with a digit more, so that a little does not look like nothing."""
    percent = 100 * fraction
    return f"{percent:.1f} %" if 0 < abs(percent) < 1 else f"{percent:.0f} %"


def amount(value: float, resource_type: str) -> str:
    """An amount of a resource type: memory in GB, as clusters are configured and tables add up, all else as a number
    with its name.
    """
    if resource_type != MEMORY_MB:
        return f"{short_number(value)} {resource_type}"
    if abs(value) < _GB_MB:
        return f"{round(value)} MB"
    return f"{short_number(value / _GB_MB)} GB"


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """{path of a queue: its last name, or the path where several queues have that name}."""
    paths = list(dict.fromkeys(paths))
    times = Counter(path.rpartition(".")[2] for path in paths)
    return {path: last if times[last := path.rpartition(".")[2]] == 1 else path for path in paths}


def labels(names: Iterable[str], most: int = LABEL_MAX) -> dict[str, str]:
    """{name: the name without its middle if it is longer than `most`}. Different names have different labels, which are
    longer where that takes it; the middle goes because names of queues often begin, or end, alike.
    """
    lengths = dict.fromkeys(names, most)
    while True:
        found = {name: _without_middle(name, length) for name, length in lengths.items()}
        times = Counter(found.values())
        alike = [name for name, label in found.items() if times[label] > 1]
        if not alike:
            return found
        for name in alike:
            lengths[name] += 2


def _without_middle(name: str, length: int) -> str:
    return name if len(name) <= length else f"{name[: length // 2 - 1]}\u2026{name[-(length // 2) :]}"
