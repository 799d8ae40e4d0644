"""The limits of a server for connections: how many there are, how long one may be silent, how many calls are on one."""

from __future__ import annotations

import asyncio
import logging
import resource
from contextlib import AsyncExitStack
from typing import Any

import grpc
import pytest

from tests.wire.foreign_caller import held_by_nobody, only_as_root
from tests.wire.serving import Recorder, serving, target
from wire.caller import Caller
from wire.channel import CALLS_MAX
from wire.connection_limits import CONNECTIONS_MIN, DESCRIPTORS_KEPT, ConnectionLimits
from wire.daemon_process import _is_not_about_a_lost_caller
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.retry import RetryPolicy
from wire.server import STREAMS_MAX
from yarn.errors import ServerUnavailable, YarnException

HANGS_S = 60
EMPTY_SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + EMPTY_SETTINGS
RST_STREAM = 3
REFUSED_STREAM = 7


async def _connected(port: int, said: bytes = PREFACE) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    return reader, writer


async def test_connections_beyond_the_limit_are_closed() -> None:
    async with (
        asyncio.timeout(HANGS_S),
        serving(
            (ResourceManagerAdministrationProtocol.refresh_queues,), Recorder({}), limits=ConnectionLimits(count=2)
        ) as server,
    ):
        within = [await _connected(server.port) for _ in range(2)]
        assert all([await reader.read(1) for reader, _ in within]), "they are greeted"
        beyond, writer = await _connected(server.port)
        assert await beyond.read() == b""
        for _, open_writer in (*within, (beyond, writer)):
            open_writer.close()
        # The server learns of the closed ones in its own time.
        async with ResourceManagerAdministrationProtocol(
            target(server), timeout_s=HANGS_S, retry=RetryPolicy(60_000, 10)
        ) as proxy:
            await proxy.refresh_queues()


@only_as_root
async def test_another_users_connections_do_not_lock_the_owner_out() -> None:
    """Connections of strangers were greeted and counted: a few thousand, which any user may open, kept all out."""
    async with (
        asyncio.timeout(HANGS_S),
        serving(
            (ResourceManagerAdministrationProtocol.refresh_queues,), Recorder({}), limits=ConnectionLimits(count=2)
        ) as server,
        held_by_nobody(server.port, 3, PREFACE) as answers,
        ResourceManagerAdministrationProtocol(target(server)) as proxy,
    ):
        await proxy.refresh_queues()
        assert answers == ["", "", ""]


@only_as_root
async def test_an_open_server_accepts_other_users() -> None:
    async with (
        asyncio.timeout(HANGS_S),
        serving((ResourceManagerAdministrationProtocol.refresh_queues,), Recorder({}), admits_all_users=True) as server,
        held_by_nobody(server.port, 1, PREFACE) as answers,
    ):
        assert answers != [""]


@pytest.mark.parametrize(
    ("said", "limits"),
    [(b"", ConnectionLimits(handshake_ms=200)), (PREFACE, ConnectionLimits(idle_ms=200))],
    ids=["half open", "idle"],
)
async def test_a_connection_that_does_nothing_is_closed(said: bytes, limits: ConnectionLimits) -> None:
    async with (
        asyncio.timeout(HANGS_S),
        serving((ResourceManagerAdministrationProtocol.refresh_queues,), Recorder({}), limits=limits) as server,
    ):
        reader, writer = await _connected(server.port, said)
        await reader.read()
        writer.close()


async def test_a_caller_whose_idle_connection_was_closed_connects_again() -> None:
    limits = ConnectionLimits(idle_ms=50)
    async with (
        asyncio.timeout(HANGS_S),
        serving((ResourceManagerAdministrationProtocol.refresh_queues,), Recorder({}), limits=limits) as server,
        ResourceManagerAdministrationProtocol(target(server)) as proxy,
    ):
        await proxy.refresh_queues()
        channel = proxy._channels.get(target(server))._channel
        assert channel is not None
        while channel.get_state() is grpc.ChannelConnectivity.READY:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        await proxy.refresh_queues()


async def test_a_channel_holds_calls_back_that_a_server_would_refuse() -> None:
    class Handler:
        now = most = 0

        async def refresh_queues(self, caller: Caller[None], request: None) -> None:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.01)
            self.now -= 1

    handler = Handler()
    async with (
        asyncio.timeout(HANGS_S),
        serving((ResourceManagerAdministrationProtocol.refresh_queues,), handler) as server,
        ResourceManagerAdministrationProtocol(target(server)) as proxy,
    ):
        await asyncio.gather(*(proxy.refresh_queues() for _ in range(3 * CALLS_MAX)))
    assert 1 < handler.most <= CALLS_MAX


async def test_many_clients_of_a_process_lose_no_call() -> None:
    """Each has a connection of its own: on a shared one, the server would refuse what is beyond STREAMS_MAX."""

    class Handler:
        calls = 0

        async def refresh_queues(self, caller: Caller[None], request: None) -> None:
            self.calls += 1
            await asyncio.sleep(0.01)

    handler = Handler()
    async with (
        asyncio.timeout(HANGS_S),
        serving((ResourceManagerAdministrationProtocol.refresh_queues,), handler) as server,
        AsyncExitStack() as stack,
    ):
        clients = [
            await stack.enter_async_context(ResourceManagerAdministrationProtocol(target(server))) for _ in range(10)
        ]
        count = 2 * STREAMS_MAX
        await asyncio.gather(*(clients[number % len(clients)].refresh_queues() for number in range(count)))
    assert handler.calls == count


async def test_a_call_that_http2_refused_surely_had_no_effect() -> None:
    """A connection that opens more streams than the server permits, which gRPC does before it has read the limit."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(EMPTY_SETTINGS)
        await reader.readuntil(b":path")
        writer.write(bytes([0, 0, 4, RST_STREAM, 0, 0, 0, 0, 1]) + REFUSED_STREAM.to_bytes(4, "big"))
        await refused.wait()
        writer.close()
        await writer.wait_closed()
        ended.set()

    refused, ended = asyncio.Event(), asyncio.Event()
    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with asyncio.timeout(HANGS_S), ResourceManagerAdministrationProtocol(f"127.0.0.1:{port}") as proxy:
        with pytest.raises(ServerUnavailable, match="too many concurrent calls") as caught:
            await proxy.refresh_queues()
        refused.set()
        await ended.wait()
    assert caught.value.definite
    server.close()


@pytest.mark.parametrize(
    ("soft", "hard", "count", "raised_to"),
    [
        (1024, 1 << 20, 4000, 48_256),
        (1024, 4096, (4096 - DESCRIPTORS_KEPT) // 12, 4096),
        (100_000, 100_000, 4000, None),
        (100, 448, CONNECTIONS_MIN, 448),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 4000, None),
        (1024, resource.RLIM_INFINITY, 4000, 48_256),
    ],
)
def test_connections_leave_descriptors_to_the_process(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, count: int, raised_to: int | None
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: calls.append(limits))
    assert ConnectionLimits.for_addresses(4).count == count
    assert calls == ([] if raised_to is None else [(raised_to, hard)])


def test_too_few_descriptors_are_refused_with_the_number_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 447))
    with pytest.raises(
        YarnException, match=r"the ResourceManager needs 448 file descriptors, and the limit is 447 \(.*`ulimit -n 448`"
    ):
        ConnectionLimits.for_addresses(4)


class ExecuteBatchError(Exception):
    """Of the same name as gRPC's."""


@pytest.mark.parametrize(("error", "is_shown"), [(ExecuteBatchError(), False), (ValueError(), True), (None, True)])
def test_a_lost_caller_is_not_logged(error: Exception | None, is_shown: bool) -> None:
    info = None if error is None else (type(error), error, None)
    record = logging.LogRecord("grpc", logging.ERROR, "", 0, "failed", (), info)
    assert _is_not_about_a_lost_caller(record) is is_shown
