"""ResourceTracker, as a node calls it."""

from __future__ import annotations

from wire.protocols import tracker
from wire.proxy import Proxy
from yarn.ids import NodeId
from yarn.protocols.tracker import (
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RegisterNodeManagerRequest,
    RegisterNodeManagerResponse,
)


class ResourceTrackerProxy(Proxy):
    """A node's way to the RM (yarn.resourcemanager.resource-tracker.address); it shows its node token."""

    async def register_node_manager(self, request: RegisterNodeManagerRequest) -> RegisterNodeManagerResponse:
        return await self.call(tracker.REGISTER_NODE_MANAGER, request)

    async def node_heartbeat(self, request: NodeHeartbeatRequest) -> NodeHeartbeatResponse:
        """After CallOutcomeUnknown beat again under the same response id: nothing is lost or done twice."""
        return await self.call(tracker.NODE_HEARTBEAT, request)

    async def unregister_node_manager(self, node_id: NodeId) -> None:
        await self.call(tracker.UNREGISTER_NODE_MANAGER, node_id)
