"""An HTTP server in a daemon's event loop: uvicorn's connections behind asyncio's own listener.

uvicorn's Server is not used: it takes the process's signals, and wakes up ten times a second, which with a hundred
idle NodeManagers costs more than their heartbeats.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket

from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from wire.address import Address, resolve
from wire.local_peer import Peer
from wire.web.access import PEER
from yarn.errors import YarnException

CONNECTIONS_MAX = 64
"""Open connections; a further one is closed at once."""
REQUEST_TIMEOUT_S = 20.0
"""How long a new connection may take to send the head of its first request."""
KEEP_ALIVE_S = 30
HEAD_BYTES_MAX = 16 * 1024
BACKLOG = 64
CLOSE_TIMEOUT_S = 0.5
"""How long answers on their way may take when the server stops."""


class WebServer:
    """Serves an application at an address; the port may be taken before there is an application."""

    def __init__(self, address: Address, *, beyond_loopback: bool) -> None:
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
            http=_Connection,
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
            lambda: _Connection(config, self._state, {}), sock=self._socket, backlog=BACKLOG
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
    """A connection that is closed if there are too many, or if it does not send a request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.app_state[PEER] = Peer(transport.get_extra_info("socket"))
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX:
            transport.abort()
            return
        self._first_request = self.loop.call_later(REQUEST_TIMEOUT_S, self._close_if_silent)

    def _close_if_silent(self) -> None:
        if self.cycle is None:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        timer = getattr(self, "_first_request", None)
        if timer is not None:
            timer.cancel()
