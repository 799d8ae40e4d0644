"""ResourceManagerAdministrationProtocol: an operator to the RM."""

from __future__ import annotations

from typing import Any, Protocol

from protos import yarn_server_resourcemanager_service_protos_pb2 as pb
from wire.caller import Caller
from wire.codec.fields import refuse_too_many, required
from wire.codec.ids import read_node_id, write_node_id
from wire.codec.resources import read_resource, write_resource
from wire.rpc import Form, Rpc, empty
from yarn.ids import NodeId
from yarn.resource import Resource

SERVICE = "hadoop.yarn.ResourceManagerAdministrationProtocolService"

NODES_MAX = 100_000
"""Nodes in one change of sizes."""

NodeResources = tuple[tuple[NodeId, Resource], ...]


class AdminHandler(Protocol):
    """What answers operators."""

    async def refresh_queues(self, caller: Caller[None], request: None) -> None: ...
    async def update_node_resource(self, caller: Caller[None], request: NodeResources) -> None: ...


def _write_sizes(sizes: NodeResources, out: pb.UpdateNodeResourceRequestProto) -> None:
    for node_id, resource in sizes:
        entry = out.node_resource_map.add()
        write_node_id(node_id, entry.node_id)
        write_resource(resource, entry.resource_option.resource)


def _read_sizes(proto: pb.UpdateNodeResourceRequestProto) -> NodeResources:
    refuse_too_many(proto, "node_resource_map", NODES_MAX)
    return tuple(
        (
            read_node_id(required(entry, "node_id")),
            read_resource(required(required(entry, "resource_option"), "resource")),
        )
        for entry in proto.node_resource_map
    )


REFRESH_QUEUES: Rpc[None, None] = Rpc(
    SERVICE,
    "refreshQueues",
    "refresh_queues",
    empty(pb.RefreshQueuesRequestProto),
    empty(pb.RefreshQueuesResponseProto),
)
UPDATE_NODE_RESOURCE: Rpc[NodeResources, None] = Rpc(
    SERVICE,
    "updateNodeResource",
    "update_node_resource",
    Form(pb.UpdateNodeResourceRequestProto, _write_sizes, _read_sizes),
    empty(pb.UpdateNodeResourceResponseProto),
)

RPCS: tuple[Rpc[Any, Any], ...] = (REFRESH_QUEUES, UPDATE_NODE_RESOURCE)
