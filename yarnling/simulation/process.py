"""Simulated processes: they run, are paused, killed and started again; and the host of a core within one.

A message or a timer that reaches a paused process waits until it is resumed; one for a process that has exited since is
dropped, also if another one runs in its place.

The services of the daemons are coroutines that await only the answer of a core. `run` drives such a coroutine without
an event loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from wire.core_shell import Core
from yarn.errors import InternalError, YarnException
from yarnling.run.trace import Trace
from yarnling.simulation.engine import Action, Engine, Rank
from yarnling.simulation.machine_clock import MachineClock

Event = TypeVar("Event")
Effect = TypeVar("Effect")
Sender = TypeVar("Sender", contravariant=True)


class Process:
    """A process. `starts` counts how often it was started; `number` is the host's, `lane` its own on that host."""

    def __init__(self, engine: Engine, name: str, number: int, lane: int = 0) -> None:
        self.engine = engine
        self.name = name
        self.number = number
        self.lane = lane
        self.is_up = False
        self.is_paused = False
        self.starts = 0
        self._paused_at_ms = 0
        self._inbox: deque[tuple[int, Action]] = deque()
        self._on_exit: dict[Action, None] = {}

    def boot(self) -> None:
        """Start it, with no memory of an earlier start."""
        assert not self.is_up, f"{self.name} runs already"
        self.is_up, self.is_paused = True, False
        self.starts += 1

    def exit(self) -> None:
        """End it at once, as KILL does; what waits in it is lost."""
        if not self.is_up:
            return
        self.is_up = self.is_paused = False
        self._inbox.clear()
        on_exit, self._on_exit = self._on_exit, {}
        for action in on_exit:
            action()

    def on_exit(self, action: Action) -> None:
        """Do `action` when this start of the process ends."""
        self._on_exit[action] = None

    def not_on_exit(self, action: Action) -> None:
        """Forget an action that was given to `on_exit`."""
        self._on_exit.pop(action, None)

    def pause(self) -> None:
        """Stop running, as after SIGSTOP."""
        if self.is_up and not self.is_paused:
            self.is_paused = True
            self._paused_at_ms = self.engine.now_ms

    def resume(self) -> None:
        """Run again; first everything that has arrived meanwhile."""
        if not self.is_paused:
            return
        self.is_paused = False
        self.woke_after(self.engine.now_ms - self._paused_at_ms)
        while self._inbox and not self.is_paused:
            starts, action = self._inbox.popleft()
            self.deliver(starts, action)

    def woke_after(self, paused_ms: int) -> None:
        """Called when it runs again after a pause."""

    def deliver(self, starts: int, action: Action) -> None:
        """Do `action` if it is still the same start of the process; later if it is paused."""
        if not self.is_up or starts != self.starts:
            return
        if self.is_paused:
            self._inbox.append((starts, action))
        else:
            action()

    def after(self, delay_ms: int, rank: Rank, action: Action) -> None:
        """Do `action` in this start of the process, `delay_ms` from now."""
        engine = self.engine
        engine.at(
            engine.now_ms + delay_ms, rank, self.number, partial(self.deliver, self.starts, action), lane=self.lane
        )


class HeartbeatSaver(Protocol[Sender]):
    """Leaves out the heartbeats of processes that would change nothing (yarnling.simulation.quiet_heartbeats)."""

    def leave_out(self, sender: Sender, /) -> None:
        """Leave out the next heartbeats of a process whose core has nothing to report, if that changes nothing."""

    def resume(self, sender: Sender, /) -> None:
        """Make the process send its heartbeats again, before something happens to it."""


class Alarm:
    """Calls `ring` when a core's next deadline has come. Call `set` after each step of the core.

    `_scheduled`: the times of its events to come. Between each two of many near deadlines a core may have the same far
    one, which gets one event, not many.
    """

    def __init__(self, process: Process, deadline_of: Callable[[], int | None], ring: Action) -> None:
        self._process = process
        self._deadline_of = deadline_of
        self._ring = ring
        self._at_ms: int | None = None
        self._scheduled: set[int] = set()

    def set(self) -> None:
        """Set the alarm for the core's deadline. An earlier alarm is kept, and checks again when it goes off."""
        deadline_ms = self._deadline_of()
        if deadline_ms is None or (self._at_ms is not None and self._at_ms <= deadline_ms):
            return
        now_ms = self._process.engine.now_ms
        self._at_ms = at_ms = max(deadline_ms, now_ms)
        if at_ms not in self._scheduled:
            self._scheduled.add(at_ms)
            self._process.after(at_ms - now_ms, Rank.TIMER, partial(self._go_off, at_ms))

    def _go_off(self, at_ms: int) -> None:
        self._scheduled.remove(at_ms)
        if at_ms != self._at_ms:
            return
        self._at_ms = None
        deadline_ms = self._deadline_of()
        if deadline_ms is not None and deadline_ms <= self._process.engine.now_ms:
            self._ring()
        else:
            self.set()


class PendingAnswer:
    """The answer to a call of a core, awaited by the service that made it."""

    __slots__ = ("_error", "_is_given", "_then", "_value")

    def __init__(self) -> None:
        self._is_given = False
        self._value: object = None
        self._error: YarnException | None = None
        self._then: Action | None = None

    def give(self, value: object) -> None:
        self._value = value
        self._settle()

    def refuse(self, error: YarnException) -> None:
        self._error = error
        self._settle()

    def then(self, action: Action) -> None:
        """Run `action` once the answer is there."""
        self._then = action

    def taken(self) -> object:
        """The answer, which has been given; raises the YarnException with which the call was refused."""
        assert self._is_given, "the call waits for its answer"
        if self._error is not None:
            raise self._error
        return self._value

    def _settle(self) -> None:
        self._is_given = True
        if self._then is not None:
            self._then()

    def __await__(self) -> Generator[PendingAnswer, None, object]:
        if not self._is_given:
            yield self
        return self.taken()


def run(coroutine: Coroutine[PendingAnswer, None, object], done: Callable[[object], None]) -> None:
    """Run a coroutine that awaits only Answers; `done` gets its result, or the YarnException that it raised."""
    try:
        awaited = coroutine.send(None)
    except StopIteration as stop:
        done(stop.value)
    except YarnException as error:
        done(error)
    else:
        awaited.then(partial(run, coroutine, done))


class CoreHost(Process, ABC, Generic[Event, Effect]):
    """The process of a daemon: what CoreShell is in a real one. Call `run_core` at each start.

    `broken` is called with the violations of invariants that the core reports.
    """

    def __init__(
        self, engine: Engine, name: str, number: int, *, tick: Event, trace: Trace | None, broken: Callable[[str], None]
    ) -> None:
        super().__init__(engine, name, number)
        self.broken = broken
        self.clock_ahead_ms = 0
        """By how much the clock of this machine is wrong, from the next start on."""
        self._clock = MachineClock()
        self._tick = tick
        self._trace = trace
        self._calls = 0
        self._waiting: dict[int, PendingAnswer] = {}
        self._within = False
        self._alarm = Alarm(self, lambda: None, lambda: None)
        self._core: Core[Event, Effect]

    def run_core(self, core: Core[Event, Effect]) -> None:
        """Use this core, in a process that has just started."""
        self._core = core
        self._waiting.clear()
        self._clock.set_ahead(self.clock_ahead_ms, self.engine.now_ms)
        self._alarm = Alarm(self, self._next_deadline_ms, lambda: self.step(self._tick))

    def _next_deadline_ms(self) -> int | None:
        deadline_ms = self._core.next_deadline_ms()
        return None if deadline_ms is None else self._clock.true_ms(deadline_ms)

    def set_drift(self, drift_ppm: int) -> None:
        """Set how many parts per million the machine's clock gains from now on."""
        self._clock.set_drift(drift_ppm, self.engine.now_ms)
        if self.is_up:
            self._alarm.set()

    @abstractmethod
    def carry_out(self, effect: Effect) -> None:
        """Carry out one effect; results come as later events."""

    def carry_out_step(self, event: Event, effects: list[Effect]) -> None:
        for effect in effects:
            self.carry_out(effect)

    def set_alarm(self) -> None:
        """Set the alarm again, because the core's next deadline may have become earlier without a step."""
        self._alarm.set()

    async def ask(self, event_of: Callable[[int], Event]) -> Any:
        """Send the event that `event_of` makes with the call's number; the core's reply (wire.core_shell.Asks)."""
        self._calls += 1
        answer = self._waiting[self._calls] = PendingAnswer()
        self.step(event_of(self._calls))
        return await answer

    def ask_now(self, event_of: Callable[[int], Event]) -> Any:
        """Like `ask`, for a call that the core answers in the step itself."""
        self._calls += 1
        answer = self._waiting[self._calls] = PendingAnswer()
        self.step(event_of(self._calls))
        return answer.taken()

    def step(self, event: Event) -> None:
        """Let the core handle the event, and carry out its effects."""
        self.step_at(event, self.engine.now_ms)

    def step_at(self, event: Event, now_ms: int) -> None:
        """Like `step`, for an event of `now_ms`, which may have passed."""
        if self._within:
            raise InternalError(f"{self.name}: {event} was sent from within a step")
        self._within = True
        try:
            effects = self._core.handle(event, self._clock.shown_ms(now_ms))
            if self._trace is not None:
                self._trace.note(now_ms, self.name, event, effects)
            self.carry_out_step(event, effects)
        finally:
            self._within = False
        if self.is_up:
            self._alarm.set()

    def give(self, call: int, value: object) -> None:
        """Complete the call with a reply."""
        if answer := self._waiting.pop(call, None):
            answer.give(value)

    def refuse(self, call: int, error: YarnException) -> None:
        """Complete the call with an error."""
        if answer := self._waiting.pop(call, None):
            answer.refuse(error)
