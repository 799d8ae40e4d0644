"""InspectionProtocol, yarnling's own: explains why an application waits. Served beside ApplicationClientProtocol."""

from __future__ import annotations

from protos import yarnling_pb2 as pb
from wire.codec.basic import (
    read_application_id,
    read_node_id,
    read_resource,
    write_application_id,
    write_node_id,
    write_resource,
    write_sum,
)
from wire.codec.fields import int32, member, members, number, required, text
from wire.codec.message_codec import MessageCodec, holding
from wire.rpc import Proxy, Rpc
from yarn.ids import ApplicationId
from yarn.protocols.inspection import (
    Explanation,
    ObstacleReport,
    ObstacleScope,
    PendingAsk,
    Reservation,
    SettingInForce,
)
from yarn.states import YarnApplicationState

_SCOPES = members(ObstacleScope)
_STATES = members(YarnApplicationState)


def _write_explanation(explanation: Explanation, out: pb.ExplanationProto) -> None:
    write_application_id(explanation.application_id, out.application_id)
    out.user, out.queue = explanation.user, explanation.queue
    out.state = number(explanation.state)
    out.now_ms = explanation.now_ms
    for ask in explanation.asks:
        _write_ask(ask, out.asks.add())
    for reservation in explanation.reservations:
        entry = out.reservations.add(since_ms=reservation.since_ms)
        write_node_id(reservation.node_id, entry.node_id)
        write_resource(reservation.resource, entry.resource)
    for obstacle in explanation.obstacles:
        _write_obstacle(obstacle, out.obstacles.add())


def _read_explanation(proto: pb.ExplanationProto) -> Explanation:
    return Explanation(
        read_application_id(required(proto, "application_id")),
        text(proto, "user"),
        text(proto, "queue"),
        member(_STATES, proto, "state"),
        proto.now_ms,
        tuple(_read_ask(ask) for ask in proto.asks),
        tuple(
            Reservation(
                read_node_id(required(entry, "node_id")), read_resource(required(entry, "resource")), entry.since_ms
            )
            for entry in proto.reservations
        ),
        tuple(_read_obstacle(obstacle) for obstacle in proto.obstacles),
    )


def _write_ask(ask: PendingAsk, out: pb.PendingAskProto) -> None:
    out.priority, out.count = int32(ask.priority), int32(ask.count)
    out.allocation_request_id = ask.allocation_request_id
    out.resource_name, out.label = ask.resource_name, ask.label
    out.relax_locality = ask.relax_locality
    write_resource(ask.capability, out.capability)


def _read_ask(proto: pb.PendingAskProto) -> PendingAsk:
    return PendingAsk(
        proto.priority,
        proto.allocation_request_id,
        text(proto, "resource_name"),
        read_resource(required(proto, "capability")),
        proto.count,
        proto.relax_locality,
        text(proto, "label"),
    )


def _write_obstacle(obstacle: ObstacleReport, out: pb.ObstacleProto) -> None:
    out.scope = number(obstacle.scope)
    out.subject, out.reason, out.message = obstacle.subject, obstacle.reason, obstacle.message
    out.at_ms = obstacle.at_ms
    if obstacle.node_id is not None:
        write_node_id(obstacle.node_id, out.node_id)
    if obstacle.asked is not None:
        write_sum(obstacle.asked, out.asked)
    if obstacle.bound is not None:
        write_sum(obstacle.bound, out.bound)
    for setting in obstacle.settings:
        out.settings.add(key=setting.key, value=setting.value)


def _read_obstacle(proto: pb.ObstacleProto) -> ObstacleReport:
    return ObstacleReport(
        member(_SCOPES, proto, "scope"),
        text(proto, "subject"),
        read_node_id(proto.node_id) if proto.HasField("node_id") else None,
        text(proto, "reason"),
        text(proto, "message"),
        read_resource(proto.asked) if proto.HasField("asked") else None,
        read_resource(proto.bound) if proto.HasField("bound") else None,
        proto.at_ms,
        tuple(SettingInForce(text(entry, "key"), text(entry, "value")) for entry in proto.settings),
    )


class InspectionProtocol(Proxy):
    """A client's questions to the RM's scheduler, at the address of ApplicationClientProtocol."""

    service = "yarnling.InspectionProtocolService"

    explain: Rpc[ApplicationId, Explanation] = Rpc(
        "explain",
        holding(pb.ExplainRequestProto, "application_id", write_application_id, read_application_id),
        MessageCodec(pb.ExplanationProto, _write_explanation, _read_explanation),
        reads=True,
        bulky=True,
    )
    """Returns why the application does not have what it requests."""
