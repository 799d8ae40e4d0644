"""Arguments that LocalCluster refuses before it starts anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from yarn.applications import ApplicationReport
from yarn.errors import InvalidArgumentException
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.nodes import NodeHealth, NodeReport
from yarn.resource import NONE, Resource
from yarn.states import FinalApplicationStatus, NodeState, YarnApplicationState
from yarnling.cluster.client import Client
from yarnling.cluster.directory import ClusterDirectory
from yarnling.cluster.launcher import Daemon
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster
from yarnling.cluster.nodes import Node


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": -1}, "nodes = -1: must be 0 to "),
        ({"nodes": 2, "options": ClusterOptions(racks=3)}, "racks = 3: must be 1 to 2"),
        ({"settings": {"a.key": 1}}, r"settings: a.key = 1: must be a string \(write '1'\)"),
        (
            {
                "settings": {
                    "a.key": 1,
                    "yarn.nodemanager.resource.memry-mb": "1",
                    "yarn.scheduler.capacity.root.a.capacty": "1",
                }
            },
            "(?s)a.key = 1: .*memry-mb is not a known key .perhaps yarn.nodemanager.resource.memory-mb.*"
            "root.a.capacty is not a known key .perhaps yarn.scheduler.capacity.root.a.capacity",
        ),
    ],
)
def test_invalid_arguments_are_reported(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentException, match=message):
        LocalCluster(**arguments)


def test_an_unknown_key_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """`${...}` may refer to the key. Hadoop's own keys that yarnling does not read are accepted."""
    LocalCluster(settings={"my.directory": "/x", "yarn.http.policy": "HTTP_ONLY", "yarn.nodemanager.local-dirs": "/x"})
    (record,) = caplog.records
    assert "knows the key my.directory" in record.message


async def test_a_cluster_and_its_parts_have_a_short_repr(tmp_path: Path) -> None:
    cluster = LocalCluster(3)
    assert repr(cluster) == "<LocalCluster not started, 3 nodes>"
    daemon = Daemon("nm-2", tmp_path / "nm-2.log", pid=7)
    daemon.facts = {"node_id": "127.0.0.3:41000"}
    node = Node(ClusterDirectory(tmp_path, temporary=False).node(2, 1), daemon)
    assert repr(node) == "<Node nm-2 127.0.0.3:41000, process 7>"
    assert repr(Client({"yarn.resourcemanager.address": "127.0.0.1:9"}, user="ann")) == "<Client of ann at 127.0.0.1:9>"


def test_reports_have_a_short_repr() -> None:
    app_id = ApplicationId(1, 1)
    app = ApplicationReport(
        app_id, "ann", "root.a", "count", YarnApplicationState.FINISHED, ApplicationAttemptId(app_id, 1),
        final_status=FinalApplicationStatus.FAILED, diagnostics="no disk\n", progress=0.5,
    )  # fmt: skip
    expected = "<ApplicationReport application_1_0001 FINISHED FAILED, 50% done: 'count' of 'ann' in 'root.a'"
    assert repr(app) == f"{expected}, diagnostics 'no disk'>"
    node = NodeReport(NodeId("h", 1), NodeState.RUNNING, "", "/r", NONE, Resource(8, 1), 2, NodeHealth())
    used = "<memory:0, vCores:0> of <memory:8, vCores:1> in use"
    assert repr(node) == f"<NodeReport h:1 RUNNING, 2 containers, {used}>"


def test_a_cluster_that_is_not_up_says_how_to_start_it() -> None:
    with pytest.raises(InvalidArgumentException, match="enter its context: with LocalCluster"):
        _ = LocalCluster().client
