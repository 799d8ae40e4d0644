"""Requests and replies between a client and the RM that are more than an id or a record."""

from __future__ import annotations

from protos import yarn_protos_pb2 as yarn_pb
from protos import yarn_service_protos_pb2 as pb
from wire.codec.applications import (
    APPLICATION_STATES,
    write_application_report,
    write_attempt_report,
)
from wire.codec.asks import EXECUTION_TYPES
from wire.codec.fields import member, members, number, optional_text, refuse_too_many, required, text, texts
from wire.codec.ids import (
    read_application_id,
    read_container_id,
    read_node_id,
    write_application_id,
    write_container_id,
    write_node_id,
)
from wire.codec.nodes import write_node_report
from wire.codec.queues import write_queue_info
from wire.codec.resources import read_resource, write_resource
from yarn.applications import ApplicationAttemptReport, ApplicationFilter, ApplicationReport, ContainerReport
from yarn.nodes import NodeReport
from yarn.protocols.client import (
    GetNewApplicationResponse,
    KillApplicationRequest,
    KillApplicationResponse,
    MoveApplicationRequest,
    QueueInfoRequest,
    QueueUserAcls,
    ResourceTypeInfo,
    UpdatePriorityRequest,
    UpdateTimeoutsRequest,
)
from yarn.queues import QueueInfo
from yarn.resource import Resource
from yarn.states import ApplicationsRequestScope, ContainerState, NodeState, QueueACL

FILTER_ENTRIES_MAX = 1000
"""Types, states, users, queues or tags of one filter; each is compared with every application."""
TIMEOUTS_MAX = 8
"""Entries of one change of timeouts: YARN has one kind."""
_CONTAINER_STATES = members(ContainerState)
_QUEUE_ACLS = members(QueueACL)
_SCOPES = members(ApplicationsRequestScope)


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
    if wanted.scope is not ApplicationsRequestScope.ALL:
        out.scope = number(wanted.scope)


def read_filter(proto: pb.GetApplicationsRequestProto) -> ApplicationFilter:
    for field in ("application_types", "application_states", "users", "queues", "applicationTags"):
        refuse_too_many(proto, field, FILTER_ENTRIES_MAX)
    return ApplicationFilter(
        frozenset(texts(proto, "application_types")),
        frozenset(APPLICATION_STATES[state] for state in proto.application_states),
        frozenset(texts(proto, "users")),
        frozenset(texts(proto, "queues")),
        frozenset(texts(proto, "applicationTags")),
        proto.limit if proto.HasField("limit") else None,
        _SCOPES[proto.scope],
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


def write_move(request: MoveApplicationRequest, out: pb.MoveApplicationAcrossQueuesRequestProto) -> None:
    write_application_id(request.application_id, out.application_id)
    out.target_queue = request.queue


def read_move(proto: pb.MoveApplicationAcrossQueuesRequestProto) -> MoveApplicationRequest:
    return MoveApplicationRequest(read_application_id(proto.application_id), text(proto, "target_queue"))


def write_priority_change(request: UpdatePriorityRequest, out: pb.UpdateApplicationPriorityRequestProto) -> None:
    write_application_id(request.application_id, out.applicationId)
    out.applicationPriority.priority = request.priority


def read_priority_change(proto: pb.UpdateApplicationPriorityRequestProto) -> UpdatePriorityRequest:
    return UpdatePriorityRequest(read_application_id(proto.applicationId), proto.applicationPriority.priority)


def write_priority(priority: int, out: pb.UpdateApplicationPriorityResponseProto) -> None:
    out.applicationPriority.priority = priority


def write_timeouts_change(request: UpdateTimeoutsRequest, out: pb.UpdateApplicationTimeoutsRequestProto) -> None:
    write_application_id(request.application_id, out.applicationId)
    write_timeouts(request.lifetime_ends, out)


def read_timeouts_change(proto: pb.UpdateApplicationTimeoutsRequestProto) -> UpdateTimeoutsRequest:
    return UpdateTimeoutsRequest(read_application_id(proto.applicationId), read_timeouts(proto))


def write_timeouts(
    lifetime_ends: str | None,
    out: pb.UpdateApplicationTimeoutsRequestProto | pb.UpdateApplicationTimeoutsResponseProto,
) -> None:
    if lifetime_ends is not None:
        entry = out.application_timeouts.add(expire_time=lifetime_ends)
        entry.application_timeout_type = yarn_pb.APP_TIMEOUT_LIFETIME


def read_timeouts(
    proto: pb.UpdateApplicationTimeoutsRequestProto | pb.UpdateApplicationTimeoutsResponseProto,
) -> str | None:
    """The end of the lifetime; the last of several, as in the map that Hadoop makes of them."""
    refuse_too_many(proto, "application_timeouts", TIMEOUTS_MAX)
    named = [entry for entry in proto.application_timeouts if entry.HasField("application_timeout_type")]
    return optional_text(named[-1], "expire_time") if named else None


def write_queue_acls(queues: tuple[QueueUserAcls, ...], out: pb.GetQueueUserAclsInfoResponseProto) -> None:
    for queue in queues:
        entry = out.queueUserAcls.add(queueName=queue.queue)
        entry.userAcls.extend(sorted(number(acl) for acl in queue.acls))


def read_queue_acls(proto: pb.GetQueueUserAclsInfoResponseProto) -> tuple[QueueUserAcls, ...]:
    return tuple(
        QueueUserAcls(text(entry, "queueName"), frozenset(_QUEUE_ACLS[acl] for acl in entry.userAcls))
        for entry in proto.queueUserAcls
    )


def write_resource_types(types: tuple[ResourceTypeInfo, ...], out: pb.GetAllResourceTypeInfoResponseProto) -> None:
    for kind in types:
        out.resource_type_info.add(name=kind.name, units=kind.units, type=yarn_pb.COUNTABLE)


def read_resource_types(proto: pb.GetAllResourceTypeInfoResponseProto) -> tuple[ResourceTypeInfo, ...]:
    return tuple(ResourceTypeInfo(text(kind, "name"), text(kind, "units")) for kind in proto.resource_type_info)


def write_profiles(profiles: dict[str, Resource], out: pb.GetAllResourceProfilesResponseProto) -> None:
    # A required message that has no entries must be there all the same.
    out.resource_profiles.SetInParent()
    for name, amount in profiles.items():
        write_resource(amount, out.resource_profiles.resource_profiles_map.add(name=name).resources)


def read_profiles(proto: pb.GetAllResourceProfilesResponseProto) -> dict[str, Resource]:
    entries = proto.resource_profiles.resource_profiles_map
    return {text(entry, "name"): read_resource(entry.resources) for entry in entries}


def write_container_report(report: ContainerReport, out: yarn_pb.ContainerReportProto) -> None:
    write_container_id(report.container_id, out.container_id)
    write_resource(report.resource, out.resource)
    write_node_id(report.node_id, out.node_id)
    out.priority.priority = report.priority
    out.container_state = number(report.state)
    out.creation_time = report.creation_time_ms
    out.finish_time = report.finish_time_ms
    out.container_exit_status = report.exit_status
    out.diagnostics_info = report.diagnostics
    out.log_url = report.log_url
    out.node_http_address = report.node_http_address
    out.executionType = number(report.execution_type)


def read_container_report(proto: yarn_pb.ContainerReportProto) -> ContainerReport:
    return ContainerReport(
        read_container_id(required(proto, "container_id")),
        read_resource(required(proto, "resource")),
        read_node_id(required(proto, "node_id")),
        proto.priority.priority,
        member(_CONTAINER_STATES, proto, "container_state"),
        proto.creation_time,
        proto.finish_time,
        proto.container_exit_status,
        text(proto, "diagnostics_info"),
        text(proto, "log_url"),
        text(proto, "node_http_address"),
        EXECUTION_TYPES[proto.executionType],
    )
