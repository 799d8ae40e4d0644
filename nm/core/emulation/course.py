"""The course of one emulated container: how long, with what end, using what at each moment.

    course = Course.draw(stages, resource, random.random)
    course.ends_after_ms              2140, None if only a signal ends it
    course.exit_code                  0
    course.use_at(1200)               Use(memory_bytes=..., cpu_ms=...)

All that chance decides is drawn at the start, so a course is a function of time and needs one timer, its end's,
however many stages it has. Chance comes in as a function: the same draws make the same course.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from yarn.resource import Resource

Draw: TypeAlias = Callable[[], float]
"""The next random number, from 0 to below 1."""

_BYTES_PER_MB = 1 << 20


class Amount(Struct, frozen=True):
    """So much of something: `value` MB or vcores, or (`relative`) a fraction of what the container was given."""

    value: float = 0.0
    relative: bool = False

    def of(self, given: float) -> float:
        return self.value * given if self.relative else self.value


class Stage(Struct, frozen=True):
    """A part of a container's life. `lasts_ms` None: until a signal ends it; `jitter_ms` is drawn to both sides.

    Memory goes evenly from `memory_first` to `memory_last`. At its end the container exits with `exit_code`, with
    `exit_probability`; else the next stage begins, and after the last one it exits with 0.
    """

    lasts_ms: int | None
    jitter_ms: int = 0
    memory_first: Amount = Amount()
    memory_last: Amount = Amount()
    cpu: Amount = Amount()
    exit_code: int = 0
    exit_probability: float = 0.0

    @property
    def is_drawn(self) -> bool:
        """True if chance decides anything of it."""
        return self.jitter_ms > 0 or 0 < self.exit_probability < 1


class Use(NamedTuple):
    """What a container uses: memory at a moment, CPU time from its start to that moment."""

    memory_bytes: int
    cpu_ms: int


class Course(Struct, frozen=True):
    """`lengths_ms` are those of the stages that are reached, without the one that never ends."""

    stages: tuple[Stage, ...]
    resource: Resource
    lengths_ms: tuple[int, ...]
    ends_after_ms: int | None
    exit_code: int

    @staticmethod
    def draw(stages: tuple[Stage, ...], resource: Resource, draw: Draw) -> Course:
        """A course for a container of that size. Each stage draws its length first, then whether it is the last."""
        lengths: list[int] = []
        for stage in stages:
            if stage.lasts_ms is None:
                return Course(stages, resource, tuple(lengths), None, 0)
            jitter = stage.jitter_ms
            lengths.append(stage.lasts_ms if jitter == 0 else stage.lasts_ms - jitter + int(draw() * (2 * jitter + 1)))
            probability = stage.exit_probability
            if probability >= 1 or (probability > 0 and draw() < probability):
                return Course(stages, resource, tuple(lengths), sum(lengths), stage.exit_code)
        return Course(stages, resource, tuple(lengths), sum(lengths), 0)

    def use_at(self, elapsed_ms: int) -> Use:
        """What it uses so long after its start; after its end what it used last."""
        cpu_ms, memory_mb, left_ms = 0.0, 0.0, float(elapsed_ms)
        for stage, length_ms in zip(self.stages, (*self.lengths_ms, None), strict=False):
            within_ms = left_ms if length_ms is None else min(left_ms, length_ms)
            cpu_ms += stage.cpu.of(self.resource.vcores) * within_ms
            memory_mb = self._memory_mb(stage, within_ms / length_ms if length_ms else 0.0)
            if length_ms is None or left_ms < length_ms:
                break
            left_ms -= length_ms
        return Use(int(memory_mb * _BYTES_PER_MB), int(cpu_ms))

    def _memory_mb(self, stage: Stage, done: float) -> float:
        first, last = (amount.of(self.resource.memory_mb) for amount in (stage.memory_first, stage.memory_last))
        return first + (last - first) * done
