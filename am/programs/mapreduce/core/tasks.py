"""Tasks and their attempts, their lifecycles, and how a second AM attempt recovers them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from am.programs.mapreduce.core.job import TaskAttemptId, TaskId, TaskKind
from yarn.containers import Container
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.machine import Lifecycle, Machine, Row
from yarn.resource import Resource

ATTEMPTS_PER_AM = 1000
"""Attempt numbers reserved for each attempt of the AM (MRJobConfig: APPLICATION_ATTEMPT_ID * 1000)."""


# Attempts


class AttemptState(Enum):
    """The state of a task attempt.

    It is RUNNING once a container is assigned, and COMMITTING until its output is in place.
    """

    RUNNING = "RUNNING"
    COMMITTING = "COMMITTING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    KILLED = "KILLED"


LIVE = frozenset({AttemptState.RUNNING, AttemptState.COMMITTING, AttemptState.SUCCEEDED})
"""A task has at most one attempt in these states."""


class AttemptRecord(Struct, frozen=True):
    """The fields of an attempt that the journal and status.json contain.

    A map's `output` is host:port of the service that sends its output to the reduces. FAILED counts against the task,
    KILLED does not. Both may follow SUCCEEDED for a map whose output was lost.
    """

    id: TaskAttemptId
    container_id: ContainerId
    node_id: NodeId
    resource: Resource
    started_ms: int
    state: AttemptState = AttemptState.RUNNING
    finished_ms: int = 0
    why: str = ""
    output: str = ""
    output_lost: bool = False


class CommitStarted(Struct, frozen=True):
    """The task ended with success, and its output must now be moved into place."""


class OutputReady(Struct, frozen=True):
    """A map's output can be fetched, or the output of the attempt is in its final place."""


class TaskAttemptFailed(Struct, frozen=True):
    """The task failed or could not be started, or its output could not be committed or fetched."""


class TaskAttemptKilled(Struct, frozen=True):
    """The attempt ended without its own fault: its node or its output was lost, or it was stopped."""


class TaskAttempt:
    """A try of a task in one container."""

    def __init__(self, record: AttemptRecord) -> None:
        self.record = record
        self.machine = Machine(record.state)

    def __str__(self) -> str:
        return str(self.id)

    @property
    def id(self) -> TaskAttemptId:
        return self.record.id

    @property
    def state(self) -> AttemptState:
        return self.machine.state

    @property
    def is_map(self) -> bool:
        return self.id.task_id.kind is TaskKind.MAP

    def take(self, event: object, now_ms: int) -> None:
        """Make the transition for `event`. Raises IllegalTransition."""
        state = ATTEMPT_LIFECYCLE.handle(self, self.machine, event, now_ms)
        self.record = replace(self.record, state=state)


_A = AttemptState
ATTEMPT_LIFECYCLE: Lifecycle[TaskAttempt, AttemptState] = Lifecycle(
    "TaskAttempt",
    _A.RUNNING,
    [
        Row(_A.RUNNING, CommitStarted, _A.COMMITTING, None, "a reduce, or a map of a job without reduces"),
        Row(_A.RUNNING, OutputReady, _A.SUCCEEDED, None, "a map's output stays on its node for the reduces"),
        Row(_A.RUNNING, TaskAttemptFailed, _A.FAILED, None, "exit status other than 0, no report, or refused start"),
        Row(
            _A.RUNNING, TaskAttemptKilled, _A.KILLED, None, "lost with its node, preempted, stopped, or the job is over"
        ),
        Row(_A.COMMITTING, OutputReady, _A.SUCCEEDED, None, "the output was renamed into place"),
        Row(_A.COMMITTING, TaskAttemptFailed, _A.FAILED, None, "the output could not be renamed into place"),
        Row(
            _A.SUCCEEDED,
            TaskAttemptFailed,
            _A.FAILED,
            None,
            "a map's output cannot be fetched though its node is there",
        ),
        Row(_A.SUCCEEDED, TaskAttemptKilled, _A.KILLED, None, "a map's output was lost with its node"),
    ],
)


# Tasks


class TaskState(Enum):
    """The state of a task. PENDING means not requested yet, SCHEDULED means waiting for a container."""

    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class TaskRequested(Struct, frozen=True):
    """A container was requested for the task."""


class RequestWithdrawn(Struct, frozen=True):
    """The request for a reduce's container was withdrawn, because maps need the memory."""


class AttemptStarted(Struct, frozen=True):
    """The task got a container."""


class AttemptSucceeded(Struct, frozen=True):
    """An attempt of the task succeeded."""


class RunAgain(Struct, frozen=True):
    """The task must run again: its attempt ended without success, or the output of the attempt was lost."""


class TaskGivenUp(Struct, frozen=True):
    """The task has failed as often as a task may fail."""


class TaskRecovered(Struct, frozen=True):
    """An earlier attempt of the AM has finished the task."""


class Task:
    """A map or a reduce. At most one of `attempts` is RUNNING, COMMITTING or SUCCEEDED at any time."""

    def __init__(self, task_id: TaskId) -> None:
        self.id = task_id
        self.machine = Machine(TaskState.PENDING)
        self.attempts: list[TaskAttempt] = []
        self.failures = 0
        self._numbered = 0

    def __str__(self) -> str:
        return str(self.id)

    @property
    def state(self) -> TaskState:
        return self.machine.state

    def take(self, event: object, now_ms: int) -> None:
        """Make the transition for `event`. Raises IllegalTransition."""
        TASK_LIFECYCLE.handle(self, self.machine, event, now_ms)

    def start_attempt(self, container: Container, am_attempt: int, now_ms: int) -> TaskAttempt:
        attempt_id = TaskAttemptId(self.id, (am_attempt - 1) * ATTEMPTS_PER_AM + self._numbered)
        attempt = TaskAttempt(
            AttemptRecord(attempt_id, container.id, container.node_id, container.resource, started_ms=now_ms)
        )
        self._numbered += 1
        self.attempts.append(attempt)
        self.take(AttemptStarted(), now_ms)
        return attempt


_T = TaskState
TASK_LIFECYCLE: Lifecycle[Task, TaskState] = Lifecycle(
    "Task",
    _T.PENDING,
    [
        Row(_T.PENDING, TaskRequested, _T.SCHEDULED, None, "maps at once, reduces as far as the ramp allows"),
        Row(_T.PENDING, TaskRecovered, _T.SUCCEEDED, None, "done by an earlier attempt of the AM"),
        Row(_T.SCHEDULED, RequestWithdrawn, _T.PENDING, None, "a reduce gives way to maps"),
        Row(_T.SCHEDULED, AttemptStarted, _T.RUNNING, None, "a container was allocated"),
        Row(_T.RUNNING, AttemptSucceeded, _T.SUCCEEDED, None, "its output is ready"),
        Row(_T.RUNNING, RunAgain, _T.PENDING, None, "the attempt failed or was killed"),
        Row(_T.RUNNING, TaskGivenUp, _T.FAILED, None, "the last try failed: so does the job"),
        Row(_T.SUCCEEDED, RunAgain, _T.PENDING, None, "a map's output was lost, and a reduce may still need it"),
    ],
)


def make_tasks(application_id: ApplicationId, kind: TaskKind, count: int) -> list[Task]:
    return [Task(TaskId(application_id, kind, number)) for number in range(count)]


# Recovery: what a second attempt of the AM takes over from the first


class RecoveredTask(Struct, frozen=True):
    """A task that an earlier AM attempt finished, with its attempts in order; the last one SUCCEEDED."""

    task_id: TaskId
    attempts: tuple[AttemptRecord, ...]


class RecoveredJob(Struct, frozen=True):
    """The tasks that need not run again, and all other attempts that ever ran, for status.json."""

    tasks: tuple[RecoveredTask, ...]
    attempts: tuple[AttemptRecord, ...]


def recover(records: Iterable[object], does_output_exist: Callable[[AttemptRecord], bool], now_ms: int) -> RecoveredJob:
    """Recover the tasks from the records of the journal, after a check that their output exists.

    Only the last record of an attempt counts. A map is done if its output can still be read, a reduce if its output is
    committed. If there is any doubt, the task runs again: that is always correct, only slower. Attempts that ran when
    the AM ended were killed with it. A task may have succeeded twice, because the output of its first attempt could not
    be read for a while: the last attempt whose output exists is the one that counts.
    """
    last = {record.id: record for record in records if isinstance(record, AttemptRecord)}
    attempts = [_closed(attempt, now_ms) for attempt in last.values()]
    succeeded = [attempt for attempt in attempts if attempt.state is AttemptState.SUCCEEDED]
    done = {attempt.id.task_id: attempt.id for attempt in succeeded if does_output_exist(attempt)}
    attempts = [_superseded(attempt, done.get(attempt.id.task_id), now_ms) for attempt in attempts]
    tasks: list[RecoveredTask] = []
    for task_id in sorted(done, key=lambda task_id: (task_id.kind.value, task_id.number)):
        own = [attempt for attempt in attempts if attempt.id.task_id == task_id]
        own.sort(key=lambda attempt: attempt.state is AttemptState.SUCCEEDED)
        tasks.append(RecoveredTask(task_id, tuple(own)))
    return RecoveredJob(tuple(tasks), tuple(attempt for attempt in attempts if attempt.id.task_id not in done))


def _superseded(attempt: AttemptRecord, done: TaskAttemptId | None, now_ms: int) -> AttemptRecord:
    """The attempt as it counts now: one that succeeded is KILLED if the output of another one is used."""
    if attempt.state is not AttemptState.SUCCEEDED or done in (None, attempt.id):
        return attempt
    why = f"the output of {done} is used"
    return replace(attempt, state=AttemptState.KILLED, finished_ms=now_ms, why=why, output_lost=True)


def _closed(attempt: AttemptRecord, now_ms: int) -> AttemptRecord:
    if attempt.state not in (AttemptState.RUNNING, AttemptState.COMMITTING):
        return attempt
    return replace(attempt, state=AttemptState.KILLED, finished_ms=now_ms, why="its ApplicationMaster ended")
