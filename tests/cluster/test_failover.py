"""Two ResourceManagers as processes: the active one is killed or paused while an application runs, and work goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from rm.shell.ha.liveness_lock import lockers_of
from wire.cluster_secret import read_client_token
from wire.protocols.client import ApplicationClientProtocol
from yarn.applications import ApplicationFilter
from yarn.errors import InvalidArgumentException, ServerUnavailable, StandbyException
from yarn.settings.high_availability import LEASE
from yarn.settings.resourcemanager import ADDRESS
from yarn.settings.yarnling import STATE_STORE_FILE
from yarn.states import FinalApplicationStatus, HAServiceState, YarnApplicationState
from yarnling.cluster.jobs import Job
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster
from yarnling.cluster.resource_managers import state_of

pytestmark = [pytest.mark.cluster]
DEADLINE_S = 60.0


@pytest_asyncio.fixture
async def two(tmp_path: Path) -> AsyncIterator[LocalCluster]:
    options = ClusterOptions(rms=2, directory=tmp_path / "cluster")
    async with LocalCluster(2, fast=True, settings={LEASE.key: "40000"}, options=options) as cluster:
        yield cluster


def waiting_for(gate: Path, starts: Path) -> str:
    """A command that notes each of its starts, and runs until there is the file `gate`."""
    return f"echo $CONTAINER_ID >> {starts}; while ! test -e {gate}; do sleep 0.2; done"


async def started(cluster: LocalCluster, starts: Path, count: int) -> None:
    await cluster.until(lambda: starts.exists() and len(starts.read_text().split()) == count)


async def test_an_application_lives_through_the_end_of_the_active_one(two: LocalCluster, tmp_path: Path) -> None:
    gate, starts = tmp_path / "gate", tmp_path / "starts"
    report = await two.submit(Job(waiting_for(gate, starts), 3))
    await started(two, starts, 3)
    killed = await two.active_rm()
    assert killed == "rm1"
    await two.kill_rm()
    assert await two.until(two.active_rm) == "rm2"
    for call in (two.pause_rm, two.resume_rm, two.kill_rm):
        with pytest.raises(InvalidArgumentException, match="not running"):
            await call("rm1")
    await two.wait_nodes(2)
    accepted = await two.submit(Job("true"))
    gate.touch()
    for app_id in (report.application_id, accepted.application_id):
        final = await two.client.wait(app_id)
        assert (final.state, final.final_status) == (
            YarnApplicationState.FINISHED,
            FinalApplicationStatus.SUCCEEDED,
        )
    assert len(set(starts.read_text().split())) == 3, "no task was started again"
    await two.restart_rm()
    assert await state_of(two.addresses, "rm1", two.configuration) is HAServiceState.STANDBY


async def is_acknowledged(cluster: LocalCluster) -> bool:
    """True if rm1 answers a call of a client: a new id, or a list of applications."""
    address, token = cluster.addresses[f"{ADDRESS.key}.rm1"], read_client_token(cluster.configuration)
    async with ApplicationClientProtocol(address, token=token, timeout_s=DEADLINE_S) as rm1:
        for ask in (rm1.get_new_application(), rm1.get_applications(ApplicationFilter())):
            try:
                await ask
            except (StandbyException, ServerUnavailable):
                continue
            return True
    return False


async def pause_outside_a_transaction(cluster: LocalCluster) -> None:
    """Pause rm1 so that it does not keep the store locked; otherwise rm2 would kill it."""
    await cluster.pause_rm("rm1")
    store = cluster.directory.path / STATE_STORE_FILE.of(cluster.configuration)
    while cluster.rms[0].pid in lockers_of(store):
        await cluster.resume_rm("rm1")
        await asyncio.sleep(0)
        await cluster.pause_rm("rm1")


async def test_a_paused_leader_that_wakes_is_standby_and_nothing_is_lost(two: LocalCluster, tmp_path: Path) -> None:
    gate, starts = tmp_path / "gate", tmp_path / "starts"
    await pause_outside_a_transaction(two)
    assert await two.until(two.active_rm, 60.0) == "rm2"
    report = await two.submit(Job(waiting_for(gate, starts), 2))
    await started(two, starts, 2)
    async with asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(is_acknowledged(two)) for _ in range(20)]
        await asyncio.sleep(0)
        await two.resume_rm("rm1")
    assert not any(call.result() for call in calls), "a leader that was stopped acknowledges nothing when it wakes"

    async def is_standby() -> bool:
        return await state_of(two.addresses, "rm1", two.configuration) is HAServiceState.STANDBY

    await two.until(is_standby)
    assert await two.active_rm() == "rm2"
    await two.kill_rm()
    assert await two.until(two.active_rm, 60.0) == "rm1"
    gate.touch()
    async with asyncio.timeout(120):
        final = await two.client.wait(report.application_id)
    assert final.final_status is FinalApplicationStatus.SUCCEEDED
    assert len(set(starts.read_text().split())) == 2
