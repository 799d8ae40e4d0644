"""The job that a client writes into the staging directory for the AM: a shell command with a plan.

The distributed shell, gangs and elastic applications have different plans: how many containers run the command, and
when. Only the AM interprets the plan.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from am.client.environment import AMEnvironment
from am.client.launching import (
    TO_LOG_FILES,
    local_file,
    make_staging_directory,
    python_launch_context,
    read_record,
    write_record,
)
from am.core.actions import Application
from am.programs.application_master import run_application_master
from wire.files.full_disk import full_disk_named
from yarn.containers import ContainerLaunchContext, ContainerRetryContext, LocalResource
from yarn.errors import InvalidArgumentException
from yarn.ids import ApplicationId

JOB_FILE = "job.json"
"""The name of the job's file in the staging directory and in the AM's work directory."""

Plan = TypeVar("Plan")


class StagedJob(Struct, Generic[Plan], frozen=True):
    """A shell command line with its plan. The directory `staging` is removed once the application has finished."""

    command: str
    plan: Plan
    environment: dict[str, str] = field(default_factory=dict)
    retry: ContainerRetryContext = ContainerRetryContext()
    files: dict[str, LocalResource] = field(default_factory=dict)
    staging: str = ""

    def launch_context(self, variables: Mapping[str, str]) -> ContainerLaunchContext:
        """A launch context that runs the command, with `variables` added to its environment."""
        return ContainerLaunchContext(
            commands=(f"{self.command} {TO_LOG_FILES}",),
            environment={**self.environment, **variables},
            local_resources=self.files,
            retry=self.retry,
        )


def stage_job(
    job: StagedJob[Any],
    files: Mapping[str, Path],
    module: str,
    application_id: ApplicationId,
    staging_root: Path,
    *,
    texts: Mapping[str, str] = MappingProxyType({}),
) -> ContainerLaunchContext:
    """Write the job into a new staging directory. Returns the launch context of the AM, which runs the Python `module`.

    `files` {link name in the work directory: file} are shipped, and so are files made from `texts` {link name:
    content}. Raises YarnException if the directory cannot be created, or if a file does not exist.
    """
    resources = {link: local_file(path) for link, path in files.items()}
    staging = make_staging_directory(staging_root, application_id)
    for link, text in texts.items():
        with full_disk_named(staging / link):
            (staging / link).write_text(text)
        resources[link] = local_file(staging / link)
    path = staging / JOB_FILE
    write_record(path, replace(job, files=resources, staging=str(staging)))
    return python_launch_context(module, local_resources={JOB_FILE: local_file(path)})


def read_job(path: Path, plan_type: type[Plan]) -> StagedJob[Plan]:
    """Read a job from a file. Raises InvalidArgumentException if the file contains no job with such a plan."""
    job = read_record(path)
    if not isinstance(job, StagedJob) or not isinstance(job.plan, plan_type):
        raise InvalidArgumentException(f"{path} does not contain a job with a {plan_type.__name__}")
    return job


def run_staged_job(
    plan_type: type[Plan], make_application: Callable[[StagedJob[Plan], AMEnvironment], Application]
) -> int:
    """Run an AM process for a staged job. Returns the exit code.

    The staging directory is removed once the application has unregistered.
    """
    job = read_job(Path(JOB_FILE), plan_type)
    return run_application_master(
        lambda environment: make_application(job, environment),
        on_unregistered=lambda: shutil.rmtree(job.staging, ignore_errors=True),
    )
