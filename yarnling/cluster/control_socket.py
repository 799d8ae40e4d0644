"""The control socket of a cluster's supervisor.

The socket is beside the state file, and only the user who started the cluster may use it.

    {"command": "remove-node", "node": "2"}       the client sends one line
    {"progress": "nm-2: waiting for ..."}         the supervisor sends any number of these lines, and then one of
    {"facts": {...}, "text": "nm-2 has left."}
    {"error": "..."}

If the client disconnects before the end, its command is cancelled.
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

from wire.address import bound, short_name
from yarn.errors import YarnException
from yarnling.cluster.nodes import Report
from yarnling.cluster.state import unusable_state_directory

LINE_BYTES_MAX = 64 * 1024
"""The size limit of a command; a command usually has about a hundred bytes."""
REQUEST_S = 5.0
"""The time, in seconds, a connection may take to send its command."""
WAITING_MAX = 16
"""The limit on connections that have not sent their command. Above it, the oldest is closed to make room for the next,
so that idle connections cannot block a command. A client sends its command as soon as it is connected."""
COMMANDS_MAX = 16
"""The limit on commands that run at the same time; each is a task of the supervisor."""
_CREDENTIALS = struct.Struct("3i")
"""The format of the kernel's struct ucred: pid, uid, gid."""

Execute = Callable[[dict[str, Any], Report], Awaitable[dict[str, Any]]]


class NoSupervisor(YarnException):
    """No supervisor answers at the socket."""


@contextlib.contextmanager
def bound_socket(path: Path) -> Iterator[socket.socket]:
    """A socket bound to `path`, which is deleted when the context closes. Raises YarnException if binding fails."""
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
async def serving_commands(listener: socket.socket, execute: Execute) -> AsyncIterator[None]:
    """Serve commands while the context is open. When it closes, commands that still run are cancelled."""
    commands = _CommandServer(execute)
    # start_unix_server of Python 3.13 looks for the file by its bound name, which was valid only while binding.
    server = await asyncio.start_server(commands.connected, sock=listener, limit=LINE_BYTES_MAX)
    try:
        yield
    finally:
        server.close()
        await commands.close()


class _CommandServer:
    """The connections of a control socket: those that have not sent a command yet, and those whose command runs."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self._running = 0

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if _peer_uid(writer) != os.geteuid():
            writer.close()
            return
        if len(self._waiting) >= WAITING_MAX:
            longest, task = next(iter(self._waiting.items()))
            _send(longest, {"error": f"more than {WAITING_MAX} connections have not sent a command"})
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
            _send(writer, {"error": f"no command was received in {REQUEST_S:g} s"})
        except ValueError as error:
            _send(writer, {"error": f"not a command: {error}"})
        except ConnectionError:
            # The client has disconnected; its command is cancelled.
            pass
        finally:
            self._waiting.pop(writer, None)
            writer.close()

    async def _answer(
        self, request: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Execute the command and send its result, unless the client disconnects before."""
        if self._running >= COMMANDS_MAX:
            _send(writer, {"error": f"{COMMANDS_MAX} commands are running (wait until one has ended)"})
            return
        self._running += 1
        try:
            async with asyncio.TaskGroup() as tasks:
                outcome = _outcome(self._execute, request, lambda text: _send(writer, {"progress": text}))
                command, more = tasks.create_task(outcome), tasks.create_task(_next_byte(reader))
                await asyncio.wait((command, more), return_when=asyncio.FIRST_COMPLETED)
                command.cancel()
                more.cancel()
        finally:
            self._running -= 1
        if not command.cancelled():
            _send(writer, command.result())
        elif more.result():
            _send(writer, {"error": "data after the command: send one line for each connection"})


def _send(writer: asyncio.StreamWriter, line: dict[str, Any]) -> None:
    writer.write(json.dumps(line).encode() + b"\n")


async def _next_byte(reader: asyncio.StreamReader) -> bytes:
    """Wait for data after the command; b"" if the client has disconnected."""
    try:
        return await reader.read(1)
    except ConnectionError:
        return b""


async def _outcome(execute: Execute, request: dict[str, Any], report: Report) -> dict[str, Any]:
    """Execute a command and return the last line of its answer.

    An unexpected exception becomes an error line, because it must not end the supervisor.
    """
    try:
        return await execute(request, report)
    except YarnException as error:
        return {"error": error.message}
    except Exception as error:
        return {"error": f"the supervisor failed: {type(error).__name__}: {error}"}


def _parsed(line: bytes) -> dict[str, Any]:
    """Parse a command.

    Raises ValueError for a line that is not a JSON object, as StreamReader does for a line that is too long.
    """
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
    """Send a command and yield the supervisor's answers, line by line.

    Raises NoSupervisor if the supervisor does not answer, or ends before its last answer.
    """
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
    raise NoSupervisor(f"{path}: the supervisor has ended")
