"""A worker, which runs in a container: python -m am.programs.elastic.worker --staging DIR. It runs tasks until stopped.

The plan says how many tasks a worker runs at once, each in a process of its own. A worker communicates with the AM only
through the spool.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from am.programs.elastic.core import ElasticPlan
from am.programs.elastic.spool import Spool
from am.programs.staged_job import JOB_FILE, StagedJob, read_job
from yarn.ids import ContainerId

TASK = "ELASTIC_TASK"
"""The variable that contains a task's number, counted from 1."""
POLL_INTERVAL_S = 0.02
"""The time between two checks of the spool and the processes, in seconds."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="am.programs.elastic.worker", description=__doc__)
    parser.add_argument("--staging", type=Path, required=True, help="the application's staging directory")
    job = read_job(parser.parse_args().staging / JOB_FILE, ElasticPlan)
    work(job, ContainerId.parse(os.environ["CONTAINER_ID"]))
    return 0


def work(job: StagedJob[ElasticPlan], worker: ContainerId) -> None:
    """Run tasks until the spool is removed."""
    spool = Spool(Path(job.staging))
    running: dict[int, subprocess.Popen[bytes]] = {}
    while spool.exists():
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
            time.sleep(POLL_INTERVAL_S)
        else:
            running[task_taken] = subprocess.Popen(
                ["/bin/sh", "-c", job.command], env={**os.environ, TASK: str(task_taken)}
            )


if __name__ == "__main__":
    sys.exit(main())
