"""Between the core and the world: calls and timers go in as events, effects come out and are carried out.

Nothing awaits between an event and the last of its effects, so the core is never entered twice and effects keep their
order. A call waits for its answer in a future; the core may give it in a later step.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Protocol, assert_never

from rm.effects import CleanUpMaster, Effect, LaunchMaster, Refuse, Reply, StateChanged, Warn
from rm.events import Call, Event, Tick
from wire.event_log import EventLog
from yarn.errors import YarnException

_logger = logging.getLogger(__name__)

SETTLED = frozenset({"FINISHED", "FAILED", "KILLED"})
"""Final states of an attempt, by name."""


class Core(Protocol):
    """What the shell needs of a core."""

    def handle(self, event: Event, now_ms: int) -> list[Effect]: ...
    def next_deadline_ms(self) -> int | None: ...


class WallClock:
    """Wall time in ms that never goes back or jumps: the time of the start plus what has passed since."""

    def __init__(self) -> None:
        self._start_ms = time.time_ns() // 1_000_000
        self._origin_ns = time.monotonic_ns()

    def __call__(self) -> int:
        return self._start_ms + (time.monotonic_ns() - self._origin_ns) // 1_000_000


class CoreShell:
    """Feeds one core. Set `launch`, `clean_up` and `attempt_ended` before the first event.

    `event_log` may be set as well; the shell closes it.
    """

    def __init__(self, core: Core, clock: Callable[[], int]) -> None:
        self.event_log: EventLog | None = None
        self.launch: Callable[[LaunchMaster], None] = _nobody
        self.clean_up: Callable[[CleanUpMaster], None] = _nobody
        self.attempt_ended: Callable[[str], None] = _nobody
        self._core = core
        self._clock = clock
        self._calls = 0
        self._waiting: dict[Call, asyncio.Future[Any]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0

    async def ask(self, event_of: Callable[[Call], Event]) -> Any:
        """The core's answer to the event that `event_of` makes with the call's number; raises what it refuses with."""
        self._calls += 1
        call = self._calls
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[call] = answer
        try:
            self.handle(event_of(call))
            return await answer
        finally:
            del self._waiting[call]

    def handle(self, event: Event) -> None:
        """One step: the core's, and all of its effects."""
        now_ms = self._clock()
        try:
            effects = self._core.handle(event, now_ms)
            self._record(now_ms, event, effects)
            for effect in effects:
                self._carry_out(effect)
        finally:
            self._set_timer()

    def close(self) -> None:
        """Send no more ticks; calls that wait get no answer any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for answer in self._waiting.values():
            answer.cancel()
        if self.event_log is not None:
            self.event_log.close()

    def _record(self, now_ms: int, event: Event, effects: list[Effect]) -> None:
        """Write the step to the event log. A log that cannot be written ends; the cluster goes on."""
        if self.event_log is None:
            return
        try:
            self.event_log.append(now_ms, event, effects)
        except YarnException as error:
            _logger.error("no more events are recorded: %s", error.message)
            self.event_log.close()
            self.event_log = None

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Reply(call, value):
                answer = self._waiting.get(call)
                if answer is not None and not answer.done():
                    answer.set_result(value)
            case Refuse(call, error):
                answer = self._waiting.get(call)
                if answer is not None and not answer.done():
                    answer.set_exception(error)
            case StateChanged():
                self._note_change(effect)
            case LaunchMaster():
                self.launch(effect)
            case CleanUpMaster():
                self.clean_up(effect)
            case Warn(text):
                _logger.warning("%s", text)
            case _:
                assert_never(effect)

    def _note_change(self, change: StateChanged) -> None:
        _logger.info(
            "%s=%s event=%s from=%s to=%s%s",
            change.kind,
            change.subject,
            change.event,
            change.source,
            change.target,
            f" detail={change.detail!r}" if change.detail else "",
        )
        if change.kind == "RMAppAttempt" and change.target in SETTLED:
            self.attempt_ended(change.subject)

    # The timer

    def _set_timer(self) -> None:
        """Have a tick sent at the core's deadline. A timer that fires too early is left: it looks again."""
        deadline_ms = self._core.next_deadline_ms()
        if deadline_ms is None or (self._timer is not None and self._timer_ms <= deadline_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_s = max(1, deadline_ms - self._clock()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        deadline_ms = self._core.next_deadline_ms()
        if deadline_ms is None or deadline_ms > self._clock():
            self._set_timer()
            return
        try:
            self.handle(Tick())
        except Exception:
            _logger.exception("a tick failed deadline_ms=%d", deadline_ms)


def _nobody(effect: object) -> None:
    raise AssertionError(f"nobody carries out {effect}")
