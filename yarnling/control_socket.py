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

LINE_BYTES_MAX = 64 * 1024
"""An order is some hundred bytes."""
REQUEST_S = 5.0
"""Who connects has something to say."""
CONNECTIONS_MAX = 16
_CREDENTIALS = struct.Struct("3i")
"""pid, uid, gid: struct ucred."""

Tell = Callable[[str], None]
CarryOut = Callable[[dict[str, Any], Tell], Awaitable[dict[str, Any]]]


class NoSupervisor(YarnException):
    """Nobody answers at the socket."""


@contextlib.asynccontextmanager
async def listening(path: Path, carry_out: CarryOut) -> AsyncIterator[None]:
    """Take orders while the context is open. Raises YarnException if there cannot be a socket."""
    try:
        listener = bound(path)
    except OSError as error:
        raise YarnException(f"{path}: cannot take orders there: {error.strerror} (set XDG_RUNTIME_DIR)") from None
    connections: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(connections) >= CONNECTIONS_MAX or _peer_uid(writer) != os.geteuid():
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(_serve(reader, writer, carry_out))
        connections.add(task)
        task.add_done_callback(connections.discard)

    server = await asyncio.start_unix_server(connected, sock=listener, limit=LINE_BYTES_MAX)
    try:
        yield
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        with contextlib.suppress(OSError):
            os.unlink(path)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, carry_out: CarryOut) -> None:
    def say(line: dict[str, Any]) -> None:
        writer.write(json.dumps(line).encode() + b"\n")

    try:
        async with asyncio.timeout(REQUEST_S):
            request = _parsed(await reader.readline())
        async with asyncio.TaskGroup() as tasks:
            order = tasks.create_task(_outcome(carry_out, request, lambda text: say({"progress": text})))
            gone = tasks.create_task(reader.read(1))
            await asyncio.wait((order, gone), return_when=asyncio.FIRST_COMPLETED)
            order.cancel()
            gone.cancel()
        if not order.cancelled():
            say(order.result())
    except TimeoutError:
        say({"error": f"no order came in {REQUEST_S:g} s"})
    except ValueError as error:
        say({"error": f"no order: {error}"})
    finally:
        writer.close()


async def _outcome(carry_out: CarryOut, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """The last line. A bug of ours is told too, and the supervisor lives."""
    try:
        return await carry_out(request, tell)
    except YarnException as error:
        return {"error": error.message}
    except Exception as error:
        return {"error": f"the supervisor failed: {type(error).__name__}: {error}"}


def _parsed(line: bytes) -> dict[str, Any]:
    """Raises ValueError for what is no JSON object; StreamReader does so for a line that is too long."""
    request = json.loads(line)
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
