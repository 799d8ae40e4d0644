"""An elastic application: it runs as many workers as its tasks need at the moment (Spark's dynamic allocation).

    stages 40, 2, 40      40 tasks wait: 1 more worker, a second later 2 more, then 4, ... up to 40
                          2 tasks: 38 workers have no task, and are released when they have been idle long enough
                          40 again: the remaining workers start, the others are requested again

Workers take tasks from a spool (am.programs.elastic.spool) by themselves; the core decides how many workers there are.
A stage starts when the previous one has finished. The rules are those of Spark's ExecutorAllocationManager: when fewer
tasks are left, the target number of workers falls at once. While tasks wait, the target grows by a step that doubles
each time. An idle worker is released, but the number of workers never falls below the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import TypeAlias

from msgspec import Struct

from am.core.actions import Action, Finish, Launch, ReleaseContainer, RequestContainer, WithdrawRequest
from am.core.application import ApplicationCore
from am.core.events import (
    AllocatedContainer,
    ContainersAllocated,
    ContainersCompleted,
    ContainerStartFailed,
    Event,
    PreemptionAsked,
    Registered,
)
from am.core.preemption import ReleaseCandidate, containers_to_release
from am.core.requests import ContainerRequest
from yarn.containers import ContainerLaunchContext, ContainerStatus
from yarn.ids import ContainerId
from yarn.resource import Resource
from yarn.states import ContainerExitStatus, FinalApplicationStatus

EXIT_FAILED = 2
"""The AM's exit code if a task failed, or too many workers did."""
FAILURES_ALLOWED_MIN = 3
"""Workers that may fail however few there are (spark.yarn.max.executor.failures is max(3, twice the executors))."""

BLAMELESS = frozenset({ContainerExitStatus.SUCCESS, ContainerExitStatus.ABORTED, ContainerExitStatus.PREEMPTED})
"""Exit statuses of a worker that do not count as failures."""


class ElasticPlan(Struct, frozen=True):
    """The settings of an elastic application. `stages` is the number of tasks of each stage.

    The times are those of spark.dynamicAllocation, in ms.
    """

    stages: tuple[int, ...]
    capability: Resource
    priority: int = 0
    label: str | None = None
    tasks_per_worker: int = 1
    workers_min: int = 0
    workers_max: int = 1000
    backlog_ms: int = 1_000
    sustained_ms: int = 1_000
    idle_ms: int = 60_000


class SpoolScanned(Struct, frozen=True):
    """The state of the spool.

    `waiting` and `ended` are numbers of tasks. `busy` is {worker: number of tasks that it runs}. `failure` describes
    the first failed task; it is "" if none has failed.
    """

    waiting: int
    busy: dict[ContainerId, int]
    ended: int
    failure: str = ""


class EnqueueTasks(Struct, frozen=True):
    """Put the tasks `first` to `last` (counted from 1) into the spool, except those that are in it already."""

    first: int
    last: int


class RequeueTasks(Struct, frozen=True):
    """Move the tasks of a worker that has ended back to the waiting tasks."""

    worker: ContainerId


ElasticEvent: TypeAlias = Event | SpoolScanned
ElasticAction: TypeAlias = Action | EnqueueTasks | RequeueTasks


class Elastic(ApplicationCore[ElasticEvent, ElasticAction]):
    """An application under one attempt of its AM. `target` is the wanted number of workers; `live` are those started.

    `enqueued` is the number of tasks that an earlier attempt has put into the spool. A worker is in `_idle_since` until
    it ends or is released; the value is the time in ms since when it has no task, None while it has one. From its
    release to its end a worker is in `_releasing`.
    """

    def __init__(
        self,
        plan: ElasticPlan,
        launch_context_of: Callable[[], ContainerLaunchContext],
        enqueued: int = 0,
        *,
        check_invariants: bool = False,
    ) -> None:
        super().__init__(check_invariants=check_invariants)
        self.plan = plan
        self.target = plan.workers_min
        self.ended = 0
        self._launch_context_of = launch_context_of
        self._request = ContainerRequest(plan.capability, plan.priority, label=plan.label)
        self._ends = list(accumulate(plan.stages))
        self._stage = sum(end <= enqueued for end in self._ends)
        self._requested = 0
        self._idle_since: dict[ContainerId, int | None] = {}
        self._releasing: dict[ContainerId, None] = {}
        self._busy: dict[ContainerId, int] = {}
        self._failures = 0
        self._step = 1
        self._add_at_ms: int | None = None
        self._dispatcher.on(Registered, self._registered)
        self._dispatcher.on(SpoolScanned, self._scanned)
        self._dispatcher.on(ContainersAllocated, self._allocated)
        self._dispatcher.on(ContainersCompleted, self._completed)
        self._dispatcher.on(ContainerStartFailed, self._start_failed)
        self._dispatcher.on(PreemptionAsked, self._preempted)

    @property
    def live(self) -> int:
        return len(self._idle_since)

    def progress(self) -> float:
        return self.ended / self._ends[-1]

    def violations(self) -> Iterator[str]:
        """Check A-17: a worker is live or being released, never both, and the target is between its bounds."""
        for worker in self._idle_since.keys() & self._releasing.keys():
            yield f"A-17: worker {worker} is live and being released"
        if self._requested < 0:
            yield f"A-17: {self._requested} workers are requested"
        if not self.plan.workers_min <= self.target <= max(self.plan.workers_max, self.plan.workers_min):
            yield f"A-17: the target of {self.target} workers is out of bounds"

    def _registered(self, event: Registered) -> None:
        maximum = event.maximum_capability
        if not self.plan.capability.fits_in(maximum):
            self._fail(f"workers of {self.plan.capability} are larger than {event.queue} allows, {maximum}")

    def _scanned(self, event: SpoolScanned) -> None:
        self.ended = event.ended
        self._busy = event.busy
        if event.failure:
            self._fail(event.failure)
        elif event.ended == self._ends[-1]:
            self._end(Finish(FinalApplicationStatus.SUCCEEDED))
        elif event.ended == self._end_of_stage():
            self._start_stage()
        else:
            self._set_target(event)
            self._requeue_of_unknown_workers(event)
            self._adjust_requests()
            self._release_idle(event)

    def _requeue_of_unknown_workers(self, event: SpoolScanned) -> None:
        """Requeue the tasks of workers that the core does not know.

        A worker of a lost node may still run after it was given up, and its end is never reported.
        """
        for worker in event.busy:
            if worker not in self._idle_since and worker not in self._releasing:
                self._dispatcher.emit(RequeueTasks(worker))

    def _end_of_stage(self) -> int:
        """The number of tasks in all stages started so far; the current stage is over when that many have ended."""
        return self._ends[self._stage - 1] if self._stage else 0

    def _start_stage(self) -> None:
        first = self._end_of_stage() + 1
        self._stage += 1
        self._dispatcher.emit(EnqueueTasks(first, self._end_of_stage()))

    def _set_target(self, event: SpoolScanned) -> None:
        tasks = event.waiting + sum(event.busy.values())
        needed = -(-tasks // self.plan.tasks_per_worker)
        if not event.waiting:
            self._add_at_ms = None
            self._step = 1
        elif self._add_at_ms is None:
            self._add_at_ms = self.now_ms + self.plan.backlog_ms
        if needed < self.target:
            self.target = max(needed, self.plan.workers_min)
            self._step = 1
        elif self._add_at_ms is not None and self.now_ms >= self._add_at_ms:
            self._grow(needed)
            self._add_at_ms = self.now_ms + self.plan.sustained_ms

    def _grow(self, needed: int) -> None:
        """Raise the target by a step. If the whole step was needed, the next step is twice as large."""
        before = max(self.target, self.live)
        grown = min(before + self._step, needed, self.plan.workers_max)
        self._step = self._step * 2 if grown - self.target == self._step else 1
        self.target = max(grown, self.plan.workers_min)

    def _adjust_requests(self) -> None:
        """Request the missing workers, or withdraw surplus requests."""
        missing = self.target - self.live - self._requested
        for _ in range(missing):
            self._dispatcher.emit(RequestContainer(self._request))
        withdrawn = max(0, min(-missing, self._requested))
        for _ in range(withdrawn):
            self._dispatcher.emit(WithdrawRequest(self._request))
        self._requested += max(0, missing) - withdrawn

    def _release_idle(self, event: SpoolScanned) -> None:
        """Release workers that have been idle for long enough, the longest idle first, down to the target."""
        for worker, since in self._idle_since.items():
            if worker in event.busy:
                self._idle_since[worker] = None
            elif since is None:
                self._idle_since[worker] = self.now_ms
        idle = [(since, worker) for worker, since in self._idle_since.items() if since is not None]
        long_idle = sorted(entry for entry in idle if self.now_ms - entry[0] >= self.plan.idle_ms)
        surplus = max(0, self.live - max(self.target, self.plan.workers_min))
        for _, worker in long_idle[:surplus]:
            self._release(worker)

    def _allocated(self, event: ContainersAllocated) -> None:
        for allocation in event.allocations:
            self._dispatcher.emit(self._launch(allocation))

    def _launch(self, allocation: AllocatedContainer) -> Launch | ReleaseContainer:
        container = allocation.container
        if allocation.request is not None:
            # The count is 0 if the container was allocated while its request was withdrawn.
            self._requested = max(0, self._requested - 1)
        if allocation.request is None or self.live >= self.target:
            return ReleaseContainer(container.id)
        self._idle_since[container.id] = self.now_ms
        return Launch(container, self._launch_context_of())

    def _preempted(self, event: PreemptionAsked) -> None:
        """Release the workers that preemption asks for. The cost of a worker is the number of tasks that it runs."""
        candidates = {
            worker: ReleaseCandidate(self.plan.capability, self._busy.get(worker, 0)) for worker in self._idle_since
        }
        for worker in containers_to_release(event.preemption, candidates):
            self._release(worker)

    def _release(self, worker: ContainerId) -> None:
        """Release a worker. Its tasks are requeued when it ends, because it may take another task before that."""
        del self._idle_since[worker]
        self._releasing[worker] = None
        self._dispatcher.emit(ReleaseContainer(worker))

    def _start_failed(self, event: ContainerStartFailed) -> None:
        if event.container_id in self._idle_since:
            self._failures += 1
            self._release(event.container_id)
            self._fail_if_too_many()

    def _completed(self, event: ContainersCompleted) -> None:
        for status in event.statuses:
            self._worker_completed(status)

    def _worker_completed(self, status: ContainerStatus) -> None:
        worker = status.container_id
        if worker in self._releasing:
            del self._releasing[worker]
            self._dispatcher.emit(RequeueTasks(worker))
        elif worker in self._idle_since:
            del self._idle_since[worker]
            self._failures += status.exit_status not in BLAMELESS
            self._dispatcher.emit(RequeueTasks(worker))
            self._fail_if_too_many()

    def _fail_if_too_many(self) -> None:
        most = max(FAILURES_ALLOWED_MIN, 2 * self.plan.workers_min)
        if self._failures > most:
            self._fail(f"{self._failures} workers failed, more than {most} (see their logs)")

    def _fail(self, diagnostics: str) -> None:
        self._end(Finish(FinalApplicationStatus.FAILED, diagnostics, EXIT_FAILED))
