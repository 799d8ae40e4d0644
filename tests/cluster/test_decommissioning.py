"""A node of real processes that is decommissioned: its containers run to their end, then its NodeManager exits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.applications import shell, tasks_of, until, wait_tasks
from tests.cluster.conftest import QUICK, eventually
from yarn.states import DecommissionType, FinalApplicationStatus, NodeState
from yarnling.cluster.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster

EXCLUDE = "yarn.resourcemanager.nodes.exclude-path"
TIMEOUT_S = 60


def test_a_node_is_decommissioned_when_its_work_is_done(tmp_path: Path) -> None:
    excluded, go = tmp_path / "excluded", tmp_path / "go"
    excluded.touch()
    with LocalCluster(2, memory_mb=1024, settings={**QUICK, EXCLUDE: str(excluded)}, fast=True) as cluster:
        client = cluster.client
        report = client.start(shell(until(go), 6))
        tasks = wait_tasks(client, report, 6)
        am = next(c.node_id for c in client.containers(report.current_attempt_id) if c not in tasks)
        leaving = next(node for node in cluster.nodes if node.id in {task.node_id for task in tasks} - {am})
        excluded.write_text(f"{leaving.id.host}\n")
        client.refresh_nodes(DecommissionType.GRACEFUL, TIMEOUT_S)
        (reported,) = (node for node in client.nodes() if node.node_id == leaving.id)
        assert (reported.state, reported.decommissioning_timeout_s) == (NodeState.DECOMMISSIONING, TIMEOUT_S)
        assert tasks_of(client, report) == tasks, "no container is killed"
        go.touch()
        ended = client.wait(report.application_id, timeout_s=60)
        assert ended.final_status is FinalApplicationStatus.SUCCEEDED
        eventually(lambda: leaving.id in {node.node_id for node in client.nodes(frozenset({NodeState.DECOMMISSIONED}))})
        eventually(lambda: not leaving.alive)
