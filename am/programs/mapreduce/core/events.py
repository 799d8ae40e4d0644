"""The events and actions that the map-reduce core has in addition to those of am.core.events and am.core.actions.

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
"""The exit code of a reduce that could not fetch the output of some maps, which its report names (EX_TEMPFAIL)."""


class TaskReport(Struct, frozen=True):
    """The report of a task that has ended: for a map the place of its output, for a reduce the maps
    it could not fetch.
    """

    output: str = ""
    fetch_failures: tuple[TaskAttemptId, ...] = ()


class TaskEnded(Struct, frozen=True):
    """The end of a container, with the report of its task if there is one."""

    status: ContainerStatus
    report: TaskReport | None = None


class TaskCommitted(Struct, frozen=True):
    """The attempt's output is in the place where the commit of the job expects it."""

    attempt_id: TaskAttemptId


class TaskCommitFailed(Struct, frozen=True):
    """The attempt's output could not be moved into place."""

    attempt_id: TaskAttemptId
    error: str


class JobCommitted(Struct, frozen=True):
    """The output directory is complete and contains _SUCCESS."""


class JobCommitFailed(Struct, frozen=True):
    """The output of the job could not be moved into place."""

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
    """Move the attempt's output into place. TaskCommitted or TaskCommitFailed follows."""

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
    """Move the whole output into place. JobCommitted or JobCommitFailed follows."""


class AbortJob(Struct, frozen=True):
    """The job failed: remove the output written so far."""


JobAction: TypeAlias = Action | RunTask | CommitTask | PublishOutput | WithdrawOutput | Record | CommitJob | AbortJob
