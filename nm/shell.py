"""Between the core and the world: calls, answers, ends of processes and timers go in, effects are carried out.

Nothing awaits between an event and the last of its effects, so the core is never entered twice and effects keep their
order. Who carries an effect out sends its answer in a later turn of the loop, never from within.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Protocol, assert_never

from nm.effects import (
    Call,
    DeleteApplicationFiles,
    DeleteApplicationLogs,
    DeleteContainerFiles,
    DeleteResource,
    Effect,
    FetchResource,
    LaunchContainer,
    MonitorContainer,
    Refuse,
    RegisterNode,
    Reply,
    SendHeartbeat,
    SignalContainer,
    StateChanged,
    Stop,
    UnregisterNode,
    Warn,
)
from nm.events import Event, Tick
from wire.event_log import EventLog
from yarn.errors import YarnException

_logger = logging.getLogger(__name__)


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


class NodeParts(Protocol):
    """Who carries effects out, by kind; none of them sends an event before it has returned."""

    def call_resource_manager(self, effect: RegisterNode | SendHeartbeat | UnregisterNode) -> None: ...
    def fetch(self, effect: FetchResource) -> None: ...
    def launch(self, effect: LaunchContainer) -> None: ...
    def signal(self, effect: SignalContainer) -> None: ...
    def monitor(self, effect: MonitorContainer) -> None: ...
    def delete(
        self, effect: DeleteResource | DeleteContainerFiles | DeleteApplicationFiles | DeleteApplicationLogs
    ) -> None: ...
    def application_finished(self, application_id: str) -> None: ...


class NodeShell:
    """Feeds one core. `stopped` is done with the core's last word: why the node failed, or ""."""

    def __init__(self, core: Core, clock: Callable[[], int], event_log: EventLog | None = None) -> None:
        self.parts: NodeParts | None = None
        self.stopped: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._core = core
        self._clock = clock
        self._event_log = event_log
        self._calls = 0
        self._waiting: dict[Call, asyncio.Future[Any]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._within = False

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
        assert not self._within, f"{event} was sent from within a step"
        self._within = True
        now_ms = self._clock()
        try:
            effects = self._core.handle(event, now_ms)
            self._record(now_ms, event, effects)
            for effect in effects:
                self._carry_out(effect)
        finally:
            self._within = False
            self._set_timer()

    def send(self, event: Event) -> None:
        """A step that nobody waits for; if it fails, which is a bug of ours, the node says so and goes on."""
        try:
            self.handle(event)
        except Exception:
            _logger.exception("a step failed event=%s", type(event).__name__)

    def close(self) -> None:
        """Send no more ticks; calls that wait get no answer any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for answer in self._waiting.values():
            answer.cancel()
        if self._event_log is not None:
            self._event_log.close()

    def _record(self, now_ms: int, event: Event, effects: list[Effect]) -> None:
        """Write the step to the event log. A log that cannot be written ends; the node goes on."""
        if self._event_log is None:
            return
        try:
            self._event_log.append(now_ms, event, effects)
        except YarnException as error:
            _logger.error("no more events are recorded: %s", error.message)
            self._event_log = None

    def _carry_out(self, effect: Effect) -> None:
        parts = self.parts
        assert parts is not None, "set before the first event"
        match effect:
            case Reply(call, value):
                answer = self._waiting.get(call)
                if answer is not None and not answer.done():
                    answer.set_result(value)
            case Refuse(call, error):
                answer = self._waiting.get(call)
                if answer is not None and not answer.done():
                    answer.set_exception(error)
            case RegisterNode() | SendHeartbeat() | UnregisterNode():
                parts.call_resource_manager(effect)
            case FetchResource():
                parts.fetch(effect)
            case LaunchContainer():
                parts.launch(effect)
            case SignalContainer():
                parts.signal(effect)
            case MonitorContainer():
                parts.monitor(effect)
            case DeleteResource() | DeleteContainerFiles() | DeleteApplicationFiles() | DeleteApplicationLogs():
                parts.delete(effect)
            case StateChanged():
                self._note_change(effect, parts)
            case Warn(text):
                _logger.warning("%s", text)
            case Stop(failure):
                if not self.stopped.done():
                    self.stopped.set_result(failure)
            case _:
                assert_never(effect)

    def _note_change(self, change: StateChanged, parts: NodeParts) -> None:
        _logger.info(
            "%s=%s event=%s from=%s to=%s", change.kind, change.subject, change.event, change.source, change.target
        )
        if change.kind == "NMApplication" and change.target == "FINISHED":
            parts.application_finished(change.subject)

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
        self.send(Tick())
