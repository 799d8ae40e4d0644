"""What one step of the core leaves behind: effects for the shell, events for its own objects, timers.

Objects do not call one another: they post events here, and the core delivers them first in, first out, as Hadoop's
dispatcher does. So the order of what happens behind one event is Hadoop's, and no transition runs inside another.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from nm.effects import Effect

Post: TypeAlias = Callable[[], None]


class Outbox:
    """The effects of the step under way, the events that wait in it, and the timers of later steps."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._effects: list[Effect] = []
        self._posts: deque[Post] = deque()
        self._timers: list[tuple[int, int, Post]] = []
        self._timer_count = 0

    def emit(self, effect: Effect) -> None:
        """Have the shell do something after this step."""
        self._effects.append(effect)

    def post(self, deliver: Post) -> None:
        """Have `deliver` called in this step, after all that was posted before."""
        self._posts.append(deliver)

    def after(self, delay_ms: int, act: Post) -> None:
        """Have `act` called in the first step at or after now + `delay_ms`; it must look whether it still applies."""
        self._timer_count += 1
        heapq.heappush(self._timers, (self.now_ms + delay_ms, self._timer_count, act))

    def next_deadline_ms(self) -> int | None:
        """When the next timer is due, None if there is none."""
        return self._timers[0][0] if self._timers else None

    def run_due_timers(self) -> None:
        """Post every timer that is due now, in the order of their times."""
        while self._timers and self._timers[0][0] <= self.now_ms:
            self.post(heapq.heappop(self._timers)[2])

    def run_posts(self) -> None:
        """Deliver what was posted, and what that posts, until nothing waits."""
        while self._posts:
            self._posts.popleft()()

    def take_effects(self) -> list[Effect]:
        """The effects of this step, in order; the next step starts with none."""
        effects, self._effects = self._effects, []
        return effects
