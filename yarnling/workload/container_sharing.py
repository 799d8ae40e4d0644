"""Containers that use as much memory and as many vcores as an application's totals say.

A worked number: an application ran for 600 s and used 2,457,600 MB-seconds and 1,200 vcore-seconds. Its AM with 1536 MB
and 1 vcore takes 921,600 and 600 of them. The other 600 vcore-seconds have 2560 MB each: one executor of 600 s, or 10
tasks of 60 s.
"""

from __future__ import annotations

import math

from msgspec import Struct

from yarn.resource import Resource
from yarnling.workload.limits import AMOUNT_MAX, MEMORY_MB_MAX
from yarnling.workload.model import AM_RESOURCE

CONTAINER_SHARE_MIN = 0.05
"""Vcores beyond the AM's, on average, below which an application is taken to have had its AM only."""

STARTED_PER_S_MAX = Resource(8_192_000, 1000)
"""What an application can hold, on average, for each second that it ran: 1000 containers of 8 GB. That is as much as a
ResourceManager starts in a second, so one that held more has a wrong time or wrong totals.
"""


class Usage(Struct, frozen=True):
    """`totals`: MB-seconds, vcore-seconds and so on, over `runs_ms`. `held`: what it holds in `containers` containers,
    its AM among them, if it still runs. `has_am`: its AM runs in a container.
    """

    totals: Resource
    runs_ms: int
    held: Resource | None = None
    containers: int = 0
    has_am: bool = True

    @property
    def is_contradictory(self) -> bool:
        """True if so much cannot have been used in so short a time: the average itself grows with the time."""
        seconds = self.runs_ms / 1000
        return (
            self.totals.memory_mb > STARTED_PER_S_MAX.memory_mb * seconds**2
            or self.totals.vcores > STARTED_PER_S_MAX.vcores * seconds**2
        )


class Shape(Struct, frozen=True):
    """An AM, and equal containers; without durations there are none, and the AM stands for the whole application."""

    am: Resource
    container: Resource
    durations_ms: tuple[int, ...] = ()


def shape_of(usage: Usage, *, task_ms: int | None, like: Resource) -> Shape:
    """The containers that use the totals. `task_ms`: how long each runs; None: as long as the application.

    The vcores of a container are those of `like`, unless the application still holds containers.
    """
    seconds, memory_s, vcore_s = usage.runs_ms / 1000, usage.totals.memory_mb, usage.totals.vcores
    am_vcores = AM_RESOURCE.vcores if usage.has_am else 0
    if vcore_s <= (am_vcores + CONTAINER_SHARE_MIN) * seconds:
        return Shape(_bounded(memory_s / seconds, vcore_s / seconds), like)
    am_mb = _am_memory_mb(usage, seconds)
    vcores = _vcores(usage, like.vcores)
    busy_s = (vcore_s - am_vcores * seconds) / vcores
    memory_mb = (memory_s - am_mb * seconds) / busy_s
    extra = tuple((name, round(total / busy_s)) for name, total in usage.totals.extra if total >= busy_s / 2)
    container = _bounded(memory_mb, vcores, extra)
    return Shape(_bounded(am_mb, 1), container, _durations(usage.runs_ms, round(busy_s * 1000), task_ms))


def _am_memory_mb(usage: Usage, seconds: float) -> float:
    """The default, unless that leaves the containers less memory for a vcore than their AM has on its own."""
    if not usage.has_am:
        return 0.0
    mean_mb = usage.totals.memory_mb / usage.totals.vcores
    return min(float(AM_RESOURCE.memory_mb), mean_mb)


def _vcores(usage: Usage, default: int) -> int:
    """The vcores of a container."""
    if usage.held is None or usage.held.vcores < usage.containers:
        return default
    ams = 1 if usage.has_am else 0
    return max(1, round((usage.held.vcores - ams) / max(usage.containers - ams, 1)))


def _durations(runs_ms: int, busy_ms: int, task_ms: int | None) -> tuple[int, ...]:
    """Durations with the sum `busy_ms`, which differ by a millisecond at most."""
    at_once = max(1, math.ceil(busy_ms / runs_ms - 1e-6))
    count = at_once if task_ms is None else max(at_once, round(busy_ms / task_ms))
    each, more = divmod(max(busy_ms, 1), count)
    return (each + 1,) * more + (each,) * (count - more)


def _bounded(memory_mb: float, vcores: float, extra: tuple[tuple[str, int], ...] = ()) -> Resource:
    return Resource(min(max(round(memory_mb), 1), MEMORY_MB_MAX), min(max(round(vcores), 1), AMOUNT_MAX), extra)
