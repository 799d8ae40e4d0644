"""ResourceManagerAdministrationProtocol: the calls of an administrator to the RM."""

from __future__ import annotations

from wire.codec.basic import read_node_id, read_resource, write_node_id, write_resource
from wire.codec.fields import members, number, optional_int, refuse_too_many, required, texts
from wire.codec.message_codec import MessageCodec, empty, holding_text, listing, listing_texts
from wire.codec.nodes import LABELS_MAX, read_label, read_node_labels, write_label, write_node_labels
from wire.generated import yarn_protos_pb2 as yarn_pb
from wire.generated import yarn_server_resourcemanager_service_protos_pb2 as pb
from wire.rpc import Proxy, Rpc
from yarn.ids import NodeId
from yarn.nodes import NodeLabel
from yarn.protocols.admin import NodeResources, RefreshNodesRequest, ReplaceLabelsRequest, ResourceOption
from yarn.states import DecommissionType

NODES_MAX = 100_000
"""The maximum of nodes in one change of resources or labels."""
_TYPES = members(DecommissionType)


def _write_refresh_nodes(request: RefreshNodesRequest, out: pb.RefreshNodesRequestProto) -> None:
    out.decommissionType = number(request.type)
    if request.timeout_s is not None:
        out.decommissionTimeout = request.timeout_s


def _read_refresh_nodes(proto: pb.RefreshNodesRequestProto) -> RefreshNodesRequest:
    return RefreshNodesRequest(_TYPES[proto.decommissionType], optional_int(proto, "decommissionTimeout"))


def _write_size(size: tuple[NodeId, ResourceOption], out: yarn_pb.NodeResourceMapProto) -> None:
    write_node_id(size[0], out.node_id)
    write_resource(size[1].resource, out.resource_option.resource)
    out.resource_option.over_commit_timeout = size[1].over_commit_timeout_ms


def _read_size(proto: yarn_pb.NodeResourceMapProto) -> tuple[NodeId, ResourceOption]:
    return read_node_id(required(proto, "node_id")), _read_resource_option(required(proto, "resource_option"))


def _read_resource_option(proto: yarn_pb.ResourceOptionProto) -> ResourceOption:
    """A node's new size. A timeout that is left out is 0, as in ResourceOptionPBImpl; Hadoop's clients send it."""
    return ResourceOption(read_resource(required(proto, "resource")), proto.over_commit_timeout)


def _write_new_labels(labels: tuple[NodeLabel, ...], out: pb.AddToClusterNodeLabelsRequestProto) -> None:
    for label in labels:
        write_label(label, out.nodeLabels.add())


def _read_new_labels(proto: pb.AddToClusterNodeLabelsRequestProto) -> tuple[NodeLabel, ...]:
    """The labels to add. Labels sent as names only, as old releases do, are exclusive."""
    refuse_too_many(proto, "nodeLabels", LABELS_MAX)
    refuse_too_many(proto, "deprecatedNodeLabels", LABELS_MAX)
    if proto.nodeLabels:
        return tuple(read_label(label) for label in proto.nodeLabels)
    return tuple(NodeLabel(name) for name in texts(proto, "deprecatedNodeLabels"))


def _write_replacement(request: ReplaceLabelsRequest, out: pb.ReplaceLabelsOnNodeRequestProto) -> None:
    for node in request.labels:
        write_node_labels(node, out.nodeToLabels.add())
    out.failOnUnknownNodes = request.fail_on_unknown_nodes


def _read_replacement(proto: pb.ReplaceLabelsOnNodeRequestProto) -> ReplaceLabelsRequest:
    refuse_too_many(proto, "nodeToLabels", NODES_MAX)
    labels = tuple(read_node_labels(node) for node in proto.nodeToLabels)
    return ReplaceLabelsRequest(labels, proto.failOnUnknownNodes)


class ResourceManagerAdministrationProtocol(Proxy):
    """An administrator's calls to the RM (yarn.resourcemanager.admin.address)."""

    service = "hadoop.yarn.ResourceManagerAdministrationProtocolService"

    refresh_queues: Rpc[None, None] = Rpc(
        "refreshQueues",
        empty(pb.RefreshQueuesRequestProto),
        empty(pb.RefreshQueuesResponseProto),
        idempotent=True,
    )
    """Request the RM to read its queues again. Raises ConfigurationException with all faults; then nothing was
    changed."""
    refresh_nodes: Rpc[RefreshNodesRequest, None] = Rpc(
        "refreshNodes",
        MessageCodec(pb.RefreshNodesRequestProto, _write_refresh_nodes, _read_refresh_nodes),
        empty(pb.RefreshNodesResponseProto),
        idempotent=True,
    )
    """Request the RM to read its host lists again. The call may return before all nodes are decommissioned."""
    check_for_decommissioning_nodes: Rpc[None, tuple[NodeId, ...]] = Rpc(
        "checkForDecommissioningNodes",
        empty(pb.CheckForDecommissioningNodesRequestProto),
        listing(pb.CheckForDecommissioningNodesResponseProto, "decommissioningNodes", write_node_id, read_node_id),
        reads=True,
    )
    refresh_super_user_groups_configuration: Rpc[None, None] = Rpc(
        "refreshSuperUserGroupsConfiguration",
        empty(pb.RefreshSuperUserGroupsConfigurationRequestProto),
        empty(pb.RefreshSuperUserGroupsConfigurationResponseProto),
        idempotent=True,
    )
    refresh_user_to_groups_mappings: Rpc[None, None] = Rpc(
        "refreshUserToGroupsMappings",
        empty(pb.RefreshUserToGroupsMappingsRequestProto),
        empty(pb.RefreshUserToGroupsMappingsResponseProto),
        idempotent=True,
    )
    refresh_admin_acls: Rpc[None, None] = Rpc(
        "refreshAdminAcls",
        empty(pb.RefreshAdminAclsRequestProto),
        empty(pb.RefreshAdminAclsResponseProto),
        idempotent=True,
    )
    refresh_service_acls: Rpc[None, None] = Rpc(
        "refreshServiceAcls",
        empty(pb.RefreshServiceAclsRequestProto),
        empty(pb.RefreshServiceAclsResponseProto),
        idempotent=True,
    )
    refresh_cluster_max_priority: Rpc[None, None] = Rpc(
        "refreshClusterMaxPriority",
        empty(pb.RefreshClusterMaxPriorityRequestProto),
        empty(pb.RefreshClusterMaxPriorityResponseProto),
        idempotent=True,
    )
    get_groups_for_user: Rpc[str, tuple[str, ...]] = Rpc(
        "getGroupsForUser",
        holding_text(pb.GetGroupsForUserRequestProto, "user"),
        listing_texts(pb.GetGroupsForUserResponseProto, "groups"),
        reads=True,
    )
    add_to_cluster_node_labels: Rpc[tuple[NodeLabel, ...], None] = Rpc(
        "addToClusterNodeLabels",
        MessageCodec(pb.AddToClusterNodeLabelsRequestProto, _write_new_labels, _read_new_labels),
        empty(pb.AddToClusterNodeLabelsResponseProto),
        idempotent=True,
    )
    remove_from_cluster_node_labels: Rpc[tuple[str, ...], None] = Rpc(
        "removeFromClusterNodeLabels",
        listing_texts(pb.RemoveFromClusterNodeLabelsRequestProto, "nodeLabels", limit=LABELS_MAX),
        empty(pb.RemoveFromClusterNodeLabelsResponseProto),
        idempotent=True,
    )
    replace_labels_on_nodes: Rpc[ReplaceLabelsRequest, None] = Rpc(
        "replaceLabelsOnNodes",
        MessageCodec(pb.ReplaceLabelsOnNodeRequestProto, _write_replacement, _read_replacement),
        empty(pb.ReplaceLabelsOnNodeResponseProto),
        idempotent=True,
    )
    update_node_resource: Rpc[NodeResources, None] = Rpc(
        "updateNodeResource",
        listing(pb.UpdateNodeResourceRequestProto, "node_resource_map", _write_size, _read_size, limit=NODES_MAX),
        empty(pb.UpdateNodeResourceResponseProto),
        idempotent=True,
    )
