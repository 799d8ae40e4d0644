"""Our own protocol of nodes that share a process, as they call it."""

from __future__ import annotations

from wire.protocols import pack
from wire.proxy import Proxy
from yarn.protocols.pack import PackHeartbeat, PackHeartbeatReply, RegisterOutcome
from yarn.protocols.tracker import RegisterNodeManagerRequest


class PackTrackerProxy(Proxy):
    """The way of nodes that share a process to the RM, where single nodes call; it shows their pack's token."""

    async def register_nodes(self, requests: tuple[RegisterNodeManagerRequest, ...]) -> tuple[RegisterOutcome, ...]:
        return await self.call(pack.REGISTER_NODES, requests)

    async def pack_heartbeat(self, request: PackHeartbeat) -> PackHeartbeatReply:
        """After CallOutcomeUnknown each node beats again under the same response id, in full."""
        return await self.call(pack.PACK_HEARTBEAT, request)

    async def unregister_nodes(self, numbers: tuple[int, ...]) -> None:
        await self.call(pack.UNREGISTER_NODES, numbers)
