"""A TCP proxy that does harm: one `Link` stands on the way from some callers to one server.

What a network does to a stream is done to it here: held back and let through again (a cable pulled and put back: TCP
sends once more what was lost), delayed, slowed down, broken off. Bytes are never left out: no network does that to TCP.
Loss shows as the pause after which a lost packet comes again.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import time
from dataclasses import dataclass, field

from msgspec import Struct

CHUNK_BYTES = 16 * 1024
CHUNKS_MAX = 64
"""Read and not yet sent, in one direction of one connection; then the sender has to wait."""
RETRANSMIT_S = 0.2
"""What a lost packet costs: the least time after which Linux sends it again."""
BACKLOG = 1024


class Harm(Struct, frozen=True):
    """What is done to a link. `requests`, `replies`: nothing passes that way; `forgets`: what was held back is lost at
    the end, and the connection with it. `reset`: each connection is broken off, old ones and new.

    `rate`: bytes a second, 0: no bound. `loss`, `breaks`: how likely it is that a chunk is lost on its way, or the
    connection with it.
    """

    requests: bool = False
    replies: bool = False
    forgets: bool = False
    reset: bool = False
    delay_s: float = 0.0
    loss: float = 0.0
    rate: float = 0.0
    breaks: float = 0.0


@dataclass
class Way:
    """One direction of a link, as all that is done to it makes it. `is_open` cleared: nothing passes."""

    delay_s: float = 0.0
    loss: float = 0.0
    rate: float = 0.0
    breaks: float = 0.0
    is_open: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.is_open.set()


class Link:
    """Listens on `host` at a port of its own and passes each connection on to `target`.

    `requests` is the way from callers to the server, `replies` the way back. Use it as a context manager.
    """

    def __init__(self, name: str, draw: random.Random) -> None:
        self.name = name
        self.target: tuple[str, int] | None = None
        self.address = ("", 0)
        self.requests, self.replies = Way(), Way()
        self.refuses = False
        self._harms: dict[int, Harm] = {}
        self._draw = draw
        self._server: asyncio.Server | None = None
        self._connections: dict[_Connection, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self, host: str) -> tuple[str, int]:
        """Take a free port; its address. What connects before there is a target is broken off."""
        self._server = await asyncio.start_server(self._serve, host, 0, backlog=BACKLOG)
        name = self._server.sockets[0].getsockname()
        self.address = (name[0], name[1])
        return self.address

    def harm(self, key: int, harm: Harm) -> None:
        """Do this to what passes, beside what else is done to it, until `undo`."""
        self._harms[key] = harm
        self._apply()
        if harm.reset:
            self.break_off()

    def undo(self, key: int) -> None:
        """Do this no more; no error if it is not done."""
        harm = self._harms.pop(key, None)
        if harm is not None and harm.forgets:
            self.break_off()
        self._apply()

    def heal(self) -> None:
        """Let everything pass as it comes, what was held back too."""
        for key in tuple(self._harms):
            self.undo(key)

    def break_off(self) -> None:
        """End every connection with a reset."""
        for connection in tuple(self._connections):
            connection.reset()

    async def close(self) -> None:
        """Listen no more and end every connection."""
        if self._server is not None:
            self._server.close()
        self.break_off()
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))

    def _apply(self) -> None:
        harms = self._harms.values()
        self.refuses = any(harm.reset for harm in harms)
        for way, closed in (
            (self.requests, any(harm.requests for harm in harms)),
            (self.replies, any(harm.replies for harm in harms)),
        ):
            way.delay_s = sum(harm.delay_s for harm in harms)
            way.loss = max((harm.loss for harm in harms), default=0.0)
            way.breaks = max((harm.breaks for harm in harms), default=0.0)
            way.rate = min((harm.rate for harm in harms if harm.rate), default=0.0)
            if closed:
                way.is_open.clear()
            else:
                way.is_open.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = _Connection(self, reader, writer, self._draw)
        self._connections[connection] = None
        try:
            await connection.run()
        finally:
            self._connections.pop(connection, None)
            self._tasks.discard(task)


class _Connection:
    """One connection of a caller, and the one to the server that belongs to it."""

    def __init__(
        self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, draw: random.Random
    ) -> None:
        self._link = link
        self._reader = reader
        self._writers = [writer]
        self._draw = draw

    async def run(self) -> None:
        link = self._link
        if link.refuses or link.target is None:
            self.reset()
            return
        try:
            # A connection that is asked for over a dead cable does not come about.
            await link.requests.is_open.wait()
            reader, writer = await asyncio.open_connection(*link.target)
        except OSError:
            self.reset()
            return
        self._writers.append(writer)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pass(self._reader, writer, link.requests))
                tasks.create_task(self._pass(reader, self._writers[0], link.replies))
        except* OSError:
            pass
        finally:
            self.reset()

    def reset(self) -> None:
        """Close both sides so that their other ends see a reset."""
        for writer in self._writers:
            if writer.transport.is_closing():
                continue
            with contextlib.suppress(OSError):
                # Linger for no time: the kernel sends RST instead of FIN.
                sock: socket.socket | None = writer.get_extra_info("socket")
                if sock is not None:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way) -> None:
        """Carry one direction until its sender ends it; the end is passed on in its turn, and ends both."""
        chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_MAX)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._take(reader, chunks, way))
            while True:
                due_s, data = await chunks.get()
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
                await way.is_open.wait()
                if not data or self._breaks(way):
                    raise ConnectionResetError
                writer.write(data)
                await writer.drain()
                if way.rate:
                    await asyncio.sleep(len(data) / way.rate)

    async def _take(self, reader: asyncio.StreamReader, chunks: asyncio.Queue[tuple[float, bytes]], way: Way) -> None:
        while True:
            data = await reader.read(CHUNK_BYTES)
            lost_s = RETRANSMIT_S if way.loss and self._draw.random() < way.loss else 0.0
            await chunks.put((time.monotonic() + way.delay_s + lost_s, data))
            if not data:
                return

    def _breaks(self, way: Way) -> bool:
        return bool(way.breaks) and self._draw.random() < way.breaks
