"""Many failovers under load, by kills and pauses: nothing acknowledged is lost, and no id is used twice."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from am.core.events import ContainersAllocated
from am.core.requests import ContainerRequest
from yarn.errors import InvalidArgumentException, YarnException
from yarn.ids import ApplicationId, ContainerId
from yarn.resource import Resource
from yarn.settings.high_availability import LEASE
from yarn.states import FINAL_APPLICATION_STATES, FinalApplicationStatus, HAServiceState
from yarnling.cluster.jobs import Job
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster
from yarnling.cluster.resource_managers import state_of

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.timeout(900)]
FAILOVERS = 10
SOON_S = 120.0
_logger = logging.getLogger(__name__)


class Load:
    """Applications that are submitted one after another, and an ApplicationMaster that asks for containers."""

    def __init__(self, cluster: LocalCluster, starts: Path) -> None:
        self.accepted: list[ApplicationId] = []
        self.containers: list[ContainerId] = []
        self._cluster = cluster
        self._starts = starts

    def has_more_than(self, before: int) -> bool:
        return len(self.accepted) > before

    async def submit_forever(self) -> None:
        while True:
            try:
                report = await self._cluster.submit(Job(f"echo $CONTAINER_ID >> {self._starts}"))
            except YarnException:
                # Not acknowledged; it may run, or not.
                continue
            self.accepted.append(report.application_id)

    async def allocate_forever(self) -> None:
        async with self._cluster.unmanaged_am(name="allocates") as am:
            await am.rm.register()
            am.rm.add_request(ContainerRequest(Resource(128, 1), priority=1))
            async for event in am.rm.events():
                if isinstance(event, ContainersAllocated):
                    for allocation in event.allocations:
                        self.containers.append(allocation.container.id)
                        am.rm.release(allocation.container.id)
                        am.rm.add_request(ContainerRequest(Resource(128, 1), priority=1))


@asynccontextmanager
async def under_load(load: Load) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work()) for work in (load.submit_forever, load.allocate_forever)]
        yield
        for task in tasks:
            assert not task.done(), task
            task.cancel()


async def fail_over(cluster: LocalCluster, *, pauses: bool) -> str:
    """Have the other ResourceManager take over; afterwards both run, and the earlier leader is standby.

    Returns how the earlier leader went on: "killed", "resumed", or "hung" (the other one has killed it).
    """
    old = await cluster.until(cluster.active_rm, SOON_S)
    await (cluster.pause_rm(old) if pauses else cluster.kill_rm(old))

    async def other_leads() -> bool:
        return await cluster.active_rm() not in ("", old)

    await cluster.until(other_leads, SOON_S)
    outcome = "killed"
    if pauses:
        try:
            await cluster.resume_rm(old)
            outcome = "resumed"
        except InvalidArgumentException:
            outcome = "hung"
    if outcome != "resumed":
        await cluster.restart_rm(old)

    async def is_standby() -> bool:
        return await state_of(cluster.addresses, old, cluster.configuration) is HAServiceState.STANDBY

    await cluster.until(is_standby, SOON_S)
    return outcome


@pytest.mark.parametrize("draw_seed", range(3))
async def test_failovers_under_load(draw_seed: int, tmp_path: Path) -> None:
    draw = random.Random(draw_seed)
    outcomes: Counter[str] = Counter()
    options = ClusterOptions(rms=2, directory=tmp_path / "cluster")
    async with LocalCluster(2, fast=True, settings={LEASE.key: "40000"}, options=options) as cluster:
        load = Load(cluster, tmp_path / "starts")
        async with under_load(load):
            for _ in range(FAILOVERS):
                before = len(load.accepted)
                outcomes[await fail_over(cluster, pauses=draw.random() < 0.5)] += 1
                await asyncio.sleep(draw.random())
                await cluster.until(partial(load.has_more_than, before), SOON_S)
        _logger.info("%s, %d applications, %d containers", dict(outcomes), len(load.accepted), len(load.containers))
        assert len(set(load.accepted)) == len(load.accepted)
        assert len(set(load.containers)) == len(load.containers)
        assert load.containers, "an ApplicationMaster got containers"
        for app_id in load.accepted:
            final = await cluster.client.wait(app_id, timeout_s=SOON_S)
            assert final.state in FINAL_APPLICATION_STATES
            assert final.final_status is FinalApplicationStatus.SUCCEEDED, final.diagnostics
        started = (tmp_path / "starts").read_text().split()
        assert len(set(started)) == len(started), "a container was started twice"
