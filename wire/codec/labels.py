"""Labels of nodes, as clients ask for them and administrators give them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from protos import yarn_protos_pb2 as pb
from protos import yarn_server_resourcemanager_service_protos_pb2 as admin_pb
from protos import yarn_service_protos_pb2 as service_pb
from wire.codec.fields import refuse_too_many, required, text, texts
from wire.codec.ids import read_node_id, write_node_id
from yarn.nodes import NodeLabel
from yarn.protocols.admin import ReplaceLabelsRequest
from yarn.protocols.client import LabelsToNodes, NodesToLabels

LABELS_MAX = 10_000
"""Labels in one message; clusters have a dozen."""
NODES_MAX = 100_000
"""Nodes in one change of labels."""


def _write_labels(labels: Iterable[NodeLabel], out: Any) -> None:
    for label in labels:
        out.add(name=label.name, isExclusive=label.exclusive)


def _read_label(proto: pb.NodeLabelProto) -> NodeLabel:
    return NodeLabel(text(proto, "name"), proto.isExclusive)


def write_cluster_labels(labels: tuple[NodeLabel, ...], out: service_pb.GetClusterNodeLabelsResponseProto) -> None:
    _write_labels(labels, out.nodeLabels)
    out.deprecatedNodeLabels.extend(label.name for label in labels)


def read_cluster_labels(proto: service_pb.GetClusterNodeLabelsResponseProto) -> tuple[NodeLabel, ...]:
    return tuple(_read_label(label) for label in proto.nodeLabels)


def write_new_labels(labels: tuple[NodeLabel, ...], out: admin_pb.AddToClusterNodeLabelsRequestProto) -> None:
    _write_labels(labels, out.nodeLabels)


def read_new_labels(proto: admin_pb.AddToClusterNodeLabelsRequestProto) -> tuple[NodeLabel, ...]:
    """Names without more, as old releases send them, are of exclusive labels."""
    refuse_too_many(proto, "nodeLabels", LABELS_MAX)
    refuse_too_many(proto, "deprecatedNodeLabels", LABELS_MAX)
    if proto.nodeLabels:
        return tuple(_read_label(label) for label in proto.nodeLabels)
    return tuple(NodeLabel(name) for name in texts(proto, "deprecatedNodeLabels"))


def write_removed_labels(names: tuple[str, ...], out: admin_pb.RemoveFromClusterNodeLabelsRequestProto) -> None:
    out.nodeLabels.extend(names)


def read_removed_labels(proto: admin_pb.RemoveFromClusterNodeLabelsRequestProto) -> tuple[str, ...]:
    refuse_too_many(proto, "nodeLabels", LABELS_MAX)
    return texts(proto, "nodeLabels")


def write_replacement(request: ReplaceLabelsRequest, out: admin_pb.ReplaceLabelsOnNodeRequestProto) -> None:
    write_nodes_to_labels(request.labels, out)
    out.failOnUnknownNodes = request.fail_on_unknown_nodes


def read_replacement(proto: admin_pb.ReplaceLabelsOnNodeRequestProto) -> ReplaceLabelsRequest:
    return ReplaceLabelsRequest(read_nodes_to_labels(proto), proto.failOnUnknownNodes)


def write_nodes_to_labels(
    nodes: NodesToLabels,
    out: service_pb.GetNodesToLabelsResponseProto | admin_pb.ReplaceLabelsOnNodeRequestProto,
) -> None:
    for node_id, labels in nodes:
        entry = out.nodeToLabels.add()
        write_node_id(node_id, entry.nodeId)
        entry.nodeLabels.extend(labels)


def read_nodes_to_labels(
    proto: service_pb.GetNodesToLabelsResponseProto | admin_pb.ReplaceLabelsOnNodeRequestProto,
) -> NodesToLabels:
    refuse_too_many(proto, "nodeToLabels", NODES_MAX)
    return tuple((read_node_id(required(entry, "nodeId")), texts(entry, "nodeLabels")) for entry in proto.nodeToLabels)


def write_wanted_labels(names: tuple[str, ...], out: service_pb.GetLabelsToNodesRequestProto) -> None:
    out.nodeLabels.extend(names)


def read_wanted_labels(proto: service_pb.GetLabelsToNodesRequestProto) -> tuple[str, ...]:
    refuse_too_many(proto, "nodeLabels", LABELS_MAX)
    return texts(proto, "nodeLabels")


def write_labels_to_nodes(labels: LabelsToNodes, out: service_pb.GetLabelsToNodesResponseProto) -> None:
    for name, nodes in labels:
        entry = out.labelsToNodes.add(nodeLabels=name)
        for node_id in nodes:
            write_node_id(node_id, entry.nodeId.add())


def read_labels_to_nodes(proto: service_pb.GetLabelsToNodesResponseProto) -> LabelsToNodes:
    return tuple(
        (text(entry, "nodeLabels"), tuple(read_node_id(node_id) for node_id in entry.nodeId))
        for entry in proto.labelsToNodes
    )
