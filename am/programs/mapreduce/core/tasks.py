"""Tasks and their attempts: what is done, where it ran, how often it was tried."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct, field

from am.programs.mapreduce.core.job import TaskAttemptId, TaskId, TaskKind
from yarn.containers import Container
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.resource import Resource

ATTEMPTS_PER_AM = 1000
"""Attempt numbers set aside for each attempt of the AM (MRJobConfig: APPLICATION_ATTEMPT_ID * 1000)."""


class AttemptState(Enum):
    """RUNNING from the moment that a container is assigned; COMMITTING until its output is in place."""

    RUNNING = "RUNNING"
    COMMITTING = "COMMITTING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    KILLED = "KILLED"


class TaskState(Enum):
    """PENDING = not asked for yet (reduces only); SCHEDULED = waiting for a container."""

    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class Attempt(Struct):
    """One try of a task in one container. A map's `output` is the directory of its output.

    FAILED counts against the task, KILLED does not; both may follow SUCCEEDED for a map whose output was lost.
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

    @property
    def is_map(self) -> bool:
        return self.id.task_id.kind is TaskKind.MAP


class Task(Struct):
    """A map or a reduce. At most one of `attempts` is RUNNING, COMMITTING or SUCCEEDED at any time."""

    id: TaskId
    state: TaskState
    attempts: list[Attempt] = field(default_factory=list)
    failures: int = 0
    numbered: int = 0

    def start_attempt(self, container: Container, am_attempt: int, now_ms: int) -> Attempt:
        number = (am_attempt - 1) * ATTEMPTS_PER_AM + self.numbered
        attempt = Attempt(
            TaskAttemptId(self.id, number), container.id, container.node_id, container.resource, started_ms=now_ms
        )
        self.numbered += 1
        self.attempts.append(attempt)
        self.state = TaskState.RUNNING
        return attempt


def make_tasks(application_id: ApplicationId, kind: TaskKind, count: int) -> list[Task]:
    return [Task(TaskId(application_id, kind, number), TaskState.PENDING) for number in range(count)]
