"""Finds what has been silent for too long (Hadoop's AbstractLivelinessMonitor), without looking at everything watched.

Hadoop's checker wakes up every third of the expiry interval T and looks at everything registered. Here expiry is
detected at the same instants (between T and 4T/3 after the last ping), so recorded runs of Hadoop can be compared. But
nothing is searched: a ping moves its key to the end of an ordered dict, so the key that was silent longest is always
first.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

STALE_DEADLINES_MAX = 1000
"""Replaced deadlines that a heap may hold in addition to twice the number of its keys; a client may change its
deadline again and again."""

CHECKS_AN_INTERVAL = 3
"""AbstractLivelinessMonitor: the checker sleeps a third of the expiry interval."""


class LivenessMonitor(Generic[K]):
    """Keys with the time of their last ping (ms), longest silent first. A key expires `interval_ms` after its last
    ping.

    `start_ms`: checks happen at start_ms + k * interval / 3, as if a checker had started then.
    """

    __slots__ = ("_interval_ms", "_oldest_resumed_ms", "_pings", "_start_ms", "_step_ms")

    def __init__(self, interval_ms: int, start_ms: int) -> None:
        self._interval_ms = interval_ms
        self._step_ms = max(1, interval_ms // CHECKS_AN_INTERVAL)
        self._start_ms = start_ms
        self._pings: OrderedDict[K, int] = OrderedDict()
        self._oldest_resumed_ms: int | None = None

    def __contains__(self, key: K) -> bool:
        return key in self._pings

    def __len__(self) -> int:
        return len(self._pings)

    def register(self, key: K, now_ms: int) -> None:
        """Watch `key` from now on. For a key that is watched already this is a ping."""
        self._pings[key] = now_ms
        self._pings.move_to_end(key)

    def ping(self, key: K, now_ms: int) -> None:
        """Note that `key` is alive; a no-op for a key that is not watched."""
        if key in self._pings:
            self._pings[key] = now_ms
            self._pings.move_to_end(key)

    def unregister(self, key: K) -> None:
        """Stop watching `key`; a no-op for a key that is not watched."""
        self._pings.pop(key, None)

    def suspend(self, key: K) -> bool:
        """Do not watch `key` until it is resumed; False if it is not watched now."""
        return self._pings.pop(key, None) is not None

    def last_ping_ms(self, key: K) -> int | None:
        """The time of the key's last ping; None if it is not watched."""
        return self._pings.get(key)

    def resume(self, key: K, ping_ms: int) -> None:
        """Watch `key` again; its last ping was at `ping_ms`, which may be before the last ping of another key."""
        self._pings[key] = ping_ms
        self._pings.move_to_end(key)
        if self._oldest_resumed_ms is None or ping_ms < self._oldest_resumed_ms:
            self._oldest_resumed_ms = ping_ms

    def extend(self, silence_ms: int) -> None:
        """Extend the deadlines of all keys by `silence_ms`."""
        self._sort()
        for key in self._pings:
            self._pings[key] += silence_ms

    def next_deadline_ms(self) -> int | None:
        """The time of the check that will find an expired key if no ping comes before; None if nothing is watched.

        It may be too early after `resume`.
        """
        for ping_ms in self._pings.values():
            if self._oldest_resumed_ms is not None:
                ping_ms = min(ping_ms, self._oldest_resumed_ms)
            checks_before = (ping_ms + self._interval_ms - self._start_ms) // self._step_ms
            return self._start_ms + (checks_before + 1) * self._step_ms
        return None

    def expire(self, now_ms: int) -> list[K]:
        """Remove and return the keys that had expired at the last check up to `now_ms`."""
        check_ms = self._start_ms + (now_ms - self._start_ms) // self._step_ms * self._step_ms
        expired: list[K] = []
        self._sort()
        for key, ping_ms in self._pings.items():
            if ping_ms + self._interval_ms >= check_ms:
                break
            expired.append(key)
        for key in expired:
            del self._pings[key]
        return expired

    def _sort(self) -> None:
        """Put resumed keys in their places; those with pings of the same ms in the order of their names."""
        if self._oldest_resumed_ms is not None:
            self._oldest_resumed_ms = None
            self._pings = OrderedDict(sorted(self._pings.items(), key=lambda ping: (ping[1], str(ping[0]))))


class DeadlineMonitor(Generic[K]):
    """Keys with a deadline each (RMAppLifetimeMonitor). Deadlines are checked every `step_ms`."""

    __slots__ = ("_deadlines", "_heap", "_start_ms", "_step_ms")

    def __init__(self, step_ms: int, start_ms: int) -> None:
        self._step_ms = step_ms
        self._start_ms = start_ms
        self._deadlines: dict[K, int] = {}
        self._heap: list[tuple[int, K]] = []

    def register(self, key: K, deadline_ms: int) -> None:
        """Set the deadline of `key`, replacing an earlier one. The key expires at the first check after it."""
        if self._deadlines.get(key) == deadline_ms:
            return
        self._deadlines[key] = deadline_ms
        heapq.heappush(self._heap, (deadline_ms, key))
        if len(self._heap) > STALE_DEADLINES_MAX + 2 * len(self._deadlines):
            self._heap = [(deadline, known) for known, deadline in self._deadlines.items()]
            heapq.heapify(self._heap)

    def unregister(self, key: K) -> None:
        """Forget the deadline of `key`, if it has one."""
        self._deadlines.pop(key, None)

    def deadline_ms(self, key: K) -> int | None:
        """The deadline of `key`; None if it has none."""
        return self._deadlines.get(key)

    def next_deadline_ms(self) -> int | None:
        """The first check after the earliest deadline; None if there is none."""
        self._drop_stale()
        if not self._heap:
            return None
        checks_before = (self._heap[0][0] - self._start_ms) // self._step_ms
        return self._start_ms + (checks_before + 1) * self._step_ms

    def expire(self, now_ms: int) -> list[K]:
        """Remove and return the keys whose deadline had passed at the last check up to `now_ms`."""
        check_ms = self._start_ms + (now_ms - self._start_ms) // self._step_ms * self._step_ms
        expired: list[K] = []
        self._drop_stale()
        while self._heap and self._heap[0][0] < check_ms:
            key = heapq.heappop(self._heap)[1]
            del self._deadlines[key]
            expired.append(key)
            self._drop_stale()
        return expired

    def _drop_stale(self) -> None:
        """Remove entries from the top of the heap whose deadline was replaced or unregistered."""
        while self._heap and self._deadlines.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
