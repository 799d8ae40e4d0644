"""gRPC through the listener, and the Unix socket behind it; beside Hadoop's clients, and where those are off."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from tests.wire.hadoop_rpc.hadoop_client import ADMIN_PROTOCOL, CLIENT_PROTOCOL, connected
from tests.wire.hadoop_rpc.serving import BY_USER, serving_both, until
from tests.wire.serving import Recorder, anybody, serving, target
from wire import splice
from wire.address import Address
from wire.caller import Caller
from wire.connection_limits import ConnectionLimits
from wire.hadoop_rpc.server import HadoopServer
from wire.local_peer import peer_user_id
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.client import ApplicationClientProtocol
from wire.server import RpcServer
from yarn.errors import InvalidToken, YarnException
from yarn.nodes import ClusterMetrics

HANGS_S = 60
COUNTS = ClusterMetrics(3)
METRICS = ApplicationClientProtocol.get_cluster_metrics
GROUPS = ResourceManagerAdministrationProtocol.get_groups_for_user
MEGABYTE = 1 << 20


class Echo:
    """Returns the name of a user as the only group."""

    async def get_groups_for_user(self, caller: Caller[None], request: str) -> tuple[str, ...]:
        return (request,)


async def test_large_messages_pass_both_ways(tmp_path: Path) -> None:
    names = [f"{number}" * MEGABYTE for number in range(8)]
    async with (
        asyncio.timeout(HANGS_S),
        serving_both((GROUPS,), Echo(), tmp_path) as server,
        ResourceManagerAdministrationProtocol(target(server)) as over_grpc,
        connected(target(server), ADMIN_PROTOCOL) as over_hadoop,
    ):
        assert await asyncio.gather(*(over_grpc.get_groups_for_user(name) for name in names)) == [(n,) for n in names]
        replies = await asyncio.gather(*(over_hadoop.call(GROUPS, name) for name in names))
        assert replies == [(name,) for name in names]


async def test_a_thousand_calls_at_once(tmp_path: Path) -> None:
    """500 over one connection, which sends them in turns, and 10 over each of 50 connections of their own."""
    own_connection = (("grpc.use_local_subchannel_pool", 1),)
    async with (
        asyncio.timeout(HANGS_S),
        serving_both((METRICS,), Recorder({"get_cluster_metrics": COUNTS}), tmp_path) as server,
        ApplicationClientProtocol(target(server), timeout_s=HANGS_S) as proxy,
        AsyncExitStack() as stack,
    ):
        calls: list[Any] = [proxy.get_cluster_metrics() for _ in range(500)]
        for _ in range(50):
            channel = grpc.aio.insecure_channel(target(server), options=own_connection)
            await stack.enter_async_context(channel)
            call: Any = channel.unary_unary(METRICS.path)
            calls += [call(b"") for _ in range(10)]
        replies = await asyncio.gather(*calls)
    assert replies == [COUNTS] * 500 + [METRICS.reply.encode(COUNTS)] * 500


async def test_the_service_sees_the_callers_own_address(tmp_path: Path) -> None:
    recorder = Recorder({"get_cluster_metrics": COUNTS})
    async with (
        serving_both(ApplicationClientProtocol.rpcs, recorder, tmp_path) as server,
        ApplicationClientProtocol(target(server)) as proxy,
    ):
        await proxy.get_cluster_metrics()
        ((_, caller, _),) = recorder.calls
        kind, host, port = caller.peer.split(":")
        assert (kind, host) == ("ipv4", "127.0.0.1")
        assert peer_user_id((host, int(port)), ("127.0.0.1", server.port)) == os.getuid(), "it is a socket of ours"


async def test_grpc_errors_pass(tmp_path: Path) -> None:
    def refuse(caller: Caller[None]) -> None:
        raise InvalidToken("nobody")

    async with (
        serving_both((METRICS,), Recorder({}), tmp_path, authenticate=refuse) as server,
        ApplicationClientProtocol(target(server)) as proxy,
    ):
        with pytest.raises(InvalidToken, match="nobody"):
            await proxy.get_cluster_metrics()


async def test_a_reader_that_stops_holds_up_its_server_and_not_our_memory(tmp_path: Path) -> None:
    """Bytes that nobody reads stay where they come from; once they are read, all arrive."""
    sent = 0
    done = asyncio.Event()
    path = str(tmp_path / "behind.sock")

    async def behind(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readexactly(4)
        for _ in range(400):
            writer.write(b"x" * 100_000)
            await writer.drain()
            sent += 100_000
        writer.close()
        await writer.wait_closed()
        done.set()

    async with asyncio.timeout(HANGS_S), await asyncio.start_unix_server(behind, path):
        front = await _spliced_listener(path)
        reader, writer = await asyncio.open_connection("127.0.0.1", _port(front), limit=1000)
        writer.write(b"PRI ")
        await until(lambda: sent)
        seen = -1
        while seen != sent:
            seen = sent
            await asyncio.sleep(0.1)
        assert sent < 20_000_000
        assert not done.is_set()
        received = 0
        while data := await reader.read(MEGABYTE):
            received += len(data)
        assert received == 40_000_000
        await done.wait()
        writer.close()
        await writer.wait_closed()
        front.close()


async def test_a_server_that_stops_reading_holds_up_its_caller(tmp_path: Path) -> None:
    go, done = asyncio.Event(), asyncio.Event()
    total = 0
    path = str(tmp_path / "behind.sock")

    async def behind(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal total
        await go.wait()
        while data := await reader.read(MEGABYTE):
            total += len(data)
        writer.close()
        await writer.wait_closed()
        done.set()

    async with asyncio.timeout(HANGS_S), await asyncio.start_unix_server(behind, path, limit=1000):
        front = await _spliced_listener(path)
        _, writer = await asyncio.open_connection("127.0.0.1", _port(front))
        writer.write(b"x" * 40_000_000)
        left = -1
        while left != writer.transport.get_write_buffer_size():
            left = writer.transport.get_write_buffer_size()
            await asyncio.sleep(0.1)
        assert left > 20_000_000
        go.set()
        writer.close()
        await done.wait()
        assert total == 40_000_000
        await writer.wait_closed()
        front.close()


async def _spliced_listener(path: str) -> asyncio.Server:
    """A server that splices each connection to the Unix socket at `path`."""

    class Front(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            one = splice.Splice(transport, lambda _: None)
            self.connecting = asyncio.get_running_loop().create_task(
                one.connect(path, f"test-{os.getpid()}-{id(one)}", b"")
            )

    return await asyncio.get_running_loop().create_server(Front, "127.0.0.1", 0)


def _port(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


async def test_connections_are_limited_and_given_back(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(HANGS_S),
        serving_both(
            (METRICS,),
            Recorder({"get_cluster_metrics": COUNTS}),
            tmp_path,
            limits=ConnectionLimits(count=1),
        ) as server,
    ):
        for _ in range(5):
            async with ApplicationClientProtocol(target(server), timeout_s=HANGS_S) as proxy:
                assert await proxy.get_cluster_metrics() == COUNTS
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                    await reader.readexactly(1)
                writer.close()
            # The server may see the end of the connection later than its client.
            listener: Any = server._listener
            await until(lambda: not listener._connections)  # noqa: B023


# The Unix socket


async def test_only_the_owner_can_connect_to_the_socket_behind(tmp_path: Path) -> None:
    directory = tmp_path / "sockets"
    async with serving_both((METRICS,), Recorder({}), directory) as server:
        (path,) = directory.iterdir()
        assert path.name == f"127.0.0.1_{server.port}.sock"
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert list(directory.iterdir()) == []


async def test_a_socket_left_by_a_killed_process_is_replaced_and_paths_may_be_long(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 120)
    async with serving_both((METRICS,), Recorder({}), directory) as server:
        port = server.port
    (directory / f"127.0.0.1_{port}.sock").write_bytes(b"stale")
    again = RpcServer(Address("127.0.0.1", port), directory)
    again.add((METRICS,), Recorder({"get_cluster_metrics": COUNTS}), anybody)
    again.answer_hadoop(partial(HadoopServer, BY_USER))
    assert await again.start() == port
    async with ApplicationClientProtocol(target(again)) as proxy:
        assert await proxy.get_cluster_metrics() == COUNTS
    await again.stop(0)


async def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    with pytest.raises(
        YarnException, match=r"cannot listen on a Unix socket in .*file: .*make it a directory of your own"
    ):
        async with serving_both((METRICS,), Recorder({}), file):
            pass


async def test_a_directory_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    """Another user could put a socket of theirs in the place of ours, and would receive tokens."""
    directory = tmp_path / "open"
    directory.mkdir()
    directory.chmod(0o777)
    with pytest.raises(YarnException, match="others may write to it"):
        async with serving_both((METRICS,), Recorder({}), directory):
            pass


async def test_a_port_in_use_is_refused_as_without_it(tmp_path: Path) -> None:
    async with serving_both((METRICS,), Recorder({}), tmp_path) as server:
        second = RpcServer(Address("127.0.0.1", server.port, "some.key"), tmp_path)
        second.answer_hadoop(partial(HadoopServer, BY_USER))
        with pytest.raises(
            YarnException, match=r"cannot listen on some[.]key = 127[.]0[.]0[.]1:\d+: the port is in use"
        ):
            await second.start()


async def test_further_hosts_answer_both(tmp_path: Path) -> None:
    server = RpcServer(Address("127.0.0.1", 0), tmp_path, further_hosts=("127.0.0.5", "127.0.0.6"))
    recorder = Recorder({"get_cluster_metrics": COUNTS})
    server.add(ApplicationClientProtocol.rpcs, recorder, anybody)
    server.answer_hadoop(partial(HadoopServer, BY_USER))
    port = await server.start()
    try:
        for host in ("127.0.0.1", "127.0.0.5", "127.0.0.6"):
            async with (
                ApplicationClientProtocol(f"{host}:{port}") as proxy,
                connected(f"{host}:{port}", CLIENT_PROTOCOL) as client,
            ):
                assert await proxy.get_cluster_metrics() == await client.call(METRICS) == COUNTS
    finally:
        await server.stop(0)


async def test_stop_ends_spliced_connections_and_leaves_no_task(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    async with asyncio.timeout(HANGS_S):
        async with (
            serving_both((METRICS,), Recorder({"get_cluster_metrics": COUNTS}), tmp_path) as server,
            ApplicationClientProtocol(target(server)) as proxy,
        ):
            await proxy.get_cluster_metrics()
            silent_reader, silent = await asyncio.open_connection("127.0.0.1", server.port)
            await server.stop(0)
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await silent_reader.readexactly(1)
            silent.close()
        await until(lambda: not asyncio.all_tasks() - before)
    descriptors = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_open(fd)}
    assert not any(str(tmp_path) in name for name in descriptors)


def _is_open(descriptor: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{descriptor}")


# Without Hadoop's clients


async def test_a_caller_of_hadoops_rpc_is_not_answered_where_it_is_off() -> None:
    async with serving((METRICS,), Recorder({"get_cluster_metrics": COUNTS})) as server:
        with pytest.raises(BaseExceptionGroup):
            async with connected(target(server)) as client:
                await client.call(METRICS)


def test_off_nothing_of_it_is_imported() -> None:
    program = (
        "import asyncio, sys\n"
        "import nm.daemon, rm.daemon, wire.watching\n"
        "from tests.wire.serving import Recorder, serving\n"
        "from wire.protocols.client import ApplicationClientProtocol\n"
        "async def main():\n"
        "    async with serving(ApplicationClientProtocol.rpcs, Recorder({})):\n"
        "        print(*sys.modules)\n"
        "asyncio.run(main())\n"
    )
    shown = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    modules = set(shown.split())
    assert "wire.server" in modules
    assert {name for name in modules if name.startswith(("wire.hadoop_rpc", "wire.generated.hadoop_rpc"))} == set()
