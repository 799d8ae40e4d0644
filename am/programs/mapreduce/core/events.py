"""Events of the map-reduce core beyond am.core.events, and its actions beyond am.core.actions.

`TaskEnded` replaces ContainersCompleted: the shell adds the report that the task left in the staging directory.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from am.core.actions import Action
from am.core.events import (
    AllocateFailed,
    ContainersAllocated,
    ContainersFromPreviousAttempts,
    ContainerStarted,
    ContainerStartFailed,
    ContainersUpdated,
    HeartbeatDone,
    NodesUpdated,
    PreemptionAsked,
    Registered,
    Resynced,
    ShutdownOrdered,
)
from am.programs.mapreduce.core.job import TaskAttemptId
from am.programs.mapreduce.core.tasks import AttemptRecord
from yarn.containers import Container, ContainerStatus

EXIT_FETCH_FAILED = 75
"""The exit code of a reduce that could not fetch the output of some maps; its report names them (EX_TEMPFAIL)."""


class TaskReport(Struct, frozen=True):
    """What a task leaves behind when it ends: a map where its output is, a reduce what it could not fetch."""

    output: str = ""
    fetch_failures: tuple[TaskAttemptId, ...] = ()


class TaskEnded(Struct, frozen=True):
    """The end of a container, with the report of its task if there is one."""

    status: ContainerStatus
    report: TaskReport | None = None


class TaskCommitted(Struct, frozen=True):
    """The attempt's output is where the commit of the job expects it."""

    attempt_id: TaskAttemptId


class TaskCommitFailed(Struct, frozen=True):
    """The attempt's output could not be put in place."""

    attempt_id: TaskAttemptId
    error: str


class JobCommitted(Struct, frozen=True):
    """The output directory is complete, _SUCCESS included."""


class JobCommitFailed(Struct, frozen=True):
    """The output of the job could not be put in place."""

    error: str


CommitOutcome: TypeAlias = TaskCommitted | TaskCommitFailed | JobCommitted | JobCommitFailed
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
    | AllocateFailed
    | ContainerStarted
    | ContainerStartFailed
    | TaskEnded
    | CommitOutcome
)


class RunTask(Struct, frozen=True):
    """Start the attempt in its container."""

    attempt_id: TaskAttemptId
    container: Container


class CommitTask(Struct, frozen=True):
    """Put the attempt's output in place; TaskCommitted or TaskCommitFailed follows."""

    attempt_id: TaskAttemptId


class PublishOutput(Struct, frozen=True):
    """Announce to the reduces where a map's output is."""

    attempt_id: TaskAttemptId
    output: str


class WithdrawOutput(Struct, frozen=True):
    """Announce to the reduces that a map's output is lost and will be made again."""

    attempt_id: TaskAttemptId


class Record(Struct, frozen=True):
    """Write the state of an attempt into the journal."""

    attempt: AttemptRecord


class CommitJob(Struct, frozen=True):
    """Put the whole output in place; JobCommitted or JobCommitFailed follows."""


class AbortJob(Struct, frozen=True):
    """The job failed: remove what has been written."""


JobAction: TypeAlias = Action | RunTask | CommitTask | PublishOutput | WithdrawOutput | Record | CommitJob | AbortJob
