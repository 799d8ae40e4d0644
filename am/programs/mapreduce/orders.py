"""What the map-reduce core hears beyond am.events, and what it orders beyond am.programs.actions.

`TaskEnded` takes the place of ContainersCompleted: the shell adds the report that the task left behind.
"""

from __future__ import annotations

from typing import TypeAlias

from am.events import (
    ContainersAllocated,
    ContainersFromPreviousAttempts,
    ContainerStarted,
    ContainerStartFailed,
    ContainersUpdated,
    HeartbeatDone,
    HeartbeatFailed,
    NodesUpdated,
    PreemptionAsked,
    Registered,
    Resynced,
    ShutdownOrdered,
)
from am.programs.actions import Action
from am.programs.mapreduce.job import TaskAttemptId, TaskId
from am.programs.mapreduce.tasks import Attempt
from yarn.containers import Container, ContainerStatus
from yarn.records import dataclass

EXIT_FETCH_FAILED = 75
"""A reduce that could not read some maps' output; its report names them (sysexits.h: EX_TEMPFAIL)."""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What a task leaves behind when it ends: a map where its output is, a reduce what it could not fetch."""

    output: str = ""
    fetch_failures: tuple[TaskAttemptId, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskEnded:
    """A container's end, with the task's report if it left one."""

    status: ContainerStatus
    report: TaskReport | None = None


@dataclass(frozen=True, slots=True)
class TaskCommitted:
    """The attempt's output is in its final place for the job's commit."""

    attempt_id: TaskAttemptId


@dataclass(frozen=True, slots=True)
class TaskCommitFailed:
    """The attempt's output could not be put in place."""

    attempt_id: TaskAttemptId
    error: str


@dataclass(frozen=True, slots=True)
class JobCommitted:
    """The output directory is complete, _SUCCESS included."""


@dataclass(frozen=True, slots=True)
class JobCommitFailed:
    """The output could not be put in place."""

    error: str


JobEvent: TypeAlias = (
    Registered
    | Resynced
    | ContainersFromPreviousAttempts
    | NodesUpdated
    | ContainersUpdated
    | PreemptionAsked
    | ContainersAllocated
    | HeartbeatDone
    | ShutdownOrdered
    | HeartbeatFailed
    | ContainerStarted
    | ContainerStartFailed
    | TaskEnded
    | TaskCommitted
    | TaskCommitFailed
    | JobCommitted
    | JobCommitFailed
)


@dataclass(frozen=True, slots=True)
class RunTask:
    """Start the attempt in its container."""

    attempt_id: TaskAttemptId
    container: Container


@dataclass(frozen=True, slots=True)
class CommitTask:
    """Put the attempt's output in place; TaskCommitted or TaskCommitFailed follows."""

    attempt_id: TaskAttemptId


@dataclass(frozen=True, slots=True)
class PublishOutput:
    """Tell the reduces where a map's output is."""

    attempt_id: TaskAttemptId
    output: str


@dataclass(frozen=True, slots=True)
class WithdrawOutput:
    """Tell the reduces that a map's output is gone and will come anew."""

    attempt_id: TaskAttemptId


@dataclass(frozen=True, slots=True)
class Record:
    """Write into the journal how the attempt stands now."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class CommitJob:
    """Put the whole output in place; JobCommitted or JobCommitFailed follows."""


@dataclass(frozen=True, slots=True)
class AbortJob:
    """Remove what was written so far: the job failed."""


Order: TypeAlias = Action | RunTask | CommitTask | PublishOutput | WithdrawOutput | Record | CommitJob | AbortJob


@dataclass(frozen=True, slots=True)
class Recovered:
    """A task that an earlier attempt of the AM finished, with its attempts in their order (the last one SUCCEEDED)."""

    task_id: TaskId
    attempts: tuple[Attempt, ...]
