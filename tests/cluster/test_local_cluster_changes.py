"""A LocalCluster that changes while it runs: nodes are added and removed, containers and AMs are killed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.cluster.applications import shell, until
from tests.cluster.conftest import QUICK
from yarn.errors import ContainerNotFoundException, InvalidArgumentException
from yarn.states import FinalApplicationStatus, NodeState
from yarnling.cluster.client import WaitTimeout
from yarnling.cluster.conditions import WAIT_S
from yarnling.cluster.daemons import ADDED_MAX
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[LocalCluster]:
    async with LocalCluster(
        1, memory_mb=1024, vcores=8, settings=QUICK, fast=True, options=ClusterOptions(racks=1)
    ) as cluster:
        yield cluster


async def test_nodes_are_added_and_removed(tmp_path: Path) -> None:
    async with LocalCluster(2, memory_mb=512, settings=QUICK, fast=True, options=ClusterOptions(racks=2)) as cluster:
        client = cluster.client
        (added,) = await cluster.add_nodes()
        reports = await cluster.wait_nodes(3)
        assert {(node.node_id.host, node.rack) for node in reports} == {
            ("127.0.0.2", "/rack-1"),
            ("127.0.0.3", "/rack-2"),
            ("127.0.0.4", "/rack-1"),
        }
        assert cluster.node(3) is added
        # Nine of 128 MB with the AM, and two nodes hold eight: one runs on the added node.
        started = await client.start(shell(f"{{ echo $NM_HOST; {until(tmp_path / 'go')}; }}", 8))
        running = await cluster.wait_containers(started.application_id, 8)
        assert added.id in {container.node_id for container in running}

        def hosts() -> set[str]:
            logs = client.logs(started.application_id)
            return {log.text().strip() for log in logs if log.name == "stdout"}

        # A client that is older than the node finds its logs too.
        await cluster.until(lambda: added.place.host in hosts())
        await cluster.remove_node(3)
        assert (await cluster.wait_node(3, NodeState.SHUTDOWN)).node_id == added.id
        assert added.daemon.exit_status == 0
        (tmp_path / "go").touch()
        report = await client.wait(started.application_id, timeout_s=WAIT_S)
        # The containers of the removed node ran again elsewhere.
        assert report.final_status is FinalApplicationStatus.SUCCEEDED
        assert {"127.0.0.2", "127.0.0.3", "127.0.0.4"} <= hosts()
        await cluster.restart_node(3)
        await cluster.wait_nodes(3)
        with pytest.raises(InvalidArgumentException, match=f"count = {ADDED_MAX}: must be 1 to {ADDED_MAX - 1} "):
            await cluster.add_nodes(ADDED_MAX)


async def test_a_killed_container_fails_and_a_killed_am_is_retried(cluster: LocalCluster, tmp_path: Path) -> None:
    client = cluster.client
    started = await client.start(shell(until(tmp_path / "go"), 2))
    app_id = started.application_id
    first = await cluster.wait_containers(app_id, 2)
    am = await cluster.kill_master(app_id)
    assert am.attempt_id.attempt == 1

    async def second_attempt() -> bool:
        return (await client.report(app_id)).current_attempt_id.attempt == 2

    await cluster.until(second_attempt)
    second = await cluster.wait_containers(app_id, 2, exactly=True)
    assert {c.container_id for c in first}.isdisjoint(c.container_id for c in second)
    await cluster.kill_container(second[0].container_id)
    await cluster.wait_containers(app_id, 1, exactly=True)
    with pytest.raises(ContainerNotFoundException):
        await cluster.kill_container(first[0].container_id)
    (tmp_path / "go").touch()
    report = await client.wait(app_id, timeout_s=WAIT_S)
    assert report.final_status is FinalApplicationStatus.FAILED
    assert "completed = 2, allocated = 2, failed = 1" in report.diagnostics


async def test_timeouts_report_the_last_value(cluster: LocalCluster) -> None:
    with pytest.raises(WaitTimeout, match=r"after 1 s 1 nodes are RUNNING, not 2"):
        await cluster.wait_nodes(2, timeout_s=1)
    with pytest.raises(WaitTimeout, match=rf"{cluster.node(1).id} is RUNNING, not LOST or UNHEALTHY"):
        await cluster.wait_node(1, NodeState.LOST, NodeState.UNHEALTHY, timeout_s=1)
    started = await cluster.client.start(shell("sleep 60", 1))
    with pytest.raises(WaitTimeout, match=f"containers of {started.application_id} run, not 7: it is "):
        await cluster.wait_containers(started.application_id, 7, timeout_s=1)
    cluster.pause_node(1)
    await cluster.remove_node(1)
    assert not cluster.node(1).alive
