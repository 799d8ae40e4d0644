"""Concludes when the containers of an application began and ended, from its polls and from lists of its containers.

A poll says how many there were. A list has each with its number, its priority and the time of its allocation, so
between two lists three things are known: who began and when, who was still there, and who had gone by then. The counts
say when somebody ended, and the lists narrow down who: nobody that a later list shows, and first those that the next
list does not show. Where a listed container began and the count stayed, another one ended. What no list shows began
and ended in the middle between two polls, the oldest first.

A worked example: polls each 10 s count 2, 2, 1 containers; lists show numbers 2 and 3 at the first poll and number 3 at
the last. So number 2 has ended, in the middle between the last two polls, although both are equally old.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from yarn.resource import Resource
from yarnling.workload.recorded_cluster import Level, ListedContainer

NEVER_MS = 1 << 60
_AFTER = Level(NEVER_MS, NEVER_MS, 0, 0, 0)


class RequestTimes:
    """The times after which an application requested what it held: polls at which it waited for nothing.

    `levels`: in order of time.
    """

    def __init__(self, levels: Sequence[Level]) -> None:
        self._nothing = [
            (level.at_ms, later.before_ms) for level, later in pairwise([*levels, _AFTER]) if level.pending_mb == 0
        ]

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
    executors, which stay until their application ends.
    """

    am: Resource
    sizes: Collection[Resource]
    step_mb: int
    launched_ms: int
    ended_ms: int
    is_batch: bool

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

    def start_ms(self, level: Level) -> int:
        """The time at which containers began that the poll is the first to see."""
        return max((level.before_ms + level.at_ms) // 2, self.launched_ms)

    def end_ms(self, level: Level) -> int:
        """The time at which containers ended that the poll does not see any more."""
        has_ended = self.ended_ms and not level.containers
        until_ms = max(min(level.at_ms, self.ended_ms), level.before_ms) if has_ended else level.at_ms
        return until_ms if has_ended and not self.is_batch else (level.before_ms + until_ms) // 2


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
            self._end_surplus(count, each.start_ms, each.start_ms)

    def change(self, before: Level, level: Level) -> None:
        """Pass the time between two polls in which the count changed."""
        count, end_ms = max(level.containers - 1, 0), self._reading.end_ms(level)
        self._open += self._begun(level.at_ms)
        for each in [one for one in self._open if one.gone_ms <= level.at_ms]:
            self._end(each, end_ms)
        self._end_surplus(count, level.at_ms, end_ms)
        if len(self._open) < count:
            self._open_unlisted(count - len(self._open), before, level)

    def _open_unlisted(self, count: int, before: Level, level: Level) -> None:
        """Begin containers that no list shows, with the priority of the listed one that began nearest to them."""
        size, start_ms = self._reading.size(before, level), self._reading.start_ms(level)
        nearest = min(self._listed, key=lambda held: abs(held.start_ms - start_ms), default=None)
        priority = None if nearest is None else nearest.priority
        gone_ms = _next_list_ms(self._lists, level.at_ms)
        self._open += [HeldContainer(start_ms, size, priority, gone_ms=gone_ms) for _ in range(count)]

    def _begun(self, until_ms: int) -> Iterator[HeldContainer]:
        """The listed containers that began by then, once each."""
        while self._coming and self._coming[-1].start_ms <= until_ms:
            yield self._coming.pop()

    def _end_surplus(self, count: int, now_ms: int, end_ms: int) -> None:
        """End as many as are more than the count: none that is seen later, first those that are gone first."""
        too_many = len(self._open) - count
        if too_many > 0:
            candidates = [each for each in self._open if each.seen_ms < now_ms]
            candidates.sort(key=lambda each: (each.gone_ms, each.start_ms))
            for each in candidates[:too_many]:
                self._end(each, end_ms)

    def _end(self, held: HeldContainer, end_ms: int) -> None:
        self._open.remove(held)
        held.end_ms = max(end_ms, held.seen_ms)
        if held.end_ms > held.start_ms:
            self.ended.append(held)


def _next_list_ms(lists: Iterable[int], after_ms: int) -> int:
    return min((at_ms for at_ms in lists if at_ms > after_ms), default=NEVER_MS)
