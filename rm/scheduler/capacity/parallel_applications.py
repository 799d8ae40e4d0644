"""How many applications may run at once, by queue and by user: max-parallel-apps (CSMaxRunningAppsEnforcer).

An attempt above a limit is parked: its leaf knows it, but it neither waits for activation nor counts as pending. When
a running one ends that had filled a limit, as many of the parked may start as there are lists to look at; a list is a
leaf's or the user's own. It is the time of their start that orders them, across all lists.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from rm.scheduler.context import SchedulerContext
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.parent_queue import ParentQueue
from rm.scheduler.model.queue import CSQueue
from yarn.ids import ApplicationAttemptId
from yarn.resource import INT32_MAX


class ParallelApplications:
    """Who runs and who is parked.

    `_running` {user: attempts in all queues}, `_parked` {user: attempts, oldest first}.
    """

    __slots__ = ("_context", "_parked", "_running")

    def __init__(self, context: SchedulerContext) -> None:
        self._context = context
        self._running: dict[str, int] = {}
        self._parked: dict[str, dict[ApplicationAttemptId, FiCaSchedulerApp]] = {}

    def admit(self, application: FiCaSchedulerApp) -> None:
        """An attempt comes: it runs, or is parked; its leaf is told by `is_runnable`."""
        application.is_runnable = self._may_run(application)
        if application.is_runnable:
            self._count(application)
        else:
            self._parked.setdefault(application.user, {})[application.attempt_id] = application

    def dismiss(self, application: FiCaSchedulerApp) -> None:
        """An attempt has left its leaf; if it ran, others may start."""
        if not application.is_runnable:
            self._unpark(application)
            return
        running = self._running.get(application.user, 0) - 1
        if running > 0:
            self._running[application.user] = running
        else:
            self._running.pop(application.user, None)
        for parent in _parents_of(application.leaf):
            parent.runnable_count -= 1
        self._start_after(application)

    def recheck(self, root: CSQueue) -> None:
        """Limits were configured anew: whoever may run now does (updateRunnabilityOnReload)."""
        self._start(_parked_below(root), INT32_MAX)

    # Helpers

    def _may_run(self, application: FiCaSchedulerApp) -> bool:
        settings = self._context.settings
        if self._running.get(application.user, 0) >= settings.user_max_parallel_apps(application.user):
            return False
        queue: CSQueue | None = application.leaf
        while queue is not None:
            if queue.runnable_total() >= queue.configuration.max_parallel_apps:
                return False
            queue = queue.parent
        return True

    def _count(self, application: FiCaSchedulerApp) -> None:
        self._running[application.user] = self._running.get(application.user, 0) + 1
        for parent in _parents_of(application.leaf):
            parent.runnable_count += 1

    def _start_after(self, application: FiCaSchedulerApp) -> None:
        """Only below the highest queue that was full, and for the user if that was at its limit."""
        highest: CSQueue | None = None
        queue: CSQueue | None = application.leaf
        while queue is not None:
            if queue.runnable_total() == queue.configuration.max_parallel_apps - 1:
                highest = queue
            queue = queue.parent
        lists = [] if highest is None else _parked_below(highest)
        user = application.user
        if self._running.get(user, 0) == self._context.settings.user_max_parallel_apps(user) - 1:
            parked = self._parked.get(user)
            if parked:
                lists.append(list(parked.values()))
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
                application.leaf.submit_attempt(application)
                started.append(application)
                if len(started) >= most:
                    break
            previous = application
        for application in started:
            application.leaf.unpark(application)
            self._unpark(application)

    def _unpark(self, application: FiCaSchedulerApp) -> None:
        parked = self._parked.get(application.user)
        if parked is None:
            return
        parked.pop(application.attempt_id, None)
        if not parked:
            del self._parked[application.user]


def _parents_of(leaf: LeafQueue) -> Iterator[ParentQueue]:
    queue: ParentQueue | None = leaf.parent
    while queue is not None:
        yield queue
        queue = queue.parent


def _parked_below(queue: CSQueue) -> list[list[FiCaSchedulerApp]]:
    """One list for each leaf below that no full queue is above, empty ones too: they count."""
    if queue.runnable_total() >= queue.configuration.max_parallel_apps:
        return []
    if isinstance(queue, LeafQueue):
        return [list(queue.parked.values())]
    assert isinstance(queue, ParentQueue), "a queue is a leaf or a parent"
    return [applications for child in queue.children for applications in _parked_below(child)]


def _by_start(lists: Sequence[Sequence[FiCaSchedulerApp]]) -> Iterator[FiCaSchedulerApp]:
    """All of them by the time of their start, equal ones by the place of their list."""
    # Generators: of 10,000 parked ones a single end starts a few.
    keyed = (_keyed(place, row) for place, row in enumerate(lists))
    for _, _, application in heapq.merge(*keyed, key=lambda item: item[:2]):
        yield application


def _keyed(place: int, row: Sequence[FiCaSchedulerApp]) -> Iterator[tuple[int, int, FiCaSchedulerApp]]:
    for application in row:
        yield application.started_ms, place, application
