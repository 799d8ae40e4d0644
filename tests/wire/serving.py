"""Handlers and servers for tests of the wire."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from wire.address import Address
from wire.caller import Caller
from wire.rpc import Rpc
from wire.server import RpcServer
from yarn.ids import NodeId

NODE = NodeId("127.0.0.2", 45454)
LOOPBACK = Address("127.0.0.1", 0)


def anybody(caller: Caller[None]) -> None:
    """Accepts every caller."""


class Recorder:
    """A service of any protocol: it records its calls and returns (or raises) the given answers."""

    def __init__(self, answers: dict[str, object]) -> None:
        self.answers = answers
        self.calls: list[tuple[str, Caller[Any], object]] = []

    def __getattr__(self, name: str) -> Any:
        async def method(caller: Caller[Any], request: object) -> object:
            self.calls.append((name, caller, request))
            answer = self.answers.get(name)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return method


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="sockets-")


def socket_dir() -> Path:
    """A directory for the Unix sockets of the servers of this process, removed at its end."""
    return Path(_directory().name)


@asynccontextmanager
async def serving(
    rpcs: tuple[Rpc[Any, Any], ...], handler: object, authenticate: Any = anybody, **options: Any
) -> AsyncIterator[RpcServer]:
    server = RpcServer(LOOPBACK, socket_dir(), **options)
    server.add(rpcs, handler, authenticate)
    await server.start()
    try:
        yield server
    finally:
        await server.stop(0)


def target(server: RpcServer) -> str:
    return f"127.0.0.1:{server.port}"
