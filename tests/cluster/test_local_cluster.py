"""LocalCluster: it is ready after its start, runs beside others, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import stat
from pathlib import Path

import pytest

from tests.cluster.conftest import QUICK, SOON_LOST_S, eventually, gone, names
from yarn.errors import InvalidToken, YarnException
from yarn.faults import ConfigurationException
from yarn.states import NodeState
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.client import Client
from yarnling.cluster.launcher import DaemonFailed
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

pytestmark = pytest.mark.cluster


def pids_of(cluster: LocalCluster) -> list[int]:
    return [cluster.rm.pid, *(node.daemon.pid for node in cluster.nodes)]


async def test_every_node_has_registered_when_it_is_ready() -> None:
    async with LocalCluster(3, memory_mb=2048, vcores=3, fast=True, options=ClusterOptions(racks=2)) as cluster:
        nodes = await cluster.client.nodes()
        assert {node.node_id for node in nodes} == {node.id for node in cluster.nodes}
        assert {node.state for node in nodes} == {NodeState.RUNNING}
        assert {(node.node_id.host, node.rack) for node in nodes} == {
            ("127.0.0.2", "/rack-1"),
            ("127.0.0.3", "/rack-2"),
            ("127.0.0.4", "/rack-1"),
        }
        assert {(node.capability.memory_mb, node.capability.vcores) for node in nodes} == {(2048, 3)}


async def test_a_closed_cluster_leaves_nothing_behind() -> None:
    async with LocalCluster(2, fast=True) as cluster:
        pids, directory = pids_of(cluster), cluster.directory.path
        ports = [int(address.rpartition(":")[2]) for address in cluster.addresses.values()]
        assert directory.exists()
    assert all(gone(pid) for pid in pids)
    assert not directory.exists()
    assert not names(directory)
    for port in ports:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))


async def test_an_error_in_the_context_ends_the_cluster_too() -> None:
    pids: list[int] = []
    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        async with LocalCluster(1, fast=True) as cluster:
            pids += pids_of(cluster)
            raise ZeroDivisionError
    assert pids
    assert all(gone(pid) for pid in pids)


def test_without_asyncio() -> None:
    with LocalCluster(1, fast=True) as cluster:
        assert isinstance(cluster, BlockingCluster)
        assert cluster.client.metrics().active == 1
        pid = cluster.nodes[0].daemon.pid
    assert gone(pid)


async def test_several_clusters_at_the_same_time() -> None:
    async with LocalCluster(1, fast=True) as one, LocalCluster(2, fast=True) as other:
        assert set(one.addresses.values()).isdisjoint(other.addresses.values())
        assert (await one.client.metrics()).active == 1
        assert (await other.client.metrics()).active == 2


async def test_a_named_directory_is_kept_with_logs_and_configuration(tmp_path: Path) -> None:
    home = tmp_path / "cluster"
    async with LocalCluster(1, fast=True, options=ClusterOptions(directory=home)) as cluster:
        assert stat.S_IMODE((home / "cluster-secret").stat().st_mode) == 0o600
        assert stat.S_IMODE((home / "nm-1").stat().st_mode) == 0o700, "it contains tokens of AMs"
        site = (home / "conf" / "yarn-site.xml").read_text()
        assert cluster.addresses["yarn.resourcemanager.scheduler.address"] in site
    assert "RMNode=" in (home / "logs" / "rm.log").read_text()
    assert not names(home)


async def test_a_client_needs_the_configuration_of_its_cluster() -> None:
    """Addresses are public; the secret that the configuration names is not."""
    async with LocalCluster(0, fast=True) as cluster, LocalCluster(0, fast=True) as other:
        async with Client(cluster.addresses, conf=cluster.configuration) as client:
            assert (await client.metrics()).active == 0
        for conf in (None, other.configuration):
            async with Client(cluster.addresses, conf=conf) as stranger:
                with pytest.raises(InvalidToken, match=r"only \w+ and root may call this ResourceManager \(use the"):
                    await stranger.metrics()


async def test_daemons_start_as_programs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARNLING_START", "plain")
    async with LocalCluster(1, fast=True) as cluster:
        pids = pids_of(cluster)
        assert (await cluster.client.metrics()).active == 1
    assert all(gone(pid) for pid in pids)


def test_a_killed_node_is_lost_after_its_expiry_and_comes_back(cluster: BlockingCluster) -> None:
    node = cluster.nodes[3]
    cluster.kill_node(4)
    assert node.daemon.exit_status == -signal.SIGKILL
    eventually(lambda: node.id in lost(cluster), SOON_LOST_S)
    cluster.restart_node(4)
    eventually(lambda: cluster.client.metrics().active == 4)


def test_a_paused_node_is_lost_and_comes_back_when_it_runs_again(cluster: BlockingCluster) -> None:
    node = cluster.nodes[2]
    cluster.pause_node(3)
    eventually(lambda: node.id in lost(cluster))
    cluster.resume_node(3)
    eventually(lambda: cluster.client.metrics().active == 4)


def lost(cluster: BlockingCluster) -> set[object]:
    return {report.node_id for report in cluster.client.nodes(frozenset({NodeState.LOST}))}


# Bad input


async def test_a_port_in_use_is_reported_with_its_key() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(DaemonFailed, match=rf"(?s)yarn.resourcemanager.address = {address}.*in use"):
            await LocalCluster(1, settings={"yarn.resourcemanager.address": address}).__aenter__()


async def test_contradictions_are_refused_before_anything_starts(tmp_path: Path) -> None:
    settings = {
        "yarn.scheduler.minimum-allocation-mb": "2048",
        "yarn.scheduler.maximum-allocation-mb": "1024",
        "yarn.nodemanager.resource.memory-mb": "lots",
    }
    home = tmp_path / "cluster"
    with pytest.raises(ConfigurationException) as refusal:
        await LocalCluster(1, settings=settings, options=ClusterOptions(directory=home)).__aenter__()
    assert {fault.key for fault in refusal.value.faults} == {
        "yarn.scheduler.minimum-allocation-mb",
        "yarn.nodemanager.resource.memory-mb",
    }
    assert not home.exists()


@pytest.mark.case("A7")
async def test_queues_that_do_not_add_up_are_refused_with_their_sum() -> None:
    """Sibling capacities must add to 100: refused at start-up with the queue, the sum and the remedy."""
    prefix = "yarn.scheduler.capacity.root"
    settings = {f"{prefix}.queues": "a,b", f"{prefix}.a.capacity": "60", f"{prefix}.b.capacity": "50"}
    with pytest.raises(YarnException, match="110"):
        await LocalCluster(1, settings=settings).__aenter__()


async def test_a_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(YarnException, match=r"file/cluster.*name another directory"):
        await LocalCluster(1, options=ClusterOptions(directory=tmp_path / "file" / "cluster")).__aenter__()


async def test_a_missing_configuration_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationException, match="nowhere"):
        await LocalCluster(1, conf=tmp_path / "nowhere").__aenter__()


@pytest.mark.parametrize("nodes", [-1, 10**9])
async def test_an_impossible_number_of_nodes_is_refused(nodes: int) -> None:
    with pytest.raises(YarnException, match=f"nodes = {nodes}: must be 0 to"):
        LocalCluster(nodes)


async def test_a_node_without_a_local_directory_is_unhealthy_and_reports_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = {**QUICK, "yarn.nodemanager.local-dirs": str(tmp_path / "file" / "local")}
    async with LocalCluster(1, settings=settings, fast=True) as cluster:
        (node,) = await cluster.client.nodes()
        assert node.state is NodeState.UNHEALTHY
        assert str(tmp_path / "file" / "local") in node.health.report


def test_the_secret_is_in_no_environment_and_on_no_command_line(cluster: BlockingCluster) -> None:
    secret = cluster.directory.secret_file.read_bytes()
    for pid in pids_of(cluster):
        for part in ("environ", "cmdline"):
            shown = Path(f"/proc/{pid}/{part}").read_bytes()
            assert secret not in shown
            assert os.fsencode(secret.hex()) not in shown
