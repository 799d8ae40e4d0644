"""A map-reduce job: which tasks wait, run and are done, with the rules of Hadoop's MapReduce ApplicationMaster.

    handle(event, now_ms) -> [JobAction]        pure; am.programs.mapreduce.application_master carries them out

Maps are requested at once. Reduces wait until a share of the maps is done (slow start), and are then requested bit by
bit (am.programs.mapreduce.core.container_allocator).

A map's output lies on the node it ran on, so it is lost with the node, and the map runs again if a reduce may still
need it. A reduce's output lies in the output directory, so it is kept.

The rules are those of RMContainerAllocator, JobImpl, TaskImpl and TaskAttemptImpl of Hadoop 3.4.1, without speculation
and uber mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from am.core.actions import ChangeBlacklist, Finish, ReleaseContainer, RequestContainer, StopContainer
from am.core.application import ApplicationCore
from am.core.events import (
    AllocatedContainer,
    ContainersAllocated,
    ContainerStartFailed,
    HeartbeatDone,
    NodesUpdated,
    PreemptionAsked,
    Registered,
)
from am.core.preemption import ReleaseCandidate, containers_to_release
from am.programs.mapreduce.core.container_allocator import (
    PRIORITY_MAP,
    PRIORITY_RERUN_MAP,
    Demand,
    NodeBlacklist,
    WaitingTasks,
    has_slow_start_passed,
    must_preempt_reduces,
    reduces_to_schedule,
    reduces_to_stop,
)
from am.programs.mapreduce.core.events import (
    EXIT_FETCH_FAILED,
    AbortJob,
    CommitJob,
    CommitTask,
    JobAction,
    JobCommitFailed,
    JobCommitted,
    JobEvent,
    PublishOutput,
    Record,
    RunTask,
    TaskCommitFailed,
    TaskCommitted,
    TaskEnded,
    WithdrawOutput,
)
from am.programs.mapreduce.core.job import MapReduceJob, TaskAttemptId, TaskKind
from am.programs.mapreduce.core.tasks import (
    LIVE,
    AttemptState,
    AttemptSucceeded,
    CommitStarted,
    OutputReady,
    RecoveredTask,
    RunAgain,
    Task,
    TaskAttempt,
    TaskAttemptFailed,
    TaskAttemptKilled,
    TaskGivenUp,
    TaskRecovered,
    TaskState,
    make_tasks,
)
from yarn.ids import ApplicationAttemptId, ContainerId
from yarn.resource import NONE, Resource
from yarn.states import ContainerExitStatus, FinalApplicationStatus, NodeState

COMMIT_WINDOW_MS = 10_000
"""The job is committed only if the RM has answered this recently (yarn.app.mapreduce.am.job.committer.commit-window):
an AM that is cut off may have a successor by now."""

KILLED_STATUSES = frozenset(
    {
        ContainerExitStatus.ABORTED,
        ContainerExitStatus.PREEMPTED,
        ContainerExitStatus.KILLED_BY_CONTAINER_SCHEDULER,
    }
)
"""Exit statuses of tasks that were killed without their own fault."""

LOST_NODE_STATES = frozenset({NodeState.UNHEALTHY, NodeState.DECOMMISSIONED, NodeState.LOST, NodeState.SHUTDOWN})
"""States of a node in which its map output cannot be fetched (NodeState.isUnusable)."""


class MapReduce(ApplicationCore[JobEvent, JobAction]):
    """A job under one attempt of its AM.

    A task that is not done is in `_waiting`, or its running attempt is in `_assigned` (by container), or its attempt is
    being committed. `_stopping`: the sizes of containers that were stopped and have not ended yet.
    """

    def __init__(
        self,
        job: MapReduceJob,
        am_attempt_id: ApplicationAttemptId,
        recovered: Iterable[RecoveredTask] = (),
        *,
        check_invariants: bool = False,
    ) -> None:
        super().__init__(check_invariants=check_invariants)
        application_id = am_attempt_id.application_id
        self.job = job
        self.maps = make_tasks(application_id, TaskKind.MAP, len(job.splits))
        self.reduces = make_tasks(application_id, TaskKind.REDUCE, job.reduces)
        self.recovered_tasks = 0
        self.lost_outputs = 0
        self._am_attempt = am_attempt_id.attempt
        self._blacklist = NodeBlacklist(job.conf)
        self._waiting = WaitingTasks(job)
        self._assigned: dict[ContainerId, TaskAttempt] = {}
        self._stopping: dict[ContainerId, Resource] = {}
        self._attempts: dict[TaskAttemptId, TaskAttempt] = {}
        self._headroom = NONE
        self._heard_ms = 0
        self._slow_start_passed = False
        self._started = False
        self._committing = False
        self._register_handlers()
        for task in recovered:
            self._adopt(task)

    def progress(self) -> float:
        """The progress from 0 to 1, with Hadoop's weights: 5 % set-up, 45 % maps, 45 % reduces, 5 % commit; 90 % for a
        single kind.
        """
        if not self._started:
            return 0.0
        kinds = [tasks for tasks in (self.maps, self.reduces) if tasks]
        done = [sum(task.state is TaskState.SUCCEEDED for task in tasks) / len(tasks) for tasks in kinds]
        return 0.05 + (0.9 * sum(done) / len(kinds) if kinds else 0.9)

    def attempt(self, attempt_id: TaskAttemptId) -> TaskAttempt:
        return self._attempts[attempt_id]

    def attempt_in(self, container_id: ContainerId) -> TaskAttempt | None:
        """The attempt that runs in a container; None if it is over."""
        return self._assigned.get(container_id)

    def violations(self) -> Iterator[str]:
        """Check A-18 and A-19: a RUNNING or SUCCEEDED task has one live attempt, and all others wait."""
        if self._is_over:
            return
        tasks = [*self.maps, *self.reduces]
        for task in tasks:
            live = [attempt.id for attempt in task.attempts if attempt.state in LIVE]
            if len(live) != (task.state in (TaskState.RUNNING, TaskState.SUCCEEDED)):
                yield f"A-18: {task} is {task.state.name} with {len(live)} live attempts"
        scheduled = sum(task.state is TaskState.SCHEDULED for task in tasks)
        if self._started and scheduled != self._waiting.scheduled_maps + self._waiting.scheduled_reduces:
            yield f"A-19: {scheduled} tasks are SCHEDULED, and others wait for a container"
        for attempt in self._assigned.values():
            if attempt.state is not AttemptState.RUNNING:
                yield f"A-19: {attempt} is {attempt.state.name} and holds a container"

    def _register_handlers(self) -> None:
        on = self._dispatcher.on
        on(Registered, self._start)
        on(HeartbeatDone, self._heartbeat)
        on(NodesUpdated, self._nodes_updated)
        on(ContainersAllocated, self._allocated)
        on(ContainerStartFailed, self._start_failed)
        on(TaskEnded, self._task_ended)
        on(TaskCommitted, self._task_committed)
        on(
            TaskCommitFailed,
            lambda event: self._fail(self._attempts[event.attempt_id], f"Task commit failed: {event.error}"),
        )
        on(PreemptionAsked, self._preempted)
        on(JobCommitted, lambda _: self._finish(Finish(FinalApplicationStatus.SUCCEEDED)))
        on(JobCommitFailed, lambda event: self._fail_job(f"Job commit failed: {event.error}"))

    # Start and end

    def _adopt(self, recovered: RecoveredTask) -> None:
        kind = self.maps if recovered.task_id.kind is TaskKind.MAP else self.reduces
        task = kind[recovered.task_id.number]
        task.attempts = [TaskAttempt(record) for record in recovered.attempts]
        task.take(TaskRecovered(), self.now_ms)
        self._attempts.update({attempt.id: attempt for attempt in task.attempts})
        self.recovered_tasks += 1

    def _start(self, event: Registered) -> None:
        if self._started:
            return
        self._started = True
        problem = self._oversize(event.maximum_capability)
        if problem is not None:
            self._fail_job(problem)
            return
        for task in self.maps:
            if task.state is not TaskState.SUCCEEDED:
                self._request_map(task, PRIORITY_MAP)
            elif self.reduces:
                output = task.attempts[-1].record
                self._dispatcher.emit(PublishOutput(output.id, output.output))
        self._waiting.add_reduces(task for task in self.reduces if task.state is not TaskState.SUCCEEDED)
        self._maybe_commit_job()

    def _oversize(self, maximum: Resource) -> str | None:
        """Why the job can never run in this cluster, None if it can (RMContainerAllocator kills the job with this
        text).
        """
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

    def _heartbeat(self, event: HeartbeatDone) -> None:
        self._heard_ms = self.now_ms
        self._headroom = event.headroom
        additions, removals = self._blacklist.changes(event.cluster_nodes)
        if additions or removals:
            self._dispatcher.emit(ChangeBlacklist(additions, removals))
        self._balance_reduces()
        self._maybe_commit_job()

    def _maybe_commit_job(self) -> None:
        """Commit the job if its reduces are done, even if maps are running again (finish-when-all-reducers-done)."""
        wanted = self.reduces or self.maps
        if self._is_over or self._committing or not all(task.state is TaskState.SUCCEEDED for task in wanted):
            return
        if self.now_ms - self._heard_ms <= COMMIT_WINDOW_MS:
            self._committing = True
            self._dispatcher.emit(CommitJob())

    def _fail_job(self, diagnostics: str) -> None:
        self._dispatcher.emit(AbortJob())
        self._finish(Finish(FinalApplicationStatus.FAILED, diagnostics, exit_code=1))

    def _finish(self, finish: Finish) -> None:
        """Finish the job. The RM stops the containers that still run when it learns of the job's end."""
        for attempt in self._assigned.values():
            self._kill_attempt(attempt, "the job is over")
        self._assigned.clear()
        self._end(finish)

    # Requests and containers

    def _request_map(self, task: Task, priority: int) -> None:
        self._dispatcher.emit(self._waiting.add_map(task, priority, self.now_ms))

    def _allocated(self, event: ContainersAllocated) -> None:
        for allocation in event.allocations:
            self._assign(allocation)

    def _assign(self, allocation: AllocatedContainer) -> None:
        """Start the longest waiting task that this container fits, or release the container."""
        container, request = allocation.container, allocation.request
        is_unwanted = request is None or not self._waiting.is_any_at(container.priority)
        if is_unwanted or container.node_id.host in self._blacklist:
            self._dispatcher.emit(ReleaseContainer(container.id))
            if request is not None and not is_unwanted:
                self._dispatcher.emit(RequestContainer(request))
            return
        task = self._waiting.pop(container.priority)
        attempt = task.start_attempt(container, self._am_attempt, self.now_ms)
        self._attempts[attempt.id] = attempt
        self._assigned[container.id] = attempt
        self._dispatcher.emit(Record(attempt.record))
        self._dispatcher.emit(RunTask(attempt.id, container))

    def _start_failed(self, event: ContainerStartFailed) -> None:
        if event.container_id in self._assigned:
            self._dispatcher.emit(ReleaseContainer(event.container_id))
            self._fail(self._assigned.pop(event.container_id), f"Container launch failed: {event.diagnostics}")

    # Ends of attempts

    def _task_ended(self, event: TaskEnded) -> None:
        status, report = event.status, event.report
        if self._audit is not None:
            self._audit.note_completed(status.container_id)
        self._stopping.pop(status.container_id, None)
        attempt = self._assigned.pop(status.container_id, None)
        if attempt is None:
            return
        if status.exit_status in KILLED_STATUSES:
            self._kill(attempt, status.diagnostics)
        elif report is not None and status.exit_status == EXIT_FETCH_FAILED:
            self._kill(attempt, "could not fetch the output of " + ", ".join(map(str, report.fetch_failures)))
            for attempt_id in report.fetch_failures:
                self._fetch_failed(attempt_id)
        elif status.exit_status != ContainerExitStatus.SUCCESS:
            self._fail(attempt, status.diagnostics or f"exit status {status.exit_status}")
        elif report is None:
            self._fail(attempt, "the container ended with 0 but its task left no report")
        else:
            self._handle_output(attempt, report.output)

    def _handle_output(self, attempt: TaskAttempt, output: str) -> None:
        attempt.record = replace(attempt.record, output=output)
        if attempt.is_map and self.reduces:
            self._succeed(attempt)
            self._dispatcher.emit(PublishOutput(attempt.id, output))
        else:
            attempt.take(CommitStarted(), self.now_ms)
            self._dispatcher.emit(CommitTask(attempt.id))

    def _task_committed(self, event: TaskCommitted) -> None:
        self._succeed(self._attempts[event.attempt_id])
        self._maybe_commit_job()

    def _succeed(self, attempt: TaskAttempt) -> None:
        self._task_of(attempt).take(AttemptSucceeded(), self.now_ms)
        attempt.take(OutputReady(), self.now_ms)
        self._record_end(attempt, "")

    def _fail(self, attempt: TaskAttempt, why: str) -> None:
        """Count a failure of the attempt's task and host, and try the task again unless it was the last try."""
        task = self._task_of(attempt)
        task.failures += 1
        self._blacklist.count_failure(attempt.record.node_id.host)
        self._fail_attempt(attempt, why)
        if task.failures < self.job.conf.attempts_max:
            self._run_again(task)
            return
        task.take(TaskGivenUp(), self.now_ms)
        failed = [sum(t.state is TaskState.FAILED for t in tasks) for tasks in (self.maps, self.reduces)]
        self._fail_job(
            f"Task failed {task.id}\nJob failed as tasks failed. failedMaps:{failed[0]} failedReduces:{failed[1]}\n"
            f"{attempt.id}: {why}"
        )

    def _kill(self, attempt: TaskAttempt, why: str) -> None:
        self._kill_attempt(attempt, why)
        self._run_again(self._task_of(attempt))

    def _fail_attempt(self, attempt: TaskAttempt, why: str) -> None:
        attempt.take(TaskAttemptFailed(), self.now_ms)
        self._record_end(attempt, why)

    def _kill_attempt(self, attempt: TaskAttempt, why: str) -> None:
        attempt.take(TaskAttemptKilled(), self.now_ms)
        self._record_end(attempt, why)

    def _record_end(self, attempt: TaskAttempt, why: str) -> None:
        attempt.record = replace(attempt.record, finished_ms=self.now_ms, why=why)
        self._dispatcher.emit(Record(attempt.record))

    def _run_again(self, task: Task) -> None:
        task.take(RunAgain(), self.now_ms)
        if task.id.kind is TaskKind.MAP:
            self._request_map(task, PRIORITY_RERUN_MAP)
        else:
            self._waiting.add_reduces([task])

    def _task_of(self, attempt: TaskAttempt) -> Task:
        return (self.maps if attempt.is_map else self.reduces)[attempt.id.task_id.number]

    # Lost nodes and lost output

    def _nodes_updated(self, event: NodesUpdated) -> None:
        """Handle changed nodes: a lost node ends its running attempts, and loses map output that reduces may still
        need.
        """
        lost = {report.node_id: report for report in event.reports if report.state in LOST_NODE_STATES}
        for attempt in list(self._assigned.values()):
            node_id = attempt.record.node_id
            if node_id in lost:
                del self._assigned[attempt.record.container_id]
                self._kill(attempt, f"node {node_id} is {lost[node_id].state.name}")
        if self._committing or all(task.state is TaskState.SUCCEEDED for task in self.reduces):
            return
        for task in self.maps:
            if task.state is TaskState.SUCCEEDED and task.attempts[-1].record.node_id in lost:
                attempt = task.attempts[-1]
                self._mark_output_lost(attempt)
                node_id = attempt.record.node_id
                self._kill_attempt(attempt, f"node {node_id} is {lost[node_id].state.name}")
                self._make_output_again(task, attempt)

    def _fetch_failed(self, attempt_id: TaskAttemptId) -> None:
        """Handle map output that cannot be fetched although its node runs: the map has failed (JobImpl)."""
        attempt = self._attempts.get(attempt_id)
        if self._is_over or attempt is None or attempt.state is not AttemptState.SUCCEEDED:
            return
        task = self._task_of(attempt)
        task.failures += 1
        if task.failures >= self.job.conf.attempts_max:
            self._fail_job(f"Task failed {task.id}\nits output could not be fetched {task.failures} times")
            return
        self._mark_output_lost(attempt)
        self._fail_attempt(attempt, "Too many fetch failures. Failing the attempt.")
        self._make_output_again(task, attempt)

    def _mark_output_lost(self, attempt: TaskAttempt) -> None:
        attempt.record = replace(attempt.record, output_lost=True)
        self.lost_outputs += 1

    def _make_output_again(self, task: Task, attempt: TaskAttempt) -> None:
        self._dispatcher.emit(WithdrawOutput(attempt.id))
        self._run_again(task)

    # Reduces: requested bit by bit, stopped if maps starve

    def _demand(self) -> Demand:
        running = [attempt.is_map for attempt in self._assigned.values()]
        return Demand(
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
        demand, conf = self._demand(), self.job.conf
        if must_preempt_reduces(demand, conf, hanging_ms=self._waiting.hanging_ms(self.now_ms)):
            self._ramp_reduces(-demand.scheduled_reduces)
            self._stop_reduces(reduces_to_stop(demand, conf))
            return
        self._slow_start_passed = self._slow_start_passed or has_slow_start_passed(demand, conf)
        if self._slow_start_passed:
            self._ramp_reduces(reduces_to_schedule(demand, conf))

    def _ramp_reduces(self, count: int) -> None:
        for action in self._waiting.ramp_reduces(count, self.now_ms):
            self._dispatcher.emit(action)

    def _stop_reduces(self, count: int) -> None:
        """Stop the youngest reduces, because they lose the least work (Hadoop stops those with the least progress)."""
        running = [attempt for attempt in self._assigned.values() if not attempt.is_map]
        running.sort(key=lambda attempt: (-attempt.record.started_ms, attempt.id.task_id.number))
        for attempt in running[:count]:
            record = attempt.record
            del self._assigned[record.container_id]
            self._stopping[record.container_id] = record.resource
            self._dispatcher.emit(StopContainer(record.container_id, record.node_id))
            self._kill(attempt, "stopped to make room for maps")

    def _preempted(self, event: PreemptionAsked) -> None:
        """Release the containers that preemption asks for.

        The cost of a container is the time that its task has run.
        """
        candidates = {
            container_id: ReleaseCandidate(attempt.record.resource, cost=self.now_ms - attempt.record.started_ms)
            for container_id, attempt in self._assigned.items()
        }
        for container_id in containers_to_release(event.preemption, candidates):
            self._dispatcher.emit(ReleaseContainer(container_id))
            self._kill(self._assigned.pop(container_id), "released: the ResourceManager asked for it")
