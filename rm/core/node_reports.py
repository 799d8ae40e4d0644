"""Reports to clients and AMs about nodes: functions of the context that change nothing."""

from __future__ import annotations

from collections.abc import Iterator

from rm.core.context import RMContext
from rm.core.rm_node import NO_TIMEOUT, RMNode
from yarn.nodes import ClusterMetrics, NodeReport
from yarn.states import NodeState, NodeUpdateType


def node_reports(context: RMContext, states: frozenset[NodeState]) -> Iterator[NodeReport]:
    """The reports of nodes in one of `states` (empty: all), nodes in use first, in the order of registration.

    Nodes may change between two reports: each report shows the state at the time it is created.
    """
    for node in (*context.nodes.values(), *context.inactive_nodes.values()):
        if not states or node.state in states:
            yield _node_report(context, node, None)


def node_update_report(context: RMContext, node: RMNode, update: NodeUpdateType) -> NodeReport:
    """The report to an AM about a changed node."""
    return _node_report(context, node, update)


def cluster_metrics(context: RMContext) -> ClusterMetrics:
    """Counts of nodes by state."""
    states = [node.state for node in (*context.nodes.values(), *context.inactive_nodes.values())]
    return ClusterMetrics(
        total=len(context.nodes),
        active=states.count(NodeState.RUNNING),
        lost=states.count(NodeState.LOST),
        unhealthy=states.count(NodeState.UNHEALTHY),
        decommissioning=states.count(NodeState.DECOMMISSIONING),
        decommissioned=states.count(NodeState.DECOMMISSIONED),
        rebooted=states.count(NodeState.REBOOTED),
        shutdown=states.count(NodeState.SHUTDOWN),
    )


def _node_report(context: RMContext, node: RMNode, update: NodeUpdateType | None) -> NodeReport:
    used, containers = context.scheduler.node_usage(node.node_id)
    return NodeReport(
        node_id=node.node_id,
        state=node.state,
        http_address=node.http_address,
        rack=node.rack,
        used=used,
        capability=node.capability,
        containers=containers,
        health=node.health,
        containers_utilization=node.containers_utilization,
        node_utilization=node.node_utilization,
        labels=frozenset({label} if (label := context.scheduler.labels.label_of(node.node_id)) else ()),
        update_type=update,
        decommissioning_timeout_s=_decommissioning_timeout_s(node),
    )


def _decommissioning_timeout_s(node: RMNode) -> int | None:
    """The timeout of the last graceful decommissioning, also after the node was recommissioned; None without any.

    Source: RMNodeImpl.RecommissionNodeTransition, which keeps it.
    """
    if node.state is NodeState.DECOMMISSIONING or node.decommissioning_timeout_s != NO_TIMEOUT:
        return node.decommissioning_timeout_s
    return None
