"""ResourceManagers with a real ZooKeeper: one that is restarted, and two of which one is active."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rm.served_cluster import configuration, serving, submit
from tests.zookeeper.server import ZooKeeperServer
from yarn.errors import YarnException
from yarn.settings.resourcemanager import CLUSTER_ID, RECOVERY_ENABLED, STORE_CLASS
from yarn.settings.zookeeper import ZK_ADDRESS, ZK_STORE, ZK_STORE_PARENT_PATH, ZK_TIMEOUT, ZNODE_SIZE_MAX
from yarn.states import FinalApplicationStatus, YarnApplicationState
from yarnling.cluster.jobs import Job
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

pytestmark = [pytest.mark.hadoop, pytest.mark.slow, pytest.mark.cluster]


def settings(zookeeper: ZooKeeperServer, name: str) -> dict[str, str]:
    return {
        ZK_ADDRESS.key: zookeeper.address,
        ZK_TIMEOUT.key: "3000",
        ZK_STORE_PARENT_PATH.key: f"/{name}",
        CLUSTER_ID.key: name,
    }


async def test_a_resource_manager_recovers_from_zookeeper(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    values = {RECOVERY_ENABLED.key: "true", STORE_CLASS.key: ZK_STORE, **settings(zookeeper, tmp_path.name)}
    conf = configuration(tmp_path).overridden(values, "test")
    async with serving(conf) as cluster:
        app = await submit(await cluster.client())
        assert cluster.rm.core.scheduler.context.epoch == 0
    async with serving(conf.overridden({ZNODE_SIZE_MAX.key: "1024"}, "test")) as cluster:
        assert cluster.rm.core.scheduler.context.epoch == 1
        client = await cluster.client()
        assert (await client.get_application_report(app)).state is YarnApplicationState.ACCEPTED
        with pytest.raises(YarnException, match=r"bytes in ZooKeeper, more than 1024 .* raise yarn\.resource"):
            await submit(client, environment={"LARGE": "x" * 2000})
        assert len(cluster.rm.core.context.apps) >= 1


async def test_an_application_lives_through_a_failover_by_zookeeper(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    options = ClusterOptions(rms=2, directory=tmp_path / "cluster")
    values = settings(zookeeper, tmp_path.name)
    async with LocalCluster(1, fast=True, settings=values, options=options) as cluster:
        report = await cluster.submit(Job(f"while ! test -e {gate}; do sleep 0.2; done"))
        first = await cluster.active_rm()
        await cluster.kill_rm()
        second = await cluster.until(cluster.active_rm)
        assert {first, second} == {"rm1", "rm2"}
        gate.touch()
        final = await cluster.client.wait(report.application_id)
        assert (final.state, final.final_status) == (
            YarnApplicationState.FINISHED,
            FinalApplicationStatus.SUCCEEDED,
        )
