"""A map-reduce job: which tasks wait, run and are done, with the rules of Hadoop's MapReduce ApplicationMaster.

    handle(event, now_ms) -> [JobAction]        pure; am.programs.mapreduce.application_master carries them out

Maps are requested at once. Reduces wait until a share of the maps is done (slow start), and are then requested as far
as the headroom goes beyond what waiting maps need.

A map's output lies on the node it ran on, so it is lost with the node, and the map runs again if a reduce may still
need it. A reduce's output lies in the output directory, so it is kept.

The rules are those of RMContainerAllocator, JobImpl and TaskImpl of Hadoop 3.4.1, without its ramp of reduces, its
blacklist, speculation and uber mode.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from am.core.actions import Action, Finish, ReleaseContainer, StopContainer
from am.core.application import ApplicationCore
from am.core.events import (
    AllocatedContainer,
    ContainersAllocated,
    ContainerStartFailed,
    Event,
    HeartbeatDone,
    NodesUpdated,
    PreemptionAsked,
    Registered,
)
from am.core.preemption import ReleaseCandidate, containers_to_release
from am.programs.mapreduce.core.job import MapReduceJob, TaskAttemptId, TaskId, TaskKind
from am.programs.mapreduce.core.tasks import (
    AttemptRecord,
    AttemptState,
    AttemptSucceeded,
    RunAgain,
    Task,
    TaskGivenUp,
    TaskRecovered,
    TaskState,
)
from am.programs.mapreduce.core.waiting import PRIORITY_MAP, PRIORITY_RERUN_MAP, WaitingTasks
from yarn.containers import Container, ContainerStatus
from yarn.ids import ApplicationAttemptId, ContainerId
from yarn.resource import NONE, Resource
from yarn.states import ContainerExitStatus, FinalApplicationStatus, NodeState

ATTEMPTS_MAX = 4
"""The largest number of tries of a task (mapreduce.map.maxattempts, mapreduce.reduce.maxattempts)."""

SLOW_START = 0.05
"""The share of maps that must be done before reduces start (mapreduce.job.reduce.slowstart.completedmaps)."""

COMMIT_WINDOW_MS = 10_000
"""The job is committed only if the RM has answered this recently (yarn.app.mapreduce.am.job.committer.commit-window):
an AM that is cut off may have a successor by now."""

EXIT_FETCH_FAILED = 75
"""The exit code of a reduce that could not fetch the output of some maps, which its report names (EX_TEMPFAIL)."""

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


class TaskReport(Struct, frozen=True):
    """The report of a task that has ended: for a map the place of its output, for a reduce the maps
    it could not fetch. `commit_error`: why the AM could not move the task's output into place.
    """

    output: str = ""
    fetch_failures: tuple[TaskAttemptId, ...] = ()
    commit_error: str = ""


class TaskEnded(Struct, frozen=True):
    """The end of a container, with the report of its task if there is one; replaces ContainersCompleted."""

    status: ContainerStatus
    report: TaskReport | None = None


class RunTask(Struct, frozen=True):
    """Start the attempt in its container."""

    attempt_id: TaskAttemptId
    container: Container


class PublishOutput(Struct, frozen=True):
    """Announce the place of a map's output to the reduces; an empty `output` means that it is lost."""

    attempt_id: TaskAttemptId
    output: str


class RecordAttempt(Struct, frozen=True):
    """Write the state of an attempt into the journal."""

    attempt: AttemptRecord


JobEvent: TypeAlias = Event | TaskEnded
JobAction: TypeAlias = Action | RunTask | PublishOutput | RecordAttempt


class MapReduce(ApplicationCore[JobEvent, JobAction]):
    """A job under one attempt of its AM.

    A task that is not done is in `_waiting`, or it runs in one of the containers `_assigned`. `_stopping`: the sizes of
    containers that were stopped and have not ended yet. The application ends with Finish once its reduces, or without
    reduces its maps, are done; the shell then commits or removes the output.
    """

    def __init__(
        self,
        job: MapReduceJob,
        am_attempt_id: ApplicationAttemptId,
        recovered: Mapping[TaskId, tuple[AttemptRecord, ...]],
        *,
        check_invariants: bool = False,
    ) -> None:
        super().__init__(check_invariants=check_invariants)
        app = am_attempt_id.application_id
        self.job = job
        self.maps = [Task(TaskId(app, TaskKind.MAP, number)) for number in range(len(job.splits))]
        self.reduces = [Task(TaskId(app, TaskKind.REDUCE, number)) for number in range(job.reduces)]
        self.lost_outputs = 0
        self._am_attempt = am_attempt_id.attempt
        self._waiting = WaitingTasks(job)
        self._assigned: dict[ContainerId, Task] = {}
        self._stopping: dict[ContainerId, Resource] = {}
        self._headroom = NONE
        self._heard_ms = 0
        self._started = False
        on = self._dispatcher.on
        on(Registered, self._start)
        on(HeartbeatDone, self._heartbeat)
        on(NodesUpdated, self._nodes_updated)
        on(ContainersAllocated, self._allocated)
        on(ContainerStartFailed, self._start_failed)
        on(TaskEnded, self._task_ended)
        on(PreemptionAsked, self._preempted)
        for task_id, attempts in recovered.items():
            task = self._task(task_id)
            task.attempts = list(attempts)
            task.take(TaskRecovered(), self.now_ms)

    def progress(self) -> float:
        """The progress from 0 to 1, with Hadoop's weights: 5 % set-up, 45 % maps, 45 % reduces, 5 % commit; 90 % for a
        single kind.
        """
        if not self._started:
            return 0.0
        kinds = [tasks for tasks in (self.maps, self.reduces) if tasks]
        done = [sum(task.state is TaskState.SUCCEEDED for task in tasks) / len(tasks) for tasks in kinds]
        return 0.05 + (0.9 * sum(done) / len(kinds) if kinds else 0.9)

    def attempt_in(self, container_id: ContainerId) -> AttemptRecord | None:
        """The attempt that runs in a container; None if it is over."""
        task = self._assigned.get(container_id)
        return None if task is None else task.attempt

    def violations(self) -> Iterator[str]:
        """Check A-18 and A-19: a RUNNING or SUCCEEDED task has one live attempt, and all others wait."""
        if self._is_over:
            return
        tasks = [*self.maps, *self.reduces]
        for task in tasks:
            live = [each for each in task.attempts if each.state in (AttemptState.RUNNING, AttemptState.SUCCEEDED)]
            if len(live) != (task.state in (TaskState.RUNNING, TaskState.SUCCEEDED)):
                yield f"A-18: {task} is {task.state.name} with {len(live)} live attempts"
        scheduled = sum(task.state is TaskState.SCHEDULED for task in tasks)
        if self._started and scheduled != self._waiting.scheduled_maps + self._waiting.scheduled_reduces:
            yield f"A-19: {scheduled} tasks are SCHEDULED, and others wait for a container"
        for task in self._assigned.values():
            if task.attempt.state is not AttemptState.RUNNING:
                yield f"A-19: {task.attempt.id} is {task.attempt.state.name} and holds a container"

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
                self._dispatcher.emit(self._waiting.request(task, PRIORITY_MAP, self.now_ms))
            elif self.reduces:
                self._dispatcher.emit(PublishOutput(task.attempt.id, task.attempt.output))
        self._waiting.pending_reduces.extend(task for task in self.reduces if task.state is not TaskState.SUCCEEDED)
        self._maybe_finish()

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
        if self._started:
            self._balance_reduces()
            self._maybe_finish()

    def _maybe_finish(self) -> None:
        """Finish the job if its reduces are done, even if maps are running again (finish-when-all-reducers-done)."""
        wanted = self.reduces or self.maps
        is_done = all(task.state is TaskState.SUCCEEDED for task in wanted)
        if not self._is_over and is_done and self.now_ms - self._heard_ms <= COMMIT_WINDOW_MS:
            self._finish(Finish(FinalApplicationStatus.SUCCEEDED))

    def _fail_job(self, diagnostics: str) -> None:
        self._finish(Finish(FinalApplicationStatus.FAILED, diagnostics, exit_code=1))

    def _finish(self, finish: Finish) -> None:
        """Finish the job. The RM stops the containers that still run when it learns of the job's end."""
        for task in self._assigned.values():
            self._end_attempt(task, AttemptState.KILLED, "the job is over")
        self._assigned.clear()
        self._end(finish)

    def _allocated(self, event: ContainersAllocated) -> None:
        for allocation in event.allocations:
            self._assign(allocation)

    def _assign(self, allocation: AllocatedContainer) -> None:
        """Start the longest waiting task that this container fits, or release the container."""
        container = allocation.container
        if allocation.request is None or not self._waiting.is_any_at(container.priority):
            self._dispatcher.emit(ReleaseContainer(container.id))
            return
        task = self._waiting.pop(container.priority)
        task.start_attempt(container, self._am_attempt, self.now_ms)
        self._assigned[container.id] = task
        self._dispatcher.emit(RecordAttempt(task.attempt))
        self._dispatcher.emit(RunTask(task.attempt.id, container))

    def _start_failed(self, event: ContainerStartFailed) -> None:
        if event.container_id in self._assigned:
            self._dispatcher.emit(ReleaseContainer(event.container_id))
            self._fail(self._assigned.pop(event.container_id), f"Container launch failed: {event.diagnostics}")

    def _task_ended(self, event: TaskEnded) -> None:
        status, report = event.status, event.report
        if self._audit is not None:
            self._audit.note_completed(status.container_id)
        self._stopping.pop(status.container_id, None)
        task = self._assigned.pop(status.container_id, None)
        if task is None:
            return
        if status.exit_status in KILLED_STATUSES:
            self._kill(task, status.diagnostics)
        elif report is not None and status.exit_status == EXIT_FETCH_FAILED:
            self._kill(task, "could not fetch the output of " + ", ".join(map(str, report.fetch_failures)))
            for attempt_id in report.fetch_failures:
                self._fetch_failed(attempt_id)
        elif status.exit_status != ContainerExitStatus.SUCCESS:
            self._fail(task, status.diagnostics or f"exit status {status.exit_status}")
        elif report is None:
            self._fail(task, "the container ended with 0 but its task left no report")
        elif report.commit_error:
            self._fail(task, f"Task commit failed: {report.commit_error}")
        else:
            self._succeed(task, report.output)

    def _succeed(self, task: Task, output: str) -> None:
        task.take(AttemptSucceeded(), self.now_ms)
        self._end_attempt(task, AttemptState.SUCCEEDED, output=output)
        if task.is_map and self.reduces:
            self._dispatcher.emit(PublishOutput(task.attempt.id, output))
        else:
            self._maybe_finish()

    def _fail(self, task: Task, why: str) -> None:
        """Count a failure of the task, and try it again unless it was the last try."""
        task.failures += 1
        self._end_attempt(task, AttemptState.FAILED, why)
        if task.failures < ATTEMPTS_MAX:
            self._run_again(task)
            return
        task.take(TaskGivenUp(), self.now_ms)
        failed = [sum(t.state is TaskState.FAILED for t in tasks) for tasks in (self.maps, self.reduces)]
        self._fail_job(
            f"Task failed {task.id}\nJob failed as tasks failed. failedMaps:{failed[0]} failedReduces:{failed[1]}\n"
            f"{task.attempt.id}: {why}"
        )

    def _kill(self, task: Task, why: str) -> None:
        self._end_attempt(task, AttemptState.KILLED, why)
        self._run_again(task)

    def _end_attempt(self, task: Task, state: AttemptState, why: str = "", output: str = "") -> None:
        task.end_attempt(state, self.now_ms, why=why, output=output)
        self._dispatcher.emit(RecordAttempt(task.attempt))

    def _run_again(self, task: Task) -> None:
        task.take(RunAgain(), self.now_ms)
        if task.is_map:
            self._dispatcher.emit(self._waiting.request(task, PRIORITY_RERUN_MAP, self.now_ms))
        else:
            self._waiting.pending_reduces.append(task)

    def _task(self, task_id: TaskId) -> Task:
        return (self.maps if task_id.kind is TaskKind.MAP else self.reduces)[task_id.number]

    def _nodes_updated(self, event: NodesUpdated) -> None:
        """Handle changed nodes: a lost node ends its running attempts, and loses map output that reduces may still
        need.
        """
        lost = {report.node_id: report for report in event.reports if report.state in LOST_NODE_STATES}
        for container_id, task in list(self._assigned.items()):
            if report := lost.get(task.attempt.node_id):
                del self._assigned[container_id]
                self._kill(task, f"node {report.node_id} is {report.state.name}")
        if all(task.state is TaskState.SUCCEEDED for task in self.reduces):
            return
        for task in self.maps:
            if task.state is TaskState.SUCCEEDED and (report := lost.get(task.attempt.node_id)):
                self._make_output_again(task, AttemptState.KILLED, f"node {report.node_id} is {report.state.name}")

    def _fetch_failed(self, attempt_id: TaskAttemptId) -> None:
        """Handle map output that cannot be fetched although its node runs: the map has failed (JobImpl)."""
        task = self._task(attempt_id.task_id)
        if self._is_over or task.state is not TaskState.SUCCEEDED or task.attempt.id != attempt_id:
            return
        task.failures += 1
        if task.failures >= ATTEMPTS_MAX:
            self._fail_job(f"Task failed {task.id}\nits output could not be fetched {task.failures} times")
        else:
            self._make_output_again(task, AttemptState.FAILED, "Too many fetch failures. Failing the attempt.")

    def _make_output_again(self, task: Task, state: AttemptState, why: str) -> None:
        self.lost_outputs += 1
        self._end_attempt(task, state, why)
        self._dispatcher.emit(PublishOutput(task.attempt.id, ""))
        self._run_again(task)

    def _balance_reduces(self) -> None:
        """Request reduces when there is memory for them, or make room for maps that would wait forever."""
        waiting, now_ms = self._waiting, self.now_ms
        map_mb, reduce_mb = self.job.map_resource.memory_mb, self.job.reduce_resource.memory_mb
        free_mb = self._headroom.memory_mb + sum(resource.memory_mb for resource in self._stopping.values())
        is_map_running = any(task.is_map for task in self._assigned.values())
        if waiting.scheduled_maps and not is_map_running and free_mb - waiting.scheduled_reduces * reduce_mb < map_mb:
            for action in waiting.withdraw_reduces(now_ms):
                self._dispatcher.emit(action)
            if free_mb < map_mb:
                self._stop_youngest_reduce()
        elif sum(task.state is TaskState.SUCCEEDED for task in self.maps) >= math.ceil(SLOW_START * len(self.maps)):
            count = len(waiting.pending_reduces)
            if waiting.scheduled_maps:
                room_mb = self._headroom.memory_mb - waiting.scheduled_maps * map_mb
                count = min(count, max(0, room_mb // reduce_mb - waiting.scheduled_reduces))
            for request in waiting.request_reduces(count, now_ms):
                self._dispatcher.emit(request)

    def _stop_youngest_reduce(self) -> None:
        """Stop the reduce that loses the least work (Hadoop stops those with the least progress)."""
        running = [task for task in self._assigned.values() if not task.is_map]
        if running:
            task = min(running, key=lambda task: (-task.attempt.started_ms, task.id.number))
            attempt = task.attempt
            del self._assigned[attempt.container_id]
            self._stopping[attempt.container_id] = attempt.resource
            self._dispatcher.emit(StopContainer(attempt.container_id, attempt.node_id))
            self._kill(task, "stopped to make room for maps")

    def _preempted(self, event: PreemptionAsked) -> None:
        """Release the containers that preemption asks for.

        The cost of a container is the time that its task has run.
        """
        candidates = {
            container_id: ReleaseCandidate(task.attempt.resource, cost=self.now_ms - task.attempt.started_ms)
            for container_id, task in self._assigned.items()
        }
        for container_id in containers_to_release(event.preemption, candidates):
            self._dispatcher.emit(ReleaseContainer(container_id))
            self._kill(self._assigned.pop(container_id), "released: the ResourceManager asked for it")
