"""kill -9 of the ResourceManager at any moment, again and again: no application is lost, and nothing runs twice.

When it is killed, and what is submitted meanwhile, is drawn from a seed:

    scripts/test tests/cluster/test_rm_soak.py --runs 20
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from am.programs.distributed_shell.client import DistributedShell
from tests.cluster.applications import shell
from tests.cluster.test_rm_restart import SETTINGS
from yarn.errors import CallOutcomeUnknown
from yarn.ids import ApplicationId
from yarn.states import FinalApplicationStatus
from yarnling.local_cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

T = TypeVar("T")
APPLICATIONS = 6
CONTAINERS_MAX = 6
KILLS = 4
PAUSE_MAX_S = 1.5
TIMEOUT_S = 120.0
QUICK = {
    **SETTINGS,
    # A master whose start was on its way when the RM was killed is waited for: five seconds here.
    "yarn.am.liveness-monitor.expiry-interval-ms": "100000",
    "yarn.resourcemanager.am.max-attempts": "9",
}


@dataclass
class Submitted:
    """An application, the file that its containers note their ids in, and how many it wants."""

    application_id: ApplicationId
    noted: Path
    containers: int

    def lines(self, suffix: str = "") -> list[str]:
        path = Path(f"{self.noted}{suffix}")
        return path.read_text().split() if path.exists() else []


async def surely(call: Callable[[], Awaitable[T]]) -> T:
    """The result of a call that may be repeated, whatever became of it before."""
    while True:
        try:
            return await call()
        except CallOutcomeUnknown:
            await asyncio.sleep(0.05)


async def submit(cluster: LocalCluster, draw: random.Random, noted: Path) -> Submitted:
    count = draw.randint(1, CONTAINERS_MAX)
    work: DistributedShell = shell(
        f"echo $CONTAINER_ID >> {noted}; sleep {draw.uniform(0, 2):.2f}; echo over >> {noted}.over; true", count
    )
    new = await surely(cluster.client.new_application)
    context = work.build(new.application_id, noted.parent)
    await surely(lambda: cluster.client.submit(context))
    return Submitted(new.application_id, noted, count)


async def kill_now_and_then(cluster: LocalCluster, draw: random.Random) -> None:
    for _ in range(KILLS):
        await asyncio.sleep(draw.uniform(0, PAUSE_MAX_S))
        await cluster.kill_rm()
        await asyncio.sleep(draw.choice((0.0, 0.3)))
        await cluster.restart_rm()


async def test_every_submission_outlives_the_resource_managers(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    async with (
        LocalCluster(
            3, memory_mb=4096, vcores=16, fast=True, settings=QUICK, directory=tmp_path / "cluster"
        ) as cluster,
        asyncio.timeout(TIMEOUT_S),
    ):
        submitted: list[Submitted] = []
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(kill_now_and_then(cluster, random.Random(draw.random())))
            for number in range(APPLICATIONS):
                submitted.append(await submit(cluster, draw, tmp_path / f"noted-{number}"))
                await asyncio.sleep(draw.uniform(0, 0.5))
        for one in submitted:
            await check(cluster, one)


async def check(cluster: LocalCluster, one: Submitted) -> None:
    """Each of its containers ran once, if its first master saw it through; a later one begins anew, as it does.

    A container that was placed and not started is lost with its ResourceManager: its NodeManager refuses it, and the
    distributed shell counts it as failed, as Hadoop's does.
    """
    report = await surely(lambda: cluster.client.wait(one.application_id))
    started, ended = one.lines(), one.lines(".over")
    assert len(set(started)) == len(started)
    logs = [log.path.read_text() for log in cluster.client.logs(one.application_id)]
    refused = sum(text.count("start failed container=") for text in logs)
    if report.current_attempt_id.attempt > 1:
        assert refused or report.final_status is FinalApplicationStatus.SUCCEEDED, report.diagnostics
        assert len(ended) >= one.containers - refused
        return
    wanted = FinalApplicationStatus.FAILED if refused else FinalApplicationStatus.SUCCEEDED
    assert report.final_status is wanted, report.diagnostics
    assert len(started) == len(ended) == one.containers - refused, (started, report.diagnostics)
