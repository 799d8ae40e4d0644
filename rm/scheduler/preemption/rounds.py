"""Rounds of a policy beside placing: one at once, then one after each interval (Hadoop's SchedulingMonitor)."""

from __future__ import annotations


class Rounds:
    """`next_ms`: when the next one is due; None = never."""

    __slots__ = ("_interval_ms", "next_ms")

    def __init__(self) -> None:
        self._interval_ms = 0
        self.next_ms: int | None = None

    def configure(self, interval_ms: int, now_ms: int, *, are_wanted: bool) -> bool:
        """After a start or refresh: rounds begin, end, or go on as often as when they began. True if they begin."""
        if not are_wanted:
            self.next_ms = None
        elif self.next_ms is None:
            self._interval_ms = max(1, interval_ms)
            self.next_ms = now_ms
            return True
        return False

    def take(self, now_ms: int) -> bool:
        """True if a round is due now; several that were missed are one."""
        if self.next_ms is None or now_ms < self.next_ms:
            return False
        missed = (now_ms - self.next_ms) // self._interval_ms
        self.next_ms += (missed + 1) * self._interval_ms
        return True
