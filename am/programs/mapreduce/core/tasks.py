"""Tasks and their attempts, the lifecycle of a task, and how a second AM attempt recovers them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from am.programs.mapreduce.core.job import TaskAttemptId, TaskId, TaskKind
from yarn.containers import Container
from yarn.ids import ContainerId, NodeId
from yarn.machine import Lifecycle, Machine, Row
from yarn.resource import Resource

ATTEMPTS_PER_AM = 1000
"""Attempt numbers reserved for each attempt of the AM (MRJobConfig: APPLICATION_ATTEMPT_ID * 1000)."""


class AttemptState(Enum):
    """The state of a task attempt. It is RUNNING once a container is assigned."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    KILLED = "KILLED"


class AttemptRecord(Struct, frozen=True):
    """An attempt of a task in one container, as in the journal and in status.json.

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
    """A map or a reduce. Only the last of `attempts` can be RUNNING or SUCCEEDED."""

    def __init__(self, task_id: TaskId) -> None:
        self.id = task_id
        self.machine = Machine(TaskState.PENDING)
        self.attempts: list[AttemptRecord] = []
        self.failures = 0
        self._numbered = 0

    def __str__(self) -> str:
        return str(self.id)

    @property
    def state(self) -> TaskState:
        return self.machine.state

    @property
    def is_map(self) -> bool:
        return self.id.kind is TaskKind.MAP

    @property
    def attempt(self) -> AttemptRecord:
        """The latest attempt; there is one once the task was RUNNING."""
        return self.attempts[-1]

    def take(self, event: object, now_ms: int) -> None:
        """Make the transition for `event`. Raises IllegalTransition."""
        TASK_LIFECYCLE.handle(self, self.machine, event, now_ms)

    def start_attempt(self, container: Container, am_attempt: int, now_ms: int) -> None:
        attempt_id = TaskAttemptId(self.id, (am_attempt - 1) * ATTEMPTS_PER_AM + self._numbered)
        self._numbered += 1
        self.attempts.append(AttemptRecord(attempt_id, container.id, container.node_id, container.resource, now_ms))
        self.take(AttemptStarted(), now_ms)

    def end_attempt(self, state: AttemptState, now_ms: int, *, why: str = "", output: str = "") -> None:
        """Note the end of the latest attempt. One that had succeeded before has lost its output."""
        last = self.attempt
        lost = last.state is AttemptState.SUCCEEDED
        self.attempts[-1] = replace(
            last, state=state, finished_ms=now_ms, why=why, output=output or last.output, output_lost=lost
        )


_T = TaskState
TASK_LIFECYCLE: Lifecycle[Task, TaskState] = Lifecycle(
    "Task",
    _T.PENDING,
    [
        Row(_T.PENDING, TaskRequested, _T.SCHEDULED, None, "maps at once, reduces when there is memory for them"),
        Row(_T.PENDING, TaskRecovered, _T.SUCCEEDED, None, "done by an earlier attempt of the AM"),
        Row(_T.SCHEDULED, RequestWithdrawn, _T.PENDING, None, "a reduce gives way to maps"),
        Row(_T.SCHEDULED, AttemptStarted, _T.RUNNING, None, "a container was allocated"),
        Row(_T.RUNNING, AttemptSucceeded, _T.SUCCEEDED, None, "its output is ready"),
        Row(_T.RUNNING, RunAgain, _T.PENDING, None, "the attempt failed or was killed"),
        Row(_T.RUNNING, TaskGivenUp, _T.FAILED, None, "the last try failed: so does the job"),
        Row(_T.SUCCEEDED, RunAgain, _T.PENDING, None, "a map's output was lost, and a reduce may still need it"),
    ],
)


class RecoveredJob(Struct, frozen=True):
    """The recovered state of a job: `tasks` {finished task: its attempts, the last one SUCCEEDED}; other `attempts`."""

    tasks: dict[TaskId, tuple[AttemptRecord, ...]]
    attempts: tuple[AttemptRecord, ...]


def recover(records: Iterable[object], does_output_exist: Callable[[AttemptRecord], bool], now_ms: int) -> RecoveredJob:
    """Recover the tasks from the records of the journal, after a check that their output exists.

    Only the last record of an attempt counts. A map is done if its output can still be read, a reduce if its output is
    committed. If there is any doubt, the task runs again: that is always correct, only slower. Attempts that ran when
    the AM ended were killed with it. A task may have succeeded twice, because the output of its first attempt could not
    be read for a while: the last attempt whose output exists is the one that counts.
    """
    last = {record.id: record for record in records if isinstance(record, AttemptRecord)}
    succeeded = [attempt for attempt in last.values() if attempt.state is AttemptState.SUCCEEDED]
    done = {attempt.id.task_id: attempt.id for attempt in succeeded if does_output_exist(attempt)}
    attempts = [_closed(attempt, done.get(attempt.id.task_id), now_ms) for attempt in last.values()]
    attempts.sort(key=lambda attempt: attempt.id == done.get(attempt.id.task_id))
    return RecoveredJob(
        {
            task_id: tuple(attempt for attempt in attempts if attempt.id.task_id == task_id)
            for task_id in sorted(done, key=lambda task_id: (task_id.kind.value, task_id.number))
        },
        tuple(attempt for attempt in attempts if attempt.id.task_id not in done),
    )


def _closed(attempt: AttemptRecord, done: TaskAttemptId | None, now_ms: int) -> AttemptRecord:
    """KILLED if the attempt ran when the AM ended, or if the output of another one, `done`, is used."""
    if attempt.state is AttemptState.RUNNING:
        return replace(attempt, state=AttemptState.KILLED, finished_ms=now_ms, why="its ApplicationMaster ended")
    if attempt.state is AttemptState.SUCCEEDED and done not in (None, attempt.id):
        why = f"the output of {done} is used"
        return replace(attempt, state=AttemptState.KILLED, finished_ms=now_ms, why=why, output_lost=True)
    return attempt
