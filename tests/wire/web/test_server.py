"""The HTTP server itself: its port, its limits, its end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.rm.web.http import ask
from tests.wire.web.asgi import NoCheck
from wire.address import Address
from wire.web import server as module
from wire.web.application import Row, TextAnswer, WebApplication
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
    await server.start(
        WebApplication([Row("GET", "/slow", slow), Row("GET", "/quick", quick), Row("GET", "/peer", peer)], NoCheck())
    )  # type: ignore[arg-type]
    try:
        yield server
    finally:
        await server.stop()


async def connect(server: WebServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", server.port)


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """What comes until the end, which may be a reset."""
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
            writer.write(b"GET /quick HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for reader, _ in held:
            await reader.readuntil(b"ok")
        reader, writer = await connect(server)
        async with asyncio.timeout(60):
            assert await rest_of(reader) == b""
        for _, one in [*held, (reader, writer)]:
            one.close()


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
