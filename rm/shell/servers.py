"""The ResourceManager's servers: the protocols at each of its addresses, and who may call them."""

from __future__ import annotations

import asyncio
import getpass
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from wire.address import Address
from wire.caller import Caller
from wire.cluster_secret import socket_dir
from wire.connection_limits import ConnectionLimits
from wire.dispatch import Gate, RpcObserver
from wire.hadoop_authentication import HadoopAuthentication
from wire.server import RpcServer
from wire.tokens import ClientTokenSecretManager
from yarn.configuration import Configuration
from yarn.errors import InvalidToken
from yarn.settings.kinds import AddressSetting
from yarn.settings.yarnling import (
    CLUSTER_SECRET_FILE,
    HADOOP_RPC_ENABLED,
    LISTEN_BEYOND_LOOPBACK,
    OPEN_TO_LOCAL_USERS,
)

ADDRESSES = 4
"""Client, scheduler, resource tracker, admin."""
_LOOPBACK_PEERS = ("ipv4:127.", "ipv6:[::1]:", "ipv6:%5B::1%5D:")
"""The start of gRPC's names of callers on this machine."""

_logger = logging.getLogger(f"yarnling.{__name__}")


class Servers:
    """The RM's servers, one per address. `gate`: see wire.dispatch.CallDispatcher."""

    def __init__(self, conf: Configuration, observers: tuple[RpcObserver, ...], gate: Gate | None = None) -> None:
        """Raises YarnException if the limit of open files is too low."""
        self._conf = conf
        self._observers = observers
        self._gate = gate
        self._beyond_loopback = LISTEN_BEYOND_LOOPBACK.of(conf)
        self._answers_hadoop = HADOOP_RPC_ENABLED.of(conf)
        self._limits = ConnectionLimits.for_addresses(ADDRESSES)
        self._servers: list[RpcServer] = []

    def add(
        self,
        setting: AddressSetting,
        rpcs: tuple[Any, ...],
        handler: object,
        authenticate: Callable[[Any], Any],
        hadoop: HadoopAuthentication | None = None,
    ) -> RpcServer:
        """Create a server for an address; the caller may add further protocols to it.

        `hadoop`: how clients of Hadoop's RPC authenticate, if that is enabled; None: they may not call this address.
        """
        server = RpcServer(
            Address.read(self._conf, setting),
            socket_dir(self._conf),
            observers=self._observers,
            beyond_loopback=self._beyond_loopback,
            limits=self._limits,
            admits_all_users=OPEN_TO_LOCAL_USERS.of(self._conf),
            gate=self._gate,
        )
        server.add(rpcs, handler, authenticate)
        if hadoop is not None and self._answers_hadoop:
            from wire.hadoop_rpc.server import HadoopServer

            server.answer_hadoop(partial(HadoopServer, hadoop))
        self._servers.append(server)
        return server

    async def start(self) -> dict[str, str]:
        """Start all; returns {key: address as served}. Raises YarnException if an address is not available."""
        for server in self._servers:
            await server.start()
        return {server.address.key: f"{server.address.host}:{server.port}" for server in self._servers}

    async def stop(self) -> None:
        await asyncio.gather(*(server.stop() for server in self._servers))


def client_authentication(conf: Configuration, secret: bytes) -> Callable[[Caller[None]], None]:
    """The check of callers of the client and admin ports: a client token, or in an open cluster any local caller.

    The check raises InvalidToken.
    """
    tokens = ClientTokenSecretManager(secret)
    if OPEN_TO_LOCAL_USERS.of(conf):
        _logger.warning(
            "every user of this machine can run commands as %s (%s = true)", getpass.getuser(), OPEN_TO_LOCAL_USERS.key
        )

    def check(caller: Caller[None]) -> None:
        try:
            tokens.check(caller.token)
        except InvalidToken as refusal:
            raise InvalidToken(
                f"{refusal.message}: only {getpass.getuser()} and root may call this ResourceManager "
                f"(use the cluster's configuration directory, where {CLUSTER_SECRET_FILE.key} names the secret, "
                f"or start the cluster with {OPEN_TO_LOCAL_USERS.key} = true)"
            ) from None

    def check_unless_local(caller: Caller[None]) -> None:
        if not caller.peer.startswith(_LOOPBACK_PEERS):
            check(caller)

    return check_unless_local if OPEN_TO_LOCAL_USERS.of(conf) else check
