"""An elastic application: as many workers as its tasks need now (Spark's dynamic allocation).

    stages 40, 2, 40      40 tasks wait: 1 worker more, a second later 2, then 4, ... up to 40
                          2 tasks: 38 workers find nothing to do and go back when they have idled for long enough
                          40 again: what is left works, the rest grows anew

Workers take tasks from a spool (am.programs.elastic.spool) themselves; here is decided how many workers there shall be.
A stage begins when the one before it is done. The rules are ExecutorAllocationManager's: the target follows the tasks
down at once, and up by a step that doubles for as long as tasks wait; a worker that idles goes, but never below target.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import TypeAlias

from msgspec import Struct

from am.core.events import (
    Allocation,
    ContainersAllocated,
    ContainersCompleted,
    ContainerStartFailed,
    Event,
    HeartbeatFailed,
    PreemptionAsked,
    Registered,
    ShutdownOrdered,
)
from am.core.preemption import Held, containers_to_give_back
from am.core.requests import ContainerRequest
from am.programs.core.actions import Action, AskFor, Finish, GiveBack, Launch, Leave, Withdraw
from yarn.containers import Container, ContainerLaunchContext, ContainerStatus
from yarn.ids import ContainerId
from yarn.resource import Resource
from yarn.states import ContainerExitStatus, FinalApplicationStatus

EXIT_FAILED = 2
"""The AM's exit code if a task or too many workers failed."""
FAILURES_LEAST = 3
"""Workers that may fail whatever their number (spark.yarn.max.executor.failures: max(3, twice the executors))."""

BLAMELESS = frozenset({ContainerExitStatus.SUCCESS, ContainerExitStatus.ABORTED, ContainerExitStatus.PREEMPTED})
"""Ends of a worker that count for nothing."""


class ElasticPlan(Struct, frozen=True):
    """`stages`: the number of tasks of each. Times as spark.dynamicAllocation has them."""

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


class BacklogSeen(Struct, frozen=True):
    """The spool as it is: tasks that wait, {worker: tasks it runs}, tasks that ended, and what failed, in words."""

    waiting: int
    busy: dict[ContainerId, int]
    ended: int
    failure: str = ""


class PutTasks(Struct, frozen=True):
    """Put tasks `first` to `last` (from 1) into the spool; those that are there already stay as they are."""

    first: int
    last: int


class PutBack(Struct, frozen=True):
    """Let the tasks of a worker that is no more wait again."""

    worker: ContainerId


ElasticEvent: TypeAlias = Event | BacklogSeen
ElasticAction: TypeAlias = Action | PutTasks | PutBack


class Elastic:
    """One application under one attempt of its AM. `target` is how many workers it wants; `live` those it has started.

    `put`: the tasks that an attempt before this one has put into the spool.
    """

    def __init__(
        self, plan: ElasticPlan, launch_context_of: Callable[[], ContainerLaunchContext], put: int = 0
    ) -> None:
        self.plan = plan
        self.target = plan.workers_min
        self.ended = 0
        self._launch_context_of = launch_context_of
        self._request = ContainerRequest(plan.capability, plan.priority, label=plan.label)
        self._ends = list(accumulate(plan.stages))
        self._stage = sum(end <= put for end in self._ends)
        self._asked = 0
        self._idle_since: dict[ContainerId, int | None] = {}
        self._going: dict[ContainerId, None] = {}
        self._busy: dict[ContainerId, int] = {}
        self._failures = 0
        self._step = 1
        self._add_at_ms: int | None = None
        self._is_over = False

    @property
    def live(self) -> int:
        return len(self._idle_since)

    def progress(self) -> float:
        return self.ended / self._ends[-1]

    def handle(self, event: ElasticEvent, now_ms: int) -> list[ElasticAction]:
        """Actions for one event, in their order; none once it is over."""
        if self._is_over:
            return []
        match event:
            case Registered(maximum_capability, queue) if not self.plan.capability.fits_in(maximum_capability):
                return self._fail(
                    f"workers of {self.plan.capability} are larger than {queue} allows, {maximum_capability}"
                )
            case BacklogSeen():
                return self._look(event, now_ms)
            case ContainersAllocated(allocations):
                return [self._take(allocation, now_ms) for allocation in allocations]
            case ContainersCompleted(statuses):
                return [action for status in statuses for action in self._note_end(status)]
            case ContainerStartFailed(container_id, _) if container_id in self._idle_since:
                self._failures += 1
                return [self._let_go(container_id), *self._fail_if_too_often()]
            case PreemptionAsked(preemption):
                held = {worker: Held(self.plan.capability, self._busy.get(worker, 0)) for worker in self._idle_since}
                return [self._let_go(worker) for worker in containers_to_give_back(preemption, held)]
            case ShutdownOrdered(reason):
                return self._over(Leave(reason))
            case HeartbeatFailed(error):
                return self._over(Leave(str(error)))
            case _:
                return []

    # The tasks

    def _look(self, seen: BacklogSeen, now_ms: int) -> list[ElasticAction]:
        self.ended = seen.ended
        self._busy = seen.busy
        if seen.failure:
            return self._fail(seen.failure)
        if seen.ended == self._ends[-1]:
            return self._over(Finish(FinalApplicationStatus.SUCCEEDED))
        if seen.ended == self._end_of_stage():
            return [self._begin_stage()]
        self._set_target(seen, now_ms)
        return [*self._put_back_strays(seen), *self._sync(), *self._give_back_idle(seen, now_ms)]

    def _put_back_strays(self, seen: BacklogSeen) -> list[ElasticAction]:
        """What workers have taken that were given up: one whose node was lost may live, and nobody tells of its end."""
        return [PutBack(worker) for worker in seen.busy if worker not in self._idle_since and worker not in self._going]

    def _end_of_stage(self) -> int:
        """The tasks that have ended when the stages begun so far are done."""
        return self._ends[self._stage - 1] if self._stage else 0

    def _begin_stage(self) -> PutTasks:
        first = self._end_of_stage() + 1
        self._stage += 1
        return PutTasks(first, self._end_of_stage())

    # How many workers

    def _set_target(self, seen: BacklogSeen, now_ms: int) -> None:
        tasks = seen.waiting + sum(seen.busy.values())
        needed = -(-tasks // self.plan.tasks_per_worker)
        if not seen.waiting:
            self._add_at_ms = None
            self._step = 1
        elif self._add_at_ms is None:
            self._add_at_ms = now_ms + self.plan.backlog_ms
        if needed < self.target:
            self.target = max(needed, self.plan.workers_min)
            self._step = 1
        elif self._add_at_ms is not None and now_ms >= self._add_at_ms:
            self._grow(needed)
            self._add_at_ms = now_ms + self.plan.sustained_ms

    def _grow(self, needed: int) -> None:
        """By a step, which doubles if all of it was wanted."""
        before = max(self.target, self.live)
        grown = min(before + self._step, needed, self.plan.workers_max)
        self._step = self._step * 2 if grown - self.target == self._step else 1
        self.target = max(grown, self.plan.workers_min)

    def _sync(self) -> list[Action]:
        """Ask for what is missing, or take asks back."""
        missing = self.target - self.live - self._asked
        if missing >= 0:
            self._asked += missing
            return [AskFor(self._request)] * missing
        withdrawn = min(-missing, self._asked)
        self._asked -= withdrawn
        return [Withdraw(self._request)] * withdrawn

    def _give_back_idle(self, seen: BacklogSeen, now_ms: int) -> list[Action]:
        """The workers that have idled for long enough, the longest first, down to the target."""
        for worker, since in self._idle_since.items():
            if worker in seen.busy:
                self._idle_since[worker] = None
            elif since is None:
                self._idle_since[worker] = now_ms
        idle = [(since, worker) for worker, since in self._idle_since.items() if since is not None]
        long_idle = sorted(entry for entry in idle if now_ms - entry[0] >= self.plan.idle_ms)
        spare = max(0, self.live - max(self.target, self.plan.workers_min))
        return [self._let_go(worker) for _, worker in long_idle[:spare]]

    # The workers

    def _take(self, allocation: Allocation, now_ms: int) -> Action:
        container: Container = allocation.container
        if allocation.request is not None:
            self._asked -= 1
        if allocation.request is None or self.live >= self.target:
            return GiveBack(container.id)
        self._idle_since[container.id] = now_ms
        return Launch(container, self._launch_context_of())

    def _let_go(self, worker: ContainerId) -> Action:
        """Its end, when it is heard of, tells whether it had taken a task meanwhile."""
        del self._idle_since[worker]
        self._going[worker] = None
        return GiveBack(worker)

    def _note_end(self, status: ContainerStatus) -> list[ElasticAction]:
        worker = status.container_id
        if worker in self._going:
            del self._going[worker]
            return [PutBack(worker)]
        if worker not in self._idle_since:
            return []
        del self._idle_since[worker]
        self._failures += status.exit_status not in BLAMELESS
        return [PutBack(worker), *self._fail_if_too_often()]

    def _fail_if_too_often(self) -> list[ElasticAction]:
        most = max(FAILURES_LEAST, 2 * self.plan.workers_min)
        if self._failures <= most:
            return []
        return self._fail(f"{self._failures} workers failed, more than {most} (see their logs)")

    def _fail(self, diagnostics: str) -> list[ElasticAction]:
        return self._over(Finish(FinalApplicationStatus.FAILED, diagnostics, EXIT_FAILED))

    def _over(self, ending: Finish | Leave) -> list[ElasticAction]:
        self._is_over = True
        return [ending]
