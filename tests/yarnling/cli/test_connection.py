"""The client of a command gives up when its cluster stops, and only then."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import running
from wire.files.hadoop_xml import to_xml
from yarn.ids import ApplicationId
from yarnling.cli.shared.connection import CommandClient
from yarnling.cluster.processes import ProcessIdentity
from yarnling.cluster.state import ClusterState, NoCluster

RM = "yarn.resourcemanager.address"
NO_SERVER = {RM: "127.0.0.1:9"}
"""An address without a server: every call is retried for a quarter of an hour."""


@pytest.fixture
def supervisor() -> Iterator[subprocess.Popen[bytes]]:
    with running("sleep", "600") as process:
        yield process


def client(supervisor: subprocess.Popen[bytes], tmp_path: Path) -> CommandClient:
    (tmp_path / "yarn-site.xml").write_text(to_xml(NO_SERVER))
    identity, rm = ProcessIdentity.of(supervisor.pid), ProcessIdentity.of(os.getpid())
    return CommandClient.of(ClusterState("mine", identity, rm, str(tmp_path), False, str(tmp_path), NO_SERVER, (), 1.0))


async def test_a_call_ends_when_the_supervisor_exits(supervisor: subprocess.Popen[bytes], tmp_path: Path) -> None:
    asyncio.get_running_loop().call_later(0.05, supervisor.kill)
    async with asyncio.timeout(60) as deadline:
        with pytest.raises(NoCluster, match="the cluster 'mine' has stopped in the meantime"):
            await query_and_kill(client(supervisor, tmp_path))
    assert not deadline.expired()
    assert not asyncio.current_task().cancelling()  # type: ignore[union-attr]


async def query_and_kill(client: CommandClient) -> None:
    """Query the cluster and try to kill it, as a command does.

    There is nothing to kill when the cluster has stopped.
    """
    async with client as rm:
        try:
            await rm.metrics()
        finally:
            await rm.kill(ApplicationId(1, 1))


async def test_a_cancelled_command_is_cancelled(supervisor: subprocess.Popen[bytes], tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), client(supervisor, tmp_path) as rm:
            await rm.metrics()
