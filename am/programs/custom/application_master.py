"""The process of an ApplicationMaster of one's own: python -m am.programs.custom.application_master.

The job is in the file job.json of the AM's work directory, the AM's class in a file of the staging directory.
"""

from __future__ import annotations

import sys
from pathlib import Path

from am.client.environment import AMEnvironment
from am.programs.custom.client import MASTER_FILE, CustomPlan
from am.programs.custom.core import TASK_NUMBER, TaskMasterApplication
from am.programs.custom.journal import JournalFile
from am.programs.custom.source import load_master
from am.programs.staged_job import StagedJob, run_staged_job


def make_application(job: StagedJob[CustomPlan], environment: AMEnvironment) -> TaskMasterApplication:
    """The application of one attempt."""
    path, plan = Path(job.staging) / MASTER_FILE, job.plan
    return TaskMasterApplication(
        load_master(path),
        plan.tasks,
        plan.capability,
        lambda task: job.launch_context({TASK_NUMBER: str(task)}),
        JournalFile(Path(plan.journal), environment.attempt_id.attempt),
        source=str(path),
    )


if __name__ == "__main__":
    sys.exit(run_staged_job(CustomPlan, make_application))
