"""Counts of applications since the start, by queue (the counters of QueueMetrics), from the transitions of RMApps."""

from __future__ import annotations

from msgspec import Struct

from rm.core.context import RMContext
from rm.core.states import RMAppState
from yarn.errors import InvalidIdException
from yarn.ids import ApplicationId
from yarn.machine import StateChanged

_ENDS = {
    RMAppState.FINISHED.name: "completed",
    RMAppState.FAILED.name: "failed",
    RMAppState.KILLED.name: "killed",
}


class AppCounts(Struct):
    """Applications that a queue accepted, and how they ended; `unmanaged`: those whose AM is unmanaged."""

    submitted: int = 0
    completed: int = 0
    failed: int = 0
    killed: int = 0

    def add(self, other: AppCounts) -> None:
        self.submitted += other.submitted
        self.completed += other.completed
        self.failed += other.failed
        self.killed += other.killed


class AppCounters:
    """Takes every transition; only applications that the scheduler accepted count, as in Hadoop."""

    def __init__(self, context: RMContext) -> None:
        self._context = context
        self._accepted: dict[str, tuple[str, bool]] = {}
        self._counts: dict[tuple[str, bool], AppCounts] = {}

    def note(self, change: StateChanged) -> None:
        """Count an application that was accepted or has ended."""
        if change.kind != "RMApp":
            return
        if change.target == RMAppState.ACCEPTED.name and change.subject not in self._accepted:
            self._note_accepted(change.subject)
        elif (end := _ENDS.get(change.target)) is not None:
            key = self._accepted.pop(change.subject, None)
            if key is not None:
                counts = self._of(key)
                setattr(counts, end, getattr(counts, end) + 1)

    def below(self, path: str, *, unmanaged: bool | None = None) -> AppCounts:
        """The counts of a queue and of all below it; `unmanaged`: only of such applications, or of all."""
        total = AppCounts()
        for (queue, is_unmanaged), counts in self._counts.items():
            if (queue == path or queue.startswith(f"{path}.")) and unmanaged in (None, is_unmanaged):
                total.add(counts)
        return total

    def _note_accepted(self, subject: str) -> None:
        try:
            app = self._context.apps.get(ApplicationId.parse(subject))
        except InvalidIdException:
            return
        if app is not None:
            key = self._accepted[subject] = (app.queue, app.submission.unmanaged_am)
            self._of(key).submitted += 1

    def _of(self, key: tuple[str, bool]) -> AppCounts:
        return self._counts.setdefault(key, AppCounts())
