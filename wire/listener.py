"""Accepts the connections to a server's port, and splices them to the gRPC server, which listens on a Unix socket.

gRPC for Python shows a connection to nobody before it has brought a call, so another user of the machine could hold all
that it accepts. Here a stranger is closed at the accept (wire.local_peer).

Hadoop's clients, where they may call, use the same port, because a NodeId is the address that Java dials. They send
"hrpc" first, gRPC's "PRI ".
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import secrets
import socket
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from wire.address import short_name
from wire.connection_limits import ConnectionLimits
from wire.local_peer import is_foreign
from wire.rare_warning import RareWarning
from wire.running_calls import RunningCalls
from wire.splice import Splice

BACKLOG = 1024
"""Connections that wait to be accepted, per address."""
FIRST_BYTES = 4
"""The bytes by which a protocol is known. A connection that has not sent them makes room for others."""
_MAPPED_PREFIX = "::ffff:"
_GRPC_ABSTRACT = "unix-abstract:"
"""The beginning of gRPC's name of a caller at a Unix socket with an abstract name."""

_logger = logging.getLogger(f"yarnling.{__name__}")


class HadoopAnswers(Protocol):
    """Answers the connections of Hadoop's RPC (wire.hadoop_rpc.server)."""

    def knows(self, received: bytes) -> bool: ...

    def answer(self, transport: asyncio.Transport, peer: str, received: bytes, left: Callable[[], None]) -> None: ...

    def close(self) -> None: ...

    async def stop(self, grace_s: float) -> None: ...


class Abortable(Protocol):
    """A connection, in whatever state it is."""

    def abort(self) -> None: ...


class Listener:
    """The listener of one server. Call `bind`, `grpc_socket` and `start` in this order, at the end `close` and `stop`.

    `hadoop`: answers Hadoop's clients; None: all connections go to the gRPC server. `admits_all_users`: connections of
    other users of this machine are not closed. `port`: the port, once bound.
    """

    def __init__(
        self, limits: ConnectionLimits, hadoop: HadoopAnswers | None = None, *, admits_all_users: bool = False
    ) -> None:
        self.port = 0
        self._limits = limits
        self._hadoop = hadoop
        self._connecting = RunningCalls()
        self._bound: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []
        self._connections: set[Abortable] = set()
        self._arrivals = _Arrivals(admits_all_users=admits_all_users)
        self._grpc_path = ""
        self._name = f"yarnling-{secrets.token_hex(8)}"
        self._names = itertools.count(1)
        self._peers: dict[str, str] = {}
        self._cleanup = ExitStack()

    def bind(self, hosts: Sequence[str], port: int, *, tries: int) -> bool:
        """Reserve one port on every host; False if it is not available. With port 0 several are tried."""
        for _ in range(tries if port == 0 else 1):
            self.port = port
            try:
                for host in hosts:
                    self._bound.append(_bound(host, self.port))
                    self.port = self._bound[0].getsockname()[1]
            except OSError:
                self._release()
            else:
                return True
        return False

    @contextmanager
    def grpc_socket(self, directory: Path) -> Iterator[str]:
        """gRPC's name of the Unix socket where the gRPC server must listen; bind it before the context closes.

        Only the directory's owner can connect to it. Raises OSError.
        """
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_is_ours(directory)
        path = directory / f"{self._bound[0].getsockname()[0]}_{self.port}.sock"
        # The short name lasts as long as the server, because gRPC uses it again at the end.
        self._grpc_path = self._cleanup.enter_context(short_name(path))
        self._cleanup.callback(path.unlink, missing_ok=True)
        path.unlink(missing_ok=True)
        earlier = os.umask(0o177)
        try:
            yield f"unix:{self._grpc_path}"
        finally:
            os.umask(earlier)

    async def start(self) -> None:
        """Accept connections."""
        loop = asyncio.get_running_loop()
        for bound in self._bound:
            make = partial(_Arrival, _Address(self._limits), self._connections, self._take_over, self._arrivals)
            self._servers.append(await loop.create_server(make, sock=bound, backlog=BACKLOG))
        self._bound = []

    def peer_of(self, name: str) -> str:
        """The caller's own address, as gRPC would write it, from gRPC's name of the Unix socket."""
        return self._peers.get(name.removeprefix(_GRPC_ABSTRACT), name)

    def close(self) -> None:
        """Accept no more connections, and no more calls of Hadoop's."""
        for server in self._servers:
            server.close()
        self._release()
        if self._hadoop is not None:
            self._hadoop.close()

    async def stop(self, grace_s: float) -> None:
        """Let running calls finish for `grace_s`, then cancel them and close all connections."""
        self.close()
        if self._hadoop is not None:
            await self._hadoop.stop(grace_s)
        await self._connecting.stop(0)
        for connection in tuple(self._connections):
            connection.abort()
        # The transports close their sockets in the loop's next round.
        await asyncio.sleep(0)
        self._cleanup.close()

    def _release(self) -> None:
        while self._bound:
            self._bound.pop().close()

    def _take_over(self, transport: asyncio.Transport, received: bytes, address: _Address) -> None:
        """Decide by a connection's first bytes who answers it."""
        peer = peer_text(transport.get_extra_info("peername"))
        if self._hadoop is not None and self._hadoop.knows(received):
            self._hadoop.answer(transport, peer, received, address.left)
            return
        name = f"{self._name}-{next(self._names)}"
        splice = Splice(transport, partial(self._splice_left, address, name))
        self._connections.add(splice)
        self._peers[name] = peer
        self._connecting.start(self._connect(splice, name, received))

    async def _connect(self, splice: Splice, name: str, received: bytes) -> None:
        try:
            await splice.connect(self._grpc_path, name, received)
        except OSError as error:
            _logger.error("cannot pass a connection on to the gRPC server peer=%s: %s", self._peers.get(name), error)
            splice.abort()

    def _splice_left(self, address: _Address, name: str, splice: Splice) -> None:
        self._peers.pop(name, None)
        self._connections.discard(splice)
        address.left()


class _Address:
    """An address of the server, and the number of its connections."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.connections = 0

    def left(self) -> None:
        """Count one connection less."""
        self.connections -= 1


class _Arrivals:
    """The connections that have not sent their first bytes, longest silent first. `make_room` closes the first."""

    def __init__(self, *, admits_all_users: bool) -> None:
        self.waiting: dict[_Arrival, None] = {}
        self._admits_all_users = admits_all_users
        self._foreign = RareWarning(_logger, "closed a connection of another user of this machine peer=%s")
        self._too_many = RareWarning(_logger, "too many connections, closed one that is silent peer=%s")

    def is_refused(self, transport: asyncio.Transport) -> bool:
        """True if the caller is another user, who may not call."""
        if self._admits_all_users or not is_foreign(transport.get_extra_info("socket")):
            return False
        self._foreign.log(transport.get_extra_info("peername"))
        return True

    def make_room(self, address: _Address) -> bool:
        """Close the connection to the address that has been silent for longest; False if there is none."""
        silent = next((arrival for arrival in self.waiting if arrival.address is address), None)
        self._too_many.log("none is silent" if silent is None else silent.peer)
        if silent is None:
            return False
        silent.give_up()
        return True


TakeOver = Callable[[asyncio.Transport, bytes, _Address], None]


class _Arrival(asyncio.Protocol):
    """A connection whose first bytes are not there yet."""

    def __init__(
        self, address: _Address, connections: set[Abortable], take_over: TakeOver, arrivals: _Arrivals
    ) -> None:
        self.address = address
        self._connections = connections
        self._arrivals = arrivals
        self._take_over = take_over
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "stream sockets have this kind of transport"
        limits = self.address.limits
        if self._arrivals.is_refused(transport) or (
            self.address.connections >= limits.count and not self._arrivals.make_room(self.address)
        ):
            transport.abort()
            return
        self.address.connections += 1
        self._transport = transport
        self._connections.add(self)
        self._arrivals.waiting[self] = None
        self._timer = asyncio.get_running_loop().call_later(limits.handshake_ms / 1000, transport.abort)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._transport is not None and len(self._received) >= FIRST_BYTES:
            self._leave()
            self._take_over(self._transport, self._received, self.address)

    def connection_lost(self, exc: Exception | None) -> None:
        self.give_up()

    @property
    def peer(self) -> object:
        return None if self._transport is None else self._transport.get_extra_info("peername")

    def give_up(self) -> None:
        """Close the connection, which does not count any more; calling it again is a no-op."""
        transport, self._transport = self._transport, None
        if transport is not None:
            self._leave()
            self.address.left()
            transport.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _leave(self) -> None:
        assert self._timer is not None, "set with the transport"
        self._timer.cancel()
        self._connections.discard(self)
        self._arrivals.waiting.pop(self, None)


def peer_text(name: tuple[str, int]) -> str:
    """An address as gRPC writes it."""
    host, port = name[0].removeprefix(_MAPPED_PREFIX), name[1]
    return f"ipv6:%5B{host}%5D:{port}" if ":" in host else f"ipv4:{host}:{port}"


def _check_is_ours(directory: Path) -> None:
    """Raises PermissionError if another user could put a socket of theirs into the directory."""
    found = directory.stat()
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError("the directory belongs to another user, or others may write to it")


def _bound(host: str, port: int) -> socket.socket:
    """A socket with an address, as gRPC makes it: a port is free although connections to its last user linger."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if bound.family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound
