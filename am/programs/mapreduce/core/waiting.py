"""The tasks that wait for a container, and the asks that go with them: one ask for each task that is SCHEDULED.

priority 5   maps that run again: before reduces, which wait for their output
priority 10  reduces, as far as they have been let in; the others are PENDING and not asked for
priority 20  maps that run for the first time
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from am.core.requests import ContainerRequest
from am.programs.core.actions import AskFor, Withdraw
from am.programs.mapreduce.core.job import Job
from am.programs.mapreduce.core.tasks import Task, TaskState

PRIORITY_RERUN_MAP = 5
PRIORITY_REDUCE = 10
PRIORITY_MAP = 20


class WaitingTasks:
    """First come, first served within each priority; what is to be asked for or withdrawn is returned."""

    def __init__(self, job: Job) -> None:
        self._maps: dict[int, deque[tuple[Task, int]]] = {PRIORITY_RERUN_MAP: deque(), PRIORITY_MAP: deque()}
        self._pending_reduces: deque[Task] = deque()
        self._scheduled_reduces: deque[Task] = deque()
        map_request = {priority: ContainerRequest(job.map_resource, priority) for priority in self._maps}
        self._requests = {**map_request, PRIORITY_REDUCE: ContainerRequest(job.reduce_resource, PRIORITY_REDUCE)}

    @property
    def scheduled_maps(self) -> int:
        return sum(map(len, self._maps.values()))

    @property
    def pending_reduces(self) -> int:
        return len(self._pending_reduces)

    @property
    def scheduled_reduces(self) -> int:
        return len(self._scheduled_reduces)

    def hanging_ms(self, now_ms: int) -> int:
        """How long the map that waits longest has waited; 0 if none waits."""
        return now_ms - min((since_ms for waiting in self._maps.values() for _, since_ms in waiting), default=now_ms)

    def add_map(self, task: Task, priority: int, now_ms: int) -> AskFor:
        task.state = TaskState.SCHEDULED
        self._maps[priority].append((task, now_ms))
        return AskFor(self._requests[priority])

    def add_reduces(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            task.state = TaskState.PENDING
            self._pending_reduces.append(task)

    def let_reduces_in(self, count: int) -> list[AskFor | Withdraw]:
        """Ask for `count` pending reduces; below 0: withdraw so many asks, the latest first."""
        orders: list[AskFor | Withdraw] = []
        for _ in range(count):
            task = self._pending_reduces.popleft()
            task.state = TaskState.SCHEDULED
            self._scheduled_reduces.append(task)
            orders.append(AskFor(self._requests[PRIORITY_REDUCE]))
        for _ in range(-count):
            task = self._scheduled_reduces.pop()
            task.state = TaskState.PENDING
            self._pending_reduces.appendleft(task)
            orders.append(Withdraw(self._requests[PRIORITY_REDUCE]))
        return orders

    def is_any_at(self, priority: int) -> bool:
        """True if a task waits for a container of that priority."""
        return bool(self._scheduled_reduces if priority == PRIORITY_REDUCE else self._maps.get(priority))

    def pop(self, priority: int) -> Task:
        """The task that a container of that priority is for."""
        if priority == PRIORITY_REDUCE:
            return self._scheduled_reduces.popleft()
        return self._maps[priority].popleft()[0]
