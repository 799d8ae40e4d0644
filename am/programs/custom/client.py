"""The submission of an ApplicationMaster of one's own."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from am.client.submission import ApplicationOptions, build_context
from am.programs.custom.source import read_source
from am.programs.shell_work import refuse_above
from am.programs.staged_job import StagedJob, stage_job
from yarn.applications import ApplicationSubmissionContext
from yarn.ids import ApplicationId
from yarn.resource import Resource

MASTER_FILE = "master.py"
"""The name of the AM's file in the staging directory."""


class CustomPlan(Struct, frozen=True):
    """A job of `tasks` numbered tasks, each in a container of `capability`. `journal`: the path of its journal."""

    tasks: int
    capability: Resource
    journal: str


class CustomSubmission(Struct, frozen=True):
    """The submission of the AM in `file`. The shell command `command` finds its task in TASK_NUMBER."""

    file: Path
    command: str
    plan: CustomPlan
    options: ApplicationOptions

    @property
    def vcores(self) -> int:
        return max(self.plan.capability.vcores, self.options.am_resource.vcores)

    def check_sizes(self, maximum: Resource) -> list[str]:
        """Return no warnings.

        Raises InvalidResourceRequestException if the containers are too large for the cluster.
        """
        refuse_above(self.plan.capability, maximum)
        return []

    def build(self, application_id: ApplicationId, staging_root: Path) -> ApplicationSubmissionContext:
        """Create the staging directory and return the context to submit (am.client.submission.Submission)."""
        am_container = stage_job(
            StagedJob(self.command, self.plan),
            {},
            "am.programs.custom.application_master",
            application_id,
            staging_root,
            texts={MASTER_FILE: read_source(self.file)},
        )
        return build_context(application_id, self.options, am_container, "CUSTOM")
