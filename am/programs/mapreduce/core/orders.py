"""What the map-reduce core hears beyond am.core.events, and what it orders beyond am.programs.core.actions.

`TaskEnded` takes the place of ContainersCompleted: the shell adds the report that the task left behind.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from am.core.events import (
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
from am.programs.core.actions import Action
from am.programs.mapreduce.core.job import TaskAttemptId, TaskId
from am.programs.mapreduce.core.tasks import Attempt
from yarn.containers import Container, ContainerStatus

EXIT_FETCH_FAILED = 75
"""A reduce that could not read some maps' output; its report names them (sysexits.h: EX_TEMPFAIL)."""


class TaskReport(Struct, frozen=True):
    """What a task leaves behind when it ends: a map where its output is, a reduce what it could not fetch."""

    output: str = ""
    fetch_failures: tuple[TaskAttemptId, ...] = ()


class TaskEnded(Struct, frozen=True):
    """A container's end, with the task's report if it left one."""

    status: ContainerStatus
    report: TaskReport | None = None


class TaskCommitted(Struct, frozen=True):
    """The attempt's output is in its final place for the job's commit."""

    attempt_id: TaskAttemptId


class TaskCommitFailed(Struct, frozen=True):
    """The attempt's output could not be put in place."""

    attempt_id: TaskAttemptId
    error: str


class JobCommitted(Struct, frozen=True):
    """The output directory is complete, _SUCCESS included."""


class JobCommitFailed(Struct, frozen=True):
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


class RunTask(Struct, frozen=True):
    """Start the attempt in its container."""

    attempt_id: TaskAttemptId
    container: Container


class CommitTask(Struct, frozen=True):
    """Put the attempt's output in place; TaskCommitted or TaskCommitFailed follows."""

    attempt_id: TaskAttemptId


class PublishOutput(Struct, frozen=True):
    """Tell the reduces where a map's output is."""

    attempt_id: TaskAttemptId
    output: str


class WithdrawOutput(Struct, frozen=True):
    """Tell the reduces that a map's output is gone and will come anew."""

    attempt_id: TaskAttemptId


class Record(Struct, frozen=True):
    """Write into the journal how the attempt stands now."""

    attempt: Attempt


class CommitJob(Struct, frozen=True):
    """Put the whole output in place; JobCommitted or JobCommitFailed follows."""


class AbortJob(Struct, frozen=True):
    """Remove what was written so far: the job failed."""


Order: TypeAlias = Action | RunTask | CommitTask | PublishOutput | WithdrawOutput | Record | CommitJob | AbortJob


class Recovered(Struct, frozen=True):
    """A task that an earlier attempt of the AM finished, with its attempts in their order (the last one SUCCEEDED)."""

    task_id: TaskId
    attempts: tuple[Attempt, ...]
