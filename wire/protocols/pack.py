"""PackTrackerProtocol, yarnling's own: NMs that share a process, to the RM. Served beside ResourceTracker."""

from __future__ import annotations

from typing import Any, Protocol

from protos import yarnling_pb2 as pb
from wire.caller import Caller
from wire.codec.pack import (
    read_outcomes,
    read_pack_heartbeat,
    read_pack_reply,
    read_registrations,
    write_outcomes,
    write_pack_heartbeat,
    write_pack_reply,
    write_registrations,
)
from wire.rpc import Form, Rpc, empty
from yarn.protocols.pack import Pack, PackHeartbeat, PackHeartbeatReply, RegisterOutcome
from yarn.protocols.tracker import RegisterNodeManagerRequest

SERVICE = "yarnling.PackTrackerProtocolService"


class PackTrackerHandler(Protocol):
    """What answers packs; `caller.verified` is the pack that the token is for."""

    async def register_nodes(
        self, caller: Caller[Pack], request: tuple[RegisterNodeManagerRequest, ...]
    ) -> tuple[RegisterOutcome, ...]: ...
    async def pack_heartbeat(self, caller: Caller[Pack], request: PackHeartbeat) -> PackHeartbeatReply: ...
    async def unregister_nodes(self, caller: Caller[Pack], request: tuple[int, ...]) -> None: ...


REGISTER_NODES: Rpc[tuple[RegisterNodeManagerRequest, ...], tuple[RegisterOutcome, ...]] = Rpc(
    SERVICE,
    "registerNodes",
    "register_nodes",
    Form(pb.RegisterNodesRequestProto, write_registrations, read_registrations),
    Form(pb.RegisterNodesResponseProto, write_outcomes, read_outcomes),
)
PACK_HEARTBEAT: Rpc[PackHeartbeat, PackHeartbeatReply] = Rpc(
    SERVICE,
    "packHeartbeat",
    "pack_heartbeat",
    Form(pb.PackHeartbeatRequestProto, write_pack_heartbeat, read_pack_heartbeat),
    Form(pb.PackHeartbeatResponseProto, write_pack_reply, read_pack_reply),
)
UNREGISTER_NODES: Rpc[tuple[int, ...], None] = Rpc(
    SERVICE,
    "unregisterNodes",
    "unregister_nodes",
    Form(
        pb.UnregisterNodesRequestProto,
        lambda numbers, out: out.nodes.extend(numbers),
        lambda proto: tuple(proto.nodes),
    ),
    empty(pb.UnregisterNodesResponseProto),
)

RPCS: tuple[Rpc[Any, Any], ...] = (REGISTER_NODES, PACK_HEARTBEAT, UNREGISTER_NODES)
