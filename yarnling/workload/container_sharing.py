"""Containers that use as much memory as an application's totals say, in sizes that a scheduler can have given out.

A ResourceManager rounds each request up to a multiple of its minimum allocation, and reports what containers had after
that. So no container had a size that is not a multiple of this step. It also truncates the vcore-seconds of each
container to whole seconds. Of all pairs of sizes, for the AM and for the other containers, the one is chosen with
which the memory-seconds explain the vcore-seconds best; among nearly equal ones, that with the more usual AM. What
remains goes into the time of the containers, so the memory-seconds are kept whatever was chosen.

A worked number: an application ran for 600 s and used 6,758,400 MB-seconds and 3,000 vcore-seconds. 2,400 of these are
not its AM's. If that has 1024 MB, the others have 2560 MB, which is no multiple of 1024; with 3072 MB they had
2,000 s and not 2,400. If it has 3072 MB, the others have 2048 MB for exactly 2,400 s: four executors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct

from yarn.resource import Resource
from yarnling.workload.limits import AMOUNT_MAX, MEMORY_MB_MAX
from yarnling.workload.model import AM_RESOURCE

CONTAINER_SHARE_MIN = 0.05
"""Vcores beyond the AM's, on average, below which an application is taken to have had its AM only."""
AM_STEPS_MAX = 16
"""The largest AM that is considered, in steps."""
UNUSUAL_AM = 0.002
"""An AM that is larger or smaller than usual by a GB must explain so much more of the vcore-seconds."""
TRUNCATED = 0.5
"""Vcore-seconds that the ResourceManager leaves out of each container, on average."""

STARTED_PER_S_MAX = Resource(8_192_000, 1000)
"""Bound of an application's containers, on average, for each second that it ran: 1000 containers of 8 GB.

That is as much as a ResourceManager starts in a second, so one that held more has a wrong time or wrong totals.
"""


class Usage(Struct, frozen=True):
    """The reported usage of an application.

    `totals`: MB-seconds, vcore-seconds and so on, over `runs_ms`. `held`: what it holds in `containers` containers,
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
    """An AM that runs for `am_ms`, and equal containers; without durations there are none, and the AM stands for the
    whole application. `is_below_step`: the totals are too small for sizes that are multiples of the step.
    """

    am: Resource
    am_ms: int
    container: Resource
    durations_ms: tuple[int, ...] = ()
    is_below_step: bool = False


class Limits(Struct, frozen=True):
    """The assumptions about an application's containers.

    `task_ms`: how long each container runs; None: as long as the application. `phases`: so many groups of them run
    one after the other. `step_mb`: all sizes are multiples of it. `like`: has the vcores of a container.
    """

    task_ms: int | None
    phases: int
    step_mb: int
    like: Resource


class _Sizes(Struct, frozen=True):
    """A candidate for the sizes of containers.

    `busy_s`: how long all containers run together. `cost`: how badly this explains the vcore-seconds.
    """

    am_mb: int
    memory_mb: int
    busy_s: float
    cost: float


def shape_of(usage: Usage, limits: Limits) -> Shape:
    """The containers that use the totals. A container's vcores are those of `like`, unless the application still holds
    containers.
    """
    seconds, memory_s, vcore_s = usage.runs_ms / 1000, usage.totals.memory_mb, usage.totals.vcores
    am_vcores = AM_RESOURCE.vcores if usage.has_am else 0
    if vcore_s <= (am_vcores + CONTAINER_SHARE_MIN) * seconds:
        step_mb = _step_that_fits(memory_s / seconds, limits.step_mb)
        am_mb = _multiple(memory_s / seconds, step_mb)
        lasts_ms = max(1, round(1000 * memory_s / am_mb)) if memory_s else usage.runs_ms
        am = _bounded(am_mb, vcore_s / seconds)
        return Shape(am, lasts_ms, limits.like, is_below_step=step_mb < limits.step_mb)
    vcores = _vcores(usage, limits.like.vcores)
    step_mb = _step_that_fits(memory_s / vcore_s, limits.step_mb)
    sizes = min(_candidates(usage, limits, step_mb, vcores), key=lambda each: each.cost)
    totals = usage.totals.extra
    extra = tuple((name, round(total / sizes.busy_s)) for name, total in totals if total >= sizes.busy_s / 2)
    durations = _durations(usage.runs_ms // limits.phases, round(sizes.busy_s * 1000), limits.task_ms)
    am_ms = usage.runs_ms if usage.has_am else 0
    container = _bounded(sizes.memory_mb, vcores, extra)
    return Shape(_bounded(sizes.am_mb, 1), am_ms, container, durations, step_mb < limits.step_mb)


def _candidates(usage: Usage, limits: Limits, step_mb: int, vcores: int) -> Iterator[_Sizes]:
    """Pairs of sizes, at least one, with what they cost."""
    seconds, memory_s = usage.runs_ms / 1000, usage.totals.memory_mb
    am_s = seconds if usage.has_am else 0.0
    reported_s = max((usage.totals.vcores - am_s) / vcores, 1e-3)
    usual_mb = _multiple(AM_RESOURCE.memory_mb, step_mb, up=True)
    for steps in range(1, AM_STEPS_MAX + 1):
        am_mb = steps * step_mb
        left_s = memory_s - am_mb * am_s
        if left_s <= 0 and steps > 1:
            return
        left_s = max(left_s, memory_s * 0.01, 1.0)
        memory_mb = _multiple(_held_each(usage, am_mb) or left_s / reported_s, step_mb)
        busy_s = left_s / memory_mb
        count = _count(usage.runs_ms // limits.phases, round(busy_s * 1000), limits.task_ms)
        expected = am_s + busy_s * vcores - TRUNCATED * min(count + 1, busy_s)
        unusual = UNUSUAL_AM * abs(am_mb - usual_mb) / 1024
        yield _Sizes(am_mb, memory_mb, busy_s, abs(expected - usage.totals.vcores) / usage.totals.vcores + unusual)


def _held_each(usage: Usage, am_mb: int) -> float | None:
    """The memory of each container that the application still holds, if its AM has so much."""
    ams = 1 if usage.has_am else 0
    if usage.held is None or usage.containers <= ams or usage.held.memory_mb <= am_mb * ams:
        return None
    return (usage.held.memory_mb - am_mb * ams) / (usage.containers - ams)


def _step_that_fits(mean_mb: float, step_mb: int) -> int:
    """The step, or the largest part of it by a power of two that is not larger than the mean of a vcore."""
    while step_mb > 1 and mean_mb < step_mb * (1 - CONTAINER_SHARE_MIN):
        step_mb //= 2
    return step_mb


def _multiple(memory_mb: float, step_mb: int, *, up: bool = False) -> int:
    """The nearest multiple of the step that is not 0, or the next larger one."""
    steps = math.ceil(memory_mb / step_mb - 1e-9) if up else round(memory_mb / step_mb)
    return max(1, steps) * step_mb


def _vcores(usage: Usage, default: int) -> int:
    """The vcores of a container."""
    if usage.held is None or usage.held.vcores < usage.containers:
        return default
    ams = 1 if usage.has_am else 0
    return max(1, round((usage.held.vcores - ams) / max(usage.containers - ams, 1)))


def _durations(runs_ms: int, busy_ms: int, task_ms: int | None) -> tuple[int, ...]:
    """Durations with the sum `busy_ms`, which differ by a millisecond at most."""
    count = _count(runs_ms, busy_ms, task_ms)
    each, more = divmod(max(busy_ms, 1), count)
    return (each + 1,) * more + (each,) * (count - more)


def _count(runs_ms: int, busy_ms: int, task_ms: int | None) -> int:
    """The number of containers that run: as few as can in that time, or so many that each runs for `task_ms`."""
    at_once = max(1, math.ceil(busy_ms / max(runs_ms, 1) - 1e-6))
    return at_once if task_ms is None else max(at_once, round(busy_ms / task_ms))


def _bounded(memory_mb: float, vcores: float, extra: tuple[tuple[str, int], ...] = ()) -> Resource:
    return Resource(min(max(round(memory_mb), 1), MEMORY_MB_MAX), min(max(round(vcores), 1), AMOUNT_MAX), extra)
