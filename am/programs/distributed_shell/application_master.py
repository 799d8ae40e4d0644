"""The AM of the distributed shell: python -m am.programs.distributed_shell.application_master.

The job is in the file job.json of the AM's work directory.
"""

from __future__ import annotations

import sys

from am.client.environment import AMEnvironment
from am.programs.distributed_shell.core import DistributedShellCore, Width
from am.programs.staged_job import StagedJob, run_staged_job
from yarn.containers import ContainerLaunchContext

SHELL_ID = "YARN_SHELL_ID"
"""The variable that contains a container's number, counted from 1 (as in Hadoop's distributed shell)."""


def launch_context(job: StagedJob[Width], number: int) -> ContainerLaunchContext:
    """The launch context of container `number`."""
    return job.launch_context({SHELL_ID: str(number)})


def make_application(job: StagedJob[Width], environment: AMEnvironment) -> DistributedShellCore:
    return DistributedShellCore(
        job.plan, lambda number: launch_context(job, number), check_invariants=environment.check_invariants
    )


if __name__ == "__main__":
    sys.exit(run_staged_job(Width, make_application))
