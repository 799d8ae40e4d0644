"""Mission cases H1 to H4 on real processes: the resources of nodes, requested, used and released."""

from __future__ import annotations

import io
import re
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from am.programs.elastic import client as elastic
from tests.cluster.applications import bare_am, python, shell, tasks_of, until, wait_tasks
from tests.cluster.conftest import QUICK, eventually
from yarn.nodes import NodeReport
from yarn.protocols.admin import ResourceOption
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus, YarnApplicationState
from yarnling.cluster.blocking import BlockingClient, BlockingCluster
from yarnling.cluster.local_cluster import LocalCluster
from yarnling.cluster.snapshot import node_table

pytestmark = pytest.mark.cluster

GB = 1024


def node_of(client: BlockingClient) -> NodeReport:
    (node,) = client.nodes()
    return node


@pytest.mark.case("H1")
async def test_resources_are_read_from_the_machine_if_they_are_not_configured() -> None:
    """Detected memory is four fifths of the machine's; vcores are its cores."""
    settings = {"yarn.nodemanager.resource.detect-hardware-capabilities": "true"}
    async with LocalCluster(1, settings=settings, fast=True) as cluster:
        (node,) = await cluster.client.nodes()
    total_mb = psutil.virtual_memory().total >> 20
    assert node.capability.vcores == psutil.cpu_count(logical=False)
    assert 0 < node.capability.memory_mb < total_mb


@pytest.mark.case("H1")
async def test_an_operator_changes_a_running_nodes_resources() -> None:
    """Available is total minus allocated; an admin command changes the total."""
    async with LocalCluster(1, memory_mb=4 * GB, vcores=4, fast=True) as cluster:
        node = cluster.nodes[0].id
        (before,) = await cluster.client.nodes()
        assert (before.capability, before.used) == (Resource(4 * GB, 4), Resource(0, 0))
        submitted = await cluster.client.start(shell("sleep 600", 1, resource=Resource(GB, 1)))
        await cluster.wait_containers(submitted.application_id, 1)
        root = (await cluster.client.queue("root")).statistics
        (busy,) = await cluster.client.nodes()
        assert busy.used.memory_mb == root.allocated_memory_mb >= 2 * GB
        assert root.available_memory_mb == busy.capability.memory_mb - busy.used.memory_mb
        await cluster.client.admin.update_node_resource(((node, ResourceOption(Resource(2 * GB, 3))),))
        (after,) = await cluster.client.nodes()
        assert after.capability == Resource(2 * GB, 3)
        root = (await cluster.client.queue("root")).statistics
        assert root.available_memory_mb == after.capability.memory_mb - after.used.memory_mb


@pytest.mark.case("H2")
def test_a_request_waits_for_memory_that_is_allocated_but_idle(tmp_path: Path) -> None:
    """A requests 10 GB and uses 1; B waits although the memory is idle. With requests of 5 GB both run."""
    settings = {
        **QUICK,
        "yarn.scheduler.maximum-allocation-mb": str(11 * GB),
        "yarn.nodemanager.resource-monitor.interval-ms": "1000",
    }
    go, resident = tmp_path / "go", tmp_path / "resident"
    hold = python(
        "import pathlib, time; held = bytearray(1 << 30); held[::4096] = bytes(range(256)) * 1024; "
        f'pathlib.Path(\\"{resident}\\").touch(); '
        f'go = pathlib.Path(\\"{go}\\"); '
        'exec(\\"while not go.exists(): time.sleep(0.02)\\")'
    )
    with LocalCluster(1, memory_mb=11 * GB, vcores=8, settings=settings, fast=True) as cluster:
        a, b = cluster.client_of("a"), cluster.client_of("b")
        first = a.start(shell(hold, 1, resource=Resource(10 * GB, 1)))
        wait_tasks(a, first, 1)
        eventually(resident.exists, 60.0)
        second = b.start(shell(until(go), 1, resource=Resource(10 * GB, 1)))
        eventually(lambda: b.report(second.application_id).state is YarnApplicationState.RUNNING)
        eventually(lambda: b.queue("root").statistics.pending_memory_mb == 10 * GB)

        node = eventually(lambda: seen if used_mb(seen := node_of(a)) >= GB else None)
        assert node.used.memory_mb >= 10 * GB, "what was requested"
        assert used_mb(node) < 2 * GB, "what is used of it"
        assert str(used_mb(node)) in table_text(node), "and status shows both"
        assert tasks_of(b, second) == []

        go.touch()
        for client, report in ((a, first), (b, second)):
            assert client.wait(report.application_id, timeout_s=60).final_status is FinalApplicationStatus.SUCCEEDED
        go.unlink()
        both = [(user, user.start(shell(until(go), 1, resource=Resource(5 * GB, 1)))) for user in (a, b)]
        for client, report in both:
            wait_tasks(client, report, 1)
        go.touch()
        for client, report in both:
            assert client.wait(report.application_id, timeout_s=60).final_status is FinalApplicationStatus.SUCCEEDED


@pytest.mark.case("H3")
def test_containers_released_by_an_elastic_application_go_to_the_waiting_one(tmp_path: Path) -> None:
    """A grows to eight workers and B waits; when A has less work it keeps one, and B proceeds while A runs on."""
    many, rest = tmp_path / "many", tmp_path / "rest"
    work = f"if test $ELASTIC_TASK -le 8; then {until(many)}; else {until(rest)}; fi"
    script = tmp_path / "work.sh"
    script.write_text(work)
    options = ["-shell_script", str(script), "-stages", "8,1", "-container_memory", "128", "-master_memory", "128"]
    times = ["-backlog_timeout", "50", "-sustained_timeout", "50", "-idle_timeout", "300"]
    with LocalCluster(1, memory_mb=11 * 128, vcores=16, settings=QUICK, fast=True) as cluster:
        a, b = cluster.client_of("a"), cluster.client_of("b")
        grows = a.start(elastic.parse([*options, *times])).application_id
        eventually(lambda: len(tasks_of(a, a.report(grows))) >= 8, 60.0)
        waits = b.start(shell("true", 1, resource=Resource(512, 1)))
        eventually(lambda: b.report(waits.application_id).state is YarnApplicationState.RUNNING)
        eventually(lambda: b.queue("root").statistics.pending_memory_mb == 512)
        assert tasks_of(b, waits) == []
        many.touch()
        assert b.wait(waits.application_id, timeout_s=60).final_status is FinalApplicationStatus.SUCCEEDED
        assert len(tasks_of(a, a.report(grows))) < 8
        assert a.report(grows).state is YarnApplicationState.RUNNING
        rest.touch()
        assert a.wait(grows, timeout_s=60).final_status is FinalApplicationStatus.SUCCEEDED


def table_text(node: NodeReport) -> str:
    """The row of the node that `yarnling status` shows."""
    console = Console(width=200, file=io.StringIO())
    console.print(node_table([node]))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def used_mb(node: NodeReport) -> int:
    """The memory that the containers of the node use."""
    return node.containers_utilization.physical_memory_mb if node.containers_utilization else 0


@pytest.mark.case("H4")
def test_a_container_above_its_memory_is_killed_with_the_numbers(cluster: BlockingCluster) -> None:
    client = cluster.client
    hog = python("import time; held = bytearray(300 << 20); time.sleep(60)")
    app_id = client.new_application().application_id
    client.submit(bare_am(app_id, hog, Resource(128, 1)))
    ended = client.wait(app_id, timeout_s=60)
    assert ended.state is YarnApplicationState.FAILED
    assert "exitCode: -104" in ended.diagnostics
    assert re.search(
        r"is running \d+B beyond the 'PHYSICAL' memory limit\. Current usage: [\d.]+ MB of 128 MB physical memory used",
        ended.diagnostics,
    )
