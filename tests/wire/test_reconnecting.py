"""A channel whose server is down: calls fail soon, and the first call after its restart succeeds."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.wire.serving import socket_dir
from wire import channel
from wire.address import Address
from wire.channel import Channels
from wire.server import RpcServer
from yarn.errors import ServerUnavailable


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_every_call_to_a_lost_server_fails_long_before_its_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """gRPC says TRANSIENT_FAILURE all the time between two tries: without a bound the second call waits it out."""
    monkeypatch.setattr(channel, "FAILED_WAIT_S", 0.05)
    async with Channels() as channels, asyncio.timeout(60):
        gone = channels.get(f"127.0.0.1:{free_port()}")
        for _ in range(3):
            with pytest.raises(ServerUnavailable, match="cannot be reached"):
                await gone.send("/a/b", b"", metadata=(), timeout_s=600)


async def test_a_restarted_server_is_reached_again() -> None:
    port = free_port()
    async with Channels() as channels, asyncio.timeout(60):
        target = channels.get(f"127.0.0.1:{port}")
        with pytest.raises(ServerUnavailable):
            await target.send("/a/b", b"", metadata=(), timeout_s=5)
        server = RpcServer(Address("127.0.0.1", port), socket_dir())
        await server.start()
        try:
            with pytest.raises(Exception, match="UNIMPLEMENTED"):
                await target.send("/a/b", b"", metadata=(), timeout_s=5)
        finally:
            await server.stop(0)
