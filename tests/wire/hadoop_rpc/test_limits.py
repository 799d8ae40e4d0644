"""Many calls over Hadoop's RPC, clients that do not behave, and the end of a server."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.wire.foreign_caller import held_by_nobody, only_as_root
from tests.wire.hadoop_rpc.hadoop_client import (
    ADMIN_PROTOCOL,
    CLIENT_PROTOCOL,
    PREAMBLE_SASL,
    PREAMBLE_SIMPLE,
    FrameSource,
    HadoopError,
    call_frame,
    connected,
    context_frame,
    frame,
)
from tests.wire.hadoop_rpc.serving import serving_both, until
from tests.wire.serving import Recorder, target
from wire.caller import Caller
from wire.connection_limits import ConnectionLimits
from wire.hadoop_rpc import connection
from wire.hadoop_rpc.framing import LENGTH_BYTES
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.client import ApplicationClientProtocol
from yarn.applications import ApplicationFilter, ApplicationReport
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarn.nodes import ClusterMetrics
from yarn.states import YarnApplicationState

HANGS_S = 60
HALF_BYTES = 80_000
COUNTS = ClusterMetrics(3)
METRICS = ApplicationClientProtocol.get_cluster_metrics


class Waiting:
    """A service that answers only when `go` is set; `running` calls wait."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.running = 0

    async def get_cluster_metrics(self, caller: Caller[None], request: None) -> ClusterMetrics:
        self.running += 1
        await self.go.wait()
        return COUNTS

    def __getattr__(self, name: str) -> Any:
        return self.get_cluster_metrics


async def test_a_thousand_calls_run_at_once_and_are_answered_as_they_come(tmp_path: Path) -> None:
    service = Waiting()
    async with (
        asyncio.timeout(HANGS_S),
        serving_both((METRICS, ApplicationClientProtocol.get_new_application), service, tmp_path) as server,
        connected(target(server)) as client,
    ):
        calls = [asyncio.get_running_loop().create_task(client.call(METRICS)) for _ in range(1000)]
        await until(lambda: service.running == 1000)
        with pytest.raises(HadoopError, match="Unknown method"):
            await client.send("other", b"")
        assert not any(call.done() for call in calls)
        service.go.set()
        assert await asyncio.gather(*calls) == [COUNTS] * 1000


async def test_calls_beyond_the_limit_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UNANSWERED_MAX", 10)
    service = Waiting()
    async with (
        asyncio.timeout(HANGS_S),
        serving_both((METRICS,), service, tmp_path) as server,
        connected(target(server)) as client,
        connected(target(server)) as other,
    ):
        calls = [asyncio.get_running_loop().create_task(client.call(METRICS)) for _ in range(25)]
        await until(lambda: service.running == 10)
        # Another connection is served meanwhile; after its reply ours would have been read, too.
        for _ in range(20):
            with pytest.raises(HadoopError, match="Unknown method"):
                await other.send("other", b"")
        assert service.running == 10
        service.go.set()
        await asyncio.gather(*calls)
        assert service.running == 25


def _report(number: int) -> ApplicationReport:
    app_id = ApplicationId(1, number)
    attempt_id = ApplicationAttemptId(app_id, 1)
    return ApplicationReport(app_id, "ann", "root.default", "x" * 1000, YarnApplicationState.RUNNING, attempt_id)


async def test_a_reader_that_stops_gets_no_further_replies(tmp_path: Path) -> None:
    """Its replies do not pile up in memory: it is not read on until it reads."""
    big = "x" * 100_000
    answered = 0

    class Service:
        async def get_groups_for_user(self, caller: Caller[None], request: str) -> tuple[str, ...]:
            nonlocal answered
            answered += 1
            return (big,)

    rpc = ResourceManagerAdministrationProtocol.get_groups_for_user
    async with (
        asyncio.timeout(HANGS_S),
        serving_both((rpc,), Service(), tmp_path) as server,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1000)
        writer.write(PREAMBLE_SIMPLE + context_frame("ann"))
        request = rpc.request.encode("ann")
        for number in range(1000):
            writer.write(call_frame(number, ADMIN_PROTOCOL, rpc.name, request))
        await until(lambda: answered)
        seen = -1
        while seen != answered:
            seen = answered
            await asyncio.sleep(0.1)
        assert answered < 900
        source = FrameSource(reader)
        numbers = {(await source.next())[0].callId for _ in range(1000)}
        assert numbers == set(range(1000))
        writer.close()


async def test_a_connection_gets_one_bulky_reply_at_a_time(tmp_path: Path) -> None:
    reports = tuple(map(_report, range(1, 1500)))
    asked = 0

    class Service:
        async def get_applications(
            self, caller: Caller[None], request: ApplicationFilter
        ) -> tuple[ApplicationReport, ...]:
            nonlocal asked
            asked += 1
            return reports

    rpc = ApplicationClientProtocol.get_applications
    async with asyncio.timeout(HANGS_S), serving_both((rpc,), Service(), tmp_path) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1000)
        writer.write(PREAMBLE_SIMPLE + context_frame("ann"))
        for number in range(20):
            writer.write(call_frame(number, CLIENT_PROTOCOL, rpc.name, b""))
        async with connected(target(server)) as other:
            for _ in range(3):
                assert len(await other.call(rpc, ApplicationFilter())) == len(reports)
        assert asked < 3 + 10, "what the sockets' buffers hold, not all"
        source = FrameSource(reader)
        assert {(await source.next())[0].callId for _ in range(20)} == set(range(20))
        writer.close()


@pytest.mark.parametrize("said", [b"", b"hr", b"hrpc\x09", PREAMBLE_SASL, PREAMBLE_SIMPLE, PREAMBLE_SIMPLE + b"\0"])
async def test_a_handshake_that_is_not_finished_in_time_is_closed(said: bytes, tmp_path: Path) -> None:
    async with (
        asyncio.timeout(HANGS_S),
        serving_both((METRICS,), Recorder({}), tmp_path, limits=ConnectionLimits(handshake_ms=200)) as server,
        connected(target(server)) as in_time,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(said)
        assert await reader.read() == b""
        with pytest.raises(HadoopError, match="Unknown method"):
            await in_time.send("other", b"")
        writer.close()


async def test_an_idle_connection_is_closed(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(HANGS_S),
        serving_both((METRICS,), Recorder({}), tmp_path, limits=ConnectionLimits(idle_ms=200)) as server,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(PREAMBLE_SIMPLE + context_frame("ann"))
        for _ in range(4):
            await asyncio.sleep(0.1)
            writer.write(frame(-4))
        assert not reader.at_eof()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (b"hrpc\x08\x00\x00", "version 8"),
        (PREAMBLE_SIMPLE + b"\x7f\xff\xff\xff", "a frame of 2147483647 bytes"),
        (PREAMBLE_SIMPLE + context_frame("ann") + b"\0\0\0\x02\x01\x00", "cannot be read as RpcRequestHeaderProto"),
    ],
)
async def test_what_is_not_hadoops_rpc_is_closed_with_one_line(
    said: bytes, text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with asyncio.timeout(HANGS_S), serving_both((METRICS,), Recorder({}), tmp_path) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(said)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.startswith("closed a connection of Hadoop's RPC peer=ipv4:127.0.0.1:")
    assert text in line


async def test_connections_beyond_the_limit_are_closed(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(HANGS_S),
        serving_both(
            (METRICS,),
            Recorder({"get_cluster_metrics": COUNTS}),
            tmp_path,
            limits=ConnectionLimits(count=2),
        ) as server,
        connected(target(server)) as first,
    ):
        async with connected(target(server)) as second:
            await asyncio.gather(first.call(METRICS), second.call(METRICS))
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            writer.close()
        # A place is free again once the server has seen the end of the second.
        while True:
            try:
                async with connected(target(server)) as third:
                    await third.call(METRICS)
                    break
            except* ConnectionError:
                await asyncio.sleep(0.01)


async def test_a_client_that_is_gone_before_it_is_accepted_does_no_harm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        asyncio.timeout(HANGS_S),
        serving_both((METRICS,), Recorder({"get_cluster_metrics": COUNTS}), tmp_path) as server,
    ):
        for _ in range(20):
            gone = socket.create_connection(("127.0.0.1", server.port))
            gone.sendall(PREAMBLE_SIMPLE + context_frame("ann") + call_frame(0, CLIENT_PROTOCOL, METRICS.name, b""))
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            gone.close()
        async with connected(target(server)) as client:
            assert await client.call(METRICS) == COUNTS
    assert caplog.records == []


async def test_stop_lets_running_calls_finish_and_leaves_nothing(tmp_path: Path) -> None:
    service = Waiting()
    before = asyncio.all_tasks()
    async with asyncio.timeout(HANGS_S):
        async with serving_both((METRICS,), service, tmp_path) as server, connected(target(server)) as client:
            call = asyncio.get_running_loop().create_task(client.call(METRICS))
            await until(lambda: service.running)
            stopping = asyncio.get_running_loop().create_task(server.stop(HANGS_S))
            await asyncio.sleep(0)
            with pytest.raises(OSError, match=r"refused|Connect call failed"):
                await asyncio.open_connection("127.0.0.1", server.port)
            service.go.set()
            assert await call == COUNTS
            await stopping
        await until(lambda: not asyncio.all_tasks() - before)
    assert list(tmp_path.iterdir()) == []


async def test_stop_cancels_calls_that_do_not_finish(tmp_path: Path) -> None:
    service = Waiting()
    before = asyncio.all_tasks()
    async with asyncio.timeout(HANGS_S):
        async with serving_both((METRICS,), service, tmp_path) as server, connected(target(server)) as client:
            call = asyncio.get_running_loop().create_task(client.call(METRICS))
            await until(lambda: service.running)
            await server.stop(0)
            with pytest.raises(ConnectionError):
                await call
        await until(lambda: not asyncio.all_tasks() - before)


@only_as_root
async def test_another_users_connections_are_closed_and_do_not_count(tmp_path: Path) -> None:
    """Connections that have sent bytes make no room for others; those of strangers kept the owner out."""
    recorder = Recorder({"get_cluster_metrics": COUNTS})
    limits = ConnectionLimits(count=2, handshake_ms=10 * HANGS_S * 1000)
    async with (
        asyncio.timeout(HANGS_S),
        serving_both((METRICS,), recorder, tmp_path, limits=limits) as server,
        held_by_nobody(server.port, 2, PREAMBLE_SIMPLE) as answers,
        connected(target(server)) as one,
        connected(target(server)) as other,
    ):
        assert await one.call(METRICS) == await other.call(METRICS) == COUNTS
        assert answers == ["", ""]


async def test_the_connection_that_is_silent_for_longest_makes_room(tmp_path: Path) -> None:
    recorder = Recorder({"get_cluster_metrics": COUNTS})
    async with (
        asyncio.timeout(HANGS_S),
        serving_both((METRICS,), recorder, tmp_path, limits=ConnectionLimits(count=2)) as server,
    ):
        silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
        async with connected(target(server)) as client:
            assert await client.call(METRICS) == COUNTS
            with suppress(ConnectionError):
                assert await silent[0][0].read() == b""
            silent[1][1].write(PREAMBLE_SIMPLE)
            await silent[1][1].drain()
        for _, writer in silent:
            writer.close()


def _holds(listener: Any, unread_bytes: int) -> bool:
    return bool(listener._hadoop.unread_bytes == unread_bytes)


async def test_unfinished_frames_have_one_limit_for_all_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "UNREAD_BYTES_MAX", 100_000)
    recorder = Recorder({"get_cluster_metrics": COUNTS})
    async with (
        asyncio.timeout(HANGS_S),
        serving_both((METRICS,), recorder, tmp_path) as server,
        connected(target(server)) as client,
    ):
        listener: Any = server._listener
        held = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
        for number, (_, writer) in enumerate(held):
            await until(partial(_holds, listener, number * HALF_BYTES))
            writer.write(PREAMBLE_SIMPLE + context_frame("ann") + (200_000).to_bytes(4, "big"))
            writer.write(bytes(HALF_BYTES - LENGTH_BYTES))
        with suppress(ConnectionError):
            assert await held[1][0].read() == b""
        await until(partial(_holds, listener, HALF_BYTES))
        assert await client.call(METRICS) == COUNTS
        for _, writer in held:
            writer.close()
