"""Requests and replies between NMs that share a process and the RM."""

from __future__ import annotations

import ipaddress

from protos import yarnling_pb2 as pb
from wire.codec.errors import read_exception, write_exception
from wire.codec.fields import refuse_too_many, required
from wire.codec.ids import read_node_id, write_node_id
from wire.codec.resources import read_utilization, write_utilization
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
from yarn.errors import InvalidArgumentException, YarnException
from yarn.protocols.pack import Pack, PackHeartbeat, PackHeartbeatReply, RegisterOutcome
from yarn.protocols.tracker import RegisterNodeManagerRequest
from yarn.settings.yarnling import PACK_MAX


def write_pack(pack: Pack, out: pb.PackProto) -> None:
    write_node_id(pack.first, out.first)
    out.count = pack.count


def read_pack(proto: pb.PackProto) -> Pack:
    """Raises InvalidArgumentException for one that has no addresses for all its nodes, or too many nodes."""
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


def write_registrations(requests: tuple[RegisterNodeManagerRequest, ...], out: pb.RegisterNodesRequestProto) -> None:
    for request in requests:
        write_register_node(request, out.nodes.add())


def read_registrations(proto: pb.RegisterNodesRequestProto) -> tuple[RegisterNodeManagerRequest, ...]:
    refuse_too_many(proto, "nodes", PACK_MAX)
    return tuple(read_register_node(node) for node in proto.nodes)


def write_outcomes(outcomes: tuple[RegisterOutcome, ...], out: pb.RegisterNodesResponseProto) -> None:
    for outcome in outcomes:
        entry = out.outcomes.add()
        if isinstance(outcome, YarnException):
            write_exception(outcome, entry.exception)
        else:
            write_registered_node(outcome, entry.response)


def read_outcomes(proto: pb.RegisterNodesResponseProto) -> tuple[RegisterOutcome, ...]:
    return tuple(
        read_exception(entry.exception) if entry.HasField("exception") else read_registered_node(entry.response)
        for entry in proto.outcomes
    )


def write_pack_heartbeat(beat: PackHeartbeat, out: pb.PackHeartbeatRequestProto) -> None:
    out.nodes.extend(beat.nodes)
    out.response_ids.extend(beat.response_ids)
    for number, heartbeat in beat.told.items():
        entry = out.told.add()
        entry.node = number
        write_heartbeat(heartbeat, entry.heartbeat)
    if beat.node_utilization is not None:
        write_utilization(beat.node_utilization, out.node_utilization)
    out.container_token_key_id = beat.container_token_key_id
    out.nm_token_key_id = beat.nm_token_key_id


def read_pack_heartbeat(proto: pb.PackHeartbeatRequestProto) -> PackHeartbeat:
    refuse_too_many(proto, "nodes", PACK_MAX)
    refuse_too_many(proto, "told", PACK_MAX)
    nodes, response_ids = tuple(proto.nodes), tuple(proto.response_ids)
    if len(nodes) != len(response_ids) or len(set(nodes)) != len(nodes):
        raise InvalidArgumentException(
            f"PackHeartbeatRequestProto has {len(nodes)} nodes and {len(response_ids)} response ids "
            f"(each node once, and one id for it)"
        )
    return PackHeartbeat(
        nodes,
        response_ids,
        {entry.node: read_heartbeat(required(entry, "heartbeat")) for entry in proto.told},
        read_utilization(proto.node_utilization) if proto.HasField("node_utilization") else None,
        proto.container_token_key_id,
        proto.nm_token_key_id,
    )


def write_pack_reply(reply: PackHeartbeatReply, out: pb.PackHeartbeatResponseProto) -> None:
    out.response_ids.extend(reply.response_ids)
    out.next_heartbeat_ms = reply.next_heartbeat_ms
    for number, told in reply.told.items():
        entry = out.told.add()
        entry.node = number
        write_heartbeat_reply(told, entry.reply)
    out.unknown.extend(sorted(reply.unknown))
    for number, error in reply.failed.items():
        failed = out.failed.add()
        failed.node = number
        write_exception(error, failed.exception)


def read_pack_reply(proto: pb.PackHeartbeatResponseProto) -> PackHeartbeatReply:
    return PackHeartbeatReply(
        tuple(proto.response_ids),
        proto.next_heartbeat_ms,
        {entry.node: read_heartbeat_reply(required(entry, "reply")) for entry in proto.told},
        frozenset(proto.unknown),
        {entry.node: read_exception(required(entry, "exception")) for entry in proto.failed},
    )
