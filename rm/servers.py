"""The ResourceManager's servers: which protocols are spoken at which of its addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from wire.address import Address
from wire.observer import RpcObserver
from wire.server import RpcServer
from yarn.configuration import Configuration
from yarn.settings.kinds import AddressSetting
from yarn.settings.yarnling import LISTEN_BEYOND_LOOPBACK


class Servers:
    """The RM's servers, one an address."""

    def __init__(self, conf: Configuration, observers: tuple[RpcObserver, ...]) -> None:
        self._conf = conf
        self._observers = observers
        self._beyond_loopback = LISTEN_BEYOND_LOOPBACK.of(conf)
        self._servers: list[RpcServer] = []

    def add(
        self, setting: AddressSetting, rpcs: tuple[Any, ...], handler: object, authenticate: Callable[[Any], Any]
    ) -> RpcServer:
        """The server, which may have further protocols."""
        server = RpcServer(
            Address.read(self._conf, setting), observers=self._observers, beyond_loopback=self._beyond_loopback
        )
        server.add(rpcs, handler, authenticate)
        self._servers.append(server)
        return server

    async def start(self) -> dict[str, str]:
        """{key: address as served}. Raises YarnException if one cannot be had."""
        for server in self._servers:
            await server.start()
        return {server.address.key: f"{server.address.host}:{server.port}" for server in self._servers}

    async def stop(self) -> None:
        await asyncio.gather(*(server.stop() for server in self._servers))
