"""The number of applications that may run at once, by queue and by user: max-parallel-apps (CSMaxRunningAppsEnforcer).

An attempt above a limit is held back: it is in its leaf, but neither waits for activation nor counts as pending. When a
running attempt that had filled a limit ends, as many attempts that are held back may start as there are lists to check;
each leaf has a list, and so has the user. Across all lists the attempts are ordered by their start time.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from rm.scheduler.capacity.activation import submit_attempt
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue, ParentQueue
from yarn.ids import ApplicationAttemptId
from yarn.resource import INT32_MAX


class ParallelApplications:
    """Enforces max-parallel-apps over running attempts and those held back.

    `_running` {user: number of attempts in all queues}, `_held_back` {user: attempts, oldest first}.
    """

    __slots__ = ("_context", "_held_back", "_running")

    def __init__(self, context: SchedulerContext) -> None:
        self._context = context
        self._running: dict[str, int] = {}
        self._held_back: dict[str, dict[ApplicationAttemptId, FiCaSchedulerApp]] = {}

    def admit(self, application: FiCaSchedulerApp) -> None:
        """Set the `is_runnable` flag of a new attempt: False if it is held back."""
        application.is_runnable = self._may_run(application)
        if application.is_runnable:
            self._count(application)
        else:
            self._held_back.setdefault(application.user, {})[application.attempt_id] = application

    def dismiss(self, application: FiCaSchedulerApp) -> None:
        """Remove an attempt that has left its leaf; if it was running, start others."""
        if not application.is_runnable:
            self._forget(application)
            return
        running = self._running.get(application.user, 0) - 1
        if running > 0:
            self._running[application.user] = running
        else:
            self._running.pop(application.user, None)
        for parent in application.leaf.parents():
            parent.runnable_count -= 1
        self._start_after(application)

    def recheck(self, root: CSQueue) -> None:
        """Start all attempts that may run after limits were reconfigured (updateRunnabilityOnReload)."""
        self._start(_held_back_below(root), INT32_MAX)

    def _may_run(self, application: FiCaSchedulerApp) -> bool:
        settings = self._context.settings
        if self._running.get(application.user, 0) >= settings.user_max_parallel_apps(application.user):
            return False
        return all(
            queue.runnable_total() < queue.configuration.max_parallel_apps for queue in application.leaf.and_above()
        )

    def _count(self, application: FiCaSchedulerApp) -> None:
        self._running[application.user] = self._running.get(application.user, 0) + 1
        for parent in application.leaf.parents():
            parent.runnable_count += 1

    def _start_after(self, application: FiCaSchedulerApp) -> None:
        """Start attempts below the highest queue that was full, and of the user if it was at its limit."""
        highest: CSQueue | None = None
        for queue in application.leaf.and_above():
            if queue.runnable_total() == queue.configuration.max_parallel_apps - 1:
                highest = queue
        lists = [] if highest is None else _held_back_below(highest)
        user = application.user
        if self._running.get(user, 0) == self._context.settings.user_max_parallel_apps(user) - 1:
            held_back = self._held_back.get(user)
            if held_back:
                lists.append(list(held_back.values()))
        self._start(lists, len(lists))

    def _start(self, lists: list[list[FiCaSchedulerApp]], most: int) -> None:
        started: list[FiCaSchedulerApp] = []
        previous: FiCaSchedulerApp | None = None
        for application in _by_start(lists):
            if application is previous:
                continue
            application.is_runnable = self._may_run(application)
            if application.is_runnable:
                self._count(application)
                submit_attempt(LeafQueue.of(application), application)
                started.append(application)
                if len(started) >= most:
                    break
            previous = application
        for application in started:
            LeafQueue.of(application).held_back.pop(application.attempt_id, None)
            self._forget(application)

    def _forget(self, application: FiCaSchedulerApp) -> None:
        held_back = self._held_back.get(application.user)
        if held_back is None:
            return
        held_back.pop(application.attempt_id, None)
        if not held_back:
            del self._held_back[application.user]


def _held_back_below(queue: CSQueue) -> list[list[FiCaSchedulerApp]]:
    """A list for each leaf below that has no full queue above it; empty lists count too."""
    if queue.runnable_total() >= queue.configuration.max_parallel_apps:
        return []
    if isinstance(queue, LeafQueue):
        return [list(queue.held_back.values())]
    assert isinstance(queue, ParentQueue)
    return [applications for child in queue.children for applications in _held_back_below(child)]


def _by_start(lists: Sequence[Sequence[FiCaSchedulerApp]]) -> Iterator[FiCaSchedulerApp]:
    """All attempts by start time; ties are decided by the order of the lists."""
    # Generators, because the end of one attempt starts only a few of perhaps 10,000 that are held back.
    keyed = (_keyed(place, row) for place, row in enumerate(lists))
    for _, _, application in heapq.merge(*keyed, key=lambda item: item[:2]):
        yield application


def _keyed(place: int, row: Sequence[FiCaSchedulerApp]) -> Iterator[tuple[int, int, FiCaSchedulerApp]]:
    for application in row:
        yield application.started_ms, place, application
