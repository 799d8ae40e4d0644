"""What an elastic application runs: a command for each task. Written by the client, read by the AM and the workers."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field

from am.client.launching import python_launch_context
from am.programs.elastic.core import ElasticPlan
from yarn.containers import ContainerLaunchContext, LocalResource

JOB_FILE = "elastic.json"
TASK = "ELASTIC_TASK"
"""Tells a command its number, from 1."""


class ElasticJob(Struct, frozen=True):
    """`command` is a shell command line; `staging` holds the spool, and is removed at the end."""

    command: str
    plan: ElasticPlan
    staging: str
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, LocalResource] = field(default_factory=dict)

    @property
    def spool(self) -> Path:
        return Path(self.staging) / "spool"

    def launch_context(self) -> ContainerLaunchContext:
        """A worker's."""
        return python_launch_context(
            "am.programs.elastic.worker",
            ("--staging", self.staging),
            environment=self.environment,
            local_resources=self.files,
        )
