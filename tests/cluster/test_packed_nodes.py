"""Nodes that share processes, with real containers: what users do with a node works with a packed node, too."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.applications import kill_container, shell, tasks_of, until, wait_tasks
from tests.cluster.conftest import DEFINITIONS, PROJECT, QUICK, commands_in, eventually
from yarn.errors import InvalidArgumentException
from yarn.states import DecommissionType, FinalApplicationStatus, NodeState
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

pytestmark = pytest.mark.cluster

EXCLUDE = "yarn.resourcemanager.nodes.exclude-path"


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingCluster]:
    """Nodes 1 to 3 share a process, and 4 and 5 another; each node has memory for two tasks."""
    excluded = tmp_path_factory.mktemp("packed") / "excluded"
    excluded.touch()
    settings = {**QUICK, EXCLUDE: str(excluded)}
    with LocalCluster(5, memory_mb=256, settings=settings, fast=True, options=ClusterOptions(pack=3)) as cluster:
        yield cluster


def test_containers_run_on_several_nodes_of_a_process(packed: BlockingCluster, tmp_path: Path) -> None:
    """Each container has its node's name, directories and logs."""
    client, go = packed.client, tmp_path / "go"
    assert len({node.daemon.pid for node in packed.nodes}) == 2
    assert {report.node_id for report in client.nodes()} == {node.id for node in packed.nodes}
    report = client.start(shell(f"{until(go)}; echo on $NM_HOST", 8))
    tasks = wait_tasks(client, report, 8)
    assert {task.node_id for task in tasks} == {node.id for node in packed.nodes}
    node_of = {task.container_id: task.node_id.host for task in tasks}
    go.touch()
    assert client.wait(report.application_id, timeout_s=60).final_status is FinalApplicationStatus.SUCCEEDED
    logged = {log.container_id: log.text() for log in client.logs(report.application_id) if log.name == "stdout"}
    assert {container_id: logged[container_id] for container_id in node_of} == {
        container_id: f"on {host}\n" for container_id, host in node_of.items()
    }


def test_a_container_that_is_killed_fails_on_its_node(packed: BlockingCluster, tmp_path: Path) -> None:
    client, go = packed.client, tmp_path / "go"
    report = client.start(shell(until(go), 4))
    victim = wait_tasks(client, report, 4)[3]
    kill_container(victim.container_id)
    eventually(lambda: victim.container_id not in {task.container_id for task in tasks_of(client, report)})
    go.touch()
    ended = client.wait(report.application_id, timeout_s=60)
    assert ended.final_status is FinalApplicationStatus.FAILED
    assert ended.diagnostics.endswith("failed = 1")


def test_what_would_affect_all_nodes_of_a_process_is_refused_for_one(packed: BlockingCluster) -> None:
    for order in (packed.kill_node, packed.pause_node, packed.remove_node):
        with pytest.raises(InvalidArgumentException, match="one of 3 nodes of a process, nm-1-to-3, and cannot be"):
            order(2)
    assert packed.client.metrics().active == 5


def test_all_nodes_of_a_killed_process_are_lost_and_come_back_with_it(packed: BlockingCluster) -> None:
    killed, alive = packed.nodes[:3], packed.nodes[3:]
    packed.kill_pack(2)
    client = packed.client
    eventually(
        lambda: {node.id for node in killed} == {report.node_id for report in client.nodes(frozenset({NodeState.LOST}))}
    )
    assert {report.node_id for report in client.nodes(frozenset({NodeState.RUNNING}))} == {node.id for node in alive}
    packed.restart_node(2)
    assert all(node.alive for node in killed)
    eventually(lambda: client.metrics().active == 5)


def test_one_node_of_a_process_is_decommissioned(packed: BlockingCluster) -> None:
    client = packed.client
    leaving = packed.nodes[4]
    excluded = Path(packed.configuration.get(EXCLUDE) or "")
    excluded.write_text(f"{leaving.id.host}\n")
    client.refresh_nodes(DecommissionType.GRACEFUL, 60)
    eventually(lambda: leaving.id in {node.node_id for node in client.nodes(frozenset({NodeState.DECOMMISSIONED}))})
    report = client.start(shell("true", 3))
    assert client.wait(report.application_id, timeout_s=60).final_status is FinalApplicationStatus.SUCCEEDED
    assert packed.nodes[3].id in {node.node_id for node in client.nodes(frozenset({NodeState.RUNNING}))}


def test_the_command_line_shows_which_nodes_share_a_process(tmp_path: Path) -> None:
    yarnling = commands_in({**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "PYTHONPATH": str(PROJECT)})
    started = yarnling("up", "--nodes", "4", "--pack", "2", "--fast", "--detach", "--json", *DEFINITIONS)
    try:
        nodes = json.loads(started.stdout)["nodes"]
        assert [node["name"] for node in nodes] == ["nm-1", "nm-2", "nm-3", "nm-4"]
        pids = [node["process"]["pid"] for node in nodes]
        assert pids[0] == pids[1] != pids[2] == pids[3]
        refused = yarnling("kill-node", "3")
        assert refused.returncode == 1
        assert "nm-3 is one of 2 nodes of process" in refused.stderr
        assert "(kill all of them with --pack)" in refused.stderr
        killed = yarnling("kill-node", "3", "--pack")
        assert killed.stdout.endswith(f" with nm-3 to nm-4, process {pids[2]}.\n"), killed
        eventually(lambda: yarnling("status").stdout.count("LOST") == 2)
    finally:
        assert yarnling("down").returncode == 0


def test_packed_nodes_register_with_a_restarted_resource_manager_and_keep_their_containers(tmp_path: Path) -> None:
    go = tmp_path / "go"
    settings = {**QUICK, "yarn.resourcemanager.recovery.enabled": "true"}
    with LocalCluster(4, memory_mb=256, settings=settings, fast=True, options=ClusterOptions(pack=2)) as cluster:
        client = cluster.client
        report = client.start(shell(until(go), 5))
        tasks = wait_tasks(client, report, 5)
        cluster.kill_rm()
        cluster.restart_rm()
        eventually(lambda: client.metrics().active == 4)
        eventually(lambda: {task.container_id for task in tasks_of(client, report)} == {t.container_id for t in tasks})
        go.touch()
        ended = client.wait(report.application_id, timeout_s=60)
        assert (ended.final_status, ended.current_attempt_id.attempt) == (FinalApplicationStatus.SUCCEEDED, 1)
