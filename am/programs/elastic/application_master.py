"""The AM of an elastic application: python -m am.programs.elastic.application_master.

The job is in the file job.json of the AM's work directory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from am.client.environment import AMEnvironment
from am.client.launching import python_launch_context
from am.core.actions import Action
from am.core.events import Event, HeartbeatDone
from am.programs.elastic.core import Elastic, ElasticAction, ElasticPlan, EnqueueTasks, RequeueTasks, SpoolScanned
from am.programs.elastic.spool import Spool
from am.programs.staged_job import StagedJob, run_staged_job
from yarn.containers import ContainerLaunchContext
from yarn.ids import ContainerId


class TaskSpool(Protocol):
    """The spool as an AM uses it."""

    def enqueue(self, first: int, last: int) -> None: ...
    def requeue(self, worker: ContainerId) -> None: ...
    def requeue_all(self) -> None: ...
    def scan(self) -> SpoolScanned: ...
    def count(self) -> int: ...


class ElasticApplicationMaster:
    """Connects the core of an elastic application with its spool, which is scanned at each heartbeat."""

    def __init__(
        self,
        plan: ElasticPlan,
        launch_context_of: Callable[[], ContainerLaunchContext],
        spool: TaskSpool,
        *,
        check_invariants: bool = False,
    ) -> None:
        self._spool = spool
        # The workers of an earlier attempt have ended with it.
        self._spool.requeue_all()
        self._core = Elastic(plan, launch_context_of, spool.count(), check_invariants=check_invariants)

    @property
    def heeds_heartbeats(self) -> bool:
        return True

    def progress(self) -> float:
        return self._core.progress()

    def handle(self, event: Event, now_ms: int) -> list[Action]:
        actions = self._core.handle(event, now_ms)
        if isinstance(event, HeartbeatDone):
            actions += self._core.handle(self._spool.scan(), now_ms)
        return [action for action in map(self._carry_out, actions) if action is not None]

    def _carry_out(self, action: ElasticAction) -> Action | None:
        match action:
            case EnqueueTasks(first, last):
                self._spool.enqueue(first, last)
                return None
            case RequeueTasks(worker):
                self._spool.requeue(worker)
                return None
            case _:
                return action


def worker_launch_context(job: StagedJob[ElasticPlan]) -> ContainerLaunchContext:
    return python_launch_context(
        "am.programs.elastic.worker",
        ("--staging", job.staging),
        environment=job.environment,
        local_resources=job.files,
    )


def make_application(job: StagedJob[ElasticPlan], environment: AMEnvironment) -> ElasticApplicationMaster:
    spool = Spool(Path(job.staging))
    spool.make()
    return ElasticApplicationMaster(
        job.plan, lambda: worker_launch_context(job), spool, check_invariants=environment.check_invariants
    )


if __name__ == "__main__":
    sys.exit(run_staged_job(ElasticPlan, make_application))
