"""The times of a run of a workload, recorded on a cluster or simulated, by which two runs can be compared. Pure data.

A source fills in what it knows: a ResourceManager's REST API has no requests of tasks, for example. Times are
milliseconds since the start of the workload; what is not known is None or empty.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import TypeAlias

from msgspec import Struct

ALL_QUEUES = ""
"""The key of the whole cluster among queues."""
STEP_MS = 10_000
"""The span over which use is averaged before it is compared, unless a source is coarser."""

Span: TypeAlias = tuple[int, int, int]
"""A container's use of memory: when it was allocated, when it ended, its MB."""


class ApplicationTimes(Struct, frozen=True, kw_only=True):
    """An application of a run. `am_allocated_ms`: when its first AM was placed. `am_started_ms`: when that registered.

    `mb_ms`: memory times time of all its containers, AMs and those released unused among them. `task_waits_ms`: from
    the request to the placement of each of its tasks.
    """

    name: str
    queue: str
    submitted_ms: int
    am_allocated_ms: int | None = None
    am_started_ms: int | None = None
    ended_ms: int | None = None
    mb_ms: int | None = None
    task_waits_ms: tuple[int, ...] = ()

    @property
    def run_ms(self) -> int | None:
        """The time from its submission to its end."""
        return None if self.ended_ms is None else self.ended_ms - self.submitted_ms

    @property
    def am_wait_ms(self) -> int | None:
        """The time from its submission to the placement of its AM."""
        return None if self.am_allocated_ms is None else max(self.am_allocated_ms - self.submitted_ms, 0)


class UseOverTime(Struct, frozen=True):
    """Memory in use: `used_mb` from each of `times_ms` to the next; nothing before the first."""

    times_ms: tuple[int, ...]
    used_mb: tuple[int, ...]

    @staticmethod
    def of_containers(spans: Iterable[Span]) -> UseOverTime:
        """The use by these containers."""
        changes: dict[int, int] = defaultdict(int)
        for allocated_ms, ended_ms, memory_mb in spans:
            changes[allocated_ms] += memory_mb
            changes[ended_ms] -= memory_mb
        times = tuple(sorted(changes))
        return UseOverTime(times, tuple(accumulate(changes[time_ms] for time_ms in times)))

    def means(self, step_ms: int, until_ms: int) -> list[float]:
        """The mean use in MB of each span of `step_ms` from 0 to `until_ms`."""
        return [self._mb_ms(start, start + step_ms) / step_ms for start in range(0, until_ms, step_ms)]

    def _mb_ms(self, start_ms: int, end_ms: int) -> int:
        """Memory times time between two times."""
        position = max(bisect_right(self.times_ms, start_ms) - 1, 0)
        total = 0
        while position < len(self.times_ms) and self.times_ms[position] < end_ms:
            is_last = position + 1 == len(self.times_ms)
            until_ms = end_ms if is_last else min(self.times_ms[position + 1], end_ms)
            total += self.used_mb[position] * max(until_ms - max(self.times_ms[position], start_ms), 0)
            position += 1
        return total


class RunTimes(Struct, frozen=True):
    """A run of a workload. `use`: {queue's path, ALL_QUEUES for the cluster: its use of memory}, as far as known.

    `cluster_mb`: the memory of all nodes, 0 if it is not known. `step_ms`: the shortest span in which use is known.
    `until_ms`: when the recording ended; None: after the last application.
    """

    applications: tuple[ApplicationTimes, ...]
    use: Mapping[str, UseOverTime]
    cluster_mb: int
    step_ms: int = STEP_MS
    until_ms: int | None = None
