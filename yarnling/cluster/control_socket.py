"""The way to a cluster's supervisor: a socket beside the state file, for the user who started the cluster.

    {"order": "remove-node", "node": "2"}         one line in
    {"progress": "nm-2: 3 containers run"}        any number of lines out, and then one of
    {"facts": {...}, "text": "nm-2 has left."}
    {"error": "..."}

Who goes away before the end has the order given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from wire.unix_socket import bound, short_name
from yarn.errors import YarnException
from yarnling.cluster.state import unusable_state_directory

LINE_BYTES_MAX = 64 * 1024
"""An order is some hundred bytes."""
REQUEST_S = 5.0
"""How long a connection may wait before its order has come."""
WAITING_MAX = 16
"""Connections that have not sent their order. The one that has waited longest makes room for the next, so that idle
connections cannot keep an order out: a command sends its order as soon as it is connected."""
ORDERS_MAX = 16
"""Orders under way, each a task of the supervisor. People give them one by one, and most exclude one another."""
_CREDENTIALS = struct.Struct("3i")
"""pid, uid, gid: struct ucred."""

Tell = Callable[[str], None]
CarryOut = Callable[[dict[str, Any], Tell], Awaitable[dict[str, Any]]]


class NoSupervisor(YarnException):
    """Nobody answers at the socket."""


@contextlib.contextmanager
def bound_for_orders(path: Path) -> Iterator[socket.socket]:
    """The socket at `path`, which is deleted at the end. Raises YarnException if there cannot be one."""
    try:
        listener = bound(path)
    except OSError as error:
        raise unusable_state_directory(path.parent, error) from None
    try:
        yield listener
    finally:
        listener.close()
        with contextlib.suppress(OSError):
            os.unlink(path)


@contextlib.asynccontextmanager
async def taking_orders(listener: socket.socket, carry_out: CarryOut) -> AsyncIterator[None]:
    """Take orders while the context is open; those under way at its end are given up."""
    orders = _OrderServer(carry_out)
    server = await asyncio.start_unix_server(orders.connected, sock=listener, limit=LINE_BYTES_MAX)
    try:
        yield
    finally:
        server.close()
        await orders.close()


class _OrderServer:
    """The connections of a control socket: those that wait for their order, and those whose order is under way."""

    def __init__(self, carry_out: CarryOut) -> None:
        self._carry_out = carry_out
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self._orders = 0

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if _peer_uid(writer) != os.geteuid():
            writer.close()
            return
        if len(self._waiting) >= WAITING_MAX:
            longest, task = next(iter(self._waiting.items()))
            _say(longest, {"error": f"more than {WAITING_MAX} connections have sent no order"})
            del self._waiting[longest]
            task.cancel()
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._waiting[writer] = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_S):
                line = await reader.readline()
            self._waiting.pop(writer, None)
            await self._answer(_parsed(line), reader, writer)
        except TimeoutError:
            _say(writer, {"error": f"no order came in {REQUEST_S:g} s"})
        except ValueError as error:
            _say(writer, {"error": f"no order: {error}"})
        except ConnectionError:
            # The peer has gone, and its order with it.
            pass
        finally:
            self._waiting.pop(writer, None)
            writer.close()

    async def _answer(
        self, request: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Carry the order out and send its result, unless the peer goes away before."""
        if self._orders >= ORDERS_MAX:
            _say(writer, {"error": f"{ORDERS_MAX} orders are under way (wait until one has ended)"})
            return
        self._orders += 1
        try:
            async with asyncio.TaskGroup() as tasks:
                outcome = _outcome(self._carry_out, request, lambda text: _say(writer, {"progress": text}))
                order, more = tasks.create_task(outcome), tasks.create_task(_next_byte(reader))
                await asyncio.wait((order, more), return_when=asyncio.FIRST_COMPLETED)
                order.cancel()
                more.cancel()
        finally:
            self._orders -= 1
        if not order.cancelled():
            _say(writer, order.result())
        elif more.result():
            _say(writer, {"error": "more than the order came: one line a connection"})


def _say(writer: asyncio.StreamWriter, line: dict[str, Any]) -> None:
    writer.write(json.dumps(line).encode() + b"\n")


async def _next_byte(reader: asyncio.StreamReader) -> bytes:
    """What comes after the order; b"" when the peer has gone."""
    try:
        return await reader.read(1)
    except ConnectionError:
        return b""


async def _outcome(carry_out: CarryOut, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """The last line. A bug of ours is reported in it too, and the supervisor lives."""
    try:
        return await carry_out(request, tell)
    except YarnException as error:
        return {"error": error.message}
    except Exception as error:
        return {"error": f"the supervisor failed: {type(error).__name__}: {error}"}


def _parsed(line: bytes) -> dict[str, Any]:
    """Raises ValueError for a line that is not a JSON object; StreamReader does so for a line that is too long."""
    try:
        request = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(request, dict):
        raise ValueError("must be a JSON object")
    return request


def _peer_uid(writer: asyncio.StreamWriter) -> int:
    peer = writer.get_extra_info("socket")
    _, uid, _ = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(uid)


def answers(path: Path, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What the supervisor says to an order, line by line. Raises NoSupervisor if it does not, or stops midway."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            with short_name(path) as short:
                connection.connect(short)
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as lines:
                for line in lines:
                    answer = json.loads(line)
                    yield answer
                    if "progress" not in answer:
                        return
        except OSError as error:
            raise NoSupervisor(f"{path}: {error.strerror}") from None
    raise NoSupervisor(f"{path}: the supervisor has ended meanwhile")
