"""Watchers see the calls; one that does not read delays no call; without one a call costs nothing."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from wire import watching
from wire.caller import RM_CALLER, Caller
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.tracker import ResourceTracker
from wire.watching import CallWatch, calls_of, sockets
from yarn.configuration import Configuration
from yarn.containers import ContainerLaunchContext, NMTokenIdentifier, Token
from yarn.errors import ApplicationNotFoundException, YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.protocols.container_management import StartContainerRequest

APP = ApplicationId(1, 1)
ANN: Caller[Any] = Caller("ann", None, "ipv4:127.0.0.1:1", None)
SOON_S = 120.0


@pytest.fixture
async def watch(tmp_path: Path) -> AsyncIterator[CallWatch]:
    watch = CallWatch(tmp_path / "watch")
    await watch.open("RM")
    yield watch
    await watch.close()


async def connected(watch: CallWatch, number: int = 1) -> None:
    async with asyncio.timeout(SOON_S):
        while len(watch._watchers) < number:  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0)


async def first(directory: Path, count: int) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    async with asyncio.timeout(SOON_S):
        async for line in calls_of(directory, "RM"):
            lines.append(line)
            if len(lines) == count:
                break
    return lines


async def test_calls_are_sent_with_caller_and_server(watch: CallWatch, tmp_path: Path) -> None:
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(first(tmp_path / "watch", 3))
        await connected(watch)
        node = NodeId("127.0.0.2", 7)
        watch.answered(
            ANN, ApplicationClientProtocol.get_application_report, APP, ApplicationNotFoundException("no such"), 1.5
        )
        watch.answered(Caller("", None, "", node), ResourceTracker.unregister_node_manager, node, None, 0.25)
        token = NMTokenIdentifier(ApplicationAttemptId(APP, 2), node, "ann", 1)
        watch.answered(Caller(RM_CALLER, None, "", token), ContainerManagementProtocol.stop_containers, (), None, 0.25)
    refused, left, started = reading.result()
    assert (refused["from"], refused["to"], refused["rpc"], refused["ms"]) == (
        "user ann",
        "RM",
        "getApplicationReport",
        1.5,
    )
    assert refused["request"] == {"$id": str(APP)}
    assert refused["error"]["message"] == "no such"
    assert (left["from"], left["error"], left["reply"]) == ("127.0.0.2:7", None, None)
    assert started["from"] == "ResourceManager for appattempt_1_0001_000002"


async def test_a_watcher_that_does_not_read_loses_calls_and_learns_how_many(
    watch: CallWatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "UNREAD_BYTES_MAX", 10_000)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as slow:
        slow.connect(str(tmp_path / "watch" / "RM.sock"))
        slow.setblocking(False)
        await connected(watch)
        sent = 5000
        for number in range(sent):
            watch.answered(ANN, ApplicationClientProtocol.get_application_report, ApplicationId(1, number), None, 1.0)
        (one,) = watch._watchers
        assert one._transport is not None
        assert one._transport.get_write_buffer_size() < 20_000
        data = b""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(SOON_S):
            while one._transport.get_write_buffer_size() > 0:
                data += await loop.sock_recv(slow, 1 << 20)
            watch.answered(ANN, ApplicationClientProtocol.get_application_report, APP, None, 1.0)
            while b"dropped" not in data or not data.endswith(b"}\n") or data.count(b'"dropped"') != 1:
                data += await loop.sock_recv(slow, 1 << 20)
    lines = [json.loads(line) for line in data.splitlines()]
    dropped = [line["dropped"] for line in lines if "dropped" in line]
    assert dropped[0] > 0
    assert sum(dropped) + len([line for line in lines if "rpc" in line]) in (sent, sent + 1)


async def test_secrets_are_not_sent_and_long_calls_without_their_records(
    watch: CallWatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(first(tmp_path / "watch", 2))
        await connected(watch)
        context = ContainerLaunchContext(("echo",), tokens=b"CANARY")
        start = StartContainerRequest(context, Token(b"identifier", b"CANARY", "kind", "service"))
        watch.answered(ANN, ContainerManagementProtocol.start_containers, (start,), None, 1.0)
        monkeypatch.setattr(watching, "LINE_BYTES_MAX", 100)
        watch.answered(ANN, ContainerManagementProtocol.start_containers, (start,), None, 1.0)
    whole, cut = reading.result()
    assert "echo" in json.dumps(whole)
    assert "CANARY" not in json.dumps(whole)
    assert "Q0FOQVJZ" not in json.dumps(whole)
    assert (cut["request"], cut["rpc"], cut["left_out_bytes"] > 100) == (None, "startContainers", True)


async def test_a_call_that_cannot_be_encoded_delays_no_call(watch: CallWatch, tmp_path: Path) -> None:
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(first(tmp_path / "watch", 1))
        await connected(watch)
        watch.answered(ANN, ApplicationClientProtocol.get_application_report, object(), None, 1.0)
        watch.answered(ANN, ApplicationClientProtocol.get_application_report, APP, None, 1.0)
    assert [line["request"] for line in reading.result()] == [{"$id": str(APP)}]


async def test_only_the_owner_can_connect_and_the_socket_is_removed_with_the_daemon(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    (deep / "watch").mkdir(parents=True)
    (deep / "watch" / "RM.sock").write_text("left by one that was killed")
    watch = CallWatch(deep / "watch")
    await watch.open("RM")
    assert sockets(deep / "watch") == ["RM"]
    mode = (deep / "watch" / "RM.sock").stat().st_mode
    assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
    await watch.close()
    assert sockets(deep / "watch") == []
    assert await first(deep / "watch", 1) == []


async def test_watchers_have_a_bound(watch: CallWatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "WATCHERS_MAX", 1)
    async with asyncio.TaskGroup() as tasks:
        staying = tasks.create_task(first(tmp_path / "watch", 1))
        await connected(watch)
        assert await first(tmp_path / "watch", 1) == []
        watch.answered(ANN, ApplicationClientProtocol.get_application_report, APP, None, 1.0)
    assert len(staying.result()) == 1


async def test_a_directory_that_cannot_be_is_refused_by_its_key(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    watch = CallWatch.read(Configuration.of({"yarn.yarnling.watch-dir": str(tmp_path / "file" / "x")}))
    assert watch is not None
    with pytest.raises(YarnException, match=r"yarn[.]yarnling[.]watch-dir = .*name another directory"):
        await watch.open("RM")
    assert CallWatch.read(Configuration.of({})) is None


async def test_state_changes_are_sent_beside_the_calls(watch: CallWatch, tmp_path: Path) -> None:
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(first(tmp_path / "watch", 1))
        await connected(watch)
        watch.changed("RM", "RMApp", str(APP), event="ATTEMPT_REGISTERED", source="ACCEPTED", target="RUNNING")
    (line,) = reading.result()
    assert line.pop("at_ms") > 0
    assert line == {
        "of": "RM",
        "kind": "RMApp",
        "subject": str(APP),
        "event": "ATTEMPT_REGISTERED",
        "source": "ACCEPTED",
        "target": "RUNNING",
    }
