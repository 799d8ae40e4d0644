"""PackTrackerProtocol, yarnling's own: the calls to the RM of NMs that share a process.

Served beside ResourceTracker.
"""

from __future__ import annotations

import ipaddress

from wire.codec.basic import read_node_id, read_utilization, write_node_id, write_utilization
from wire.codec.fields import refuse_too_many, required
from wire.codec.message_codec import MessageCodec, empty, listing
from wire.errors import read_exception, write_exception
from wire.generated import yarnling_pb2 as pb
from wire.protocols.tracker import (
    read_heartbeat,
    read_heartbeat_reply,
    read_register_node,
    read_registered_node,
    write_heartbeat,
    write_heartbeat_reply,
    write_register_node,
    write_registered_node,
)
from wire.rpc import Proxy, Rpc
from wire.tokens import ClusterSecretManager
from yarn.errors import InvalidArgumentException, YarnException
from yarn.protocols.pack import Pack, PackHeartbeat, PackHeartbeatReply, RegisterOutcome
from yarn.protocols.tracker import RegisterNodeManagerRequest
from yarn.settings.yarnling import PACK_MAX

PACK_KIND = "YarnlingPackToken"
"""The kind of a pack's token."""


def _write_pack(pack: Pack, out: pb.PackProto) -> None:
    write_node_id(pack.first, out.first)
    out.count = pack.count


def _read_pack(proto: pb.PackProto) -> Pack:
    """A pack. Raises InvalidArgumentException for too many nodes, or too few loopback addresses for them."""
    first, count = read_node_id(required(proto, "first")), proto.count
    if not 1 <= count <= PACK_MAX:
        raise InvalidArgumentException(f"PackProto.count is {count}, it must be 1 to {PACK_MAX}")
    try:
        last = ipaddress.IPv4Address(first.host) + (count - 1)
    except ValueError:
        raise InvalidArgumentException(
            f"PackProto.first: {count} addresses cannot follow {first.host[:40]!r}"
        ) from None
    if not last.is_loopback:
        raise InvalidArgumentException(f"PackProto.first: {count} addresses from {first.host} on are not all loopback")
    return Pack(first, count)


def _write_pack_heartbeat(beat: PackHeartbeat, out: pb.PackHeartbeatRequestProto) -> None:
    out.nodes.extend(beat.nodes)
    out.response_ids.extend(beat.response_ids)
    for number, heartbeat in beat.full.items():
        entry = out.full.add()
        entry.node = number
        write_heartbeat(heartbeat, entry.heartbeat)
    if beat.node_utilization is not None:
        write_utilization(beat.node_utilization, out.node_utilization)
    out.container_token_key_id = beat.container_token_key_id
    out.nm_token_key_id = beat.nm_token_key_id


def _read_pack_heartbeat(proto: pb.PackHeartbeatRequestProto) -> PackHeartbeat:
    refuse_too_many(proto, "nodes", PACK_MAX)
    refuse_too_many(proto, "full", PACK_MAX)
    nodes, response_ids = tuple(proto.nodes), tuple(proto.response_ids)
    if len(nodes) != len(response_ids) or len(set(nodes)) != len(nodes):
        raise InvalidArgumentException(
            f"PackHeartbeatRequestProto has {len(nodes)} nodes and {len(response_ids)} response ids "
            f"(each node once, and one id for it)"
        )
    return PackHeartbeat(
        nodes,
        response_ids,
        {entry.node: read_heartbeat(required(entry, "heartbeat")) for entry in proto.full},
        read_utilization(proto.node_utilization) if proto.HasField("node_utilization") else None,
        proto.container_token_key_id,
        proto.nm_token_key_id,
    )


def _write_pack_reply(reply: PackHeartbeatReply, out: pb.PackHeartbeatResponseProto) -> None:
    out.response_ids.extend(reply.response_ids)
    out.next_heartbeat_ms = reply.next_heartbeat_ms
    for number, full in reply.full.items():
        entry = out.full.add()
        entry.node = number
        write_heartbeat_reply(full, entry.reply)
    out.unknown.extend(sorted(reply.unknown))
    for number, error in reply.failed.items():
        failed = out.failed.add()
        failed.node = number
        write_exception(error, failed.exception)


def _read_pack_reply(proto: pb.PackHeartbeatResponseProto) -> PackHeartbeatReply:
    return PackHeartbeatReply(
        tuple(proto.response_ids),
        proto.next_heartbeat_ms,
        {entry.node: read_heartbeat_reply(required(entry, "reply")) for entry in proto.full},
        frozenset(proto.unknown),
        {entry.node: read_exception(required(entry, "exception")) for entry in proto.failed},
    )


def _write_outcome(outcome: RegisterOutcome, out: pb.RegisterOutcomeProto) -> None:
    if isinstance(outcome, YarnException):
        write_exception(outcome, out.exception)
    else:
        write_registered_node(outcome, out.response)


def _read_outcome(proto: pb.RegisterOutcomeProto) -> RegisterOutcome:
    return read_exception(proto.exception) if proto.HasField("exception") else read_registered_node(proto.response)


def _write_numbers(numbers: tuple[int, ...], out: pb.UnregisterNodesRequestProto) -> None:
    out.nodes.extend(numbers)


def _read_numbers(proto: pb.UnregisterNodesRequestProto) -> tuple[int, ...]:
    return tuple(proto.nodes)


class PackTrackerProtocol(Proxy):
    """The calls of NMs that share a process, with a token for all of them, at the address of ResourceTracker."""

    service = "yarnling.PackTrackerProtocolService"

    register_nodes: Rpc[tuple[RegisterNodeManagerRequest, ...], tuple[RegisterOutcome, ...]] = Rpc(
        "registerNodes",
        listing(pb.RegisterNodesRequestProto, "nodes", write_register_node, read_register_node, limit=PACK_MAX),
        listing(pb.RegisterNodesResponseProto, "outcomes", _write_outcome, _read_outcome),
    )
    pack_heartbeat: Rpc[PackHeartbeat, PackHeartbeatReply] = Rpc(
        "packHeartbeat",
        MessageCodec(pb.PackHeartbeatRequestProto, _write_pack_heartbeat, _read_pack_heartbeat),
        MessageCodec(pb.PackHeartbeatResponseProto, _write_pack_reply, _read_pack_reply),
    )
    """After CallOutcomeUnknown send the complete heartbeat of each node again, with the same response id."""
    unregister_nodes: Rpc[tuple[int, ...], None] = Rpc(
        "unregisterNodes",
        MessageCodec(pb.UnregisterNodesRequestProto, _write_numbers, _read_numbers),
        empty(pb.UnregisterNodesResponseProto),
    )


class PackTokenSecretManager(ClusterSecretManager[Pack]):
    """Signs and checks pack tokens, which prove the nodes that share the calling process."""

    def __init__(self, cluster_secret: bytes) -> None:
        super().__init__(cluster_secret, PACK_KIND, pb.PackProto, _write_pack, _read_pack)
