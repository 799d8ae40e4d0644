"""Decides which directories of a node are usable, and writes the health report about the others (DirectoryCollection).

A directory that cannot be written has an error. A directory whose disk is too full counts as full; its files can still
be read. A directory with an error and a full directory are not used until a later check finds them good again. A full
disk must first fall below a lower threshold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

_FULL = "{kind} usable space is below configured utilization percentage/no more usable space"


class DiskLimits(Struct, frozen=True):
    """The limits of use (percent) and of free space (MB) above which a disk is full.

    The `_good` limits apply to a disk that was not good at the last check.
    """

    used_percent_max: float = 90.0
    used_percent_good: float = 90.0
    free_mb_min: int = 0
    free_mb_good: int = 0
    healthy_fraction_min: float = 0.25


class DiskSample(Struct, frozen=True):
    """The result of checking a directory: `problem` if it is not usable, else the size of its disk
    and the free space.
    """

    problem: str = ""
    total_bytes: int = 1
    free_bytes: int = 1


class DirectoryHealth(Struct, frozen=True):
    """Directories grouped by health: the good ones, and {directory: message} of those with `errors` and those that are
    `full`.
    """

    good: tuple[str, ...]
    errors: Mapping[str, str]
    full: Mapping[str, str]

    @property
    def total(self) -> int:
        return len(self.good) + len(self.errors) + len(self.full)


def check_directories(
    samples: Mapping[str, DiskSample], before: DirectoryHealth, limits: DiskLimits
) -> DirectoryHealth:
    """Group directories by health, given a sample of each.

    A directory that was not good `before` must meet the `_good` limits.
    """
    good: list[str] = []
    errors: dict[str, str] = {}
    full: dict[str, str] = {}
    for directory, sample in samples.items():
        problem = _fullness(sample, limits, was_good=directory in before.good)
        if sample.problem:
            errors[directory] = sample.problem
        elif problem:
            full[directory] = problem
        else:
            good.append(directory)
    return DirectoryHealth(tuple(good), errors, full)


def is_healthy(local: DirectoryHealth, logs: DirectoryHealth, limits: DiskLimits) -> bool:
    """True if enough local directories and enough log directories are good."""
    return all(len(kind.good) / kind.total >= limits.healthy_fraction_min for kind in (local, logs))


def health_report(local: DirectoryHealth, logs: DirectoryHealth) -> str:
    """The health report about directories that are not good; empty if all are good. The RM and people read it."""
    parts = [
        _part(local, local.errors, "local-dirs have errors: "),
        _part(local, local.full, _FULL.format(kind="local-dirs")),
        _part(logs, logs.errors, "log-dirs have errors: "),
        _part(logs, logs.full, _FULL.format(kind="log-dirs")),
    ]
    if parts[1]:
        parts[1] += "; "
    return "".join(parts)


def _fullness(sample: DiskSample, limits: DiskLimits, *, was_good: bool) -> str:
    used_max = limits.used_percent_max if was_good else min(limits.used_percent_good, limits.used_percent_max)
    free_min = limits.free_mb_min if was_good else max(limits.free_mb_good, limits.free_mb_min)
    used = 100.0 - 100.0 * sample.free_bytes / sample.total_bytes if sample.total_bytes else 100.0
    if used > used_max or used >= 100.0:
        return f"used space above threshold of {used_max}%"
    if sample.free_bytes >> 20 < free_min:
        return f"free space below limit of {free_min}MB"
    return ""


def _part(kind: DirectoryHealth, bad: Mapping[str, str], title: str) -> str:
    if not bad:
        return ""
    return f"{len(bad)}/{kind.total} {title} [ {' , '.join(_messages(bad))} ] "


def _messages(bad: Mapping[str, str]) -> Sequence[str]:
    return [f"{directory} : {message}" for directory, message in bad.items()]
