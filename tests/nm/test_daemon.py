"""`python -m nm`: one ready line, a clean stop by a signal, and a start after a NodeManager was killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nm.launcher.processes import ProcessStat, all_processes, environment_of, stat_of
from tests.nm.lone_node import RM_IDENTIFIER, FakeResourceManager, fake_resource_manager, node_configuration
from tests.nm.waiting import until
from tests.processes import running, running_in_loop
from wire.daemon_process import EXIT_REFUSED
from wire.protocols.container_management import ContainerManagementProtocol
from yarn.containers import ContainerLaunchContext, ContainerTokenIdentifier
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.protocols.container_management import StartContainerRequest
from yarn.resource import Resource

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).resolve().parents[2]
ATTEMPT = ApplicationAttemptId(ApplicationId(RM_IDENTIFIER, 1), 1)
CONTAINER = ContainerId(ATTEMPT, 1)


@asynccontextmanager
async def daemon(directory: Path, port: int, *options: str) -> AsyncIterator[Process]:
    """A NodeManager with its directories below `directory`. It is killed at the end of the context if it still runs."""
    conf = node_configuration(directory, port, {})
    settings = [part for key in conf for part in ("-D", f"{key}={conf.get(key)}")]
    command = [sys.executable, "-m", "nm", *settings, *options]
    async with running_in_loop(*command, cwd=ROOT, stdout=PIPE, stderr=PIPE, start_new_session=True) as process:
        yield process


async def ready_line(process: Process) -> dict[str, object]:
    assert process.stdout is not None
    async with asyncio.timeout(60):
        facts: dict[str, object] = json.loads(await process.stdout.readline())
    return facts


async def start_container(rm: FakeResourceManager, node_id: NodeId, command: str) -> None:
    token = ContainerTokenIdentifier(CONTAINER, node_id, "alice", Resource(128, 1), 1 << 45, 0, RM_IDENTIFIER, 0, 0)
    request = StartContainerRequest(ContainerLaunchContext((command,)), rm.container_tokens.create(token))
    nm_token = rm.nm_tokens.create(ATTEMPT, node_id, "alice")
    async with ContainerManagementProtocol(str(node_id), token=nm_token) as am:
        response = await am.start_containers((request,))
    assert response.succeeded == (CONTAINER,), response.failed


def tagged(directory: Path) -> list[int]:
    """The processes of containers whose directories are below `directory`."""
    return [
        process.pid
        for process in all_processes()
        if environment_of(process.pid).get("HADOOP_TOKEN_FILE_LOCATION", "").startswith(str(directory))
    ]


def sleeping(directory: Path) -> dict[str, ProcessStat]:
    """The processes with these directories that have become `sleep`, by their command line; shells are left out."""
    found = {}
    for pid in tagged(directory):
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
            if command[0] == "sleep" and (stat := stat_of(pid)) is not None:
                found[" ".join(command)] = stat
    return found


async def test_a_daemon_reports_its_registration_once_and_stops_on_a_signal(tmp_path: Path) -> None:
    async with fake_resource_manager(tmp_path) as (rm, port), daemon(tmp_path, port) as process:
        facts = await ready_line(process)
        node_id = NodeId.parse(str(facts["node_id"]))
        assert facts == {
            "role": "nodemanager",
            "pid": process.pid,
            "node_id": str(rm.registrations[0].node_id),
            "nodes": 1,
            "http_port": 0,
            "registered": True,
        }
        await start_container(rm, node_id, "sleep 300")
        await until(lambda: tagged(tmp_path), "the container runs")
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            assert await process.wait() == 0
    assert rm.unregistered == [node_id]
    assert tagged(tmp_path) == []


async def test_a_daemon_that_cannot_start_says_why(tmp_path: Path) -> None:
    async with (
        fake_resource_manager(tmp_path) as (_, port),
        daemon(tmp_path, port, "-D", "yarn.nodemanager.resource.memory-mb=lots") as process,
    ):
        out, err = await process.communicate()
        assert process.returncode == EXIT_REFUSED
    assert out == b""
    assert b"yarn.nodemanager.resource.memory-mb = 'lots'" in err
    assert b"Traceback" not in err


@pytest.mark.case("I2")
async def test_orphans_of_a_killed_node_are_killed_before_the_next_one_registers(tmp_path: Path) -> None:
    """After kill -9 of the NM, its containers keep running, in and outside their sessions, until an NM starts again."""
    async with fake_resource_manager(tmp_path) as (rm, port):
        async with daemon(tmp_path, port) as process:
            node_id = NodeId.parse(str((await ready_line(process))["node_id"]))
            await start_container(rm, node_id, "setsid sleep 301 & sleep 302")
            await until(lambda: sleeping(tmp_path).keys() == {"sleep 301", "sleep 302"}, "the escaped child is there")
            before = sleeping(tmp_path)
            assert before["sleep 301"].session != before["sleep 302"].session
            process.kill()
            await process.wait()
        assert sleeping(tmp_path) == before
        # A stale pid file may contain the id of another process, which is not killed.
        pid_file = next((tmp_path / "local").glob("nmPrivate/*/*/*.pid"))
        with running("sleep", "60", start_new_session=True) as bystander:
            pid_file.write_text(f"{bystander.pid}\n")
            async with daemon(tmp_path, port) as process:
                await ready_line(process)
                assert tagged(tmp_path) == []
                assert len(rm.registrations) == 2
                assert rm.registrations[1].containers == ()
                assert not (tmp_path / "local" / "nmPrivate").exists()
                await until(lambda: not list((tmp_path / "local").glob("*_DEL_*")), "the old directories are deleted")
            assert bystander.poll() is None
