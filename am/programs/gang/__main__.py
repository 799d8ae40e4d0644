"""The AM's process: python -m am.programs.gang (in a container, with its job in the work directory)."""

from __future__ import annotations

import sys

from am.programs.gang.core import Gang
from am.programs.gang.job import JOB_FILE, GangJob
from am.programs.staged_job import run_staged_job


def main() -> int:
    return run_staged_job(
        JOB_FILE,
        GangJob,
        lambda job, environment: Gang(job.plan, job.launch_context, environment.attempt_id.application_id.id),
    )


if __name__ == "__main__":
    sys.exit(main())
