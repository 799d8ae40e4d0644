"""The shell around a core: turns calls and timers into events, passes them to the core, and carries out its effects.

There is no await between an event and the last of its effects, so a core is never re-entered and effects keep their
order. A call waits for its answer in a future; the core may give it in a later step. Each daemon's subclass carries out
its own effects (`carry_out`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from wire.event_log import EventLog
from yarn.errors import RemoteError, YarnException

_logger = logging.getLogger(f"yarnling.{__name__}")

Event = TypeVar("Event")
AnyEvent = TypeVar("AnyEvent", contravariant=True)
Effect = TypeVar("Effect")


class Core(Protocol[AnyEvent, Effect]):
    """The interface of a core."""

    def handle(self, event: AnyEvent, now_ms: int) -> list[Effect]: ...
    def next_deadline_ms(self) -> int | None: ...


class Asks(Protocol[AnyEvent]):
    """The part of a core's shell that a service uses: sending a call to the core."""

    async def ask(self, event_of: Callable[[int], AnyEvent]) -> Any:
        """Send the event that `event_of` makes with the call's number; returns the reply. Raises the core's refusal."""


class WallClock:
    """Wall time in ms that never goes back or jumps: start time plus monotonic time."""

    def __init__(self) -> None:
        self._start_ms = time.time_ns() // 1_000_000
        self._origin_ns = time.monotonic_ns()

    def __call__(self) -> int:
        return self._start_ms + (time.monotonic_ns() - self._origin_ns) // 1_000_000


class CoreShell(ABC, Generic[Event, Effect]):
    """Runs one core. `tick`: the event that the core gets at its deadlines. Closing the shell closes the event log."""

    def __init__(
        self,
        core: Core[Event, Effect],
        clock: Callable[[], int],
        *,
        tick: Event,
        event_log: EventLog | None = None,
    ) -> None:
        self.event_log = event_log
        self._core = core
        self._clock = clock
        self._tick = tick
        self._calls = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._timer_wanted = False
        self._is_closed = False
        self._within = False

    @abstractmethod
    def carry_out(self, effect: Effect) -> None:
        """Carry out one effect. It must not send an event while doing so; results are sent as events later."""

    def carry_out_step(self, event: Event, effects: list[Effect]) -> None:
        """Carry out all effects of `event`, in order."""
        for effect in effects:
            self.carry_out(effect)

    async def ask(self, event_of: Callable[[int], Event]) -> Any:
        """Send the event that `event_of` creates for a call's number; returns the core's reply or raises its error."""
        call, answer = self._expect()
        try:
            self.handle(event_of(call))
            return await answer
        finally:
            self._waiting.pop(call, None)

    def begin(self, event_of: Callable[[int], Event]) -> asyncio.Future[Any]:
        """Like `ask`, for one of many calls: the future is already done unless the core answers in a later step."""
        call, answer = self._expect()
        try:
            self._step(event_of(call))
        except Exception as bug:
            del self._waiting[call]
            _logger.exception("processing a call failed call=%d", call)
            answer.set_exception(RemoteError(f"{type(bug).__name__}; the server's log has the traceback"))
        if not self._timer_wanted:
            # Read the deadline once for all calls of this turn of the loop: it takes a fifth of a quiet step.
            self._timer_wanted = True
            asyncio.get_running_loop().call_soon(self._set_timer_once)
        return answer

    def _expect(self) -> tuple[int, asyncio.Future[Any]]:
        self._calls += 1
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[self._calls] = answer
        return self._calls, answer

    def handle(self, event: Event) -> None:
        """Process one event: the core handles it, and all effects are carried out."""
        try:
            self._step(event)
        finally:
            self._set_timer()

    def _step(self, event: Event) -> None:
        assert not self._within, f"{event} was sent from within a step"
        self._within = True
        now_ms = self._clock()
        try:
            effects = self._core.handle(event, now_ms)
            self._record(now_ms, event, effects)
            self.carry_out_step(event, effects)
        finally:
            self._within = False

    def send(self, event: Event) -> None:
        """Process an event that is not a call.

        If it fails, which is our bug, the failure is logged and the daemon goes on.
        """
        try:
            self.handle(event)
        except Exception:
            _logger.exception("processing an event failed event=%s", type(event).__name__)

    def answer(self, call: int, value: object) -> None:
        """Answer a call, if its caller still waits."""
        waiting = self._waiting.pop(call, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(value)

    def refuse(self, call: int, error: YarnException) -> None:
        """Answer a call with an error, if its caller still waits."""
        waiting = self._waiting.pop(call, None)
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)

    def close(self) -> None:
        """Send no more ticks, and cancel the calls that still wait for an answer."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for answer in self._waiting.values():
            answer.cancel()
        if self.event_log is not None:
            self.event_log.close()

    def _record(self, now_ms: int, event: Event, effects: list[Effect]) -> None:
        """Write the step to the event log. If that fails, the log is closed and the daemon goes on."""
        if self.event_log is None:
            return
        try:
            self.event_log.append(now_ms, event, effects)
        except YarnException as error:
            _logger.error("continuing without the event log: %s", error.message)
            self.event_log.close()
            self.event_log = None

    def _set_timer(self) -> None:
        """Schedule a tick for the core's deadline.

        A timer that is set too early is kept; it checks the deadline when it fires.
        """
        deadline_ms = self._core.next_deadline_ms()
        if deadline_ms is None or (self._timer is not None and self._timer_ms <= deadline_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_s = max(1, deadline_ms - self._clock()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_timer)

    def _set_timer_once(self) -> None:
        self._timer_wanted = False
        if not self._is_closed:
            self._set_timer()

    def _on_timer(self) -> None:
        self._timer = None
        deadline_ms = self._core.next_deadline_ms()
        if deadline_ms is None or deadline_ms > self._clock():
            self._set_timer()
            return
        self.send(self._tick)
