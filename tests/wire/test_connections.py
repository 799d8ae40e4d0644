"""Connections: no traffic beside calls, slow servers, and gRPC's environment variables."""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import grpc
import pytest

from tests.wire.serving import Recorder, serving
from wire.caller import Caller
from wire.channel import Channels
from wire.daemon import grpc_environment
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.server import UNREAD_BYTES_MAX
from yarn.errors import InvalidToken

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
EMPTY_SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
PING = 6
INITIAL_WINDOW_SIZE = 4
"""Numbers of HTTP/2: a type of frames, and a setting."""
CALLS = 10
MESSAGE_BYTES = 16 << 20


def frame_types(sent: bytes) -> list[int]:
    """The types of HTTP/2's frames, in their order."""
    types, rest = [], sent.removeprefix(PREFACE)
    while rest:
        types.append(rest[3])
        rest = rest[9 + int.from_bytes(rest[:3], "big") :]
    return types


@asynccontextmanager
async def listening_between(port: int) -> AsyncIterator[tuple[int, tuple[bytearray, bytearray]]]:
    """A port that leads to `port`, and what went there and back."""
    sent = bytearray(), bytearray()
    ended: list[asyncio.Event] = []
    open_ones: list[asyncio.StreamWriter] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray) -> None:
        while data := await reader.read(1 << 16):
            kept += data
            writer.write(data)
        writer.close()

    async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(asyncio.Event())
        there, back = await asyncio.open_connection("127.0.0.1", port)
        open_ones.extend((writer, back))
        await asyncio.gather(copy(reader, back, sent[0]), copy(there, writer, sent[1]), return_exceptions=True)
        ended[-1].set()

    server = await asyncio.start_server(lead, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], sent
    finally:
        server.close()
        for writer in open_ones:
            writer.transport.abort()
        for event in ended:
            await event.wait()


async def test_calls_bring_no_pings() -> None:
    """A ping with each message would be more packets than the messages of an idle cluster."""
    async with (
        serving((ResourceManagerAdministrationProtocol.refresh_queues,), Recorder({})) as server,
        listening_between(server.port) as (port, sent),
        ResourceManagerAdministrationProtocol(f"127.0.0.1:{port}") as proxy,
    ):
        for _ in range(CALLS):
            await proxy.refresh_queues()
        for types in map(frame_types, map(bytes, sent)):
            assert types
            assert PING not in types


async def test_a_message_without_a_token_is_not_received() -> None:
    """Ten such calls of 60 MB took a ResourceManager a gigabyte, most of which it kept."""
    rpc = ResourceManagerAdministrationProtocol.refresh_queues

    def refuse(caller: Caller[None]) -> None:
        raise InvalidToken("no token")

    async with (
        serving((rpc,), Recorder({}), refuse) as server,
        listening_between(server.port) as (port, (sent, _)),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        call: Any = channel.unary_unary(rpc.path)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(bytes(MESSAGE_BYTES), timeout=60)
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert len(sent) < MESSAGE_BYTES / 4


async def test_little_of_a_request_is_received_before_its_caller_is_known() -> None:
    """Streams of 64 KiB each, which nobody had authenticated yet, took a ResourceManager from 46 to 1,125 MB."""
    rpcs = (ResourceManagerAdministrationProtocol.refresh_queues,)
    async with asyncio.timeout(60), serving(rpcs, Recorder({})) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(PREFACE + EMPTY_SETTINGS)
        size = int.from_bytes((await reader.readexactly(9))[:3], "big")
        settings = await reader.readexactly(size)
        writer.close()
    pairs = [struct.unpack_from("!HI", settings, start) for start in range(0, size, 6)]
    assert dict(pairs)[INITIAL_WINDOW_SIZE] == UNREAD_BYTES_MAX


async def test_a_server_that_is_slow_to_begin_is_waited_for() -> None:
    """A caller that gave up after a tenth of a second would start over again and again while the server is busy."""
    connections = 0
    started, ended = asyncio.Event(), asyncio.Event()

    async def begin_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await asyncio.sleep(0.4)
        with suppress(ConnectionError):
            writer.write(EMPTY_SETTINGS)
            await writer.drain()
        started.set()
        await reader.read()
        writer.close()
        ended.set()

    server = await asyncio.start_server(begin_late, "127.0.0.1", 0)
    async with Channels() as channels, asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        channel = channels.get(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        call = tasks.create_task(channel.send("/a/b", b"", metadata=(), timeout_s=20))
        await started.wait()
        assert connections == 1
        call.cancel()
    await ended.wait()
    server.close()


def test_the_installed_grpc_knows_the_experiments() -> None:
    """gRPC writes an error for an experiment that it does not have, and goes on."""
    environment = {key: value for key, value in os.environ.items() if key != "GRPC_EXPERIMENTS"}
    added = grpc_environment(environment)
    done = subprocess.run(
        [sys.executable, "-c", "import grpc; grpc.insecure_channel('127.0.0.1:1').close()"],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment | added,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "GRPC_EXPERIMENTS" in added or not grpc.__version__.startswith("1.85.")


def test_a_choice_of_experiments_that_is_made_already_stays() -> None:
    assert "GRPC_EXPERIMENTS" not in grpc_environment({"GRPC_EXPERIMENTS": ""})


def test_other_versions_of_grpc_keep_their_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc, "__version__", "1.850.0")
    assert grpc_environment({}) == {"GRPC_ENABLE_FORK_SUPPORT": "false"}
