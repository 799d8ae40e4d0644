"""The content of a workload in figures: for each queue and user, and in all."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from yarnling.workload.model import Workload, WorkloadApplication

HOUR_MS = 3_600_000
PERCENTS = (50, 95, 100)


class Percentiles(Struct, frozen=True):
    """The least values that so many percent of all values do not exceed; 0 without values."""

    p50: int
    p95: int
    most: int


class WorkloadFigures(Struct, frozen=True):
    """Figures of some applications. Sizes and durations are of containers, without AMs. `memory_gb_hours` and
    `vcore_hours`: what the containers use if each runs once.
    """

    queue: str
    user: str
    applications: int
    containers: int
    containers_each: Percentiles
    memory_mb: Percentiles
    vcores: Percentiles
    duration_ms: Percentiles
    memory_gb_hours: float
    vcore_hours: float


def figures_by_user(workload: Workload) -> list[WorkloadFigures]:
    """The figures of each queue and user, by name."""
    found: dict[tuple[str, str], list[WorkloadApplication]] = {}
    for application in workload.applications:
        found.setdefault((application.queue, application.user), []).append(application)
    return [_figures(found[key], *key) for key in sorted(found)]


def figures_of_all(workload: Workload) -> WorkloadFigures:
    """The figures of the whole workload."""
    return _figures(workload.applications, "", "")


def lasts_ms(workload: Workload) -> int:
    """The time from the first submission to the last one."""
    times = [application.submit_ms for application in workload.applications]
    return max(times) - min(times) if times else 0


def percentiles(counts: dict[int, int]) -> Percentiles:
    """The percentiles of values that occur so many times."""
    total, passed = sum(counts.values()), 0
    found: dict[int, int] = dict.fromkeys(PERCENTS, 0)
    ranks = {percent: math.ceil(total * percent / 100) for percent in PERCENTS}
    for value in sorted(counts):
        before, passed = passed, passed + counts[value]
        found.update({percent: value for percent, rank in ranks.items() if before < rank <= passed})
    return Percentiles(*found.values())


def _figures(applications: Sequence[WorkloadApplication], queue: str, user: str) -> WorkloadFigures:
    each, memory, vcores, durations = dict[int, int](), dict[int, int](), dict[int, int](), dict[int, int]()
    memory_ms = vcore_ms = 0
    for application in applications:
        each[application.containers] = each.get(application.containers, 0) + 1
        for group in application.groups:
            count, resource, busy_ms = len(group.durations_ms), group.resource, sum(group.durations_ms)
            memory[resource.memory_mb] = memory.get(resource.memory_mb, 0) + count
            vcores[resource.vcores] = vcores.get(resource.vcores, 0) + count
            memory_ms, vcore_ms = memory_ms + resource.memory_mb * busy_ms, vcore_ms + resource.vcores * busy_ms
            for duration in group.durations_ms:
                durations[duration] = durations.get(duration, 0) + 1
    return WorkloadFigures(
        queue,
        user,
        len(applications),
        sum(memory.values()),
        percentiles(each),
        percentiles(memory),
        percentiles(vcores),
        percentiles(durations),
        round(memory_ms / 1024 / HOUR_MS, 3),
        round(vcore_ms / HOUR_MS, 3),
    )
