"""The codecs of nodes: reports to clients and AMs, health, and labels."""

from __future__ import annotations

from wire.codec.basic import (
    read_node_id,
    read_resource,
    read_utilization,
    write_node_id,
    write_resource,
    write_sum,
    write_utilization,
)
from wire.codec.fields import int32, member, members, number, optional_member, required, text, texts
from wire.generated import yarn_protos_pb2 as pb
from wire.generated import yarn_server_common_protos_pb2 as common_pb
from wire.generated import yarnling_pb2
from yarn.ids import NodeId
from yarn.nodes import ClusterMetrics, NodeGroup, NodeHealth, NodeLabel, NodeReport
from yarn.resource import INT32_MAX
from yarn.states import NodeState, NodeUpdateType

NODE_STATES = members(NodeState)
_UPDATE_TYPES = members(NodeUpdateType)
_UINT32 = 0xFFFFFFFF
LABELS_MAX = 10_000
"""The maximum of labels in one message; clusters have a dozen."""


def write_health(health: NodeHealth, out: common_pb.NodeHealthStatusProto) -> None:
    out.is_node_healthy = health.healthy
    out.health_report = health.report
    out.last_health_report_time = health.reported_ms


def read_health(proto: common_pb.NodeHealthStatusProto) -> NodeHealth:
    return NodeHealth(proto.is_node_healthy, text(proto, "health_report"), proto.last_health_report_time)


def write_node_report(report: NodeReport, out: pb.NodeReportProto) -> None:
    write_node_id(report.node_id, out.nodeId)
    out.node_state = number(report.state)
    out.httpAddress = report.http_address
    out.rackName = report.rack
    write_sum(report.used, out.used)
    write_resource(report.capability, out.capability)
    out.numContainers = report.containers
    out.health_report = report.health.report
    out.last_health_report_time = report.health.reported_ms
    if report.containers_utilization is not None:
        write_utilization(report.containers_utilization, out.containers_utilization)
    if report.node_utilization is not None:
        write_utilization(report.node_utilization, out.node_utilization)
    out.node_labels.extend(sorted(report.labels))
    if report.update_type is not None:
        out.node_update_type = number(report.update_type)
    if report.decommissioning_timeout_s is not None:
        # The field is unsigned, and Hadoop writes Java's signed ints into it.
        out.decommissioning_timeout = report.decommissioning_timeout_s & _UINT32


def read_node_report(proto: pb.NodeReportProto) -> NodeReport:
    """A node report. NodeReportProto does not state whether the node is healthy; its state does."""
    state = member(NODE_STATES, proto, "node_state")
    health = NodeHealth(state is not NodeState.UNHEALTHY, text(proto, "health_report"), proto.last_health_report_time)
    return NodeReport(
        read_node_id(required(proto, "nodeId")),
        state,
        text(proto, "httpAddress"),
        text(proto, "rackName"),
        read_resource(proto.used),
        read_resource(proto.capability),
        proto.numContainers,
        health,
        read_utilization(proto.containers_utilization) if proto.HasField("containers_utilization") else None,
        read_utilization(proto.node_utilization) if proto.HasField("node_utilization") else None,
        frozenset(texts(proto, "node_labels")),
        optional_member(_UPDATE_TYPES, proto, "node_update_type"),
        _signed(proto.decommissioning_timeout) if proto.HasField("decommissioning_timeout") else None,
    )


def _signed(number: int) -> int:
    return number - _UINT32 - 1 if number > INT32_MAX else number


def write_cluster_metrics(metrics: ClusterMetrics, out: pb.YarnClusterMetricsProto) -> None:
    out.num_node_managers = int32(metrics.total)
    out.num_active_nms = int32(metrics.active)
    out.num_lost_nms = int32(metrics.lost)
    out.num_unhealthy_nms = int32(metrics.unhealthy)
    out.num_decommissioning_nms = int32(metrics.decommissioning)
    out.num_decommissioned_nms = int32(metrics.decommissioned)
    out.num_rebooted_nms = int32(metrics.rebooted)
    out.num_shutdown_nms = int32(metrics.shutdown)


def read_cluster_metrics(proto: pb.YarnClusterMetricsProto) -> ClusterMetrics:
    return ClusterMetrics(
        total=proto.num_node_managers,
        active=proto.num_active_nms,
        lost=proto.num_lost_nms,
        unhealthy=proto.num_unhealthy_nms,
        decommissioning=proto.num_decommissioning_nms,
        decommissioned=proto.num_decommissioned_nms,
        rebooted=proto.num_rebooted_nms,
        shutdown=proto.num_shutdown_nms,
    )


def write_node_group(group: NodeGroup, out: yarnling_pb2.NodeGroupProto) -> None:
    out.state = number(group.state)
    out.health_report = group.health_report
    out.nodes, out.containers = int32(group.nodes), group.containers
    write_sum(group.used, out.used)
    write_sum(group.capability, out.capability)
    out.physical_memory_mb = group.physical_memory_mb
    for node_id in group.node_ids:
        write_node_id(node_id, out.node_ids.add())


def read_node_group(proto: yarnling_pb2.NodeGroupProto) -> NodeGroup:
    return NodeGroup(
        member(NODE_STATES, proto, "state"),
        text(proto, "health_report"),
        proto.nodes,
        proto.containers,
        read_resource(proto.used),
        read_resource(proto.capability),
        proto.physical_memory_mb,
        tuple(read_node_id(node_id) for node_id in proto.node_ids),
    )


def write_label(label: NodeLabel, out: pb.NodeLabelProto) -> None:
    out.name, out.isExclusive = label.name, label.exclusive


def read_label(proto: pb.NodeLabelProto) -> NodeLabel:
    return NodeLabel(text(proto, "name"), proto.isExclusive)


def write_node_labels(node: tuple[NodeId, tuple[str, ...]], out: pb.NodeIdToLabelsProto) -> None:
    node_id, labels = node
    write_node_id(node_id, out.nodeId)
    out.nodeLabels.extend(labels)


def read_node_labels(proto: pb.NodeIdToLabelsProto) -> tuple[NodeId, tuple[str, ...]]:
    return read_node_id(required(proto, "nodeId")), texts(proto, "nodeLabels")
