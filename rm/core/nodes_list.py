"""Which nodes the cluster has room for: what a change of the host lists does (Hadoop's NodesListManager)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rm.core.host_lists import HostLists
from rm.core.lifecycle_events import RMNodeEventType
from yarn.ids import NodeId
from yarn.states import DecommissionType, NodeState

if TYPE_CHECKING:
    from rm.core.context import RMContext
    from rm.core.rm_node import RMNode


class NodesListManager:
    """What operators call to include and exclude hosts."""

    def __init__(self, context: RMContext) -> None:
        self._context = context

    def refresh(self, hosts: HostLists, kind: DecommissionType, timeout_s: int) -> None:
        """Take the new lists, and bring the nodes to where they belong by them.

        FORCEFUL is another matter: it ends the waiting of those that are on their way out, and reads no list.
        """
        if kind is DecommissionType.FORCEFUL:
            for node in self._leaving():
                self._end(node)
            return
        self._context.hosts = hosts
        nodes = list(self._context.nodes.values())
        for node in nodes:
            if hosts.allows(node.node_id.host) and node.state is NodeState.DECOMMISSIONING:
                self._context.send_node(node.node_id, RMNodeEventType.RECOMMISSION)
        for node in nodes:
            if not hosts.allows(node.node_id.host):
                self._exclude(node, kind, hosts.timeout_s(node.node_id.host, timeout_s))

    def _exclude(self, node: RMNode, kind: DecommissionType, timeout_s: int) -> None:
        if kind is DecommissionType.NORMAL:
            self._end(node)
        elif node.state is not NodeState.DECOMMISSIONING or node.decommissioning_timeout_s != timeout_s:
            self._context.send_node(node.node_id, RMNodeEventType.GRACEFUL_DECOMMISSION, timeout_s)

    def _end(self, node: RMNode) -> None:
        """A host that no list names was never promised anything: its node is shut down, not decommissioned."""
        untracked = self._context.hosts.is_untracked(node.node_id.host)
        event = RMNodeEventType.SHUTDOWN if untracked else RMNodeEventType.DECOMMISSION
        self._context.send_node(node.node_id, event)

    def _leaving(self) -> list[RMNode]:
        return [node for node in self._context.nodes.values() if node.state is NodeState.DECOMMISSIONING]


def decommissioning_nodes(context: RMContext) -> tuple[NodeId, ...]:
    """Those that are on their way out."""
    return tuple(node.node_id for node in context.nodes.values() if node.state is NodeState.DECOMMISSIONING)
