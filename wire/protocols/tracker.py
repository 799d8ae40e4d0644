"""ResourceTracker: an NM to the RM."""

from __future__ import annotations

from typing import Any, Protocol

from protos import yarn_server_common_service_protos_pb2 as pb
from wire.caller import Caller
from wire.codec.fields import required
from wire.codec.ids import read_node_id, write_node_id
from wire.codec.tracker import (
    read_heartbeat,
    read_heartbeat_reply,
    read_register_node,
    read_registered_node,
    write_heartbeat,
    write_heartbeat_reply,
    write_register_node,
    write_registered_node,
)
from wire.rpc import Form, Rpc, empty
from yarn.ids import NodeId
from yarn.protocols.tracker import (
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RegisterNodeManagerRequest,
    RegisterNodeManagerResponse,
)

SERVICE = "hadoop.yarn.ResourceTrackerService"


class ResourceTrackerHandler(Protocol):
    """What answers nodes; `caller.verified` is the node that the token is for."""

    async def register_node_manager(
        self, caller: Caller[NodeId], request: RegisterNodeManagerRequest
    ) -> RegisterNodeManagerResponse: ...
    async def node_heartbeat(self, caller: Caller[NodeId], request: NodeHeartbeatRequest) -> NodeHeartbeatResponse: ...
    async def unregister_node_manager(self, caller: Caller[NodeId], request: NodeId) -> None: ...


REGISTER_NODE_MANAGER: Rpc[RegisterNodeManagerRequest, RegisterNodeManagerResponse] = Rpc(
    SERVICE,
    "registerNodeManager",
    "register_node_manager",
    Form(pb.RegisterNodeManagerRequestProto, write_register_node, read_register_node),
    Form(pb.RegisterNodeManagerResponseProto, write_registered_node, read_registered_node),
)
NODE_HEARTBEAT: Rpc[NodeHeartbeatRequest, NodeHeartbeatResponse] = Rpc(
    SERVICE,
    "nodeHeartbeat",
    "node_heartbeat",
    Form(pb.NodeHeartbeatRequestProto, write_heartbeat, read_heartbeat),
    Form(pb.NodeHeartbeatResponseProto, write_heartbeat_reply, read_heartbeat_reply),
)
UNREGISTER_NODE_MANAGER: Rpc[NodeId, None] = Rpc(
    SERVICE,
    "unRegisterNodeManager",
    "unregister_node_manager",
    Form(
        pb.UnRegisterNodeManagerRequestProto,
        lambda node_id, out: write_node_id(node_id, out.node_id),
        lambda proto: read_node_id(required(proto, "node_id")),
    ),
    empty(pb.UnRegisterNodeManagerResponseProto),
)

RPCS: tuple[Rpc[Any, Any], ...] = (REGISTER_NODE_MANAGER, NODE_HEARTBEAT, UNREGISTER_NODE_MANAGER)
