"""A NodeManager's life without a cluster: it starts, registers, beats and ends, and nothing of gRPC is made.

Who forks NodeManagers lets one rehearse before. What CPython learns of code and classes as it executes them is then
there for all of them; each had to find it out for itself else, in memory of its own.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

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
_BEAT_MS = 1
_RM_IDENTIFIER = 1
_KEY = MasterKey(1, bytes(32))
_PORT = 1

cygrpc: Any = importlib.import_module("grpc._cython.cygrpc")

Answer = Callable[[str], bytes]


def rehearse(directory: Path) -> None:
    """Be a NodeManager for a moment, with all its files in a new directory."""
    asyncio.run(_rehearse(directory))


def read_ahead(conf: Configuration) -> bool:
    """Read what all NodeManagers of this configuration would read, each for itself; False if there is nothing.

    Raises ConfigurationException with every fault of the table of emulated containers.
    """
    return emulation_of(conf) is not None


@contextmanager
def staged(directory: Path, end: Callable[[], None]) -> Iterator[Configuration]:
    """What a NodeManager needs to live here: the configuration of one whose files are all in a new directory.

    Nothing of gRPC is made while the context is open. `end` is called when it has lived long enough.
    """
    directory.mkdir()
    with _without_grpc(_PlayedTracker(end).answer):
        yield _configuration(directory)


async def _rehearse(directory: Path) -> None:
    stop = asyncio.Event()
    with staged(directory, stop.set) as conf:
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
    """Answers as the RM does, and calls `end` after some heartbeats."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._beats = 0

    def answer(self, path: str) -> bytes:
        if path == tracker.REGISTER_NODE_MANAGER.path:
            response = RegisterNodeManagerResponse(NodeAction.NORMAL, _RM_IDENTIFIER, _KEY, _KEY)
            return tracker.REGISTER_NODE_MANAGER.reply.encode(response)
        if path != tracker.NODE_HEARTBEAT.path:
            return tracker.UNREGISTER_NODE_MANAGER.reply.encode(None)
        self._beats += 1
        if self._beats == BEATS:
            self._end()
        return tracker.NODE_HEARTBEAT.reply.encode(NodeHeartbeatResponse(self._beats, NodeAction.NORMAL, _BEAT_MS))


@contextmanager
def _without_grpc(answer: Answer) -> Iterator[None]:
    """What is beneath gRPC's Python layer is played meanwhile: a process that has made a real one can fork no more."""
    played: dict[str, Callable[..., object]] = {
        "get_working_loop": asyncio.get_running_loop,
        "AioServer": lambda *_: _PlayedServer(),
        "AioChannel": lambda *_: _PlayedChannel(answer),
    }
    real = {name: getattr(cygrpc, name) for name in played}
    _set(played)
    try:
        yield
    finally:
        _set(real)


def _set(makers: Mapping[str, Callable[..., object]]) -> None:
    for name, maker in makers.items():
        setattr(cygrpc, name, maker)


class _PlayedServer:
    """As much of cygrpc.AioServer as grpc.aio.Server needs."""

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Nobody calls."""

    def add_insecure_port(self, address: bytes) -> int:
        return _PORT

    async def start(self) -> None:
        """Nobody calls."""

    async def shutdown(self, grace: float | None) -> None:
        """It never began."""

    def is_running(self) -> bool:
        return False


class _PlayedChannel:
    """As much of cygrpc.AioChannel as grpc.aio.Channel needs. It is not connected at once, as a real one."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._state = grpc.ChannelConnectivity.IDLE
        self._closed = False

    def check_connectivity_state(self, try_to_connect: bool) -> int:
        number: int = self._state.value[0]
        return number

    async def watch_connectivity_state(self, last: int, deadline: float | None) -> bool:
        self._state = grpc.ChannelConnectivity.READY
        return True

    def call(self, method: bytes, *_: object) -> _PlayedCall:
        return _PlayedCall(self._answer, method.decode())

    def closed(self) -> bool:
        return self._closed

    def closing(self) -> None:
        """It has no calls."""

    def close(self) -> None:
        self._closed = True


class _PlayedCall:
    """As much of cygrpc's call as grpc.aio.UnaryUnaryCall needs."""

    def __init__(self, answer: Answer, path: str) -> None:
        self._answer = answer
        self._path = path
        self._callbacks: list[Callable[[], object]] = []
        self._done = self._cancelled = False

    def add_done_callback(self, callback: Callable[[], object]) -> None:
        self._callbacks.append(callback)

    async def unary_unary(self, request: bytes, metadata: object, context: object) -> bytes:
        await asyncio.sleep(0)
        self._done = True
        for callback in self._callbacks:
            callback()
        return self._answer(self._path)

    def cancel(self, details: str) -> None:
        self._done = self._cancelled = True

    def cancelled(self) -> bool:
        return self._cancelled

    def done(self) -> bool:
        return self._done

    def is_ok(self) -> bool:
        return True
