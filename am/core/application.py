"""The core of an application, built on the same kernel as the cores of the daemons.

    core.handle(event, now_ms) -> [Action]

Subclasses register a handler for each event class that they react to; other events are ignored. Applications use no
timers, because they can look at the time at each heartbeat, once a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from am.core.actions import Leave, Termination
from am.core.events import AllocateFailed, HeartbeatDone, ShutdownOrdered
from am.core.invariants import ApplicationAudit
from yarn.errors import InternalError
from yarn.machine import Dispatcher, StateChanged

EventT = TypeVar("EventT")
ActionT = TypeVar("ActionT")


class ApplicationCore(Generic[EventT, ActionT]):
    """The base class of all applications' cores. After Finish or Leave, a core ignores all events.

    If `check_invariants`, am.core.invariants and the application's own invariants are checked after each step.
    """

    def __init__(self, *, check_invariants: bool) -> None:
        self._dispatcher: Dispatcher[ActionT] = Dispatcher()
        self._termination: list[Termination] = []
        self._audit = ApplicationAudit() if check_invariants else None
        self._dispatcher.on(ShutdownOrdered, lambda event: self._end(Leave(event.reason)))
        self._dispatcher.on(AllocateFailed, lambda event: self._end(Leave(str(event.error))))

    def handle(self, event: EventT, now_ms: int) -> list[ActionT | Termination | StateChanged]:
        """Handle one event and return the actions, in order. `now_ms` never decreases between calls.

        Raises InternalError if an invariant does not hold; the core must not be used after that.
        """
        if self._is_over:
            return []
        self._dispatcher.begin(now_ms)
        if self._dispatcher.handles(type(event)):
            self._dispatcher.deliver(event)
        self._dispatcher.drain()
        actions = [*self._dispatcher.take_effects(), *self._termination]
        if self._audit is not None and (broken := [*self._audit.violations(event, actions), *self.violations()]):
            raise InternalError(f"invariants broken by {event}: {'; '.join(broken)}")
        return actions

    @property
    def now_ms(self) -> int:
        """The time of the last step, in ms."""
        return self._dispatcher.now_ms

    def progress(self) -> float:
        """The progress of the application, from 0 to 1."""
        raise NotImplementedError

    @property
    def heeds_heartbeats(self) -> bool:
        """True if it has a handler for HeartbeatDone."""
        return self._dispatcher.handles(HeartbeatDone)

    def violations(self) -> Iterable[str]:
        """The invariants of this application that do not hold now, each with its number."""
        return ()

    @property
    def _is_over(self) -> bool:
        return bool(self._termination)

    def _end(self, termination: Termination) -> None:
        """End the application with this step; `termination` becomes the last action.

        Only the first call has an effect.
        """
        if not self._termination:
            self._termination.append(termination)
