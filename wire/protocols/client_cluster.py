"""ApplicationClientProtocol's calls about the cluster: nodes, labels, queues, resource types. All of them only read."""

from __future__ import annotations

from typing import Any

from protos import yarn_service_protos_pb2 as pb
from wire.codec.client import (
    read_profiles,
    read_queue_acls,
    read_queue_request,
    read_resource_types,
    write_node_states,
    write_nodes,
    write_profiles,
    write_queue,
    write_queue_acls,
    write_queue_request,
    write_resource_types,
)
from wire.codec.fields import required, text
from wire.codec.labels import (
    read_cluster_labels,
    read_labels_to_nodes,
    read_nodes_to_labels,
    read_wanted_labels,
    write_cluster_labels,
    write_labels_to_nodes,
    write_nodes_to_labels,
    write_wanted_labels,
)
from wire.codec.nodes import NODE_STATES, read_cluster_metrics, read_node_report, write_cluster_metrics
from wire.codec.queues import read_queue_info
from wire.codec.resources import read_resource, write_resource
from wire.rpc import Form, Rpc, empty
from yarn.nodes import ClusterMetrics, NodeLabel, NodeReport
from yarn.protocols.client import LabelsToNodes, NodesToLabels, QueueInfoRequest, QueueUserAcls, ResourceTypeInfo
from yarn.queues import QueueInfo
from yarn.resource import Resource
from yarn.states import NodeState

SERVICE = "hadoop.yarn.ApplicationClientProtocolService"


def _write_profile_name(name: str, out: pb.GetResourceProfileRequestProto) -> None:
    out.profile = name


GET_CLUSTER_METRICS: Rpc[None, ClusterMetrics] = Rpc(
    SERVICE,
    "getClusterMetrics",
    "get_cluster_metrics",
    empty(pb.GetClusterMetricsRequestProto),
    Form(
        pb.GetClusterMetricsResponseProto,
        lambda metrics, out: write_cluster_metrics(metrics, out.cluster_metrics),
        lambda proto: read_cluster_metrics(required(proto, "cluster_metrics")),
    ),
    reads=True,
)
GET_CLUSTER_NODES: Rpc[frozenset[NodeState], tuple[NodeReport, ...]] = Rpc(
    SERVICE,
    "getClusterNodes",
    "get_cluster_nodes",
    Form(
        pb.GetClusterNodesRequestProto,
        write_node_states,
        lambda proto: frozenset(NODE_STATES[state] for state in proto.nodeStates),
    ),
    Form(
        pb.GetClusterNodesResponseProto,
        write_nodes,
        lambda proto: tuple(read_node_report(node) for node in proto.nodeReports),
    ),
    reads=True,
    bulky=True,
)
GET_QUEUE_INFO: Rpc[QueueInfoRequest, QueueInfo | None] = Rpc(
    SERVICE,
    "getQueueInfo",
    "get_queue_info",
    Form(pb.GetQueueInfoRequestProto, write_queue_request, read_queue_request),
    Form(
        pb.GetQueueInfoResponseProto,
        write_queue,
        lambda proto: read_queue_info(proto.queueInfo) if proto.HasField("queueInfo") else None,
    ),
    reads=True,
    bulky=True,
)
GET_QUEUE_USER_ACLS: Rpc[None, tuple[QueueUserAcls, ...]] = Rpc(
    SERVICE,
    "getQueueUserAcls",
    "get_queue_user_acls",
    empty(pb.GetQueueUserAclsInfoRequestProto),
    Form(pb.GetQueueUserAclsInfoResponseProto, write_queue_acls, read_queue_acls),
    reads=True,
    bulky=True,
)
GET_RESOURCE_TYPE_INFO: Rpc[None, tuple[ResourceTypeInfo, ...]] = Rpc(
    SERVICE,
    "getResourceTypeInfo",
    "get_resource_type_info",
    empty(pb.GetAllResourceTypeInfoRequestProto),
    Form(pb.GetAllResourceTypeInfoResponseProto, write_resource_types, read_resource_types),
    reads=True,
)
GET_RESOURCE_PROFILES: Rpc[None, dict[str, Resource]] = Rpc(
    SERVICE,
    "getResourceProfiles",
    "get_resource_profiles",
    empty(pb.GetAllResourceProfilesRequestProto),
    Form(pb.GetAllResourceProfilesResponseProto, write_profiles, read_profiles),
    reads=True,
)
GET_RESOURCE_PROFILE: Rpc[str, Resource] = Rpc(
    SERVICE,
    "getResourceProfile",
    "get_resource_profile",
    Form(pb.GetResourceProfileRequestProto, _write_profile_name, lambda proto: text(proto, "profile")),
    Form(
        pb.GetResourceProfileResponseProto,
        lambda amount, out: write_resource(amount, out.resources),
        lambda proto: read_resource(proto.resources),
    ),
    reads=True,
)
GET_NODE_TO_LABELS: Rpc[None, NodesToLabels] = Rpc(
    SERVICE,
    "getNodeToLabels",
    "get_node_to_labels",
    empty(pb.GetNodesToLabelsRequestProto),
    Form(pb.GetNodesToLabelsResponseProto, write_nodes_to_labels, read_nodes_to_labels),
    reads=True,
    bulky=True,
)
GET_LABELS_TO_NODES: Rpc[tuple[str, ...], LabelsToNodes] = Rpc(
    SERVICE,
    "getLabelsToNodes",
    "get_labels_to_nodes",
    Form(pb.GetLabelsToNodesRequestProto, write_wanted_labels, read_wanted_labels),
    Form(pb.GetLabelsToNodesResponseProto, write_labels_to_nodes, read_labels_to_nodes),
    reads=True,
    bulky=True,
)
GET_CLUSTER_NODE_LABELS: Rpc[None, tuple[NodeLabel, ...]] = Rpc(
    SERVICE,
    "getClusterNodeLabels",
    "get_cluster_node_labels",
    empty(pb.GetClusterNodeLabelsRequestProto),
    Form(pb.GetClusterNodeLabelsResponseProto, write_cluster_labels, read_cluster_labels),
    reads=True,
)

RPCS: tuple[Rpc[Any, Any], ...] = (
    GET_CLUSTER_METRICS,
    GET_CLUSTER_NODES,
    GET_QUEUE_INFO,
    GET_QUEUE_USER_ACLS,
    GET_RESOURCE_TYPE_INFO,
    GET_RESOURCE_PROFILES,
    GET_RESOURCE_PROFILE,
    GET_NODE_TO_LABELS,
    GET_LABELS_TO_NODES,
    GET_CLUSTER_NODE_LABELS,
)
