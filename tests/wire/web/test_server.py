"""The HTTP server itself: its port, its limits, its end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.rm.web.http import ask
from tests.wire.foreign_caller import answers_to_nobody, only_as_root
from tests.wire.hadoop_rpc.serving import until
from tests.wire.web.asgi import NoCheck
from wire.address import Address
from wire.web import server as module
from wire.web.application import TextAnswer, WebApplication, WebRoute
from wire.web.request import WebRequest
from wire.web.server import WebServer
from yarn.errors import YarnException

KEY = "yarn.resourcemanager.webapp.address"


ANSWERING = asyncio.Event()


async def slow(request: WebRequest) -> TextAnswer:
    ANSWERING.set()
    await asyncio.sleep(3600)
    return TextAnswer("never")


async def quick(request: WebRequest) -> TextAnswer:
    return TextAnswer("ok")


async def peer(request: WebRequest) -> TextAnswer:
    return TextAnswer(request.peer[0])


@asynccontextmanager
async def serving() -> AsyncIterator[WebServer]:
    server = WebServer(Address("127.0.0.1", 0, KEY), beyond_loopback=False)
    await server.bind()
    rows = [WebRoute("GET", "/slow", slow), WebRoute("GET", "/quick", quick), WebRoute("GET", "/peer", peer)]
    await server.start(WebApplication(rows, NoCheck()))  # type: ignore[arg-type]
    try:
        yield server
    finally:
        await server.stop()


async def connect(server: WebServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", server.port)


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """The bytes until the end, which may be a reset."""
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def test_a_port_that_is_taken_is_an_error_that_names_the_key() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        server = WebServer(Address("127.0.0.1", other.getsockname()[1], KEY), beyond_loopback=False)
        with pytest.raises(YarnException, match=f"cannot listen on {KEY} = 127.0.0.1:.*already in use"):
            await server.bind()


async def test_an_address_that_others_can_reach_is_refused() -> None:
    with pytest.raises(YarnException, match="can be reached from other machines"):
        await WebServer(Address("0.0.0.0", 0, KEY), beyond_loopback=False).bind()


async def test_a_connection_that_sends_no_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REQUEST_TIMEOUT_S", 0.05)
    async with serving() as server:
        reader, writer = await connect(server)
        writer.write(b"GET /quick HTTP/1.1\r\nHost: x\r\n")
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        writer.close()


async def test_connections_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECTIONS_MAX", 2)
    async with serving() as server:
        held = [await connect(server) for _ in range(2)]
        for _, writer in held:
            writer.write(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await until(lambda: len(server._state.tasks) == 2)
        reader, writer = await connect(server)
        async with asyncio.timeout(60):
            assert await rest_of(reader) == b""
        for _, one in [*held, (reader, writer)]:
            one.close()


async def test_the_connection_that_is_silent_for_longest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECTIONS_MAX", 2)
    async with serving() as server, asyncio.timeout(60):
        silent = [await connect(server) for _ in range(2)]
        reader, writer = await connect(server)
        writer.write(b"GET /quick HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"ok")
        assert await rest_of(silent[0][0]) == b""
        for _, one in [*silent, (reader, writer)]:
            one.close()


@only_as_root
async def test_another_users_connections_are_closed_and_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECTIONS_MAX", 1)
    async with serving() as server, asyncio.timeout(60):
        reader, writer = await connect(server)
        answers = await answers_to_nobody(server.port, 3)
        assert all(answer.startswith("HTTP/1.1 403") for answer in answers)
        writer.write(b"GET /quick HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"ok")
        writer.close()


async def test_a_second_request_has_a_deadline_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEEP_ALIVE_S", 0.05)
    async with serving() as server, asyncio.timeout(60):
        reader, writer = await connect(server)
        writer.write(b"GET /quick HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"ok")
        writer.write(b"GET /quick HTTP/1.1\r\nHost: lo")
        assert await rest_of(reader) == b""
        writer.close()


async def test_a_head_that_is_too_long_is_refused_also_if_it_arrives_at_once() -> None:
    async with serving() as server, asyncio.timeout(60):
        reader, writer = await connect(server)
        head = b"x" * (module.HEAD_BYTES_MAX + 2 * module.HEAD_SLICE_BYTES)
        writer.write(b"GET /quick HTTP/1.1\r\nHost: localhost\r\nX: " + head + b"\r\n\r\n")
        assert (await reader.read(100)).startswith(b"HTTP/1.1 400")
        writer.close()


async def test_a_head_that_is_too_long_is_refused() -> None:
    async with serving() as server:
        reader, writer = await connect(server)
        writer.write(b"GET /quick HTTP/1.1\r\nX: " + b"x" * (module.HEAD_BYTES_MAX * 2))
        async with asyncio.timeout(60):
            assert (await reader.read(100)).startswith(b"HTTP/1.1 400")
        writer.close()


async def test_the_server_stops_although_an_answer_does_not_come() -> None:
    async with serving() as server:
        _, writer = await connect(server)
        writer.write(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await writer.drain()
        async with asyncio.timeout(60):
            await ANSWERING.wait()
            await server.stop()
        writer.close()


async def test_a_caller_cannot_say_that_it_is_at_another_address() -> None:
    async with serving() as server:
        forged = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https", "Forwarded": "for=192.0.2.1"}
        reply = await ask(f"127.0.0.1:{server.port}", "/peer", headers=forged)
        assert reply.text == "127.0.0.1"


async def test_a_head_request_has_no_body() -> None:
    async with serving() as server:
        reply = await ask(f"127.0.0.1:{server.port}", "/quick", method="HEAD")
        assert (reply.status, reply.body) == (200, b"")
