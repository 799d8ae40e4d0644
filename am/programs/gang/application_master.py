"""The AM of a gang: python -m am.programs.gang.application_master.

The job is in the file job.json of the AM's work directory.
"""

from __future__ import annotations

import sys

from am.client.environment import AMEnvironment
from am.programs.gang.core import Gang, GangPlan, Member
from am.programs.staged_job import StagedJob, run_staged_job
from yarn.containers import ContainerLaunchContext

RANK = "GANG_RANK"
SIZE = "GANG_SIZE"
HOSTS = "GANG_HOSTS"
"""Variables of a member: its rank from 0, the number of members, and their hosts by rank, separated by commas."""


def launch_context(job: StagedJob[GangPlan], member: Member) -> ContainerLaunchContext:
    return job.launch_context(
        {RANK: str(member.rank), SIZE: str(len(member.hosts)), HOSTS: ",".join(member.hosts)},
    )


def make_application(job: StagedJob[GangPlan], environment: AMEnvironment) -> Gang:
    return Gang(
        job.plan,
        lambda member: launch_context(job, member),
        environment.attempt_id.application_id.id,
        check_invariants=environment.check_invariants,
    )


if __name__ == "__main__":
    sys.exit(run_staged_job(GangPlan, make_application))
