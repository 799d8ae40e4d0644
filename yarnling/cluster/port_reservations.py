"""Reservations of the ports of a local cluster's ResourceManagers."""

from __future__ import annotations

import socket

from yarn.errors import InvalidArgumentException
from yarn.settings import resourcemanager

PORTS_TRIED_MAX = 100
"""Ports that are tried for the web services, each used by another cluster or program."""
PORT_MAX = 65535


class PortReservations:
    """Keeps the ports of the ResourceManager reserved while it is down, so that it can come back at its addresses.

    The ports are ones that were free, and the kernel would give them to any program that binds or connects, but not
    while a socket is bound to them. Ours does not listen, so it accepts no connection; a server can listen beside it
    if both set SO_REUSEADDR, as gRPC's servers do. A second server is refused as usual.
    """

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def reserve(self, address: str) -> str:
        """`host:port` with a free port, reserved from now on, if the port is 0; otherwise the address as it is."""
        host, _, port = address.rpartition(":")
        if port != "0":
            return address
        bound = socket.socket()
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((host, 0))
        except OSError:
            # The daemon that cannot listen there reports the reason.
            bound.close()
            return address
        self._sockets.append(bound)
        return f"{host}:{bound.getsockname()[1]}"

    def reserve_from(self, address: str) -> str:
        """`host:port` with the first free port from that of the address on, reserved from now on.

        Raises InvalidArgumentException if none of the next PORTS_TRIED_MAX is free.
        """
        host, _, first = address.rpartition(":")
        for port in range(int(first), min(int(first) + PORTS_TRIED_MAX, PORT_MAX + 1)):
            # With SO_REUSEADDR two clusters that start at once can both bind the port, but not the name.
            name, bound = socket.socket(socket.AF_UNIX), socket.socket()
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                name.bind(f"\0yarnling-port-{port}")
                bound.bind((host, port))
            except OSError:
                name.close()
                bound.close()
                continue
            self._sockets += (name, bound)
            return f"{host}:{port}"
        raise InvalidArgumentException(
            f"the web services: no port from {first} on is free, {PORTS_TRIED_MAX} were tried "
            f"(name one: {resourcemanager.WEBAPP_ADDRESS.key}; or leave them out: yarnling up --no-web)"
        )

    def close(self) -> None:
        while self._sockets:
            self._sockets.pop().close()
