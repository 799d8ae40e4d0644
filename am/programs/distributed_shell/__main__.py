"""The AM's process: python -m am.programs.distributed_shell (in a container, with its job in the work directory)."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from am.environment import AMEnvironment
from am.programs.distributed_shell.shell_job import JOB_FILE, ShellJob
from am.programs.fixed_width import FixedWidth
from am.programs.master import run_master
from am.staging import read_record
from yarn.errors import InvalidArgumentException


def main() -> int:
    programs: list[tuple[ShellJob, FixedWidth]] = []

    def make_program(environment: AMEnvironment) -> FixedWidth:
        job = read_record(Path(JOB_FILE))
        if not isinstance(job, ShellJob):
            raise InvalidArgumentException(f"{JOB_FILE} holds no distributed shell")
        programs.append((job, FixedWidth(job.width, job.launch_context)))
        return programs[0][1]

    exit_code = run_master(make_program)
    for job, program in programs:
        if program.is_finished:
            shutil.rmtree(job.staging, ignore_errors=True)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
