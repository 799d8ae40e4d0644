"""How a node leaves (RMNodeImpl): at once, or gracefully, which it may still be called back from.

A node that was deactivated never comes back: an NM that registers again is a new node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from yarn.protocols.tracker import NodeHeartbeatRequest
from yarn.states import NodeState, NodeUpdateType

if TYPE_CHECKING:
    from rm.core.lifecycle_events import NodeReconnected
    from rm.core.rm_node import RMNode


def deactivate(target: NodeState) -> Callable[[RMNode, object], NodeState]:
    """The action that takes a node out of use, for good."""

    def leave(node: RMNode, _: object) -> NodeState:
        context = node.context
        tell_unusable(node)
        del context.nodes[node.node_id]
        context.inactive_nodes[node.node_id] = node
        context.node_liveness.unregister(node.node_id)
        return target

    return leave


def tell_unusable(node: RMNode) -> None:
    """An unhealthy node is out of the scheduler already; a new one was never in."""
    forget_updates(node)
    if node.state is not NodeState.UNHEALTHY:
        node.context.send(node.context.remove_node, node.node_id)
    node.context.send(node.context.tell_apps_of_node, node, NodeUpdateType.UNUSABLE)


def forget_updates(node: RMNode) -> None:
    node.newly_launched.clear()
    node.newly_completed.clear()
    node.newly_increased.clear()


# Gracefully

_decommission = deactivate(NodeState.DECOMMISSIONED)


def decommission_gracefully(node: RMNode, timeout_s: int) -> None:
    """From now on it is to empty itself; its masters are told. Its size is kept, in case that it is called back."""
    node.decommissioning_timeout_s = timeout_s
    if node.state is NodeState.DECOMMISSIONING:
        return
    node.context.send(node.context.tell_apps_of_node, node, NodeUpdateType.DECOMMISSIONING)
    if node.original_capability is None:
        node.original_capability = node.capability


def recommission(node: RMNode, _: object) -> None:
    """Called back: it has its size again, which the scheduler took from it."""
    context = node.context
    if node.original_capability is not None:
        node.capability = node.original_capability
        node.original_capability = None
        node.capability_changed = True
    context.send(context.update_node_resource, node)
    context.send(context.tell_apps_of_node, node, NodeUpdateType.USABLE)


def update_leaving(
    note_health: Callable[[RMNode, NodeHeartbeatRequest], None],
    take_report: Callable[[RMNode, NodeHeartbeatRequest], None],
) -> Callable[[RMNode, NodeHeartbeatRequest], NodeState]:
    """The action for the report of a node on its way out, in terms of what every report is."""

    def update(node: RMNode, heartbeat: NodeHeartbeatRequest) -> NodeState:
        """Empty, with no application to wait for, it goes. Ill, it stays, and its report counts for nothing."""
        note_health(node, heartbeat)
        if not node.running_apps and not node.context.scheduler.has_master_on(node.node_id):
            return _decommission(node, None)
        if heartbeat.health.healthy:
            take_report(node, heartbeat)
            node.context.send(node.context.update_node, node)
        return NodeState.DECOMMISSIONING

    return update


def reconnect_leaving(
    reconnect: Callable[[RMNode, NodeReconnected], None],
) -> Callable[[RMNode, NodeReconnected], NodeState]:
    """The action for an NM that registers anew on its way out: without applications it has nothing to stay for."""

    def again(node: RMNode, event: NodeReconnected) -> NodeState:
        if not event.running_applications:
            return _decommission(node, None)
        reconnect(node, event)
        return NodeState.DECOMMISSIONING

    return again
