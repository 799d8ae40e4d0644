"""What a gang runs: one command in all its members. Written by the client, read by the AM."""

from __future__ import annotations

from msgspec import Struct, field

from am.client.launching import TO_LOG_FILES
from am.programs.gang.core import GangPlan, Member
from yarn.containers import ContainerLaunchContext, LocalResource

JOB_FILE = "gang.json"
RANK = "GANG_RANK"
SIZE = "GANG_SIZE"
HOSTS = "GANG_HOSTS"
"""Variables of a member: its rank from 0, how many there are, and the hosts of all by rank, separated by commas."""


class GangJob(Struct, frozen=True):
    """`command` is a shell command line; `staging` the directory to remove once the application has finished."""

    command: str
    plan: GangPlan
    staging: str
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, LocalResource] = field(default_factory=dict)

    def launch_context(self, member: Member) -> ContainerLaunchContext:
        where = {RANK: str(member.rank), SIZE: str(len(member.hosts)), HOSTS: ",".join(member.hosts)}
        return ContainerLaunchContext(
            commands=(f"{self.command} {TO_LOG_FILES}",),
            environment={**self.environment, **where},
            local_resources=self.files,
        )
