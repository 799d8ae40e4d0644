"""The AM's process: python -m am.programs.elastic (in a container, with its job in the work directory)."""

from __future__ import annotations

import sys

from am.core.events import Event, HeartbeatDone
from am.programs.core.actions import Action
from am.programs.elastic.core import Elastic, ElasticAction, PutBack, PutTasks
from am.programs.elastic.job import JOB_FILE, ElasticJob
from am.programs.elastic.spool import Spool
from am.programs.staged_job import run_staged_job


class ElasticMaster:
    """A Program: the core between the RM and the spool, which is looked at with each heartbeat."""

    def __init__(self, job: ElasticJob) -> None:
        self._spool = Spool(job.spool)
        self._spool.make()
        # The workers of an attempt before this one have ended with it.
        self._spool.put_back_all()
        self._core = Elastic(job.plan, job.launch_context, self._spool.count())

    def progress(self) -> float:
        return self._core.progress()

    def handle(self, event: Event, now_ms: int) -> list[Action]:
        actions = self._core.handle(event, now_ms)
        if isinstance(event, HeartbeatDone):
            actions += self._core.handle(self._spool.seen(), now_ms)
        return [action for action in map(self._carry_out, actions) if action is not None]

    def _carry_out(self, action: ElasticAction) -> Action | None:
        match action:
            case PutTasks(first, last):
                self._spool.put(first, last)
                return None
            case PutBack(worker):
                self._spool.put_back(worker)
                return None
            case _:
                return action


def main() -> int:
    return run_staged_job(JOB_FILE, ElasticJob, lambda job, _: ElasticMaster(job))


if __name__ == "__main__":
    sys.exit(main())
