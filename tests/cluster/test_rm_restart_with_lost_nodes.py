"""Containers that end with their node while the ResourceManager is down: nothing reports them, so their AM asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.am.programs.on_cluster import Cluster
from tests.cluster.applications import shell
from tests.cluster.heartbeats import HeartbeatLog
from tests.cluster.test_rm_restart import DEADLINE_S, SETTINGS, lines_of, noting
from yarn.ids import ApplicationId
from yarn.settings.resourcemanager import NM_EXPIRY_INTERVAL
from yarn.states import FinalApplicationStatus
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster
from yarnling.cluster.network import SamePorts

pytestmark = [pytest.mark.cluster, pytest.mark.case("I4")]
CONTAINERS = 6


@pytest_asyncio.fixture
async def three(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Nodes keep their ports; they are lost after two seconds."""
    settings = {**SETTINGS, NM_EXPIRY_INTERVAL.key: "40000"}
    directory = tmp_path / "cluster"
    async with LocalCluster(
        3,
        memory_mb=512,
        vcores=16,
        fast=True,
        settings=settings,
        options=ClusterOptions(directory=directory, routes=SamePorts()),
    ) as it:
        yield Cluster(it, tmp_path / "staging", HeartbeatLog(tmp_path / "events"))


async def node_without_am(cluster: LocalCluster, app: ApplicationId) -> tuple[int, set[str]]:
    """The number of a node with containers of the application but not its AM, and their ids."""
    attempt = (await cluster.client.report(app)).current_attempt_id
    containers = await cluster.client.containers(attempt)
    (am,) = [one.node_id for one in containers if one.container_id.number == 1]
    for number, node in enumerate(cluster.nodes, 1):
        of_node = {str(one.container_id) for one in containers if one.node_id == node.id}
        if of_node and node.id != am:
            return number, of_node
    raise AssertionError(f"all of {containers} are on the node of their AM")


@pytest.mark.parametrize("comes_back", [True, False], ids=["node-comes-back", "node-stays-away"])
async def test_containers_lost_with_their_node_during_an_rm_outage_run_again(
    three: Cluster, tmp_path: Path, comes_back: bool
) -> None:
    noted, gate = tmp_path / "noted", tmp_path / "open"
    app = await three.submit(shell(noting(noted, gate), CONTAINERS))
    before = set(await lines_of(noted, CONTAINERS))
    number, lost = await node_without_am(three.local, app)
    # The RM is killed first: it does not notice the loss of the node, and cannot report it to the AM.
    await three.local.kill_rm()
    await three.local.kill_node(number)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(three.local.restart_rm())
        if comes_back:
            tasks.create_task(three.local.restart_node(number))
    after = set(await lines_of(noted, CONTAINERS + len(lost)))
    gate.touch()
    report = await three.client.wait(app, timeout_s=DEADLINE_S)
    assert (report.final_status, report.current_attempt_id.attempt) == (FinalApplicationStatus.SUCCEEDED, 1)
    assert len(after) == CONTAINERS + len(lost) == len(noted.read_text().split())
    assert len(await lines_of(Path(f"{noted}.over"), CONTAINERS)) == CONTAINERS
    assert before < after
