"""InspectionProtocol, yarnling's own: explanations of applications and containers, and a summary of the nodes, beside
ApplicationClientProtocol.
"""

from __future__ import annotations

from collections.abc import Iterable

from wire.codec.basic import (
    read_application_id,
    read_container_id,
    read_node_id,
    read_resource,
    write_application_id,
    write_container_id,
    write_node_id,
    write_resource,
    write_sum,
)
from wire.codec.fields import int32, member, members, number, required, text, texts
from wire.codec.message_codec import MessageCodec, empty, listing
from wire.codec.nodes import read_node_group, write_node_group
from wire.generated import yarnling_pb2 as pb
from wire.protocols.container_inspection import (
    read_container_explanation,
    read_container_request,
    write_container_explanation,
    write_container_request,
)
from wire.protocols.past_inspection import (
    read_past_explanation,
    read_past_request,
    write_past_explanation,
    write_past_request,
)
from wire.rpc import Proxy, Rpc
from yarn.nodes import NodeGroup
from yarn.protocols.inspection import (
    ContainerExplanation,
    ExplainContainerRequest,
    ExplainPastRequest,
    ExplainRequest,
    Explanation,
    NodesAlike,
    ObstacleReport,
    ObstacleScope,
    PastExplanation,
    PendingAsk,
    RefusedStartReport,
    Reservation,
    SettingInForce,
    VerdictReport,
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
    for verdict in explanation.verdicts:
        _write_verdict(verdict, out.verdicts.add())
    out.counted_types.extend(explanation.counted_types)
    if explanation.refused_start is not None:
        _write_refused_start(explanation.refused_start, out.refused_start)


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
        tuple(_read_verdict(verdict) for verdict in proto.verdicts),
        texts(proto, "counted_types"),
        _read_refused_start(proto.refused_start) if proto.HasField("refused_start") else None,
    )


def _write_refused_start(refused: RefusedStartReport, out: pb.RefusedStartReportProto) -> None:
    write_container_id(refused.container_id, out.container_id)
    write_node_id(refused.node_id, out.node_id)
    out.reason, out.at_ms = refused.reason, refused.at_ms


def _read_refused_start(proto: pb.RefusedStartReportProto) -> RefusedStartReport:
    return RefusedStartReport(
        read_container_id(required(proto, "container_id")),
        read_node_id(required(proto, "node_id")),
        text(proto, "reason"),
        proto.at_ms,
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
    out.settings.extend(_write_settings(obstacle.settings))


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
        _read_settings(proto.settings),
    )


def _write_verdict(verdict: VerdictReport, out: pb.VerdictReportProto) -> None:
    out.priority, out.allocation_request_id = int32(verdict.priority), verdict.allocation_request_id
    out.cause, out.sentence, out.since_ms = verdict.cause, verdict.sentence, verdict.since_ms
    out.settings.extend(_write_settings(verdict.settings))
    out.notes.extend(verdict.notes)
    for alike in verdict.nodes:
        entry = out.nodes.add(count=int32(alike.count), sentence=alike.sentence)
        for node_id in alike.node_ids:
            write_node_id(node_id, entry.node_ids.add())
    out.changes.extend(verdict.changes)


def _read_verdict(proto: pb.VerdictReportProto) -> VerdictReport:
    return VerdictReport(
        proto.priority,
        proto.allocation_request_id,
        text(proto, "cause"),
        text(proto, "sentence"),
        proto.since_ms,
        _read_settings(proto.settings),
        texts(proto, "notes"),
        tuple(
            NodesAlike(entry.count, text(entry, "sentence"), tuple(read_node_id(node_id) for node_id in entry.node_ids))
            for entry in proto.nodes
        ),
        texts(proto, "changes"),
    )


def _write_settings(settings: Iterable[SettingInForce]) -> list[pb.SettingInForceProto]:
    return [pb.SettingInForceProto(key=setting.key, value=setting.value) for setting in settings]


def _read_settings(entries: Iterable[pb.SettingInForceProto]) -> tuple[SettingInForce, ...]:
    return tuple(SettingInForce(text(entry, "key"), text(entry, "value")) for entry in entries)


def _write_request(request: ExplainRequest, out: pb.ExplainRequestProto) -> None:
    write_application_id(request.application_id, out.application_id)
    out.what_if = request.what_if


def _read_request(proto: pb.ExplainRequestProto) -> ExplainRequest:
    return ExplainRequest(read_application_id(required(proto, "application_id")), proto.what_if)


class InspectionProtocol(Proxy):
    """A client's questions to the RM's scheduler, at the address of ApplicationClientProtocol."""

    service = "yarnling.InspectionProtocolService"

    explain: Rpc[ExplainRequest, Explanation] = Rpc(
        "explain",
        MessageCodec(pb.ExplainRequestProto, _write_request, _read_request),
        MessageCodec(pb.ExplanationProto, _write_explanation, _read_explanation),
        reads=True,
        bulky=True,
    )
    """Returns why the application does not have what it requests."""

    explain_container: Rpc[ExplainContainerRequest, ContainerExplanation] = Rpc(
        "explainContainer",
        MessageCodec(pb.ExplainContainerRequestProto, write_container_request, read_container_request),
        MessageCodec(pb.ContainerExplanationProto, write_container_explanation, read_container_explanation),
        reads=True,
    )
    """Returns why a container is on its node, and why it was preempted."""

    explain_past: Rpc[ExplainPastRequest, PastExplanation] = Rpc(
        "explainPast",
        MessageCodec(pb.ExplainPastRequestProto, write_past_request, read_past_request),
        MessageCodec(pb.PastExplanationProto, write_past_explanation, read_past_explanation),
        reads=True,
    )
    """Returns why the application waited since the history began."""

    get_node_groups: Rpc[None, tuple[NodeGroup, ...]] = Rpc(
        "getNodeGroups",
        empty(pb.GetNodeGroupsRequestProto),
        listing(pb.GetNodeGroupsResponseProto, "groups", write_node_group, read_node_group),
        reads=True,
        bulky=True,
    )
    """Returns the nodes summarised by state and health report."""
