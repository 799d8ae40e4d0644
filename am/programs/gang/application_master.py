"""The AM of a gang: python -m am.programs.gang.application_master.

The job is in the file job.json of the AM's work directory.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from am.client.environment import AMEnvironment
from am.programs.gang.core import Gang, GangPlan, Member
from am.programs.staged_job import StagedJob, run_staged_job
from yarn.containers import ContainerLaunchContext

RANK = "GANG_RANK"
SIZE = "GANG_SIZE"
HOSTS = "GANG_HOSTS"
TRY = "GANG_TRY"
"""Variables of a member: its rank from 0, the number of members, their hosts by rank, separated by commas, and which
try of this AM it belongs to, from 1."""


def member_variables(member: Member) -> dict[str, str]:
    """The variables in a member's environment, {name: value}."""
    hosts = ",".join(member.hosts)
    return {RANK: str(member.rank), SIZE: str(len(member.hosts)), HOSTS: hosts, TRY: str(member.try_number)}


def read_member(environment: Mapping[str, str]) -> Member | None:
    """The member that `member_variables` described; None in the environment of another container."""
    if TRY not in environment:
        return None
    return Member(int(environment[RANK]), tuple(environment[HOSTS].split(",")), int(environment[TRY]))


def launch_context(job: StagedJob[GangPlan], member: Member) -> ContainerLaunchContext:
    return job.launch_context(member_variables(member))


def make_application(job: StagedJob[GangPlan], environment: AMEnvironment) -> Gang:
    return Gang(
        job.plan,
        lambda member: launch_context(job, member),
        environment.attempt_id.application_id.id,
        check_invariants=environment.check_invariants,
    )


if __name__ == "__main__":
    sys.exit(run_staged_job(GangPlan, make_application))
