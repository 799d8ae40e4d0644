"""The order of nodes and applications in `status` and `top`."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from msgspec.structs import replace

from tests.yarnling.cli.test_top import NODE, ROOT, application
from tests.yarnling.test_clean_up import state
from yarn.applications import ApplicationReport
from yarn.ids import NodeId
from yarn.nodes import NodeReport
from yarn.queues import QueueInfo
from yarnling.cluster.client import Client
from yarnling.cluster.snapshot import snapshot


class FakeClient:
    """A client whose lists are not sorted."""

    async def nodes(self) -> tuple[NodeReport, ...]:
        return tuple(replace(NODE, node_id=NodeId(f"127.0.0.{last}", 1)) for last in (10, 2, 11, 3))

    async def queue(self, name: str) -> QueueInfo:
        return ROOT

    async def applications(self) -> tuple[ApplicationReport, ...]:
        return application(10), application(9)


async def test_nodes_and_applications_are_sorted_by_number(tmp_path: Path) -> None:
    view = await snapshot(cast(Client, FakeClient()), state(tmp_path))
    assert [node.node_id.host.rpartition(".")[2] for node in view.nodes] == ["2", "3", "10", "11"]
    assert [app.application_id.id for app in view.applications] == [9, 10]
