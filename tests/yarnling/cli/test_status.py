"""The order of nodes and applications in `status` and `top`, and the summary of many nodes."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import cast

import psutil
import pytest
from msgspec.structs import replace
from rich.console import Console

from tests.yarnling.cli.test_top import NODE, ROOT, application
from tests.yarnling.test_clean_up import state
from yarn.applications import ApplicationReport
from yarn.ids import NodeId
from yarn.nodes import NodeGroup, NodeHealth, NodeReport, node_groups
from yarn.queues import QueueInfo
from yarn.resource import Resource
from yarn.states import NodeState
from yarnling.cli.shared.connection import ResourceManagerDown
from yarnling.cli.status import show
from yarnling.cluster.client import Client
from yarnling.cluster.processes import ProcessIdentity
from yarnling.cluster.snapshot import NODES_MAX, ClusterSummary, cluster_tables, overview, snapshot
from yarnling.cluster.state import ClusterState, NodeEntry, conditions
from yarnling.report.listing import PIPE_WIDTH


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


class CountingClient:
    """A client of a cluster of `count` nodes, the first one LOST and the second one with a health report."""

    def __init__(self, count: int) -> None:
        self.calls: list[str] = []
        one = [replace(NODE, node_id=NodeId(f"127.0.{number // 250}.{number % 250}", 1)) for number in range(count)]
        one[0] = replace(one[0], state=NodeState.LOST, containers=0, used=Resource(0, 0))
        one[1] = replace(one[1], health=NodeHealth(report="cannot limit CPU"))
        self.reports = tuple(one)

    async def nodes(self) -> tuple[NodeReport, ...]:
        self.calls.append("nodes")
        return self.reports

    async def node_groups(self) -> tuple[NodeGroup, ...]:
        self.calls.append("node_groups")
        return node_groups(self.reports)

    async def queue(self, name: str) -> QueueInfo:
        return ROOT

    async def applications(self) -> tuple[ApplicationReport, ...]:
        return ()


def packed(directory: Path, count: int, process: ProcessIdentity) -> ClusterState:
    numbers = range(1, count + 1)
    return state(directory, *(NodeEntry(number, f"nm-{number}", f"h:{number}", process, ()) for number in numbers))


async def shown(client: CountingClient, found: ClusterState) -> list[str]:
    console = Console(file=io.StringIO(), width=PIPE_WIDTH)
    console.print(cluster_tables(await overview(cast(Client, client), found)), crop=False)
    return cast(io.StringIO, console.file).getvalue().splitlines()


async def test_many_nodes_are_summarised_by_one_call_and_few_are_listed(tmp_path: Path) -> None:
    process = ProcessIdentity.of(os.getpid())
    few, many, most = (CountingClient(count) for count in (NODES_MAX, NODES_MAX + 1, 5_000))
    listed = await shown(few, packed(tmp_path, NODES_MAX, process))
    assert len(listed) > NODES_MAX
    drawn = await shown(many, packed(tmp_path, NODES_MAX + 1, process))
    assert len(drawn) == len(await shown(most, packed(tmp_path, 5_000, process)))
    assert (few.calls, many.calls, most.calls) == (["nodes"], ["node_groups"], ["node_groups"])
    assert [line.split() for line in drawn[2:4]] == [
        ["LOST", "1", "0", "0", "/", "8192", "0", "0", "/", "8"],
        ["RUNNING", "100", "300", "409600", "/", "819200", "0", "300", "/", "800"],
    ]
    assert drawn[4:7] == ["127.0.0.0:1 LOST", "127.0.0.1:1 RUNNING: cannot limit CPU", ""]


async def test_the_exceptions_are_named_up_to_a_limit(tmp_path: Path) -> None:
    gone = [replace(NODE, node_id=NodeId(f"h{number}", 1), state=NodeState.LOST) for number in range(12)]
    view = ClusterSummary(node_groups(gone), ROOT, (), {f"h{number}:1": "ended" for number in range(11)})
    names = ", ".join(f"h{number}:1" for number in range(10))
    assert view.exceptions() == [f"{names} and 2 more LOST", f"{names} and 1 more: ended"]


def test_the_number_of_health_reports_that_are_kept_apart_has_a_limit() -> None:
    nodes = [replace(NODE, health=NodeHealth(report=f"disk {number} is full")) for number in range(80)]
    groups = node_groups(nodes)
    assert (len(groups), groups[-1].health_report, groups[-1].nodes) == (51, "(other health reports)", 30)


def test_each_process_is_looked_at_once_for_all_its_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    real = psutil.Process

    def counted(pid: int) -> psutil.Process:
        looks.append(pid)
        return real(pid)

    monkeypatch.setattr(psutil, "Process", counted)
    up, gone = ProcessIdentity(os.getpid(), real(os.getpid()).create_time()), ProcessIdentity(os.getpid(), 1.0)
    entries = [
        NodeEntry(number, "nm", f"h:{number}", gone if number < 2 else up, (), number == 9) for number in range(50)
    ]
    assert conditions(entries) == {"h:0": "ended", "h:1": "ended", "h:9": "partitioned"}
    assert len(looks) == 2


@pytest.mark.parametrize(
    ("count", "all_nodes", "lines"),
    [(NODES_MAX, False, NODES_MAX), (NODES_MAX + 1, False, 2), (NODES_MAX + 1, True, NODES_MAX + 1)],
)
def test_many_nodes_are_summarised_while_the_resource_manager_is_down(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    count: int,
    all_nodes: bool,
    lines: int,
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    up = ProcessIdentity.of(os.getpid())
    replace(packed(tmp_path, count, up), supervisor=up).write()
    with pytest.raises(ResourceManagerDown):
        show("mine", all_nodes=all_nodes, as_json=False)
    shown_lines = [line for line in capsys.readouterr().out.splitlines()[1:] if line]
    if lines == 2:
        assert shown_lines == [f"{count} nodes", "List all nodes: yarnling status --nodes --name mine"]
    else:
        assert len(shown_lines) == lines + 2
