"""ResourceManagerAdministrationProtocol, as an operator calls it."""

from __future__ import annotations

from wire.protocols import admin
from wire.proxy import Proxy
from yarn.ids import NodeId
from yarn.nodes import NodeLabel
from yarn.protocols.admin import RefreshNodesRequest, ReplaceLabelsRequest
from yarn.resource import Resource


class AdminProxy(Proxy):
    """An operator's way to the RM (yarn.resourcemanager.admin.address)."""

    async def refresh_queues(self) -> None:
        """Have the RM read its queues anew. Raises ConfigurationException with all faults; then nothing changed."""
        await self.call(admin.REFRESH_QUEUES, None)

    async def refresh_nodes(self, request: RefreshNodesRequest) -> None:
        """Have the RM read its host lists anew; nodes may then still be on their way out."""
        await self.call(admin.REFRESH_NODES, request)

    async def check_for_decommissioning_nodes(self) -> tuple[NodeId, ...]:
        """The nodes that are on their way out."""
        return await self.call(admin.CHECK_FOR_DECOMMISSIONING_NODES, None)

    async def refresh_super_user_groups_configuration(self) -> None:
        await self.call(admin.REFRESH_SUPER_USER_GROUPS, None)

    async def refresh_user_to_groups_mappings(self) -> None:
        await self.call(admin.REFRESH_USER_TO_GROUPS, None)

    async def refresh_admin_acls(self) -> None:
        await self.call(admin.REFRESH_ADMIN_ACLS, None)

    async def refresh_service_acls(self) -> None:
        await self.call(admin.REFRESH_SERVICE_ACLS, None)

    async def refresh_cluster_max_priority(self) -> None:
        await self.call(admin.REFRESH_CLUSTER_MAX_PRIORITY, None)

    async def get_groups_for_user(self, user: str) -> tuple[str, ...]:
        return await self.call(admin.GET_GROUPS_FOR_USER, user)

    async def add_to_cluster_node_labels(self, labels: tuple[NodeLabel, ...]) -> None:
        await self.call(admin.ADD_TO_CLUSTER_NODE_LABELS, labels)

    async def remove_from_cluster_node_labels(self, names: tuple[str, ...]) -> None:
        await self.call(admin.REMOVE_FROM_CLUSTER_NODE_LABELS, names)

    async def replace_labels_on_nodes(self, request: ReplaceLabelsRequest) -> None:
        await self.call(admin.REPLACE_LABELS_ON_NODES, request)

    async def update_node_resource(self, resources: tuple[tuple[NodeId, Resource], ...]) -> None:
        await self.call(admin.UPDATE_NODE_RESOURCE, resources)
