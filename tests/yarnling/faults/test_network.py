"""The effects of a link on a TCP stream: it holds data back, delays or resets it, but never changes the bytes."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.wire.foreign_caller import held_by_nobody, only_as_root
from yarnling.cluster.network import NetworkFault, ProxyLink

SOON_S = 60.0
STILL_S = 0.1
"""The time to check that nothing arrives; a bug would show within a millisecond."""


class Call:
    """A connection to an echo server behind the link."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def receive(self, count: int) -> bytes:
        async with asyncio.timeout(SOON_S):
            return await self.reader.readexactly(count)

    async def receives_nothing(self) -> bool:
        try:
            async with asyncio.timeout(STILL_S):
                await self.reader.read(1)
        except TimeoutError:
            return True
        return False

    async def is_broken(self) -> bool:
        async with asyncio.timeout(SOON_S):
            try:
                return await self.reader.read(1) == b""
            except ConnectionResetError:
                return True


class Echo:
    """An echo server. `received` contains all bytes so far."""

    def __init__(self) -> None:
        self.received = b""
        self.changed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1024):
                self.received += data
                self.changed.set()
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def link() -> AsyncIterator[tuple[ProxyLink, Echo]]:
    echo = Echo()
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    link = ProxyLink("link", random.Random(1))
    await link.listen("127.0.0.1")
    link.target = server.sockets[0].getsockname()[:2]
    try:
        yield link, echo
    finally:
        await link.close()
        server.close()


@asynccontextmanager
async def call(link: ProxyLink) -> AsyncIterator[Call]:
    reader, writer = await asyncio.open_connection(*link.address)
    try:
        yield Call(reader, writer)
    finally:
        writer.transport.abort()


async def test_a_healthy_link_passes_everything() -> None:
    data = random.Random(2).randbytes(1 << 20)
    async with link() as (through, _), call(through) as one, asyncio.TaskGroup() as tasks:
        tasks.create_task(one.send(data))
        assert await one.receive(len(data)) == data


@only_as_root
async def test_another_users_connection_is_not_passed_on() -> None:
    """The server would take it for the owner's: the proxy's process has the other end of the connection."""
    async with link() as (through, echo), held_by_nobody(through.address[1], 2, b"abc") as answers:
        assert answers == ["", ""]
        assert echo.received == b""


async def test_data_held_back_by_a_silent_partition_arrives_after_recovery() -> None:
    async with link() as (through, echo), call(through) as one:
        await one.send(b"a")
        assert await one.receive(1) == b"a"
        through.inject(1, NetworkFault(requests=True, replies=True))
        await one.send(b"bc")
        assert await one.receives_nothing()
        assert echo.received == b"a"
        through.remove(1)
        assert await one.receive(2) == b"bc"


async def test_replies_alone_are_held_back() -> None:
    async with link() as (through, echo), call(through) as one:
        await one.send(b"a")
        assert await one.receive(1) == b"a"
        through.inject(1, NetworkFault(replies=True))
        echo.changed.clear()
        await one.send(b"b")
        async with asyncio.timeout(SOON_S):
            await echo.changed.wait()
        assert echo.received == b"ab", "the request arrives"
        assert await one.receives_nothing()
        through.remove(1)
        assert await one.receive(1) == b"b"


async def test_dropped_replies_never_arrive_and_break_the_connection() -> None:
    async with link() as (through, _), call(through) as one:
        await one.send(b"a")
        assert await one.receive(1) == b"a"
        through.inject(1, NetworkFault(replies=True, forgets=True))
        await one.send(b"b")
        through.remove(1)
        assert await one.is_broken()


async def test_a_reset_breaks_current_and_new_connections() -> None:
    async with link() as (through, _), call(through) as old:
        await old.send(b"a")
        assert await old.receive(1) == b"a"
        through.inject(1, NetworkFault(reset=True))
        assert await old.is_broken()
        async with call(through) as new:
            assert await new.is_broken()
        through.remove(1)
        async with call(through) as healed:
            await healed.send(b"b")
            assert await healed.receive(1) == b"b"


async def test_two_faults_are_removed_one_by_one() -> None:
    async with link() as (through, _), call(through) as one:
        through.inject(1, NetworkFault(requests=True))
        through.inject(2, NetworkFault(requests=True, delay_s=0.001))
        await one.send(b"a")
        through.remove(2)
        assert await one.receives_nothing()
        through.remove(1)
        assert await one.receive(1) == b"a"


async def test_a_connection_requested_during_a_partition_is_established_after_recovery() -> None:
    async with link() as (through, echo):
        through.inject(1, NetworkFault(requests=True))
        async with call(through) as one:
            await one.send(b"a")
            assert await one.receives_nothing()
            assert echo.received == b""
            through.recover()
            assert await one.receive(1) == b"a"


async def test_a_delay_applies_to_both_directions_and_keeps_the_order() -> None:
    async with link() as (through, _), call(through) as one:
        through.inject(1, NetworkFault(delay_s=0.05))
        began_s = time.monotonic()
        for byte in b"abc":
            await one.send(bytes([byte]))
        assert await one.receive(3) == b"abc"
        assert time.monotonic() - began_s >= 0.1


@pytest.mark.parametrize(
    "fault", [NetworkFault(loss=0.9), NetworkFault(rate=1e6), NetworkFault(loss=0.3, rate=1e6, delay_s=0.001)]
)
async def test_a_bad_network_does_not_change_the_bytes(fault: NetworkFault) -> None:
    data = random.Random(3).randbytes(20_000)
    async with link() as (through, _), call(through) as one, asyncio.TaskGroup() as tasks:
        through.inject(1, fault)
        tasks.create_task(one.send(data))
        assert await one.receive(len(data)) == data


async def test_connections_break_at_random() -> None:
    async with link() as (through, _), call(through) as one:
        through.inject(1, NetworkFault(breaks=0.9999))
        await one.send(b"a")
        assert await one.is_broken()


async def test_without_a_server_the_connection_is_reset() -> None:
    async with link() as (through, _):
        through.target = ("127.0.0.1", 1)
        async with call(through) as one:
            assert await one.is_broken()


async def test_closing_a_link_resets_connections_and_frees_the_port() -> None:
    async with link() as (through, _):
        async with call(through) as one:
            await through.close()
            assert await one.is_broken()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*through.address)
