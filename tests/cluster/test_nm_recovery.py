"""kill -9 of a NodeManager that recovers, while its containers run: they run on, and no end is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.am.programs.on_cluster import Cluster
from tests.cluster.applications import shell
from tests.cluster.heartbeats import HeartbeatLog
from tests.cluster.test_rm_restart import lines_of, noting
from yarn.settings.nodemanager import RECOVERY_ENABLED, RECOVERY_SUPERVISED
from yarn.settings.yarnling import CHECK_INVARIANTS
from yarn.states import FinalApplicationStatus, NodeState
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

pytestmark = pytest.mark.cluster
DEADLINE_S = 120.0
TASKS = 4
SETTINGS = {
    RECOVERY_ENABLED.key: "true",
    CHECK_INVARIANTS.key: "true",
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9",
}


def local(directory: Path, **settings: str) -> LocalCluster:
    return LocalCluster(
        1,
        memory_mb=4096,
        vcores=16,
        fast=True,
        settings={**SETTINGS, **settings},
        options=ClusterOptions(directory=directory / "cluster"),
    )


@pytest_asyncio.fixture
async def one(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with local(tmp_path) as it:
        yield Cluster(it, tmp_path / "staging", HeartbeatLog(tmp_path / "events"))


async def test_containers_run_on_while_their_node_manager_is_killed(one: Cluster, tmp_path: Path) -> None:
    """The AM is one of them: it goes on too, and its tasks are not started again."""
    noted, gate = tmp_path / "noted", tmp_path / "open"
    app = await one.submit(shell(noting(noted, gate), TASKS))
    before = await lines_of(noted, TASKS)
    node = one.local.node(1)
    await one.local.kill_node(1, containers=False)
    was, pid = node.id, node.daemon.pid
    await one.local.restart_node(1)
    assert (node.id, node.daemon.pid != pid) == (was, True)
    gate.touch()
    report = await one.client.wait(app, timeout_s=DEADLINE_S)
    assert (report.final_status, report.current_attempt_id.attempt) == (FinalApplicationStatus.SUCCEEDED, 1)
    assert Counter(noted.read_text().split()) == Counter(before)


async def test_exit_codes_are_found_although_the_node_manager_was_down(one: Cluster, tmp_path: Path) -> None:
    """The containers end before the next NodeManager starts; the application has no failed and no second container."""
    noted, gate = tmp_path / "noted", tmp_path / "open"
    app = await one.submit(shell(noting(noted, gate), TASKS))
    before = await lines_of(noted, TASKS)
    await one.local.kill_node(1, containers=False)
    gate.touch()
    await lines_of(Path(f"{noted}.over"), TASKS)
    await one.local.restart_node(1)
    report = await one.client.wait(app, timeout_s=DEADLINE_S)
    assert (report.final_status, report.current_attempt_id.attempt) == (FinalApplicationStatus.SUCCEEDED, 1)
    assert Counter(noted.read_text().split()) == Counter(before)


async def test_a_supervised_node_manager_that_is_stopped_leaves_its_containers(tmp_path: Path) -> None:
    noted, gate = tmp_path / "noted", tmp_path / "open"
    async with local(tmp_path, **{RECOVERY_SUPERVISED.key: "true"}) as it:
        one = Cluster(it, tmp_path / "staging", HeartbeatLog(tmp_path / "events"))
        app = await one.submit(shell(noting(noted, gate), TASKS))
        before = await lines_of(noted, TASKS)
        await it.remove_node(1)
        await it.restart_node(1)
        await it.wait_node(1, NodeState.RUNNING, timeout_s=DEADLINE_S)
        gate.touch()
        report = await one.client.wait(app, timeout_s=DEADLINE_S)
        assert (report.final_status, report.current_attempt_id.attempt) == (FinalApplicationStatus.SUCCEEDED, 1)
        assert Counter(noted.read_text().split()) == Counter(before)


async def test_the_nodes_of_a_killed_pack_recover_their_containers(tmp_path: Path) -> None:
    noted, gate = tmp_path / "noted", tmp_path / "open"
    options = ClusterOptions(directory=tmp_path / "cluster", pack=2)
    async with LocalCluster(2, memory_mb=1024, vcores=16, fast=True, settings=SETTINGS, options=options) as it:
        one = Cluster(it, tmp_path / "staging", HeartbeatLog(tmp_path / "events"))
        app = await one.submit(shell(noting(noted, gate), 10))
        before = await lines_of(noted, 10)
        await it.kill_pack(1, containers=False)
        await it.restart_node(1)
        gate.touch()
        report = await one.client.wait(app, timeout_s=DEADLINE_S)
        assert (report.final_status, report.current_attempt_id.attempt) == (FinalApplicationStatus.SUCCEEDED, 1)
        assert Counter(noted.read_text().split()) == Counter(before)
