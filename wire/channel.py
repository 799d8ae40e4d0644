"""Channels to servers: one per target, created at its first call (never at import, so that a process can still
fork)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import grpc.aio

from yarn.errors import ServerUnavailable

MESSAGE_BYTES_MAX = 64 * 1024 * 1024
"""Size of one message, at clients and servers. gRPC's default of 4 MiB is too small for a NodeManager that registers
again with 10,000 containers."""
METADATA_BYTES_MAX = 64 * 1024
"""The maximum size of the metadata of a call or its end. A token has 200 bytes, the detail of an error at most
20,000."""
CHANNELS_MAX = 1000
"""The maximum of open channels in one process. Beyond that the least recently used channel without calls is closed."""

NO_PROBES = ("grpc.http2.bdp_probe", 0)
"""A gRPC option, set at clients and servers. Without it the receiver of a message sends a ping to measure the
bandwidth, which triples the packets of a heartbeat and costs a third of its CPU."""

CALLS_MAX = 128
"""The maximum of concurrent calls on one channel; further ones wait.

It is below the server's own limit (wire.server.STREAMS_MAX), above which calls are refused, because a server counts a
call for some time after its caller has received the reply.
"""

CONNECT_TIMEOUT_MS = 5000
"""Timeout of one attempt to connect (gRPC's minimum back-off). A busy or paused server accepts late; a caller that
gives up early starts over and leaves the server an abandoned connection to accept."""
RECONNECT_BACKOFF_MS_MAX = 1000
FAILED_WAIT_S = 1.5 * RECONNECT_BACKOFF_MS_MAX / 1000
"""The time to wait for a channel that has failed: gRPC's longest back-off (with a jitter of a fifth) and one
attempt."""

_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_metadata_size", METADATA_BYTES_MAX),
    # We retry ourselves (wire.retry): gRPC would send a call twice without reporting it.
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", CONNECT_TIMEOUT_MS),
    ("grpc.max_reconnect_backoff_ms", RECONNECT_BACKOFF_MS_MAX),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    NO_PROBES,
    # Otherwise gRPC shares one connection among all channels of a process to a target, and so CALLS_MAX would not hold.
    ("grpc.use_local_subchannel_pool", 1),
    # An HTTP proxy named in the environment would receive calls meant for loopback.
    ("grpc.enable_http_proxy", 0),
)

_READY = grpc.ChannelConnectivity.READY
_BROKEN = (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN)


class Channels:
    """The channels of one process, by target ("host:port"). Close it, or use it as a context manager."""

    def __init__(self) -> None:
        self._open: dict[str, Channel] = {}

    def get(self, target: str) -> Channel:
        """The channel to `target`, created if it does not exist."""
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
                # The channel is not closed explicitly: gRPC closes a channel without references.
                del self._open[target]
                return


class Channel:
    """A channel; `calls` is the number of calls on it now."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.calls = 0
        self._channel: grpc.aio.Channel | None = None
        self._free = asyncio.Semaphore(CALLS_MAX)
        self._methods: dict[str, grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]] = {}

    async def send(
        self, path: str, request: bytes, *, metadata: tuple[tuple[str, str | bytes], ...], timeout_s: float
    ) -> bytes:
        """Send a request; returns the reply's bytes.

        Raises ServerUnavailable if the call was not sent, AioRpcError for any later failure. The errors differ because
        only a call that was not sent surely had no effect. `timeout_s` covers waiting for other calls, connecting, and
        the call itself.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(self.target, options=_OPTIONS)
        self.calls += 1
        try:
            async with self._place(timeout_s):
                await self._connect(self._channel, deadline - loop.time())
                call = self._methods.get(path)
                if call is None:
                    call = self._methods[path] = self._channel.unary_unary(path)
                reply: bytes = await call(request, metadata=metadata, timeout=max(0.001, deadline - loop.time()))
                return reply
        finally:
            self.calls -= 1

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()

    @asynccontextmanager
    async def _place(self, timeout_s: float) -> AsyncIterator[None]:
        """Take one of the channel's CALLS_MAX places for the context.

        Raises ServerUnavailable if none becomes free in time.
        """
        if self._free.locked():
            try:
                async with asyncio.timeout(timeout_s):
                    await self._free.acquire()
            except TimeoutError:
                raise ServerUnavailable(
                    f"{self.target}: none of {CALLS_MAX} concurrent calls was answered within {timeout_s:g} s"
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
                    # A failure from before this call may be outdated, so wait for a change of the state.
                    if not await _has_changed(channel, state):
                        raise ServerUnavailable(f"{self.target} cannot be reached: reconnecting has failed")
                    state = channel.get_state(try_to_connect=True)
                    if state in _BROKEN:
                        raise ServerUnavailable(f"{self.target} cannot be reached: connection refused or no route")
        except TimeoutError:
            raise ServerUnavailable(f"{self.target} cannot be reached within {timeout_s:g} s") from None


async def _has_changed(channel: grpc.aio.Channel, state: grpc.ChannelConnectivity) -> bool:
    """Wait until the channel leaves `state`; False if it had failed before and did not recover within FAILED_WAIT_S.

    A channel that has failed reconnects by itself, but reports TRANSIENT_FAILURE until it is READY.
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
