"""Servers for tests of Hadoop's RPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.wire.serving import LOOPBACK, anybody
from wire.hadoop_authentication import ByUser, HadoopAuthentication
from wire.hadoop_rpc.server import HadoopServer
from wire.rpc import Rpc
from wire.server import RpcServer
from yarn.containers import CLIENT_KIND, Token

OWN = Token(b"", b"own", CLIENT_KIND, "")
BY_USER = ByUser(OWN)


@asynccontextmanager
async def serving_both(
    rpcs: tuple[Rpc[Any, Any], ...],
    handler: object,
    directory: Path,
    *,
    authentication: HadoopAuthentication = BY_USER,
    authenticate: Any = anybody,
    **options: Any,
) -> AsyncIterator[RpcServer]:
    """A server that answers gRPC's and Hadoop's clients; its Unix socket is in `directory`."""
    server = RpcServer(LOOPBACK, directory, **options)
    server.add(rpcs, handler, authenticate)
    server.answer_hadoop(partial(HadoopServer, authentication))
    await server.start()
    try:
        yield server
    finally:
        await server.stop(0)


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition that other tasks establish; it is polled, as there is no event for it."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.001)
