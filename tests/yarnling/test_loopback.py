"""Loopback mode: a whole cluster in this process, and ApplicationMasters in the process of their tests."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from am.core.events import ContainersAllocated, ContainersCompleted
from am.core.requests import ContainerRequest
from am.programs.distributed_shell.client import parse
from yarn.applications import ApplicationFilter
from yarn.containers import ContainerLaunchContext
from yarn.errors import InvalidArgumentException, YarnException
from yarn.protocols.inspection import about_vcores
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus, NodeState, YarnApplicationState
from yarnling.cluster import local_cluster
from yarnling.cluster.daemons import RouteOverride
from yarnling.cluster.directory import NodePlace
from yarnling.cluster.launcher import DaemonFailed
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster
from yarnling.cluster.unmanaged_am import UnmanagedAM


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """Check that no child process and no listening port is left. pytest-rerunfailures may have a port of its own."""
    me = psutil.Process()
    children, ports = {child.pid for child in me.children()}, listening_ports(me)
    yield
    assert {child.pid for child in me.children()} <= children
    assert listening_ports(me) <= ports


def listening_ports(process: psutil.Process) -> set[int]:
    return {one.laddr.port for one in process.net_connections() if one.status == psutil.CONN_LISTEN}


async def run_one(am: UnmanagedAM, command: str) -> int:
    """The exit status of a container of 128 MB that runs `command`."""
    await am.rm.register()
    am.rm.add_request(ContainerRequest(Resource(128, 1), priority=0))
    async for event in am.rm.events():
        match event:
            case ContainersAllocated(allocations):
                await am.nms.start(allocations[0].container, ContainerLaunchContext(commands=(command,)))
            case ContainersCompleted(statuses):
                await am.rm.unregister(FinalApplicationStatus.SUCCEEDED)
                return statuses[0].exit_status
    raise AssertionError("the events ended without a completed container")


async def fail_within(cluster: LocalCluster) -> None:
    async with cluster.unmanaged_am() as am:
        await am.rm.register()
        raise ZeroDivisionError


async def test_a_cluster_without_a_process_runs_applications() -> None:
    with nothing_left():
        async with LocalCluster(2, fast=True, options=ClusterOptions(loopback=True)) as cluster:
            assert {node.daemon.pid for node in cluster.nodes} == {cluster.rm.pid} == {os.getpid()}
            shell = parse(["-shell_command", "echo from $NM_HOST", "-num_containers", "2"])
            started = await cluster.client.start(shell)
            report = await cluster.client.wait(started.application_id, timeout_s=60)
            assert report.final_status is FinalApplicationStatus.SUCCEEDED
            texts = [log.text() for log in cluster.client.logs(started.application_id) if log.name == "stdout"]
            assert sum(text.startswith("from 127.0.0.") for text in texts) == 2
            # Each daemon logs to its own file.
            assert " yarnling.rm." in cluster.directory.log_file("rm").read_text()
            assert " yarnling.nm." not in cluster.directory.log_file("rm").read_text()
            assert " yarnling.nm." in cluster.directory.log_file("nm-1").read_text()
            directory = cluster.directory.path
        assert not directory.exists()


async def test_a_submission_whose_vcores_do_not_count_is_told_so() -> None:
    """The default calculator counts memory only, and each container gets 1 vcore."""
    async with LocalCluster(1, fast=True, options=ClusterOptions(loopback=True)) as cluster:
        for option, vcores in (("-container_vcores", 4), ("-master_vcores", 3), ("-container_vcores", 1)):
            notices: list[str] = []
            shell = parse(["-shell_command", "true", option, str(vcores)])
            started = await cluster.client.start(shell, notices.append)
            assert notices == ([about_vcores(vcores)] if vcores > 1 else [])
            await cluster.client.kill(started.application_id)


async def test_an_am_in_the_process_of_its_test() -> None:
    async with LocalCluster(1, fast=True, options=ClusterOptions(loopback=True)) as cluster:
        async with cluster.unmanaged_am(name="mine") as am:
            assert await run_one(am, "exit 3") == 3
        report = await cluster.client.report(am.application_id)
        assert (report.name, report.state) == ("mine", YarnApplicationState.FINISHED)
        with pytest.raises(ZeroDivisionError):
            await fail_within(cluster)
        (failed,) = await cluster.client.applications(
            ApplicationFilter(states=frozenset({YarnApplicationState.KILLED}))
        )
        assert failed.diagnostics.strip().endswith("Its ApplicationMaster left without unregistering.")


async def test_nodes_come_and_go_and_cannot_be_killed() -> None:
    async with LocalCluster(1, fast=True, options=ClusterOptions(loopback=True)) as cluster:
        harms: list[Callable[[], object]] = [lambda: cluster.pause_node(1), lambda: cluster.resume_node(1)]
        for harm in harms:
            with pytest.raises(InvalidArgumentException, match="nm-1 is not a process in loopback mode"):
                harm()
        with pytest.raises(InvalidArgumentException, match=r"cannot be killed \(start the cluster without loopback"):
            await cluster.kill_node(1)
        with pytest.raises(InvalidArgumentException, match="rm is not a process"):
            await cluster.kill_rm()
        (joined,) = await cluster.add_nodes()
        await cluster.wait_nodes(2)
        await cluster.remove_node(2)
        await cluster.wait_node(2, NodeState.SHUTDOWN)
        assert joined.daemon.exit_status == 0
        await cluster.restart_node(2)
        await cluster.wait_nodes(2)
        await cluster.decommission_node(2)
        await cluster.wait_node(2, NodeState.DECOMMISSIONED)


async def test_a_failed_start_reports_why(tmp_path: Path) -> None:
    with (
        nothing_left(),
        pytest.raises(DaemonFailed, match=r"nm-\d did not start: exit status 2\n(.*\n)*.* minimum allocations"),
    ):
        async with LocalCluster(2, memory_mb=1, fast=True, options=ClusterOptions(loopback=True)):
            pass


async def test_a_failed_start_keeps_the_ends_of_its_logs(tmp_path: Path) -> None:
    options = ClusterOptions(loopback=True, failure_log=tmp_path / "kept.log")
    with pytest.raises(DaemonFailed, match=rf"\nthe ends of the logs are in {tmp_path}/kept\.log$"):
        async with LocalCluster(1, memory_mb=1, fast=True, options=options):
            pass
    kept = (tmp_path / "kept.log").read_text()
    assert re.findall(r"^==> (.*) <==$", kept, re.MULTILINE) == ["fork-server.log", "rm.log", "nm-1.log"]
    assert "INFO yarnling.rm.daemon ready" in kept
    assert "minimum allocations" in kept.partition("==> nm-1.log <==")[2]
    with pytest.raises(DaemonFailed, match=r"minimum allocations.*\nthe logs are deleted with the temporary directory"):
        async with LocalCluster(1, memory_mb=1, fast=True, options=ClusterOptions(loopback=True)):
            pass


class SlowSecondNode:
    """Routes that keep node 2 from starting for `slow_s`. While it waits, START_TIMEOUT_S becomes `patience_s`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, slow_s: float, patience_s: float) -> None:
        self._monkeypatch = monkeypatch
        self._slow_s = slow_s
        self._patience_s = patience_s

    async def of_node(self, place: NodePlace, values: Mapping[str, str]) -> RouteOverride:
        if place.number == 2:
            self._monkeypatch.setattr(local_cluster, "START_TIMEOUT_S", self._patience_s)
            await asyncio.sleep(self._slow_s)
        return RouteOverride({})


async def test_a_start_that_is_given_up_says_who_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ClusterOptions(
        loopback=True, directory=tmp_path, routes=SlowSecondNode(monkeypatch, slow_s=600, patience_s=0.2)
    )
    with nothing_left(), pytest.raises(YarnException, match=r"no node has registered for 0\.2 s") as raised:
        async with LocalCluster(2, fast=True, options=options):
            pass
    assert raised.value.message.splitlines() == [
        "the cluster is not ready, and no node has registered for 0.2 s: 1 of 2 nodes have registered",
        "nm-2 has logged nothing",
        f"the logs are in {tmp_path / 'logs'}",
    ]


async def test_a_start_is_not_given_up_while_nodes_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Node 1 arrives before the first timeout, and node 2 after it."""
    monkeypatch.setattr(local_cluster, "START_TIMEOUT_S", 3.0)
    routes = SlowSecondNode(monkeypatch, slow_s=3.5, patience_s=100)
    async with LocalCluster(2, fast=True, options=ClusterOptions(loopback=True, routes=routes)) as cluster:
        await cluster.wait_nodes(2)


def test_without_asyncio() -> None:
    with nothing_left(), LocalCluster(1, fast=True, options=ClusterOptions(loopback=True)) as cluster:
        started = cluster.client.start(parse(["-shell_command", "true"]))
        am = cluster.kill_master(started.application_id)
        assert am.attempt_id.attempt == 1
        report = cluster.client.wait(started.application_id, timeout_s=60)
        assert report.final_status is FinalApplicationStatus.SUCCEEDED
        assert report.current_attempt_id.attempt == 2


async def test_an_am_in_another_event_loop_than_the_clusters() -> None:
    """The AM runs in another event loop than the cluster, as with the fixture async_yarn_cluster."""
    with LocalCluster(1, fast=True, options=ClusterOptions(loopback=True)) as cluster:
        async with cluster.awaited().unmanaged_am() as am:
            assert await run_one(am, "true") == 0
