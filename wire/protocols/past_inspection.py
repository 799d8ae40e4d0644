"""The messages of InspectionProtocol's `explainPast`: why an application waited in the past."""

from __future__ import annotations

from wire.codec.basic import read_application_id, write_application_id
from wire.codec.fields import required, text
from wire.generated import yarnling_pb2 as pb
from yarn.protocols.inspection import ExplainPastRequest, PastExplanation, PastVerdict


def write_past_request(request: ExplainPastRequest, out: pb.ExplainPastRequestProto) -> None:
    write_application_id(request.application_id, out.application_id)


def read_past_request(proto: pb.ExplainPastRequestProto) -> ExplainPastRequest:
    return ExplainPastRequest(read_application_id(required(proto, "application_id")))


def write_past_explanation(found: PastExplanation, out: pb.PastExplanationProto) -> None:
    write_application_id(found.application_id, out.application_id)
    out.user, out.queue = found.user, found.queue
    out.now_ms, out.since_ms = found.now_ms, found.since_ms
    for verdict in found.verdicts:
        entry = out.verdicts.add(from_ms=verdict.from_ms, cause=verdict.cause, sentence=verdict.sentence)
        if verdict.until_ms is not None:
            entry.until_ms = verdict.until_ms


def read_past_explanation(proto: pb.PastExplanationProto) -> PastExplanation:
    return PastExplanation(
        read_application_id(required(proto, "application_id")),
        text(proto, "user"),
        text(proto, "queue"),
        proto.now_ms,
        proto.since_ms,
        tuple(_read_past_verdict(entry) for entry in proto.verdicts),
    )


def _read_past_verdict(proto: pb.PastVerdictProto) -> PastVerdict:
    until_ms = proto.until_ms if proto.HasField("until_ms") else None
    return PastVerdict(proto.from_ms, until_ms, text(proto, "cause"), text(proto, "sentence"))
