"""Answers the connections of Hadoop's clients that a listener hands over (wire.listener)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from wire.connection_limits import ConnectionLimits
from wire.dispatch import CallDispatcher, ServedProtocol
from wire.hadoop_authentication import HadoopAuthentication
from wire.hadoop_rpc.connection import HadoopConnection, Service, UnreadBytes
from wire.hadoop_rpc.framing import MAGIC
from wire.running_calls import RunningCalls

JAVA_PROTOCOLS = {
    "hadoop.yarn.ApplicationClientProtocolService": "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB",
    "hadoop.yarn.ApplicationMasterProtocolService": "org.apache.hadoop.yarn.api.ApplicationMasterProtocolPB",
    "hadoop.yarn.ContainerManagementProtocolService": "org.apache.hadoop.yarn.api.ContainerManagementProtocolPB",
    "hadoop.yarn.ResourceManagerAdministrationProtocolService": (
        "org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB"
    ),
    "hadoop.common.HAServiceProtocolService": "org.apache.hadoop.ha.HAServiceProtocol",
}
"""{our service: the name that Hadoop's clients send}. A service that is not here is not served to them."""


class HadoopServer:
    """The connections of Hadoop's RPC to one server."""

    def __init__(
        self,
        authentication: HadoopAuthentication,
        dispatcher: CallDispatcher,
        protocols: Sequence[ServedProtocol],
        limits: ConnectionLimits,
    ) -> None:
        by_method = {
            JAVA_PROTOCOLS[protocol.rpcs[0].service]: {served.rpc.name: served for served in protocol.served()}
            for protocol in protocols
            if protocol.rpcs[0].service in JAVA_PROTOCOLS
        }
        self._calls = RunningCalls()
        self._service = Service(dispatcher, by_method, authentication, limits, self._calls, UnreadBytes())
        self._connections: set[HadoopConnection] = set()

    @property
    def unread_bytes(self) -> int:
        """Bytes of frames that are not complete, of all connections."""
        return self._service.unread.total

    def knows(self, received: bytes) -> bool:
        """True if a connection that begins so is one of Hadoop's RPC."""
        return received.startswith(MAGIC)

    def answer(self, transport: asyncio.Transport, peer: str, received: bytes, left: Callable[[], None]) -> None:
        """Take a connection over. `received`: its first bytes; `left` is called once, when it is closed."""

        def ended(connection: HadoopConnection) -> None:
            self._connections.discard(connection)
            left()

        connection = HadoopConnection(self._service, transport, peer, ended)
        self._connections.add(connection)
        transport.set_protocol(connection)
        connection.data_received(received)

    def close(self) -> None:
        """Accept no more calls; replies are still sent."""
        for connection in self._connections:
            connection.close()

    async def stop(self, grace_s: float) -> None:
        """Let running calls finish for `grace_s`, then cancel them and close the connections."""
        self.close()
        await self._calls.stop(grace_s)
        for connection in tuple(self._connections):
            connection.abort()
