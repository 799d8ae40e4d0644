"""Channels to servers: one a target, made at its first call, never at import (a fork must be possible before)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import grpc.aio

from yarn.errors import ServerUnavailable

MESSAGE_BYTES_MAX = 64 * 1024 * 1024
"""One message, both sides. gRPC's 4 MiB is less than a heartbeat of a node that comes back with 10,000 containers."""
METADATA_BYTES_MAX = 64 * 1024
"""Metadata of a call or its end: a token is 200 bytes, an error's detail at most some 20,000."""
CHANNELS_MAX = 1000
"""Open channels of one process; above it the one unused for longest is closed, if no call is on it."""

NO_PROBES = ("grpc.http2.bdp_probe", 0)
"""Both sides. Else whoever receives a message sends a ping to measure the bandwidth: three times the packets of a
heartbeat, and what they wake costs a third of its CPU."""

CALLS_MAX = 128
"""Calls on one channel at once; further ones wait. A server refuses those above its own limit
(wire.server.STREAMS_MAX), and it counts a call for some time after its caller has the answer."""

CONNECT_TIMEOUT_MS = 5000
"""How long one try may take, which gRPC calls the least back-off. A server that is busy or paused accepts late: who
gives up early leaves it a connection to accept and to drop, and begins anew."""
RECONNECT_BACKOFF_MS_MAX = 1000
FAILED_WAIT_S = 1.5 * RECONNECT_BACKOFF_MS_MAX / 1000
"""How long a channel that has failed may take to connect: gRPC's longest pause between two tries (varied by a fifth),
and the try."""

_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_metadata_size", METADATA_BYTES_MAX),
    # Retries are ours (wire.retry): gRPC's own would send a call twice without telling.
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", CONNECT_TIMEOUT_MS),
    ("grpc.max_reconnect_backoff_ms", RECONNECT_BACKOFF_MS_MAX),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    NO_PROBES,
    # A proxy from the environment would get calls that are meant for loopback.
    ("grpc.enable_http_proxy", 0),
)

_READY = grpc.ChannelConnectivity.READY
_BROKEN = (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN)


class Channels:
    """The channels of one process, by target ("host:port"). Close it, or use it as a context manager."""

    def __init__(self) -> None:
        self._open: dict[str, Channel] = {}

    def get(self, target: str) -> Channel:
        """The channel to `target`, made if there is none."""
        channel = self._open.pop(target, None)
        if channel is None:
            self._make_room()
            channel = Channel(target)
        self._open[target] = channel
        return channel

    async def close(self) -> None:
        """Close every channel; calls on them are cancelled."""
        channels, self._open = list(self._open.values()), {}
        for channel in channels:
            await channel.close()

    async def __aenter__(self) -> Channels:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def _make_room(self) -> None:
        if len(self._open) < CHANNELS_MAX:
            return
        for target, channel in self._open.items():
            if channel.calls == 0:
                # Dropped, not awaited: gRPC closes a channel that nobody holds.
                del self._open[target]
                return


class Channel:
    """One channel; `calls` are those on it now."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.calls = 0
        self._channel: grpc.aio.Channel | None = None
        self._free = asyncio.Semaphore(CALLS_MAX)
        self._methods: dict[str, grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]] = {}

    async def send(
        self, path: str, request: bytes, *, metadata: tuple[tuple[str, str | bytes], ...], timeout_s: float
    ) -> bytes:
        """The reply's bytes. Raises ServerUnavailable if the server was not reached, AioRpcError for the rest.

        Waiting for other calls, connecting and calling share `timeout_s`; they are told apart because only a call that
        was not sent surely had no effect.
        """
        deadline = time.monotonic() + timeout_s
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(self.target, options=_OPTIONS)
        self.calls += 1
        try:
            async with self._place(timeout_s):
                await self._connect(self._channel, deadline - time.monotonic())
                call = self._methods.get(path)
                if call is None:
                    call = self._methods[path] = self._channel.unary_unary(path)
                reply: bytes = await call(request, metadata=metadata, timeout=max(0.001, deadline - time.monotonic()))
                return reply
        finally:
            self.calls -= 1

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()

    @asynccontextmanager
    async def _place(self, timeout_s: float) -> AsyncIterator[None]:
        """One of the calls that may be under way. Raises ServerUnavailable if none of them ends in time."""
        if self._free.locked():
            try:
                async with asyncio.timeout(timeout_s):
                    await self._free.acquire()
            except TimeoutError:
                raise ServerUnavailable(
                    f"{self.target}: {CALLS_MAX} calls are under way, and none was answered in {timeout_s:g} s"
                ) from None
        else:
            await self._free.acquire()
        try:
            yield
        finally:
            self._free.release()

    async def _connect(self, channel: grpc.aio.Channel, timeout_s: float) -> None:
        state = channel.get_state(try_to_connect=True)
        if state is _READY:
            return
        try:
            async with asyncio.timeout(timeout_s):
                while state is not _READY:
                    # A failure from before this call says nothing about now: only a change counts.
                    if not await _has_changed(channel, state):
                        raise ServerUnavailable(f"{self.target} cannot be reached: it is still gone")
                    state = channel.get_state(try_to_connect=True)
                    if state in _BROKEN:
                        raise ServerUnavailable(f"{self.target} cannot be reached: connection refused or no route")
        except TimeoutError:
            raise ServerUnavailable(f"{self.target} cannot be reached in {timeout_s:g} s") from None


async def _has_changed(channel: grpc.aio.Channel, state: grpc.ChannelConnectivity) -> bool:
    """Wait until the channel leaves `state`; False if it failed before and stays so for longer than a try takes.

    A channel that has failed tries again by itself but does not tell: it says TRANSIENT_FAILURE until it is READY.
    """
    if state is not grpc.ChannelConnectivity.TRANSIENT_FAILURE:
        await channel.wait_for_state_change(state)
        return True
    try:
        async with asyncio.timeout(FAILED_WAIT_S):
            await channel.wait_for_state_change(state)
    except TimeoutError:
        return False
    return True
