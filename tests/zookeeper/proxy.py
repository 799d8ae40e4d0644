"""A TCP proxy on loopback that can cut a client off from its server, and connect it again."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

CHUNK = 65536


class CuttingProxy:
    """Listens at `address` for a server. `cut` closes every connection and refuses new ones, until `mend`.

    `hold`: what the client sends is kept back, until `release`.
    """

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._is_cut = False
        self._passes = threading.Event()
        self._passes.set()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close all connections, and every new one at once."""
        with self._lock:
            self._is_cut = True
            for each in self._sockets:
                _shut(each)
            self._sockets.clear()

    def mend(self) -> None:
        """Accept connections again."""
        with self._lock:
            self._is_cut = False

    def hold(self) -> None:
        """Keep back what clients send from now on."""
        self._passes.clear()

    def release(self) -> None:
        """Pass on what was kept back."""
        self._passes.set()

    def close(self) -> None:
        """End the proxy."""
        self.cut()
        self.release()
        _shut(self._server)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            with self._lock:
                if self._is_cut:
                    client.close()
                    continue
                try:
                    server = socket.create_connection(self._target)
                except OSError:
                    client.close()
                    continue
                self._sockets |= {client, server}
            threading.Thread(target=self._pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, False), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, is_held: bool) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                if is_held:
                    self._passes.wait()
                target.sendall(data)
        _shut(source)
        _shut(target)


def _shut(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
