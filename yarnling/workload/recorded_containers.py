"""Concludes when the containers of an application began and ended, from its polls and from lists of its containers.

A poll says how many there were. A list has each with its number, its priority and the time of its allocation, so
between two lists three things are known: who began and when, who was still there, and who had gone by then. The counts
say when somebody ended, and the lists narrow down who: nobody that a later list shows, and first those that the next
list does not show. Where a listed container began and the count stayed, another one ended. What no list shows began
and ended between two polls (`interval_times.py` says when), the oldest first.

A worked example: polls each 10 s count 2, 2, 1 containers; lists show numbers 2 and 3 at the first poll and number 3 at
the last. So number 2 has ended, in the middle between the last two polls, although both are equally old.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from yarn.resource import Resource
from yarnling.workload.interval_times import Interval, PlacedTimes, placed_times
from yarnling.workload.recorded_cluster import Level, ListedContainer

NEVER_MS = 1 << 60
WAIT_MS = 1000
"""The wait of a container that no poll saw waiting: its AM calls each second, and so do nodes."""
LAST_END_MS = 500
"""The mean time from the end of an application's last container to its own: its AM calls each second."""
_AFTER = Level(NEVER_MS, NEVER_MS, 0, 0, 0)


class RequestTimes:
    """The times after which an application requested what it held: polls at which it waited for nothing.

    `levels`: in order of time.
    """

    def __init__(self, levels: Sequence[Level]) -> None:
        self._nothing = [
            (level.at_ms, later.before_ms) for level, later in pairwise([*levels, _AFTER]) if level.pending_mb == 0
        ]
        self._wanting = [level.at_ms for level in levels if level.pending_mb]

    def asked_ms(self, start_ms: int) -> int:
        """About when a container was requested that began at this time; 0 if all that is known is that it waited.

        A poll that saw it wait is in the middle between the last one that did not and itself; without one it did not
        wait for long.
        """
        after_ms = self.after_ms(start_ms)
        seen_ms = next((at_ms for at_ms in self._wanting if after_ms < at_ms <= start_ms), 0)
        if not after_ms or not seen_ms:
            return after_ms and max(after_ms, start_ms - WAIT_MS)
        return (after_ms + seen_ms) // 2

    def after_ms(self, start_ms: int) -> int:
        """The last poll before a container began at which nothing was wanted; 0 if there is none."""
        found = 0
        for first_ms, last_ms in self._nothing:
            if first_ms >= start_ms:
                break
            found = first_ms if last_ms >= start_ms else last_ms
        return found


class HeldContainer(Struct):
    """A container of an application, without its AM. Times in ms since 1970.

    `priority`: of its request; None: no list says it. `seen_ms`: the last list that shows it; 0: none does. `gone_ms`:
    the first list of its application, after it began, that does not show it. `end_ms`: 0 until it has ended.
    """

    start_ms: int
    resource: Resource
    priority: int | None = None
    seen_ms: int = 0
    gone_ms: int = NEVER_MS
    end_ms: int = 0

    @property
    def is_listed(self) -> bool:
        return self.seen_ms > 0


class PollReading(Struct, frozen=True):
    """Facts of polls about the containers of an application that no list shows. Times in ms since 1970.

    `am`: the size of its AM. `sizes`: those that lists show; `step_mb`: sizes are multiples of it where there are none.
    `launched_ms`: when its AM was launched. `ended_ms`: when it ended; 0: not recorded. `is_batch`: it runs tasks, not
    executors, which stay until their application ends. `submitted_ms`: when it was submitted; `is_whole`: after the
    recording began.
    """

    am: Resource
    sizes: Collection[Resource]
    step_mb: int
    launched_ms: int
    ended_ms: int
    is_batch: bool
    submitted_ms: int = 0
    is_whole: bool = True

    def size(self, before: Level, level: Level) -> Resource:
        """The size of the containers that began between two polls: the listed one that is nearest to their memory."""
        more, more_mb = level.containers - before.containers, level.memory_mb - before.memory_mb
        tasks = max(level.containers - 1, 1)
        if before.containers and more > 0 and more_mb > 0:
            mean_mb, mean_vcores = more_mb / more, (level.vcores - before.vcores) / more
        else:
            mean_mb, mean_vcores = (
                (level.memory_mb - self.am.memory_mb) / tasks,
                (level.vcores - self.am.vcores) / tasks,
            )
        if self.sizes:
            return min(self.sizes, key=lambda size: (abs(size.memory_mb - mean_mb), size.memory_mb, size.vcores))
        return Resource(max(round(mean_mb / self.step_mb), 1) * self.step_mb, max(round(mean_vcores), 1))

    def times(
        self,
        before: Level,
        level: Level,
        begun: Iterable[HeldContainer],
        sizes_mb: tuple[Sequence[int], Sequence[int]],
    ) -> PlacedTimes:
        """The times of containers that began and ended between two polls. `sizes_mb`: of those that began, and of those
        that ended. `begun`: others, which a list says to have begun then.
        """
        has_ended = bool(self.ended_ms) and not level.containers
        read_ms = self._read_ms(level)
        until_ms = max(min(level.at_ms, self.ended_ms) if has_ended else read_ms, level.before_ms)
        lacking_mb_ms = self._lacking_mb_ms(before, level, begun, until_ms)
        if has_ended and lacking_mb_ms is None and not self.is_batch:
            return PlacedTimes([], [until_ms] * len(sizes_mb[1]))
        interval = Interval(
            level.before_ms,
            max(level.before_ms, self.launched_ms),
            until_ms,
            lacking_mb_ms,
            until_ms - LAST_END_MS if has_ended else None,
            are_starts_spread=any(each.pending_mb for each in (before, level)),
        )
        return placed_times(interval, *sizes_mb)

    def _read_ms(self, level: Level) -> int:
        """The time of a poll by the clock of the ResourceManager, if that agrees with the recorder's."""
        if level.elapsed_ms is None:
            return level.at_ms
        read_ms = self.submitted_ms + level.elapsed_ms
        return read_ms if abs(read_ms - level.at_ms) <= level.at_ms - level.before_ms else level.at_ms

    def _lacking_mb_ms(
        self, before: Level, level: Level, begun: Iterable[HeldContainer], until_ms: int
    ) -> float | None:
        """By how much less memory was used between two polls than if only `begun` had begun; None: not recorded."""
        is_first = not before.at_ms and self.is_whole
        used_before, elapsed_before = (0, 0) if is_first else (before.used_mb_ms, before.elapsed_ms)
        if level.used_mb_ms is None or level.elapsed_ms is None or used_before is None or elapsed_before is None:
            return None
        explained = before.memory_mb * (level.elapsed_ms - elapsed_before)
        explained += sum(each.resource.memory_mb * (until_ms - each.start_ms) for each in begun)
        if not before.containers:
            if not self.launched_ms:
                return None
            explained += self.am.memory_mb * (until_ms - max(self.launched_ms, level.before_ms))
        return explained - (level.used_mb_ms - used_before)


def listed_containers(lists: Mapping[int, Sequence[ListedContainer]], not_before_ms: int) -> list[HeldContainer]:
    """The containers that lists show, in the order of their allocation, without AMs. `lists`: by the time of the poll.

    A container whose allocation is reported as before `not_before_ms` is left out: this release does not say it.
    """
    found: dict[tuple[int, int], HeldContainer] = {}
    for at_ms, listed in sorted(lists.items()):
        for each in listed:
            if each.number > 1 and each.started_ms >= not_before_ms:
                held = HeldContainer(each.started_ms, each.resource, each.priority)
                found.setdefault((each.attempt, each.number), held).seen_ms = at_ms
    for held in found.values():
        held.gone_ms = _next_list_ms(lists, held.seen_ms)
    return sorted(found.values(), key=lambda held: held.start_ms)


def held_containers(
    levels: Sequence[Level], listed: Sequence[HeldContainer], lists: Iterable[int], last_ms: int, reading: PollReading
) -> list[HeldContainer]:
    """The containers, in the order of their ends. `lists`: the times of all lists. `last_ms`: the last poll that had
    the application, by which all have ended.
    """
    sweep = _Sweep(listed, tuple(lists), reading)
    nothing, end = Level(0, 0, 0, 0, 0), Level(last_ms, last_ms, 0, 0, 0)
    for before, level in pairwise([nothing, *levels, end]):
        sweep.pass_unchanged(level.before_ms, max(before.containers - 1, 0))
        sweep.change(before, level)
    return sweep.ended


class _Sweep:
    """Goes through the polls in order. `ended`: the containers that have ended so far."""

    def __init__(self, listed: Sequence[HeldContainer], lists: Sequence[int], reading: PollReading) -> None:
        self.ended: list[HeldContainer] = []
        self._open: list[HeldContainer] = []
        self._coming = list(reversed(listed))
        self._listed = listed
        self._lists = lists
        self._reading = reading

    def pass_unchanged(self, until_ms: int, count: int) -> None:
        """Pass the polls at which the count was the same: for each container that began, another one ended."""
        for each in self._begun(until_ms):
            self._open.append(each)
            for other in self._surplus(len(self._open) - count, each.start_ms):
                self._end(other, each.start_ms)

    def change(self, before: Level, level: Level) -> None:
        """Pass the time between two polls in which the count changed."""
        count, begun = max(level.containers - 1, 0), list(self._begun(level.at_ms))
        self._open += begun
        ending = [each for each in self._open if each.gone_ms <= level.at_ms]
        ending += self._surplus(len(self._open) - len(ending) - count, level.at_ms, ending)
        ending.sort(key=lambda held: held.start_ms)
        beginning = self._unlisted(count - len(self._open) + len(ending), before, level)
        starts_mb, ends_mb = ([each.resource.memory_mb for each in group] for group in (beginning, ending))
        times = self._reading.times(before, level, begun, (starts_mb, ends_mb))
        for each, start_ms in zip(beginning, times.starts_ms, strict=True):
            each.start_ms = start_ms
        for each, end_ms in zip(ending, times.ends_ms, strict=True):
            self._end(each, end_ms)
        self._open += beginning

    def _unlisted(self, count: int, before: Level, level: Level) -> list[HeldContainer]:
        """Containers that no list shows, with the priority of the listed one that began nearest to them."""
        if count <= 0:
            return []
        size, middle_ms = self._reading.size(before, level), (level.before_ms + level.at_ms) // 2
        nearest = min(self._listed, key=lambda held: abs(held.start_ms - middle_ms), default=None)
        priority = None if nearest is None else nearest.priority
        gone_ms = _next_list_ms(self._lists, level.at_ms)
        return [HeldContainer(middle_ms, size, priority, gone_ms=gone_ms) for _ in range(count)]

    def _begun(self, until_ms: int) -> Iterator[HeldContainer]:
        """The listed containers that began by then, once each."""
        while self._coming and self._coming[-1].start_ms <= until_ms:
            yield self._coming.pop()

    def _surplus(self, too_many: int, now_ms: int, ending: Sequence[HeldContainer] = ()) -> list[HeldContainer]:
        """So many that are open, without those that end anyway: none that is seen later, first those that are gone
        first.
        """
        if too_many <= 0:
            return []
        known = {id(each) for each in ending}
        candidates = [each for each in self._open if each.seen_ms < now_ms and id(each) not in known]
        return sorted(candidates, key=lambda each: (each.gone_ms, each.start_ms))[:too_many]

    def _end(self, held: HeldContainer, end_ms: int) -> None:
        self._open.remove(held)
        held.end_ms = max(end_ms, held.seen_ms)
        if held.end_ms > held.start_ms:
            self.ended.append(held)


def _next_list_ms(lists: Iterable[int], after_ms: int) -> int:
    return min((at_ms for at_ms in lists if at_ms > after_ms), default=NEVER_MS)
