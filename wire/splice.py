"""Passes a connection on to the gRPC server, byte by byte, both ways.

The gRPC server sees a Unix socket. Ours has a name there, from which the listener finds the caller's own address.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable

LINGER_S = 20.0
"""The time one end may take to read what the other end sent before it closed."""
CONNECT_S = 20.0
"""The time the gRPC server may leave a connection waiting. Its queue is full only in a burst of thousands."""
CONNECT_RETRY_S = 0.01
_RECEIVED = bytearray(64 * 1024)
"""Where all splices receive: what arrives is passed on at once. A buffer for each read made a call a fifth dearer."""


class Splice:
    """The two ends of one connection. `left` is called once, when the caller's end is closed."""

    def __init__(self, transport: asyncio.Transport, left: Callable[[Splice], None]) -> None:
        """Stops reading from `transport` until `connect` has returned."""
        transport.pause_reading()
        self._left = left
        self._front = _End(self._lost)
        self._back = _End(self._lost)
        self._front.transport = transport
        self._front.other, self._back.other = self._back, self._front
        transport.set_protocol(self._front)

    async def connect(self, path: str, name: str, received: bytes) -> None:
        """Connect to the gRPC server at `path` under a name, and send it what was received so far. Raises OSError."""
        end = await _connected(path, name)
        await asyncio.get_running_loop().create_unix_connection(lambda: self._back, sock=end)
        front, back = self._front.transport, self._back.transport
        assert front is not None, "set at the beginning"
        assert back is not None, "set once it is connected"
        if front.is_closing():
            back.abort()
            return
        back.write(received)
        front.resume_reading()

    def abort(self) -> None:
        for end in (self._front, self._back):
            if end.transport is not None:
                end.transport.abort()

    def _lost(self, end: _End) -> None:
        if end is self._front:
            self._left(self)


class _End(asyncio.BufferedProtocol):
    """An end of a splice. It writes what it receives to the other end, and pauses while that cannot keep up."""

    def __init__(self, lost: Callable[[_End], None]) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: _End | None = None
        self._lost = lost

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "stream sockets have this kind of transport"
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return _RECEIVED

    def buffer_updated(self, nbytes: int) -> None:
        target = self._target()
        if target is not None:
            # A copy: the transport keeps what it cannot send at once.
            target.write(_RECEIVED[:nbytes])

    def pause_writing(self) -> None:
        source = self._target()
        if source is not None:
            source.pause_reading()

    def resume_writing(self) -> None:
        source = self._target()
        if source is not None:
            source.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost(self)
        target = self._target()
        if target is not None:
            # Received bytes are still sent, for a while.
            target.close()
            asyncio.get_running_loop().call_later(LINGER_S, target.abort)

    def _target(self) -> asyncio.Transport | None:
        """The transport of the other end, unless it is closed or not connected yet."""
        transport = None if self.other is None else self.other.transport
        return None if transport is None or transport.is_closing() else transport


async def _connected(path: str, name: str) -> socket.socket:
    """A Unix socket with an abstract name, connected to the one at `path`. Raises OSError."""
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        end.bind(f"\0{name}")
        deadline = time.monotonic() + CONNECT_S
        while True:
            try:
                end.connect(path)
                return end
            except BlockingIOError:
                # A Unix socket refuses at once if the queue is full (asyncio would take it for connected).
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(CONNECT_RETRY_S)
    except BaseException:
        end.close()
        raise
