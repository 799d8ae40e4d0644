"""The nodes of a local cluster: how one is decommissioned."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from tests.yarnling.cli.test_top import NODE
from yarn.ids import NodeId
from yarn.nodes import NodeReport
from yarn.states import DecommissionType, NodeState
from yarnling.cluster import nodes as nodes_module
from yarnling.cluster.client import Client
from yarnling.cluster.directory import NodePlace
from yarnling.cluster.launcher import Daemon
from yarnling.cluster.nodes import ExcludedHosts, Node, decommission

OTHERS = tuple(replace(NODE, node_id=NodeId(f"127.1.0.{number}", 1)) for number in range(200))


@dataclass
class LeavingNode:
    """A client of a cluster of many nodes, one of which is in the next of `states` at each look.

    `listed`: the number of reports in each list that was asked for.
    """

    states: list[NodeState]
    listed: list[int] = field(default_factory=list)

    async def refresh_nodes(self, kind: DecommissionType, timeout_s: int | None = None) -> None:
        """Do nothing."""

    async def nodes(self, states: frozenset[NodeState] = frozenset()) -> tuple[NodeReport, ...]:
        leaving = replace(NODE, state=self.states.pop(0))
        found = tuple(node for node in (leaving, *OTHERS) if not states or node.state in states)
        self.listed.append(len(found))
        return found


async def test_all_nodes_are_listed_only_while_the_leaving_one_is_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes_module, "POLL_S", 0.0)
    place = NodePlace(1, "nm-1", NODE.node_id.host, "/r", tmp_path, tmp_path, "nm-1-to-9", is_packed=True)
    daemon = Daemon("nm-1-to-9", tmp_path / "log", facts={"node_id": str(NODE.node_id)})
    client = LeavingNode(
        # It becomes DECOMMISSIONING between the two lists of the second look.
        [
            *(NodeState.RUNNING, NodeState.RUNNING),
            *(NodeState.RUNNING, NodeState.DECOMMISSIONING),
            *(NodeState.DECOMMISSIONING, NodeState.DECOMMISSIONING, NodeState.DECOMMISSIONED),
        ]
    )
    lines: list[str] = []
    hosts = ExcludedHosts(tmp_path / "hosts", None)
    await decommission(cast(Client, client), hosts, Node(place, daemon), None, lines.append)
    assert client.listed == [0, 201, 0, 201, 1, 1, 1]
    assert lines == [
        "nm-1: waiting for the ResourceManager to decommission it",
        "nm-1: waiting for 3 containers to end",
    ]
