"""Bulky replies: those that grow with the cluster, such as the list of all applications.

Building one takes 60 us a record on the event loop that serves everybody: 0.2 s for 4,000 applications. Fifty such
calls at once held up every other call for ten seconds, and their replies took 250 MB when nobody read them. So

- a bulky reply is built in parts, and other calls are served between two parts;
- one is built at a time; each connection waits for at most one of its calls in that queue, so connections take turns;
- a connection gets its next one when it has read the last. One that does not read at all is closed by gRPC's keepalive
  (wire.server), after two minutes.

Refused: threads (the core's state may change while they look), and a limit on the number of records (Hadoop has none).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from wire.rpc import Rpc

PART_RECORDS = 32
"""Records that are built or encoded without a pause: 2 ms."""
ROUNDS_A_PART = 8
"""Rounds of the event loop between two parts, 20 us each when nothing else is to be done. With one round, 500 calls
that came at once held up the next one for eight seconds."""

T = TypeVar("T")
Reply = TypeVar("Reply")


class BulkyReplies:
    """The queue of one server's bulky replies."""

    def __init__(self) -> None:
        self._building = asyncio.Lock()
        self._connections: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._next_start_s = 0.0

    @asynccontextmanager
    async def one_of(self, peer: str) -> AsyncIterator[None]:
        """Wait until the connection has read its last bulky reply; hold this until it has read the next."""
        lock = self._connections.get(peer)
        if lock is None:
            lock = self._connections[peer] = asyncio.Lock()
        async with lock:
            yield

    async def build(self, rpc: Rpc[Any, Reply], make: Callable[[], Awaitable[Reply]]) -> tuple[Reply, bytes]:
        """The reply that `make` returns, and its bytes, when it is this call's turn.

        One that is not a list cannot be built in parts; other calls get the loop for as long as it took.
        """
        async with self._building:
            await asyncio.sleep(max(0.0, self._next_start_s - time.monotonic()))
            started_s = time.monotonic()
            reply = await make()
            if isinstance(reply, tuple):
                return reply, await _encoded_in_parts(rpc, reply)
            data = rpc.reply.encode(reply)
            self._next_start_s = 2 * time.monotonic() - started_s
            return reply, data


async def in_parts(records: Iterable[T]) -> tuple[T, ...]:
    """All records, with other calls served after each part. What makes them must allow for changes in between."""
    made: list[T] = []
    for record in records:
        made.append(record)
        if len(made) % PART_RECORDS == 0:
            await _serve_others()
    return tuple(made)


async def _encoded_in_parts(rpc: Rpc[Any, Any], reply: tuple[Any, ...]) -> bytes:
    """The message's bytes: one of repeated fields alone is the concatenation of the messages of its parts."""
    parts: list[bytes] = []
    for start in range(0, len(reply), PART_RECORDS):
        parts.append(rpc.reply.encode(reply[start : start + PART_RECORDS]))
        await _serve_others()
    return b"".join(parts)


async def _serve_others() -> None:
    """A pause of some rounds of the event loop: gRPC takes one new call a round, and each call takes several."""
    for _ in range(ROUNDS_A_PART):
        await asyncio.sleep(0)
