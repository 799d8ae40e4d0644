"""The messages of InspectionProtocol about a container."""

from __future__ import annotations

from wire.codec.basic import (
    read_container_id,
    read_node_id,
    read_resource,
    write_container_id,
    write_node_id,
    write_resource,
    write_sum,
)
from wire.codec.fields import required, text, texts
from wire.generated import yarnling_pb2 as pb
from yarn.protocols.inspection import (
    ContainerExplanation,
    ExplainContainerRequest,
    NodePassed,
    PreemptionReport,
    QueueInRound,
)

_TIMES = ("requested_ms", "reserved_ms", "placed_ms", "ended_ms")
_AMOUNTS = ("guaranteed", "used", "pending", "ideal", "to_be_preempted", "to_obtain")


def write_container_request(request: ExplainContainerRequest, out: pb.ExplainContainerRequestProto) -> None:
    write_container_id(request.container_id, out.container_id)


def read_container_request(proto: pb.ExplainContainerRequestProto) -> ExplainContainerRequest:
    return ExplainContainerRequest(read_container_id(required(proto, "container_id")))


def write_container_explanation(found: ContainerExplanation, out: pb.ContainerExplanationProto) -> None:
    write_container_id(found.container_id, out.container_id)
    out.user, out.queue, out.state = found.user, found.queue, found.state
    write_node_id(found.node_id, out.node_id)
    write_resource(found.resource, out.resource)
    out.now_ms, out.locality = found.now_ms, found.locality
    for name in _TIMES:
        if (value := getattr(found, name)) is not None:
            setattr(out, name, value)
    out.sentences.extend(found.sentences)
    for passed in found.passed:
        entry = out.passed.add(reason=passed.reason, message=passed.message, at_ms=passed.at_ms)
        write_node_id(passed.node_id, entry.node_id)
    for report in found.preemptions:
        _write_preemption(report, out.preemptions.add())


def read_container_explanation(proto: pb.ContainerExplanationProto) -> ContainerExplanation:
    sent = {field.name for field, _ in proto.ListFields()}
    requested_ms, reserved_ms, placed_ms, ended_ms = (getattr(proto, name) if name in sent else None for name in _TIMES)
    return ContainerExplanation(
        read_container_id(required(proto, "container_id")),
        text(proto, "user"),
        text(proto, "queue"),
        read_node_id(required(proto, "node_id")),
        read_resource(required(proto, "resource")),
        text(proto, "state"),
        proto.now_ms,
        requested_ms,
        reserved_ms,
        placed_ms,
        ended_ms,
        text(proto, "locality"),
        texts(proto, "sentences"),
        tuple(
            NodePassed(
                read_node_id(required(entry, "node_id")), text(entry, "reason"), text(entry, "message"), entry.at_ms
            )
            for entry in proto.passed
        ),
        tuple(_read_preemption(entry) for entry in proto.preemptions),
    )


def _write_preemption(report: PreemptionReport, out: pb.PreemptionReportProto) -> None:
    out.at_ms, out.step, out.reason = report.at_ms, report.step, report.reason
    out.selector, out.sentence = report.selector, report.sentence
    _write_queue(report.victim, out.victim)
    if report.served is not None:
        _write_queue(report.served, out.served)
    out.numbers.extend(report.numbers)


def _read_preemption(proto: pb.PreemptionReportProto) -> PreemptionReport:
    return PreemptionReport(
        proto.at_ms,
        text(proto, "step"),
        text(proto, "reason"),
        text(proto, "selector"),
        text(proto, "sentence"),
        _read_queue(required(proto, "victim")),
        _read_queue(proto.served) if proto.HasField("served") else None,
        texts(proto, "numbers"),
    )


def _write_queue(queue: QueueInRound, out: pb.QueueInRoundProto) -> None:
    out.path, out.partition = queue.path, queue.partition
    for name in _AMOUNTS:
        write_sum(getattr(queue, name), getattr(out, name))


def _read_queue(proto: pb.QueueInRoundProto) -> QueueInRound:
    guaranteed, used, pending, ideal, to_be_preempted, to_obtain = (
        read_resource(getattr(proto, name)) for name in _AMOUNTS
    )
    return QueueInRound(
        text(proto, "path"), text(proto, "partition"), guaranteed, used, pending, ideal, to_be_preempted, to_obtain
    )
