"""A map-reduce: which tasks wait, run and are done, with the rules of Hadoop's MapReduce ApplicationMaster.

    handle(event, now_ms) -> [order]        pure; am.programs.mapreduce.master carries the orders out

Maps are asked for at once, at priority 20. Reduces wait until a share of the maps is done (slow start) and are then
let in by shares (ramp). A map that must run again is asked for at priority 5: before reduces (10), which wait for it.

A map's output lies on the node it ran on, so it is lost with the node, and the map runs again if some reduce may still
want it. A reduce's output lies in the output directory, so it is kept.

The rules are those of RMContainerAllocator, JobImpl, TaskImpl and TaskAttemptImpl of Hadoop 3.4.1, without speculation
and uber mode.
"""

from __future__ import annotations

from collections.abc import Iterable

from am.core.events import (
    Allocation,
    ContainersAllocated,
    ContainerStartFailed,
    HeartbeatDone,
    HeartbeatFailed,
    NodesUpdated,
    PreemptionAsked,
    Registered,
    ShutdownOrdered,
)
from am.core.preemption import Held, containers_to_give_back
from am.programs.core.actions import AskFor, ChangeBlacklist, Finish, GiveBack, Leave, Stop
from am.programs.mapreduce.core import ramp
from am.programs.mapreduce.core.blacklist import NodeBlacklist
from am.programs.mapreduce.core.job import Job, TaskAttemptId, TaskKind
from am.programs.mapreduce.core.orders import (
    EXIT_FETCH_FAILED,
    AbortJob,
    CommitJob,
    CommitTask,
    JobCommitFailed,
    JobCommitted,
    JobEvent,
    Order,
    PublishOutput,
    Record,
    Recovered,
    RunTask,
    TaskCommitFailed,
    TaskCommitted,
    TaskEnded,
    WithdrawOutput,
)
from am.programs.mapreduce.core.tasks import Attempt, AttemptState, Task, TaskState, make_tasks
from am.programs.mapreduce.core.waiting import PRIORITY_MAP, PRIORITY_RERUN_MAP, WaitingTasks
from yarn.asks import Preemption
from yarn.ids import ApplicationAttemptId, ContainerId
from yarn.nodes import NodeReport
from yarn.resource import NONE, Resource
from yarn.states import ContainerExitStatus, FinalApplicationStatus, NodeState

COMMIT_WINDOW_MS = 10_000
"""The job is committed only if the RM was heard of this recently (yarn.app.mapreduce.am.job.committer.commit-window):
an AM that is cut off may have a successor by now."""

KILLED_STATUSES = frozenset(
    {
        ContainerExitStatus.ABORTED,
        ContainerExitStatus.PREEMPTED,
        ContainerExitStatus.KILLED_BY_CONTAINER_SCHEDULER,
    }
)
"""Ends that are not the task's fault."""

LOST_NODE_STATES = frozenset({NodeState.UNHEALTHY, NodeState.DECOMMISSIONED, NodeState.LOST, NodeState.SHUTDOWN})
"""States in which a node's map output cannot be fetched any more (NodeState.isUnusable)."""


class MapReduce:
    """One job under one attempt of its AM.

    Where a task that is not done may be found: in `_waiting`, or as the running attempt in `_assigned` (by container),
    or being committed.
    """

    def __init__(self, job: Job, am_attempt_id: ApplicationAttemptId, recovered: Iterable[Recovered] = ()) -> None:
        application_id = am_attempt_id.application_id
        self.job = job
        self.maps = make_tasks(application_id, TaskKind.MAP, len(job.splits))
        self.reduces = make_tasks(application_id, TaskKind.REDUCE, job.reduces)
        self.recovered_tasks = 0
        self.lost_outputs = 0
        self._am_attempt = am_attempt_id.attempt
        self._blacklist = NodeBlacklist(job.tuning)
        self._waiting = WaitingTasks(job)
        self._assigned: dict[ContainerId, Attempt] = {}
        self._stopping: dict[ContainerId, Resource] = {}
        self._attempts: dict[TaskAttemptId, Attempt] = {}
        self._headroom = NONE
        self._heard_ms = 0
        self._now_ms = 0
        self._slow_start_passed = False
        self._started = False
        self._committing = False
        self._over = False
        self._orders: list[Order] = []
        for task in recovered:
            self._adopt(task)

    def handle(self, event: JobEvent, now_ms: int) -> list[Order]:
        """Orders for one event, to be carried out in their order before the next event; none once the job is over."""
        if self._over:
            return []
        self._now_ms = now_ms
        self._handle(event)
        orders, self._orders = self._orders, []
        return orders

    def progress(self) -> float:
        """Hadoop's weights: 5 % set-up, 45 % maps, 45 % reduces, 5 % commit; 90 % for the one kind there is."""
        if not self._started:
            return 0.0
        kinds = [tasks for tasks in (self.maps, self.reduces) if tasks]
        done = [sum(task.state is TaskState.SUCCEEDED for task in tasks) / len(tasks) for tasks in kinds]
        return 0.05 + (0.9 * sum(done) / len(kinds) if kinds else 0.9)

    def attempt(self, attempt_id: TaskAttemptId) -> Attempt:
        return self._attempts[attempt_id]

    def attempt_in(self, container_id: ContainerId) -> Attempt | None:
        """The attempt that runs in a container, if it is not over."""
        return self._assigned.get(container_id)

    def _handle(self, event: JobEvent) -> None:
        match event:
            case Registered(maximum_capability) if not self._started:
                self._start(maximum_capability)
            case HeartbeatDone(headroom, cluster_nodes):
                self._heard_ms = self._now_ms
                self._headroom = headroom
                self._tell_blacklist(cluster_nodes)
                self._balance_reduces()
                self._maybe_commit_job()
            case NodesUpdated(reports):
                self._handle_nodes(reports)
            case ContainersAllocated(allocations):
                for allocation in allocations:
                    self._assign(allocation)
            case ContainerStartFailed(container_id, diagnostics) if container_id in self._assigned:
                self._orders.append(GiveBack(container_id))
                self._fail(self._assigned.pop(container_id), f"Container launch failed: {diagnostics}")
            case TaskEnded():
                self._handle_end(event)
            case TaskCommitted(attempt_id):
                self._succeed(self._attempts[attempt_id])
                self._maybe_commit_job()
            case TaskCommitFailed(attempt_id, error):
                self._fail(self._attempts[attempt_id], f"Task commit failed: {error}")
            case PreemptionAsked(preemption):
                self._give_back(preemption)
            case JobCommitted():
                self._finish(Finish(FinalApplicationStatus.SUCCEEDED))
            case JobCommitFailed(error):
                self._fail_job(f"Job commit failed: {error}")
            case ShutdownOrdered(reason):
                self._leave(reason)
            case HeartbeatFailed(error):
                self._leave(str(error))
            case _:
                pass

    # Begin and end

    def _adopt(self, recovered: Recovered) -> None:
        kind = self.maps if recovered.task_id.kind is TaskKind.MAP else self.reduces
        task = kind[recovered.task_id.number]
        task.attempts = list(recovered.attempts)
        task.state = TaskState.SUCCEEDED
        self._attempts.update({attempt.id: attempt for attempt in recovered.attempts})
        self.recovered_tasks += 1

    def _start(self, maximum: Resource) -> None:
        self._started = True
        if fault := self._oversize(maximum):
            self._fail_job(fault)
            return
        for task in self.maps:
            if task.state is not TaskState.SUCCEEDED:
                self._ask_for_map(task, PRIORITY_MAP)
            elif self.reduces:
                output = task.attempts[-1]
                self._orders.append(PublishOutput(output.id, output.output))
        self._waiting.add_reduces(task for task in self.reduces if task.state is not TaskState.SUCCEEDED)
        self._maybe_commit_job()

    def _oversize(self, maximum: Resource) -> str | None:
        """Why the job can never run here, if so (RMContainerAllocator kills the job with such words)."""
        for tasks, word, resource in (
            (self.maps, "MAP", self.job.map_resource),
            (self.reduces, "REDUCE", self.job.reduce_resource),
        ):
            if tasks and not resource.fits_in(maximum):
                return (
                    f"{word} capability required is more than the supported max container capability in the cluster. "
                    f"Killing the Job. {word.lower()}ResourceRequest: {resource} maxContainerCapability: {maximum}"
                )
        return None

    def _maybe_commit_job(self) -> None:
        """The job is complete with its reduces, whatever maps still run again (finish-when-all-reducers-done)."""
        wanted = self.reduces or self.maps
        if self._over or self._committing or not all(task.state is TaskState.SUCCEEDED for task in wanted):
            return
        if self._now_ms - self._heard_ms <= COMMIT_WINDOW_MS:
            self._committing = True
            self._orders.append(CommitJob())

    def _fail_job(self, diagnostics: str) -> None:
        self._orders.append(AbortJob())
        self._finish(Finish(FinalApplicationStatus.FAILED, diagnostics, exit_code=1))

    def _finish(self, finish: Finish) -> None:
        """What still runs is stopped by the RM when it hears of the end."""
        self._over = True
        for attempt in self._assigned.values():
            self._end(attempt, AttemptState.KILLED, "the job is over")
        self._assigned.clear()
        self._orders.append(finish)

    def _leave(self, reason: str) -> None:
        """Another attempt may follow and needs all that was written: nothing is removed."""
        self._over = True
        self._orders.append(Leave(reason))

    # Asking and assigning

    def _ask_for_map(self, task: Task, priority: int) -> None:
        self._orders.append(self._waiting.add_map(task, priority, self._now_ms))

    def _assign(self, allocation: Allocation) -> None:
        """Start the longest waiting task that this container is for, or give the container back."""
        container, request = allocation.container, allocation.request
        is_unwanted = request is None or not self._waiting.is_any_at(container.priority)
        if is_unwanted or container.node_id.host in self._blacklist:
            self._orders.append(GiveBack(container.id))
            if request is not None and not is_unwanted:
                self._orders.append(AskFor(request))
            return
        task = self._waiting.pop(container.priority)
        attempt = task.start_attempt(container, self._am_attempt, self._now_ms)
        self._attempts[attempt.id] = attempt
        self._assigned[container.id] = attempt
        self._orders.extend((Record(attempt), RunTask(attempt.id, container)))

    def _tell_blacklist(self, cluster_nodes: int) -> None:
        additions, removals = self._blacklist.changes(cluster_nodes)
        if additions or removals:
            self._orders.append(ChangeBlacklist(additions, removals))

    # Ends of attempts

    def _handle_end(self, event: TaskEnded) -> None:
        status, report = event.status, event.report
        self._stopping.pop(status.container_id, None)
        attempt = self._assigned.pop(status.container_id, None)
        if attempt is None:
            return
        if status.exit_status in KILLED_STATUSES:
            self._kill(attempt, status.diagnostics)
        elif report is not None and status.exit_status == EXIT_FETCH_FAILED:
            self._kill(attempt, "could not fetch the output of " + ", ".join(map(str, report.fetch_failures)))
            for attempt_id in report.fetch_failures:
                self._handle_fetch_failure(attempt_id)
        elif status.exit_status != ContainerExitStatus.SUCCESS:
            self._fail(attempt, status.diagnostics or f"exit status {status.exit_status}")
        elif report is None:
            self._fail(attempt, "the container ended with 0 but its task reported no result")
        else:
            self._handle_result(attempt, report.output)

    def _handle_result(self, attempt: Attempt, output: str) -> None:
        attempt.output = output
        if attempt.is_map and self.reduces:
            self._succeed(attempt)
            self._orders.append(PublishOutput(attempt.id, output))
        else:
            attempt.state = AttemptState.COMMITTING
            self._orders.append(CommitTask(attempt.id))

    def _succeed(self, attempt: Attempt) -> None:
        self._task_of(attempt).state = TaskState.SUCCEEDED
        self._end(attempt, AttemptState.SUCCEEDED, "")

    def _fail(self, attempt: Attempt, why: str) -> None:
        """Count a failure against the task and its host, and try again unless it was the last try."""
        task = self._task_of(attempt)
        task.failures += 1
        self._blacklist.count_failure(attempt.node_id.host)
        self._end(attempt, AttemptState.FAILED, why)
        if task.failures < self.job.tuning.attempts_max:
            self._ask_again(task)
            return
        task.state = TaskState.FAILED
        failed = [sum(t.state is TaskState.FAILED for t in tasks) for tasks in (self.maps, self.reduces)]
        self._fail_job(
            f"Task failed {task.id}\nJob failed as tasks failed. failedMaps:{failed[0]} failedReduces:{failed[1]}\n"
            f"{attempt.id}: {why}"
        )

    def _kill(self, attempt: Attempt, why: str) -> None:
        self._end(attempt, AttemptState.KILLED, why)
        self._ask_again(self._task_of(attempt))

    def _end(self, attempt: Attempt, state: AttemptState, why: str) -> None:
        attempt.state = state
        attempt.finished_ms = self._now_ms
        attempt.why = why
        self._orders.append(Record(attempt))

    def _ask_again(self, task: Task) -> None:
        if task.id.kind is TaskKind.MAP:
            self._ask_for_map(task, PRIORITY_RERUN_MAP)
        else:
            self._waiting.add_reduces([task])

    def _task_of(self, attempt: Attempt) -> Task:
        task_id = attempt.id.task_id
        return (self.maps if attempt.is_map else self.reduces)[task_id.number]

    # Lost nodes and lost output

    def _handle_nodes(self, reports: tuple[NodeReport, ...]) -> None:
        """A lost node takes its running attempts with it, and the map output that some reduce may still want."""
        lost = {report.node_id: report for report in reports if report.state in LOST_NODE_STATES}
        for attempt in list(self._assigned.values()):
            if attempt.node_id in lost:
                del self._assigned[attempt.container_id]
                self._kill(attempt, f"node {attempt.node_id} is {lost[attempt.node_id].state.name}")
        if self._committing or all(task.state is TaskState.SUCCEEDED for task in self.reduces):
            return
        for task in self.maps:
            if task.state is TaskState.SUCCEEDED and task.attempts[-1].node_id in lost:
                node_id = task.attempts[-1].node_id
                self._lose_output(task, AttemptState.KILLED, f"node {node_id} is {lost[node_id].state.name}")

    def _handle_fetch_failure(self, attempt_id: TaskAttemptId) -> None:
        """Output that is gone although its node is there: a failure of the map (JobImpl: too many fetch failures)."""
        attempt = self._attempts.get(attempt_id)
        if self._over or attempt is None or attempt.state is not AttemptState.SUCCEEDED:
            return
        task = self._task_of(attempt)
        task.failures += 1
        if task.failures >= self.job.tuning.attempts_max:
            self._fail_job(f"Task failed {task.id}\nits output could not be fetched {task.failures} times")
            return
        self._lose_output(task, AttemptState.FAILED, "Too many fetch failures. Failing the attempt.")

    def _lose_output(self, task: Task, state: AttemptState, why: str) -> None:
        attempt = task.attempts[-1]
        attempt.output_lost = True
        self.lost_outputs += 1
        self._end(attempt, state, why)
        self._orders.append(WithdrawOutput(attempt.id))
        self._ask_for_map(task, PRIORITY_RERUN_MAP)

    # Reduces: in by shares, out if maps starve

    def _demand(self) -> ramp.Demand:
        running = [attempt.is_map for attempt in self._assigned.values()]
        return ramp.Demand(
            total_maps=len(self.maps),
            completed_maps=sum(task.state is TaskState.SUCCEEDED for task in self.maps),
            scheduled_maps=self._waiting.scheduled_maps,
            assigned_maps=running.count(True),
            pending_reduces=self._waiting.pending_reduces,
            scheduled_reduces=self._waiting.scheduled_reduces,
            assigned_reduces=running.count(False),
            headroom_mb=self._headroom.memory_mb,
            map_mb=self.job.map_resource.memory_mb,
            reduce_mb=self.job.reduce_resource.memory_mb,
            stopping_mb=sum(resource.memory_mb for resource in self._stopping.values()),
        )

    def _balance_reduces(self) -> None:
        if not self.reduces or not self._started:
            return
        demand, tuning = self._demand(), self.job.tuning
        if ramp.must_preempt_reduces(demand, tuning, hanging_ms=self._waiting.hanging_ms(self._now_ms)):
            self._orders += self._waiting.let_reduces_in(-demand.scheduled_reduces)
            self._stop_reduces(ramp.reduces_to_stop(demand, tuning))
            return
        self._slow_start_passed = self._slow_start_passed or ramp.has_slow_start_passed(demand, tuning)
        if self._slow_start_passed:
            self._orders += self._waiting.let_reduces_in(ramp.reduces_to_schedule(demand, tuning))

    def _stop_reduces(self, count: int) -> None:
        """Stop the youngest: they have the least to lose (Hadoop: the least progress)."""
        running = [attempt for attempt in self._assigned.values() if not attempt.is_map]
        running.sort(key=lambda attempt: (-attempt.started_ms, attempt.id.task_id.number))
        for attempt in running[:count]:
            del self._assigned[attempt.container_id]
            self._stopping[attempt.container_id] = attempt.resource
            self._orders.append(Stop(attempt.container_id, attempt.node_id))
            self._kill(attempt, "stopped to make room for maps")

    def _give_back(self, preemption: Preemption) -> None:
        """What a container has done so far is what its loss costs: the youngest go first."""
        held = {
            attempt.container_id: Held(attempt.resource, cost=self._now_ms - attempt.started_ms)
            for attempt in self._assigned.values()
        }
        for container_id in containers_to_give_back(preemption, held):
            self._orders.append(GiveBack(container_id))
            self._kill(self._assigned.pop(container_id), "given back: the ResourceManager asked for it")
