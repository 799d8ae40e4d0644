"""A NodeManager's life without a cluster: it starts, registers, beats and ends, and nothing of gRPC is made.

Who forks NodeManagers lets one rehearse before. What CPython learns of code and classes as it executes them is then
there for all of them; each had to find it out for itself else, in memory of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import grpc.aio

from nm.daemon import serve
from nm.node_manager import emulation_of
from wire.cluster_secret import write_cluster_secret
from wire.protocols import tracker
from yarn.configuration import Configuration
from yarn.protocols.tracker import MasterKey, NodeHeartbeatResponse, RegisterNodeManagerResponse
from yarn.settings import nodemanager, yarnling
from yarn.states import NodeAction

BEATS = 2
"""The second one goes another way than the first."""
_RM_IDENTIFIER = 1
_KEY = MasterKey(1, bytes(32))
_PORT = 1

Answer = Callable[[str], bytes]


def rehearse(directory: Path) -> None:
    """Be a NodeManager for a moment, with all its files in a new directory."""
    directory.mkdir()
    asyncio.run(_rehearse(_configuration(directory)))


def read_ahead(conf: Configuration) -> bool:
    """Read what all NodeManagers of this configuration would read, each for itself; False if there is nothing.

    Raises ConfigurationException with every fault of the table of emulated containers.
    """
    return emulation_of(conf) is not None


async def _rehearse(conf: Configuration) -> None:
    stop = asyncio.Event()
    with _without_grpc(_PlayedTracker(stop).answer):
        await serve(conf, lambda facts: None, stop=stop)


def _configuration(directory: Path) -> Configuration:
    secret = directory / "secret"
    write_cluster_secret(secret)
    return Configuration.of(
        {
            nodemanager.ADDRESS.key: "127.0.0.1:0",
            nodemanager.LOCAL_DIRS.key: str(directory / "local"),
            nodemanager.LOG_DIRS.key: str(directory / "logs"),
            yarnling.CLUSTER_SECRET_FILE.key: str(secret),
            yarnling.WATCH_DIR.key: str(directory),
        }
    )


class _PlayedTracker:
    """Answers as the RM does, and sets `stop` after some heartbeats."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop
        self._beats = 0

    def answer(self, path: str) -> bytes:
        if path == tracker.REGISTER_NODE_MANAGER.path:
            response = RegisterNodeManagerResponse(NodeAction.NORMAL, _RM_IDENTIFIER, _KEY, _KEY)
            return tracker.REGISTER_NODE_MANAGER.reply.encode(response)
        if path != tracker.NODE_HEARTBEAT.path:
            return tracker.UNREGISTER_NODE_MANAGER.reply.encode(None)
        self._beats += 1
        if self._beats >= BEATS:
            self._stop.set()
        return tracker.NODE_HEARTBEAT.reply.encode(NodeHeartbeatResponse(self._beats, NodeAction.NORMAL, 1))


@contextmanager
def _without_grpc(answer: Answer) -> Iterator[None]:
    """Servers and channels are played meanwhile: a process that has made a real one can fork no more."""
    real = grpc.aio.server, grpc.aio.insecure_channel
    played = (lambda *_, **__: _PlayedServer(), lambda *_, **__: _PlayedChannel(answer))
    _set_makers(*played)
    try:
        yield
    finally:
        _set_makers(*real)


def _set_makers(server: Callable[..., object], channel: Callable[..., object]) -> None:
    for name, maker in (("server", server), ("insecure_channel", channel)):
        setattr(grpc.aio, name, maker)


class _PlayedServer:
    """As much of grpc.aio.Server as wire.server needs."""

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Nobody calls."""

    def add_insecure_port(self, address: str) -> int:
        return _PORT

    async def start(self) -> None:
        """Nobody calls."""

    async def stop(self, grace: float | None) -> None:
        """It never began."""


class _PlayedChannel:
    """As much of grpc.aio.Channel as wire.channel needs."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def get_state(self, try_to_connect: bool) -> grpc.ChannelConnectivity:
        return grpc.ChannelConnectivity.READY

    def unary_unary(self, path: str) -> Callable[..., object]:
        async def call(request: bytes, **_: object) -> bytes:
            await asyncio.sleep(0)
            return self._answer(path)

        return call

    async def close(self) -> None:
        """It was never open."""
