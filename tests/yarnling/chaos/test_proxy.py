"""What the proxy does to a stream: hold it back, delay it, break it off; and never change it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from yarnling.chaos.proxy import Harm, Link

SOON_S = 10.0
STILL_S = 0.1
"""So long nothing comes that must not come: a mistake would show within a millisecond."""


class Call:
    """A connection to an echo behind the link."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def says(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def hears(self, count: int) -> bytes:
        async with asyncio.timeout(SOON_S):
            return await self.reader.readexactly(count)

    async def hears_nothing(self) -> bool:
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
    """A server that says what it hears; `heard` is all of it."""

    def __init__(self) -> None:
        self.heard = b""
        self.changed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1024):
                self.heard += data
                self.changed.set()
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def link() -> AsyncIterator[tuple[Link, Echo]]:
    echo = Echo()
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    link = Link("link", random.Random(1))
    await link.listen("127.0.0.1")
    link.target = server.sockets[0].getsockname()[:2]
    try:
        yield link, echo
    finally:
        await link.close()
        server.close()


@asynccontextmanager
async def call(link: Link) -> AsyncIterator[Call]:
    reader, writer = await asyncio.open_connection(*link.address)
    try:
        yield Call(reader, writer)
    finally:
        writer.transport.abort()


async def test_a_healthy_link_passes_everything() -> None:
    data = random.Random(2).randbytes(1 << 20)
    async with link() as (through, _), call(through) as one, asyncio.TaskGroup() as tasks:
        tasks.create_task(one.says(data))
        assert await one.hears(len(data)) == data


async def test_what_a_silent_cut_holds_back_comes_when_it_is_healed() -> None:
    async with link() as (through, echo), call(through) as one:
        await one.says(b"a")
        assert await one.hears(1) == b"a"
        through.harm(1, Harm(requests=True, replies=True))
        await one.says(b"bc")
        assert await one.hears_nothing()
        assert echo.heard == b"a"
        through.undo(1)
        assert await one.hears(2) == b"bc"


async def test_replies_alone_are_held_back() -> None:
    async with link() as (through, echo), call(through) as one:
        await one.says(b"a")
        assert await one.hears(1) == b"a"
        through.harm(1, Harm(replies=True))
        echo.changed.clear()
        await one.says(b"b")
        async with asyncio.timeout(SOON_S):
            await echo.changed.wait()
        assert echo.heard == b"ab", "the request arrives"
        assert await one.hears_nothing()
        through.undo(1)
        assert await one.hears(1) == b"b"


async def test_what_is_forgotten_never_comes() -> None:
    async with link() as (through, _), call(through) as one:
        await one.says(b"a")
        assert await one.hears(1) == b"a"
        through.harm(1, Harm(replies=True, forgets=True))
        await one.says(b"b")
        through.undo(1)
        assert await one.is_broken()


async def test_a_reset_breaks_what_is_and_what_comes() -> None:
    async with link() as (through, _), call(through) as old:
        await old.says(b"a")
        assert await old.hears(1) == b"a"
        through.harm(1, Harm(reset=True))
        assert await old.is_broken()
        async with call(through) as new:
            assert await new.is_broken()
        through.undo(1)
        async with call(through) as healed:
            await healed.says(b"b")
            assert await healed.hears(1) == b"b"


async def test_two_harms_are_undone_one_by_one() -> None:
    async with link() as (through, _), call(through) as one:
        through.harm(1, Harm(requests=True))
        through.harm(2, Harm(requests=True, delay_s=0.001))
        await one.says(b"a")
        through.undo(2)
        assert await one.hears_nothing()
        through.undo(1)
        assert await one.hears(1) == b"a"


async def test_a_connection_over_a_dead_cable_comes_about_when_it_is_healed() -> None:
    async with link() as (through, echo):
        through.harm(1, Harm(requests=True))
        async with call(through) as one:
            await one.says(b"a")
            assert await one.hears_nothing()
            assert echo.heard == b""
            through.heal()
            assert await one.hears(1) == b"a"


async def test_delay_holds_for_both_ways_and_keeps_the_order() -> None:
    async with link() as (through, _), call(through) as one:
        through.harm(1, Harm(delay_s=0.05))
        began_s = time.monotonic()
        for byte in b"abc":
            await one.says(bytes([byte]))
        assert await one.hears(3) == b"abc"
        assert time.monotonic() - began_s >= 0.1


@pytest.mark.parametrize("harm", [Harm(loss=0.9), Harm(rate=1e6), Harm(loss=0.3, rate=1e6, delay_s=0.001)])
async def test_bad_lines_change_nothing(harm: Harm) -> None:
    data = random.Random(3).randbytes(20_000)
    async with link() as (through, _), call(through) as one, asyncio.TaskGroup() as tasks:
        through.harm(1, harm)
        tasks.create_task(one.says(data))
        assert await one.hears(len(data)) == data


async def test_connections_break_now_and_then() -> None:
    async with link() as (through, _), call(through) as one:
        through.harm(1, Harm(breaks=0.9999))
        await one.says(b"a")
        assert await one.is_broken()


async def test_a_server_that_is_gone_is_a_broken_connection() -> None:
    async with link() as (through, _):
        through.target = ("127.0.0.1", 1)
        async with call(through) as one:
            assert await one.is_broken()


async def test_nothing_is_left_when_it_is_closed() -> None:
    async with link() as (through, _):
        async with call(through) as one:
            await through.close()
            assert await one.is_broken()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*through.address)
