"""What a distributed shell runs: one command in N containers. Written by the client, read by the AM."""

from __future__ import annotations

from msgspec import Struct, field

from am.client.launching import TO_LOG_FILES
from am.programs.core.fixed_width import Width
from yarn.containers import ContainerLaunchContext, ContainerRetryContext, LocalResource

JOB_FILE = "distributed_shell.json"
"""The job's name in the AM's work directory."""

SHELL_ID = "YARN_SHELL_ID"
"""Tells a container its number, from 1 (DSConstants.DISTRIBUTEDSHELLSCRIPT...: the same variable as Hadoop's)."""


class ShellJob(Struct, frozen=True):
    """`command` is a shell command line; `staging` the directory to remove once the application has finished."""

    command: str
    width: Width
    staging: str
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, LocalResource] = field(default_factory=dict)
    retry: ContainerRetryContext = ContainerRetryContext()

    def launch_context(self, number: int) -> ContainerLaunchContext:
        """What the container of that number runs."""
        return ContainerLaunchContext(
            commands=(f"{self.command} {TO_LOG_FILES}",),
            environment={**self.environment, SHELL_ID: str(number)},
            local_resources=self.files,
            retry=self.retry,
        )
