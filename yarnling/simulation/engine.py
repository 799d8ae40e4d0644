"""The order of everything that happens in a simulation: one heap, one clock, one seed.

    engine.at(engine.now_ms + 5, Rank.TIMER, host, action)
    engine.run(until_ms)

What happens in one millisecond happens by rank, then by the number of the host that it happens to, then by the lane of
the process on that host, then in the order in which it was planned. So the order is a rule of the model, and not of the
order in which the engine's callers plan.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from enum import IntEnum
from hashlib import blake2b

from yarn.errors import InternalError

START_MS = 1_700_000_000_000
"""The wall-clock time at which every simulation starts."""
EVENTS_PER_MS_MAX = 1_000_000
"""More events in one millisecond are a loop: something plans itself again and again for the same time."""
_HOSTS_MAX = _LANES_MAX = 1 << 24

Action = Callable[[], None]


def _place(rank: int, host: int, lane: int) -> int:
    return (rank * _HOSTS_MAX + host) * _LANES_MAX + lane


class Rank(IntEnum):
    """The order of events of one millisecond."""

    FAULT = 0
    """A fault is injected, or undone."""
    DISK = 1
    """The state store has written something."""
    CONTAINER = 2
    """A container's process starts or ends."""
    TIMER = 3
    """A deadline of a core."""
    HEARTBEAT = 4
    """A NodeManager's call to the ResourceManager arrives, or its reply."""
    MESSAGE = 5
    """Any other message arrives."""
    CLIENT = 6
    """A client or the run itself looks at the cluster."""


_END = _place(len(Rank), 0, 0)
"""After all events of a millisecond."""


class Engine:
    """The virtual clock and the queue of scheduled events. `events` counts those that have happened."""

    def __init__(self, seed: int) -> None:
        self.now_ms = START_MS
        self.events = 0
        self._seed = seed
        self._planned: list[tuple[int, int, int, Action]] = []
        self._count = 0
        self._in_this_ms = 0
        self._place = 0

    def stream(self, purpose: str) -> random.Random:
        """A random stream for one purpose; drawing more from one stream does not change another."""
        return random.Random(f"{self._seed}/{purpose}")

    def number_for(self, purpose: str) -> float:
        """The random number of one purpose, 0..1: always the same in one run, whenever it is asked for."""
        digest = blake2b(f"{self._seed}/{purpose}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64

    def at(self, time_ms: int, rank: Rank, host: int, action: Action, *, lane: int = 0) -> None:
        """Schedule `action` at `time_ms`, which must not be in the past."""
        assert time_ms >= self.now_ms, f"{time_ms} is {self.now_ms - time_ms} ms ago"
        self._count += 1
        heapq.heappush(self._planned, (time_ms, _place(rank, host, lane), self._count, action))

    def is_over(self, time_ms: int, rank: Rank, host: int, lane: int = 0) -> bool:
        """True if an event scheduled for that time would have happened before the current one."""
        return (time_ms, _place(rank, host, lane)) < (self.now_ms, self._place)

    def run(self, until_ms: int) -> None:
        """Run all events scheduled up to and including `until_ms`, then set the clock to that time."""
        planned, happen = self._planned, self._happen
        while planned and planned[0][0] <= until_ms:
            happen()
        self.now_ms, self._place = until_ms, _END

    def advance(self, until_ms: int | None, is_over: Callable[[], bool]) -> bool:
        """Like `run`, but stop once `is_over` is true. Without a limit, returns False when no event is left."""
        while not is_over():
            if not self._planned or (until_ms is not None and self._planned[0][0] > until_ms):
                if until_ms is None:
                    return False
                self.now_ms, self._place = until_ms, _END
                return True
            self._happen()
        return True

    def _happen(self) -> None:
        """Run the next scheduled event."""
        time_ms, self._place, _, action = heapq.heappop(self._planned)
        if time_ms != self.now_ms:
            self.now_ms, self._in_this_ms = time_ms, 0
        self._in_this_ms += 1
        if self._in_this_ms > EVENTS_PER_MS_MAX:
            raise InternalError(f"more than {EVENTS_PER_MS_MAX} events at {time_ms} ms, the last one is {action}")
        self.events += 1
        action()

    @property
    def elapsed_s(self) -> float:
        """Virtual seconds since the start."""
        return (self.now_ms - START_MS) / 1000
