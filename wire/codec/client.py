"""Requests and replies between a client and the RM that are more than an id or a record."""

from __future__ import annotations

from protos import yarn_service_protos_pb2 as pb
from wire.codec.applications import (
    APPLICATION_STATES,
    write_application_report,
    write_attempt_report,
)
from wire.codec.containers import write_container_report
from wire.codec.fields import number, required, text, texts
from wire.codec.ids import read_application_id, write_application_id
from wire.codec.nodes import write_node_report
from wire.codec.queues import write_queue_info
from wire.codec.resources import read_resource, write_resource
from yarn.applications import ApplicationAttemptReport, ApplicationFilter, ApplicationReport, ContainerReport
from yarn.nodes import NodeReport
from yarn.protocols.client import (
    GetNewApplicationResponse,
    KillApplicationRequest,
    KillApplicationResponse,
    QueueInfoRequest,
)
from yarn.queues import QueueInfo
from yarn.states import NodeState


def write_new_application(reply: GetNewApplicationResponse, out: pb.GetNewApplicationResponseProto) -> None:
    write_application_id(reply.application_id, out.application_id)
    write_resource(reply.maximum_capability, out.maximumCapability)


def read_new_application(proto: pb.GetNewApplicationResponseProto) -> GetNewApplicationResponse:
    app_id = read_application_id(required(proto, "application_id"))
    return GetNewApplicationResponse(app_id, read_resource(required(proto, "maximumCapability")))


def write_filter(wanted: ApplicationFilter, out: pb.GetApplicationsRequestProto) -> None:
    out.application_types.extend(sorted(wanted.types))
    out.application_states.extend(sorted(number(state) for state in wanted.states))
    out.users.extend(sorted(wanted.users))
    out.queues.extend(sorted(wanted.queues))
    out.applicationTags.extend(sorted(wanted.tags))
    if wanted.limit is not None:
        out.limit = wanted.limit


def read_filter(proto: pb.GetApplicationsRequestProto) -> ApplicationFilter:
    return ApplicationFilter(
        frozenset(texts(proto, "application_types")),
        frozenset(APPLICATION_STATES[state] for state in proto.application_states),
        frozenset(texts(proto, "users")),
        frozenset(texts(proto, "queues")),
        frozenset(texts(proto, "applicationTags")),
        proto.limit if proto.HasField("limit") else None,
    )


def write_kill(request: KillApplicationRequest, out: pb.KillApplicationRequestProto) -> None:
    write_application_id(request.application_id, out.application_id)
    if request.diagnostics:
        out.diagnostics = request.diagnostics


def read_kill(proto: pb.KillApplicationRequestProto) -> KillApplicationRequest:
    return KillApplicationRequest(read_application_id(required(proto, "application_id")), text(proto, "diagnostics"))


def write_killed(reply: KillApplicationResponse, out: pb.KillApplicationResponseProto) -> None:
    out.is_kill_completed = reply.is_kill_completed


def write_node_states(states: frozenset[NodeState], out: pb.GetClusterNodesRequestProto) -> None:
    out.nodeStates.extend(sorted(number(state) for state in states))


def write_nodes(nodes: tuple[NodeReport, ...], out: pb.GetClusterNodesResponseProto) -> None:
    for node in nodes:
        write_node_report(node, out.nodeReports.add())


def write_queue_request(request: QueueInfoRequest, out: pb.GetQueueInfoRequestProto) -> None:
    out.queueName = request.queue
    out.includeApplications = request.applications
    out.includeChildQueues = request.children
    out.recursive = request.recursive


def read_queue_request(proto: pb.GetQueueInfoRequestProto) -> QueueInfoRequest:
    return QueueInfoRequest(
        text(proto, "queueName"), proto.includeApplications, proto.includeChildQueues, proto.recursive
    )


def write_queue(queue: QueueInfo | None, out: pb.GetQueueInfoResponseProto) -> None:
    if queue is not None:
        write_queue_info(queue, out.queueInfo)


def write_applications(reports: tuple[ApplicationReport, ...], out: pb.GetApplicationsResponseProto) -> None:
    for report in reports:
        write_application_report(report, out.applications.add())


def write_attempts(reports: tuple[ApplicationAttemptReport, ...], out: pb.GetApplicationAttemptsResponseProto) -> None:
    for report in reports:
        write_attempt_report(report, out.application_attempts.add())


def write_containers(reports: tuple[ContainerReport, ...], out: pb.GetContainersResponseProto) -> None:
    for report in reports:
        write_container_report(report, out.containers.add())
