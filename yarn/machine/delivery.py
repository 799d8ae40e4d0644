"""The events, timers and effects of one core.

Objects of a core do not call one another: they send events, which are delivered first in, first out, as Hadoop's
dispatcher does. Its order is part of the behaviour (the end of an attempt reaches the application before the scheduler
drops the attempt's containers), and no transition runs inside another. One step is one event from outside and
everything that it sets off; it ends when the queue is empty.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from yarn.errors import InternalError, YarnException
from yarn.machine.dispatcher import Refuse, Reply, StateChanged, Warn
from yarn.machine.table import IllegalTransition, Lifecycle, Machine, State, Subject

Effect = TypeVar("Effect")
Event = TypeVar("Event")


class Dispatcher(Generic[Effect]):
    """Delivers events to the handlers of their classes. `now_ms` is the time of the current step.

    An event that is illegal in a subject's state raises IllegalTransition if `strict`; otherwise it causes a warning,
    as in Hadoop.
    """

    def __init__(self, now_ms: int = 0, *, strict: bool = True) -> None:
        self.now_ms = now_ms
        self._strict = strict
        self._handlers: dict[type, Callable[[Any], object]] = {}
        self._queue: deque[object] = deque()
        self._timers: list[tuple[int, int, object]] = []
        self._timer_count = 0
        self._effects: list[Effect | Reply | Refuse | StateChanged | Warn] = []

    def on(self, event: type[Event], handler: Callable[[Event], object]) -> None:
        """Deliver events of this class to `handler`. A class has one handler."""
        if event in self._handlers:
            raise InternalError(f"{event.__name__} has a handler already")
        self._handlers[event] = handler

    def on_call(self, event: type[Event], handler: Callable[[Event], object]) -> None:
        """Deliver RPCs of this class to `handler`: reply to `event.call` with its result, or refuse it with its
        YarnException.
        """
        self.on(event, lambda call: self._answer(handler, call))

    def handles(self, event: type) -> bool:
        """True if the class has a handler."""
        return event in self._handlers

    def emit(self, effect: Effect | Reply | Refuse | StateChanged | Warn) -> None:
        """Return `effect` from this step; the shell carries it out after the step."""
        self._effects.append(effect)

    def send(self, event: object) -> None:
        """Deliver `event` in this step, after everything that was sent before."""
        self._queue.append(event)

    def send_after(self, delay_ms: int, event: object) -> None:
        """Deliver `event` in the first step at or after now + `delay_ms`. Its handler checks that it still applies."""
        self._timer_count += 1
        heapq.heappush(self._timers, (self.now_ms + delay_ms, self._timer_count, event))

    def scheduled(self) -> list[object]:
        """The events of `send_after` that are still to come, in no particular order."""
        return [event for _, _, event in self._timers]

    def cancel(self, kind: type) -> list[int]:
        """Never deliver the events of this class that `send_after` has scheduled; returns when they were due."""
        cancelled = [time_ms for time_ms, _, event in self._timers if type(event) is kind]
        self._timers = [timer for timer in self._timers if type(timer[2]) is not kind]
        heapq.heapify(self._timers)
        return cancelled

    def transition(
        self, lifecycle: Lifecycle[Subject, State], subject: Subject, machine: Machine[State], event: object
    ) -> None:
        """Apply `event` to `subject` now, and log a change of its state."""
        source = machine.state
        try:
            target = lifecycle.handle(subject, machine, event, self.now_ms)
        except IllegalTransition as error:
            if self._strict:
                raise
            self.emit(Warn(str(error)))
            return
        if target is not source:
            name, detail = lifecycle.event_name(type(event)), lifecycle.describe(subject) if lifecycle.describe else ""
            self.emit(StateChanged(lifecycle.name, str(subject), name, source.name, target.name, detail))

    def begin(self, now_ms: int) -> None:
        """Start a step at `now_ms`, which is never less than before: deliver the timers that are due."""
        assert now_ms >= self.now_ms, f"time went back from {self.now_ms} to {now_ms} ms"
        self.now_ms = now_ms
        while self._timers and self._timers[0][0] <= now_ms:
            self.send(heapq.heappop(self._timers)[2])
        if self._queue:
            self.drain()

    def deliver(self, event: object) -> None:
        """Deliver one event at once."""
        handler = self._handlers.get(type(event))
        if handler is None:
            raise InternalError(f"no handler for {type(event).__name__}")
        handler(event)

    def drain(self) -> None:
        """Deliver what was sent, and what that sends, until the queue is empty."""
        queue, deliver = self._queue, self.deliver
        while queue:
            deliver(queue.popleft())

    def take_effects(self) -> list[Any]:
        """The effects of this step, in order; the next step starts with none."""
        effects, self._effects = self._effects, []
        return effects

    def next_deadline_ms(self) -> int | None:
        """The time of the next timer; None if there is none."""
        return self._timers[0][0] if self._timers else None

    def _answer(self, handler: Callable[[Any], object], event: Any) -> None:
        try:
            self.emit(Reply(event.call, handler(event)))
        except YarnException as error:
            self.emit(Refuse(event.call, error))
