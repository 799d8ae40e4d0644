"""Streams a daemon's calls and state changes to watchers: each daemon has a Unix socket in one directory.

A call or a change is one JSON line:

    directory/NAME.sock     NAME: ResourceManager, or a node's id; only the directory's owner can connect
    {"at_ms": ..., "ms": 0.8, "from": "...", "to": NAME, "rpc": "allocate", "request": ..., "reply": ..., "error": null,
     "request_bytes": 84, "reply_bytes": 120}
    {"at_ms": ..., "of": NAME, "kind": "RMApp", "subject": "application_...", "event": "ATTEMPT_REGISTERED",
     "source": "ACCEPTED", "target": "RUNNING"}
    {"dropped": 12}         this many lines were left out because the watcher is too slow

Records are written as in wire.files.json_records, without secrets. Without a watcher a call costs one look at an empty
dict.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from wire.address import bound, short_name
from wire.caller import RM_CALLER, Caller
from wire.files.json_records import to_json
from wire.rpc import Rpc
from yarn.configuration import Configuration
from yarn.containers import AMRMTokenIdentifier, NMTokenIdentifier
from yarn.errors import YarnException
from yarn.settings.yarnling import WATCH_DIR

SUFFIX = ".sock"
LINE_BYTES_MAX = 256 * 1024
"""A call whose line would be longer is sent without its records."""
UNREAD_BYTES_MAX = 4 * 1024 * 1024
"""The maximum of bytes kept for a watcher that does not read; further lines are dropped, and their number is sent."""
WATCHERS_MAX = 16
"""The maximum of watchers of one daemon; further connections are closed."""

_logger = logging.getLogger(f"yarnling.{__name__}")


class CallWatch:
    """Sends the calls and state changes of one daemon to its watchers; an RpcObserver."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._name = ""
        self._server: asyncio.AbstractServer | None = None
        self._watchers: dict[_Watcher, None] = {}

    @staticmethod
    def read(conf: Configuration) -> CallWatch | None:
        """The watch as configured; None if no directory is set."""
        name = WATCH_DIR.maybe_of(conf)
        return CallWatch(Path(name)) if name else None

    async def open(self, name: str) -> None:
        """Let watchers connect. Raises YarnException if the socket cannot be created."""
        self._name = name
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            listening = bound(self._directory / f"{name}{SUFFIX}")
        except OSError as error:
            raise YarnException(
                f"{WATCH_DIR.key} = {self._directory}: {error.strerror} (name another directory, or remove the setting)"
            ) from None
        # create_unix_server of Python 3.13 looks for the file by its bound name, which was valid only while binding.
        self._server = await asyncio.get_running_loop().create_server(lambda: _Watcher(self._watchers), sock=listening)

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for watcher in tuple(self._watchers):
            watcher.leave()
        with contextlib.suppress(OSError):
            (self._directory / f"{self._name}{SUFFIX}").unlink()

    def received(self, caller: Caller[Any], rpc: Rpc[Any, Any], request: object) -> None:
        """Ignored: a call is sent when it is answered."""

    def answered(
        self, caller: Caller[Any], rpc: Rpc[Any, Any], request: object, outcome: object, elapsed_ms: float
    ) -> None:
        if not self._watchers:
            return
        try:
            line = _line(self._name, caller, rpc, request, outcome, elapsed_ms)
        except Exception:
            _logger.exception("cannot send a call to watchers rpc=%s", rpc.name)
            return
        for watcher in tuple(self._watchers):
            watcher.send(line)

    def changed(self, of: str, kind: str, subject: str, *, event: str, source: str, target: str) -> None:
        """Report that a `subject` of the daemon or node `of` went from state `source` to `target` on `event`."""
        if not self._watchers:
            return
        at_ms = time.time_ns() // 1_000_000
        change = {"at_ms": at_ms, "of": of, "kind": kind, "subject": subject}
        line = json.dumps(change | {"event": event, "source": source, "target": target}, separators=(",", ":"))
        for watcher in tuple(self._watchers):
            watcher.send(line.encode() + b"\n")


class _Watcher(asyncio.Protocol):
    """A connected watcher."""

    def __init__(self, watchers: dict[_Watcher, None]) -> None:
        self._watchers = watchers
        self._transport: asyncio.Transport | None = None
        self._dropped = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "stream sockets have this kind of transport"
        self._transport = transport
        if len(self._watchers) < WATCHERS_MAX:
            self._watchers[self] = None
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._watchers.pop(self, None)

    def send(self, line: bytes) -> None:
        """Write the line, or count it as dropped if the watcher has too much unread."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if transport.get_write_buffer_size() > UNREAD_BYTES_MAX:
            self._dropped += 1
            return
        if self._dropped:
            transport.write(json.dumps({"dropped": self._dropped}).encode() + b"\n")
            self._dropped = 0
        transport.write(line)

    def leave(self) -> None:
        if self._transport is not None:
            self._transport.close()


def _line(
    name: str, caller: Caller[Any], rpc: Rpc[Any, Any], request: object, outcome: object, elapsed_ms: float
) -> bytes:
    error = outcome if isinstance(outcome, YarnException) else None
    call: dict[str, Any] = {
        "at_ms": time.time_ns() // 1_000_000,
        "ms": round(elapsed_ms, 3),
        "from": _who(caller),
        "to": name,
        "rpc": rpc.name,
        "request": to_json(request),
        "reply": None if error is not None else to_json(outcome),
        "error": None if error is None else {"exception": error.java_class, "message": error.message},
        "request_bytes": 0 if request is None else rpc.request.size(request),
        "reply_bytes": 0 if error is not None or outcome is None else rpc.reply.size(outcome),
    }
    line = json.dumps(call, separators=(",", ":")).encode()
    if len(line) > LINE_BYTES_MAX:
        call |= {"request": None, "reply": None, "left_out_bytes": len(line)}
        line = json.dumps(call, separators=(",", ":")).encode()
    return line + b"\n"


def _who(caller: Caller[Any]) -> str:
    """The caller as its token proves it; for a client the user name that it claims."""
    verified = caller.verified
    if isinstance(verified, NMTokenIdentifier | AMRMTokenIdentifier):
        return f"{RM_CALLER} for {verified.attempt_id}" if caller.user == RM_CALLER else str(verified.attempt_id)
    if verified is not None:
        return str(verified)
    return f"user {caller.user}" if caller.user else "unknown caller"


def sockets(directory: Path) -> list[str]:
    """The names of the daemons that can be watched."""
    return sorted(path.name.removesuffix(SUFFIX) for path in directory.glob(f"*{SUFFIX}"))


async def calls_of(directory: Path, name: str) -> AsyncIterator[dict[str, Any]]:
    """The lines of one daemon until it exits; none if it does not run."""
    try:
        with short_name(directory / f"{name}{SUFFIX}") as short:
            reader, writer = await asyncio.open_unix_connection(short, limit=2 * LINE_BYTES_MAX)
    except OSError:
        return
    try:
        while line := await reader.readline():
            if line.endswith(b"\n"):
                yield json.loads(line)
    except ConnectionError:
        return
    finally:
        writer.close()
