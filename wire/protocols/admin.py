"""ResourceManagerAdministrationProtocol: an operator to the RM."""

from __future__ import annotations

from typing import Any, Protocol

from protos import yarn_protos_pb2 as yarn_pb
from protos import yarn_server_resourcemanager_service_protos_pb2 as pb
from wire.caller import Caller
from wire.codec.fields import members, name_of, number, optional_int, refuse_too_many, required, text, texts
from wire.codec.ids import read_node_id, write_node_id
from wire.codec.labels import (
    read_new_labels,
    read_removed_labels,
    read_replacement,
    write_new_labels,
    write_removed_labels,
    write_replacement,
)
from wire.codec.resources import read_resource, write_resource
from wire.rpc import Form, Rpc, empty
from yarn.errors import InvalidArgumentException
from yarn.ids import NodeId
from yarn.nodes import NodeLabel
from yarn.protocols.admin import RefreshNodesRequest, ReplaceLabelsRequest
from yarn.resource import Resource
from yarn.states import DecommissionType

SERVICE = "hadoop.yarn.ResourceManagerAdministrationProtocolService"

NODES_MAX = 100_000
"""Nodes in one change of sizes."""

_TYPES = members(DecommissionType)

NodeResources = tuple[tuple[NodeId, Resource], ...]


class AdminHandler(Protocol):
    """What answers operators."""

    async def refresh_queues(self, caller: Caller[None], request: None) -> None: ...
    async def refresh_nodes(self, caller: Caller[None], request: RefreshNodesRequest) -> None: ...
    async def check_for_decommissioning_nodes(self, caller: Caller[None], request: None) -> tuple[NodeId, ...]: ...
    async def refresh_super_user_groups_configuration(self, caller: Caller[None], request: None) -> None: ...
    async def refresh_user_to_groups_mappings(self, caller: Caller[None], request: None) -> None: ...
    async def refresh_admin_acls(self, caller: Caller[None], request: None) -> None: ...
    async def refresh_service_acls(self, caller: Caller[None], request: None) -> None: ...
    async def refresh_cluster_max_priority(self, caller: Caller[None], request: None) -> None: ...
    async def get_groups_for_user(self, caller: Caller[None], request: str) -> tuple[str, ...]: ...
    async def add_to_cluster_node_labels(self, caller: Caller[None], request: tuple[NodeLabel, ...]) -> None: ...
    async def remove_from_cluster_node_labels(self, caller: Caller[None], request: tuple[str, ...]) -> None: ...
    async def replace_labels_on_nodes(self, caller: Caller[None], request: ReplaceLabelsRequest) -> None: ...
    async def update_node_resource(self, caller: Caller[None], request: NodeResources) -> None: ...


def _write_sizes(sizes: NodeResources, out: pb.UpdateNodeResourceRequestProto) -> None:
    for node_id, resource in sizes:
        entry = out.node_resource_map.add()
        write_node_id(node_id, entry.node_id)
        write_resource(resource, entry.resource_option.resource)


def _read_sizes(proto: pb.UpdateNodeResourceRequestProto) -> NodeResources:
    refuse_too_many(proto, "node_resource_map", NODES_MAX)
    return tuple(
        (read_node_id(required(entry, "node_id")), _read_size(required(entry, "resource_option")))
        for entry in proto.node_resource_map
    )


def _read_size(proto: yarn_pb.ResourceOptionProto) -> Resource:
    """Without a timeout (-1, which `yarn rmadmin` sends unless told) what is too much on a node ends by itself."""
    if proto.HasField("over_commit_timeout") and proto.over_commit_timeout >= 0:
        raise InvalidArgumentException(
            f"{name_of(proto, 'over_commit_timeout')} is {proto.over_commit_timeout}, but no container is taken from a "
            "node that was made too small: send -1, or nothing"
        )
    return read_resource(required(proto, "resource"))


REFRESH_QUEUES: Rpc[None, None] = Rpc(
    SERVICE,
    "refreshQueues",
    "refresh_queues",
    empty(pb.RefreshQueuesRequestProto),
    empty(pb.RefreshQueuesResponseProto),
)


def _write_refresh_nodes(request: RefreshNodesRequest, out: pb.RefreshNodesRequestProto) -> None:
    out.decommissionType = number(request.type)
    if request.timeout_s is not None:
        out.decommissionTimeout = request.timeout_s


def _read_refresh_nodes(proto: pb.RefreshNodesRequestProto) -> RefreshNodesRequest:
    return RefreshNodesRequest(_TYPES[proto.decommissionType], optional_int(proto, "decommissionTimeout"))


def _write_nodes(nodes: tuple[NodeId, ...], out: pb.CheckForDecommissioningNodesResponseProto) -> None:
    for node_id in nodes:
        write_node_id(node_id, out.decommissioningNodes.add())


def _write_user(user: str, out: pb.GetGroupsForUserRequestProto) -> None:
    out.user = user


REFRESH_NODES: Rpc[RefreshNodesRequest, None] = Rpc(
    SERVICE,
    "refreshNodes",
    "refresh_nodes",
    Form(pb.RefreshNodesRequestProto, _write_refresh_nodes, _read_refresh_nodes),
    empty(pb.RefreshNodesResponseProto),
)
CHECK_FOR_DECOMMISSIONING_NODES: Rpc[None, tuple[NodeId, ...]] = Rpc(
    SERVICE,
    "checkForDecommissioningNodes",
    "check_for_decommissioning_nodes",
    empty(pb.CheckForDecommissioningNodesRequestProto),
    Form(
        pb.CheckForDecommissioningNodesResponseProto,
        _write_nodes,
        lambda proto: tuple(read_node_id(node_id) for node_id in proto.decommissioningNodes),
    ),
    reads=True,
)
REFRESH_SUPER_USER_GROUPS: Rpc[None, None] = Rpc(
    SERVICE,
    "refreshSuperUserGroupsConfiguration",
    "refresh_super_user_groups_configuration",
    empty(pb.RefreshSuperUserGroupsConfigurationRequestProto),
    empty(pb.RefreshSuperUserGroupsConfigurationResponseProto),
)
REFRESH_USER_TO_GROUPS: Rpc[None, None] = Rpc(
    SERVICE,
    "refreshUserToGroupsMappings",
    "refresh_user_to_groups_mappings",
    empty(pb.RefreshUserToGroupsMappingsRequestProto),
    empty(pb.RefreshUserToGroupsMappingsResponseProto),
)
REFRESH_ADMIN_ACLS: Rpc[None, None] = Rpc(
    SERVICE,
    "refreshAdminAcls",
    "refresh_admin_acls",
    empty(pb.RefreshAdminAclsRequestProto),
    empty(pb.RefreshAdminAclsResponseProto),
)
REFRESH_SERVICE_ACLS: Rpc[None, None] = Rpc(
    SERVICE,
    "refreshServiceAcls",
    "refresh_service_acls",
    empty(pb.RefreshServiceAclsRequestProto),
    empty(pb.RefreshServiceAclsResponseProto),
)
REFRESH_CLUSTER_MAX_PRIORITY: Rpc[None, None] = Rpc(
    SERVICE,
    "refreshClusterMaxPriority",
    "refresh_cluster_max_priority",
    empty(pb.RefreshClusterMaxPriorityRequestProto),
    empty(pb.RefreshClusterMaxPriorityResponseProto),
)
GET_GROUPS_FOR_USER: Rpc[str, tuple[str, ...]] = Rpc(
    SERVICE,
    "getGroupsForUser",
    "get_groups_for_user",
    Form(pb.GetGroupsForUserRequestProto, _write_user, lambda proto: text(proto, "user")),
    Form(
        pb.GetGroupsForUserResponseProto,
        lambda groups, out: out.groups.extend(groups),
        lambda proto: texts(proto, "groups"),
    ),
    reads=True,
)
ADD_TO_CLUSTER_NODE_LABELS: Rpc[tuple[NodeLabel, ...], None] = Rpc(
    SERVICE,
    "addToClusterNodeLabels",
    "add_to_cluster_node_labels",
    Form(pb.AddToClusterNodeLabelsRequestProto, write_new_labels, read_new_labels),
    empty(pb.AddToClusterNodeLabelsResponseProto),
)
REMOVE_FROM_CLUSTER_NODE_LABELS: Rpc[tuple[str, ...], None] = Rpc(
    SERVICE,
    "removeFromClusterNodeLabels",
    "remove_from_cluster_node_labels",
    Form(pb.RemoveFromClusterNodeLabelsRequestProto, write_removed_labels, read_removed_labels),
    empty(pb.RemoveFromClusterNodeLabelsResponseProto),
)
REPLACE_LABELS_ON_NODES: Rpc[ReplaceLabelsRequest, None] = Rpc(
    SERVICE,
    "replaceLabelsOnNodes",
    "replace_labels_on_nodes",
    Form(pb.ReplaceLabelsOnNodeRequestProto, write_replacement, read_replacement),
    empty(pb.ReplaceLabelsOnNodeResponseProto),
)
UPDATE_NODE_RESOURCE: Rpc[NodeResources, None] = Rpc(
    SERVICE,
    "updateNodeResource",
    "update_node_resource",
    Form(pb.UpdateNodeResourceRequestProto, _write_sizes, _read_sizes),
    empty(pb.UpdateNodeResourceResponseProto),
)

RPCS: tuple[Rpc[Any, Any], ...] = (
    REFRESH_QUEUES,
    REFRESH_NODES,
    CHECK_FOR_DECOMMISSIONING_NODES,
    REFRESH_SUPER_USER_GROUPS,
    REFRESH_USER_TO_GROUPS,
    REFRESH_ADMIN_ACLS,
    REFRESH_SERVICE_ACLS,
    REFRESH_CLUSTER_MAX_PRIORITY,
    GET_GROUPS_FOR_USER,
    ADD_TO_CLUSTER_NODE_LABELS,
    REMOVE_FROM_CLUSTER_NODE_LABELS,
    REPLACE_LABELS_ON_NODES,
    UPDATE_NODE_RESOURCE,
)
