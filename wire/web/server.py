"""An HTTP server in a daemon's event loop: uvicorn's connections behind asyncio's own listener.

uvicorn's Server is not used: it takes the process's signals, and wakes up ten times a second, which with a hundred
idle NodeManagers costs more than their heartbeats.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket

import h11
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from wire.address import Address, resolve
from wire.local_peer import Peer, is_foreign
from wire.rare_warning import RareWarning
from wire.web.access import PEER
from yarn.errors import YarnException

CONNECTIONS_MAX = 64
"""Open connections; a further one is closed at once."""
REQUEST_TIMEOUT_S = 20.0
"""The time a new connection may take to send the head of its first request."""
KEEP_ALIVE_S = 30
"""The time after an answer within which the head of the next request must be there."""
HEAD_BYTES_MAX = 16 * 1024
HEAD_SLICE_BYTES = 4 * 1024
"""The most by which a head that arrives at once can be longer than HEAD_BYTES_MAX."""
FOREIGN_ANSWER = (
    b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"another user of this machine started this daemon; only that user and root may call\n"
)
BACKLOG = 64
CLOSE_TIMEOUT_S = 0.5
"""The time answers on their way may take when the server stops."""

_logger = logging.getLogger(f"yarnling.{__name__}")
_foreign = RareWarning(_logger, "refused an HTTP connection of another user of this machine peer=%s")
_too_many = RareWarning(_logger, "refused an HTTP connection, all others are being answered peer=%s")


class WebServer:
    """Serves an application at an address; the port may be taken before there is an application."""

    def __init__(self, address: Address, *, beyond_loopback: bool, admits_all_users: bool = False) -> None:
        self._kind = _OpenConnection if admits_all_users else _Connection
        self._address = address
        self._beyond_loopback = beyond_loopback
        self._state = ServerState()
        self._server: asyncio.Server | None = None
        self._socket: socket.socket | None = None
        self.port = address.port

    async def bind(self) -> int:
        """Take the port, and return it; requests wait until `start`. Raises YarnException if it is taken."""
        host = await resolve(self._address, beyond_loopback=self._beyond_loopback)
        self._socket = self._bound(host)
        self.port = int(self._socket.getsockname()[1])
        return self.port

    async def start(self, application: ASGIApp) -> None:
        """Have the application answer requests."""
        config = Config(
            application,
            http=self._kind,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            # Who calls is known by the socket: uvicorn would believe what a local caller writes into X-Forwarded-For.
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        )
        config.load()
        assert self._socket is not None, "bind first"
        self._server = await asyncio.get_running_loop().create_server(
            lambda: self._kind(config, self._state, {}), sock=self._socket, backlog=BACKLOG
        )

    async def stop(self) -> None:
        """Accept no more connections; answers on their way have a moment. Calling it again is a no-op."""
        if self._server is not None:
            self._server.close()
        elif self._socket is not None:
            self._socket.close()
        self._server = self._socket = None
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            _, late = await asyncio.wait(list(self._state.tasks), timeout=CLOSE_TIMEOUT_S)
            for task in late:
                task.cancel()
        for connection in list(self._state.connections):
            with contextlib.suppress(AttributeError):
                connection.transport.abort()

    def _bound(self, host: str) -> socket.socket:
        bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((host, self._address.port))
            # Only a listening socket keeps other programs from taking the port too.
            bound.listen(BACKLOG)
        except OSError as error:
            bound.close()
            raise YarnException(f"cannot listen on {self._address.said}: {error.strerror}") from None
        bound.setblocking(False)
        return bound


class _Connection(H11Protocol):
    """A connection that is closed if another user has it, or if a request's head does not arrive in time.

    If there are too many, the one that has waited longest for a request makes room.
    """

    _admits_all_users = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        peer = Peer(transport.get_extra_info("socket"))
        self._deadline: asyncio.TimerHandle | None = None
        self._silent_since_s = self.loop.time()
        self.app_state[PEER] = peer
        super().connection_made(transport)
        if not self._admits_all_users and is_foreign(transport.get_extra_info("socket")):
            _foreign.log(self.client)
            self.connections.discard(self)
            transport.write(FOREIGN_ANSWER)
            transport.close()
        elif len(self.connections) > CONNECTIONS_MAX and not self._make_room():
            _too_many.log(self.client)
            transport.abort()
        else:
            self._expect_head(REQUEST_TIMEOUT_S)

    @property
    def is_silent(self) -> bool:
        """True while no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        # In slices, because h11 limits only a head that is not complete.
        start = 0
        while start < len(data) and not self.transport.is_closing():
            size = HEAD_SLICE_BYTES if self.conn.their_state is h11.IDLE else len(data)
            super().data_received(data[start : start + size])
            start += size

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._silent_since_s = self.loop.time()
        if not self.transport.is_closing():
            self._expect_head(KEEP_ALIVE_S)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def _make_room(self) -> bool:
        silent = [one for one in self.connections if isinstance(one, _Connection) and one.is_silent and one is not self]
        if not silent:
            return False
        longest = min(silent, key=lambda one: one._silent_since_s)
        self.connections.discard(longest)
        longest.transport.abort()
        return True

    def _expect_head(self, within_s: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(within_s, self._close_if_silent)

    def _close_if_silent(self) -> None:
        if self.is_silent:
            self.transport.close()
            # If the client has still not read the rest of its answer by then, drop it.
            self._deadline = self.loop.call_later(KEEP_ALIVE_S, self.transport.abort)


class _OpenConnection(_Connection):
    """A connection to a cluster that is open to other users of this machine."""

    _admits_all_users = True
