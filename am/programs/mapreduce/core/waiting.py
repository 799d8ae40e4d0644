"""Tasks that wait for a container. A container serves a task of its priority, as in Hadoop's RMContainerAllocator:

5   maps that run again: before reduces, which wait for their output
10  reduces, as far as there is memory for them; the others are PENDING and not requested
20  maps that run for the first time
"""

from __future__ import annotations

from collections import deque

from am.core.actions import RequestContainer, WithdrawRequest
from am.core.requests import ContainerRequest
from am.programs.mapreduce.core.job import MapReduceJob
from am.programs.mapreduce.core.tasks import RequestWithdrawn, Task, TaskRequested

PRIORITY_RERUN_MAP = 5
PRIORITY_REDUCE = 10
PRIORITY_MAP = 20


class WaitingTasks:
    """First in, first out within each priority. A SCHEDULED task has one request."""

    def __init__(self, job: MapReduceJob) -> None:
        self.pending_reduces: deque[Task] = deque()
        self._requests = {
            PRIORITY_RERUN_MAP: ContainerRequest(job.map_resource, PRIORITY_RERUN_MAP),
            PRIORITY_REDUCE: ContainerRequest(job.reduce_resource, PRIORITY_REDUCE),
            PRIORITY_MAP: ContainerRequest(job.map_resource, PRIORITY_MAP),
        }
        self._scheduled: dict[int, deque[Task]] = {priority: deque() for priority in self._requests}

    @property
    def scheduled_maps(self) -> int:
        return len(self._scheduled[PRIORITY_RERUN_MAP]) + len(self._scheduled[PRIORITY_MAP])

    @property
    def scheduled_reduces(self) -> int:
        return len(self._scheduled[PRIORITY_REDUCE])

    def request(self, task: Task, priority: int, now_ms: int) -> RequestContainer:
        task.take(TaskRequested(), now_ms)
        self._scheduled[priority].append(task)
        return RequestContainer(self._requests[priority])

    def request_reduces(self, count: int, now_ms: int) -> list[RequestContainer]:
        return [self.request(self.pending_reduces.popleft(), PRIORITY_REDUCE, now_ms) for _ in range(count)]

    def withdraw_reduces(self, now_ms: int) -> list[WithdrawRequest]:
        """Withdraw the requests for all reduces, which become PENDING again."""
        waiting, self._scheduled[PRIORITY_REDUCE] = self._scheduled[PRIORITY_REDUCE], deque()
        for task in waiting:
            task.take(RequestWithdrawn(), now_ms)
        self.pending_reduces.extendleft(reversed(waiting))
        return [WithdrawRequest(self._requests[PRIORITY_REDUCE])] * len(waiting)

    def is_any_at(self, priority: int) -> bool:
        """True if a task waits for a container of that priority."""
        return bool(self._scheduled.get(priority))

    def pop(self, priority: int) -> Task:
        """Remove and return the task for a container of this priority."""
        return self._scheduled[priority].popleft()
