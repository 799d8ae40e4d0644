"""Free ports that stay a cluster's own while nobody listens on them."""

from __future__ import annotations

import socket


class HeldPorts:
    """A ResourceManager that was killed has to come back where it was, and its ports are ones that were free.

    The kernel gives such a port to any program that asks for one, or calls somebody, but not while a socket is bound to
    it. One that does not listen gets no call, and lets a server listen beside it if both have SO_REUSEADDR, as gRPC's
    servers do; a second server is refused as ever.
    """

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def hold(self, address: str) -> str:
        """`host:port` with a free port, held from now on, for port 0; another port stays as it is, and is not held."""
        host, _, port = address.rpartition(":")
        if port != "0":
            return address
        holder = socket.socket()
        try:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind((host, 0))
        except OSError:
            # Whoever wants to listen there says what is wrong with it.
            holder.close()
            return address
        self._sockets.append(holder)
        return f"{host}:{holder.getsockname()[1]}"

    def close(self) -> None:
        while self._sockets:
            self._sockets.pop().close()
