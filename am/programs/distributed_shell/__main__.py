"""The AM's process: python -m am.programs.distributed_shell (in a container, with its job in the work directory)."""

from __future__ import annotations

import sys

from am.programs.core.fixed_width import FixedWidth
from am.programs.distributed_shell.shell_job import JOB_FILE, ShellJob
from am.programs.staged_job import run_staged_job


def main() -> int:
    return run_staged_job(JOB_FILE, ShellJob, lambda job, _: FixedWidth(job.width, job.launch_context))


if __name__ == "__main__":
    sys.exit(main())
