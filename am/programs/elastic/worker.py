"""A worker: python -m am.programs.elastic.worker --staging DIR (in a container). It takes tasks until it is stopped.

It holds as many at once as the plan says, each a process of its own, and tells nobody but the spool.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from am.client.staging import read_record
from am.programs.elastic.job import JOB_FILE, TASK, ElasticJob
from am.programs.elastic.spool import Spool
from yarn.errors import InvalidArgumentException
from yarn.ids import ContainerId

LOOK_S = 0.02
"""Between two looks at the spool and the processes."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="am.programs.elastic.worker", description=__doc__)
    parser.add_argument("--staging", type=Path, required=True, help="the application's staging directory")
    job = read_record(parser.parse_args().staging / JOB_FILE)
    if not isinstance(job, ElasticJob):
        raise InvalidArgumentException(f"{JOB_FILE} holds no elastic job")
    work(job, ContainerId.parse(os.environ["CONTAINER_ID"]))
    return 0


def work(job: ElasticJob, worker: ContainerId) -> None:
    """Run tasks until the spool is gone."""
    spool = Spool(job.spool)
    running: dict[int, subprocess.Popen[bytes]] = {}
    while job.spool.exists():
        for task, process in list(running.items()):
            status = process.poll()
            if status is not None:
                del running[task]
                spool.end(task, worker, status)
        try:
            task_taken = spool.take(worker) if len(running) < job.plan.tasks_per_worker else None
        except FileNotFoundError:
            return
        if task_taken is None:
            time.sleep(LOOK_S)
        else:
            running[task_taken] = subprocess.Popen(
                ["/bin/sh", "-c", job.command], env={**os.environ, TASK: str(task_taken)}
            )


if __name__ == "__main__":
    sys.exit(main())
