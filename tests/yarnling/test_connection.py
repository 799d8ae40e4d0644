"""The client of a command stops retrying when its cluster has gone, and only then."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import running
from wire.hadoop_xml import to_xml
from yarn.ids import ApplicationId
from yarnling.cli.connection import CommandClient
from yarnling.cluster.state import ClusterState, NoCluster, ProcessIdentity

RM = "yarn.resourcemanager.address"
NOBODY = {RM: "127.0.0.1:9"}
"""A client of an address without a server: every call is retried for a quarter of an hour."""


@pytest.fixture
def supervisor() -> Iterator[subprocess.Popen[bytes]]:
    with running("sleep", "600") as process:
        yield process


def client(supervisor: subprocess.Popen[bytes], tmp_path: Path) -> CommandClient:
    (tmp_path / "yarn-site.xml").write_text(to_xml(NOBODY))
    identity, rm = ProcessIdentity.of(supervisor.pid), ProcessIdentity.of(os.getpid())
    return CommandClient.of(ClusterState("mine", identity, rm, str(tmp_path), False, str(tmp_path), NOBODY, (), 1.0))


async def test_a_call_ends_when_the_supervisor_has_gone(supervisor: subprocess.Popen[bytes], tmp_path: Path) -> None:
    asyncio.get_running_loop().call_later(0.05, supervisor.kill)
    async with asyncio.timeout(60) as deadline:
        with pytest.raises(NoCluster, match="the cluster 'mine' has ended meanwhile"):
            await asked_and_killed(client(supervisor, tmp_path))
    assert not deadline.expired()
    assert not asyncio.current_task().cancelling()  # type: ignore[union-attr]


async def asked_and_killed(client: CommandClient) -> None:
    """Wait as a command does; when the cluster has gone, there is nothing left to kill."""
    async with client as rm:
        try:
            await rm.metrics()
        finally:
            await rm.kill(ApplicationId(1, 1))


async def test_a_cancelled_command_is_cancelled(supervisor: subprocess.Popen[bytes], tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), client(supervisor, tmp_path) as rm:
            await rm.metrics()
