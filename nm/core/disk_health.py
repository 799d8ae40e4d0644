"""Which directories are good enough to work in, and what is said of the others (DirectoryCollection).

A directory that cannot be written is in error; one whose disk is too full is full: it can still be read. Both are left
out until a later look finds them good again, for which a full one has to come down to a lower mark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

_FULL = "{kind} usable space is below configured utilization percentage/no more usable space"


class DiskLimits(Struct, frozen=True):
    """From where on a disk is full: use in percent, free space in MB; the second mark is to be good again."""

    used_percent_max: float = 90.0
    used_percent_good: float = 90.0
    free_mb_min: int = 0
    free_mb_good: int = 0
    healthy_fraction_min: float = 0.25


class DiskSample(Struct, frozen=True):
    """One look at a directory: `problem` if it cannot be used at all, else the room on its disk."""

    problem: str = ""
    total_bytes: int = 1
    free_bytes: int = 1


class DirectoryHealth(Struct, frozen=True):
    """A set of directories sorted by what is wrong: `errors` and `full` {directory: message}."""

    good: tuple[str, ...]
    errors: Mapping[str, str]
    full: Mapping[str, str]

    @property
    def total(self) -> int:
        return len(self.good) + len(self.errors) + len(self.full)


def check_directories(
    samples: Mapping[str, DiskSample], before: DirectoryHealth, limits: DiskLimits
) -> DirectoryHealth:
    """Sort the directories by their samples; one that was not good `before` must pass the lower marks."""
    good, errors, full = [], {}, {}
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
    """True if enough of both kinds of directory are good."""
    return all(len(kind.good) / kind.total >= limits.healthy_fraction_min for kind in (local, logs))


def health_report(local: DirectoryHealth, logs: DirectoryHealth) -> str:
    """What the RM and people read of directories that are not good; empty if all are."""
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
