"""The core of an application, on the kernel that the cores of the daemons use: an event and the time in, actions out.

    core.handle(event, now_ms) -> [Action]

Subclasses register a handler for each event class that concerns them; other events are ignored. Applications use no
timers: they look at the time with each heartbeat, which comes once a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from am.core.actions import Leave, Termination
from am.core.events import AllocateFailed, ShutdownOrdered
from am.core.invariants import ApplicationAudit
from yarn.errors import InternalError
from yarn.machine import Dispatcher, StateChanged

EventT = TypeVar("EventT")
ActionT = TypeVar("ActionT")


class ApplicationCore(Generic[EventT, ActionT]):
    """What the cores of all applications share. After Finish or Leave a core handles nothing more.

    `check_invariants`: check am.core.invariants and the application's own invariants after each step.
    """

    def __init__(self, *, check_invariants: bool) -> None:
        self._dispatcher: Dispatcher[ActionT] = Dispatcher()
        self._termination: list[Termination] = []
        self._audit = ApplicationAudit() if check_invariants else None
        self._dispatcher.on(ShutdownOrdered, lambda event: self._end(Leave(event.reason)))
        self._dispatcher.on(AllocateFailed, lambda event: self._end(Leave(str(event.error))))

    def handle(self, event: EventT, now_ms: int) -> list[ActionT | Termination | StateChanged]:
        """The actions for one event, in order. `now_ms` is never less than at the last call.

        Raises InternalError if an invariant does not hold; the core must not be used any more.
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
        """The time of the last step."""
        return self._dispatcher.now_ms

    def progress(self) -> float:
        """0..1."""
        raise NotImplementedError

    def violations(self) -> Iterable[str]:
        """Invariants of the application that do not hold now, each with its number."""
        return ()

    @property
    def _is_over(self) -> bool:
        return bool(self._termination)

    def _end(self, termination: Termination) -> None:
        """Make this the last action of the step, and the step the last one; the first termination counts."""
        if not self._termination:
            self._termination.append(termination)
