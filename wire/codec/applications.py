"""Applications: submissions, and reports of applications, attempts and their containers."""

from __future__ import annotations

from wire.codec.basic import (
    read_application_id,
    read_attempt_id,
    read_container_id,
    read_node_id,
    read_resource,
    write_application_id,
    write_attempt_id,
    write_container_id,
    write_node_id,
    write_resource,
    write_sum,
)
from wire.codec.containers import read_launch_context, read_token, write_launch_context, write_token
from wire.codec.fields import (
    int32,
    int64,
    member,
    members,
    number,
    optional_member,
    optional_text,
    refuse_too_many,
    required,
    text,
    texts,
)
from wire.codec.requests import EXECUTION_TYPES, read_ask, write_ask
from wire.generated import yarn_protos_pb2 as pb
from yarn.applications import (
    NO_REMAINING_TIME,
    ApplicationAttemptReport,
    ApplicationReport,
    ApplicationResourceUsage,
    ApplicationSubmissionContext,
    ContainerReport,
)
from yarn.states import (
    ContainerState,
    FinalApplicationStatus,
    LogAggregationStatus,
    YarnApplicationAttemptState,
    YarnApplicationState,
)
from yarn.times import UNLIMITED

AM_REQUESTS_MAX = 1000
"""The maximum of resource requests for an AM: `*` and the places where it must run."""
TAGS_MAX = 1000
"""The maximum of tags in a message; the RM accepts fewer (yarn.resourcemanager.application.max-tags)."""
APPLICATION_STATES = members(YarnApplicationState)
_ATTEMPT_STATES = members(YarnApplicationAttemptState)
_FINAL_STATUSES = members(FinalApplicationStatus)
_LOG_STATUSES = members(LogAggregationStatus)
_NO_TIMEOUT = pb.ApplicationTimeoutProto(expire_time=UNLIMITED, remaining_time=NO_REMAINING_TIME)
_CONTAINER_STATES = members(ContainerState)


def write_submission(context: ApplicationSubmissionContext, out: pb.ApplicationSubmissionContextProto) -> None:
    write_application_id(context.application_id, out.application_id)
    out.application_name = context.name
    out.queue = context.queue
    if context.priority is not None:
        out.priority.priority = context.priority
    write_launch_context(context.am_container, out.am_container_spec)
    out.unmanaged_am = context.unmanaged_am
    out.maxAppAttempts = context.max_app_attempts
    write_resource(context.resource, out.resource)
    out.applicationType = context.type
    out.keep_containers_across_application_attempts = context.keep_containers_across_attempts
    out.applicationTags.extend(sorted(context.tags))
    out.attempt_failures_validity_interval = context.attempt_failures_validity_interval_ms
    if context.node_label_expression is not None:
        out.node_label_expression = context.node_label_expression
    for ask in context.am_requests:
        write_ask(ask, out.am_container_resource_request.add())
    if context.lifetime_s is not None:
        lifetime = out.application_timeouts.add(timeout=context.lifetime_s)
        lifetime.application_timeout_type = pb.APP_TIMEOUT_LIFETIME


def read_submission(proto: pb.ApplicationSubmissionContextProto) -> ApplicationSubmissionContext:
    refuse_too_many(proto, "am_container_resource_request", AM_REQUESTS_MAX)
    refuse_too_many(proto, "applicationTags", TAGS_MAX)
    lifetimes = [entry.timeout for entry in proto.application_timeouts if entry.HasField("application_timeout_type")]
    return ApplicationSubmissionContext(
        read_application_id(required(proto, "application_id")),
        read_launch_context(proto.am_container_spec),
        read_resource(proto.resource),
        text(proto, "application_name"),
        text(proto, "queue"),
        text(proto, "applicationType"),
        priority=proto.priority.priority if proto.HasField("priority") else None,
        unmanaged_am=proto.unmanaged_am,
        max_app_attempts=proto.maxAppAttempts,
        keep_containers_across_attempts=proto.keep_containers_across_application_attempts,
        attempt_failures_validity_interval_ms=proto.attempt_failures_validity_interval,
        tags=frozenset(texts(proto, "applicationTags")),
        node_label_expression=optional_text(proto, "node_label_expression"),
        am_requests=tuple(read_ask(ask) for ask in proto.am_container_resource_request),
        lifetime_s=lifetimes[-1] if lifetimes else None,
    )


def _write_usage(usage: ApplicationResourceUsage, out: pb.ApplicationResourceUsageReportProto) -> None:
    out.num_used_containers = int32(usage.used_containers)
    out.num_reserved_containers = int32(usage.reserved_containers)
    write_sum(usage.used, out.used_resources)
    write_sum(usage.reserved, out.reserved_resources)
    write_sum(usage.needed, out.needed_resources)
    out.memory_seconds = int64(usage.memory_seconds)
    out.vcore_seconds = int64(usage.vcore_seconds)
    out.queue_usage_percentage = usage.queue_usage_percentage
    out.cluster_usage_percentage = usage.cluster_usage_percentage
    out.preempted_memory_seconds = int64(usage.preempted_memory_seconds)
    out.preempted_vcore_seconds = int64(usage.preempted_vcore_seconds)


def _read_usage(proto: pb.ApplicationResourceUsageReportProto) -> ApplicationResourceUsage:
    return ApplicationResourceUsage(
        proto.num_used_containers,
        proto.num_reserved_containers,
        read_resource(proto.used_resources),
        read_resource(proto.reserved_resources),
        read_resource(proto.needed_resources),
        proto.memory_seconds,
        proto.vcore_seconds,
        proto.queue_usage_percentage,
        proto.cluster_usage_percentage,
        proto.preempted_memory_seconds,
        proto.preempted_vcore_seconds,
    )


def write_application_report(report: ApplicationReport, out: pb.ApplicationReportProto) -> None:
    write_application_id(report.application_id, out.applicationId)
    out.user = report.user
    out.queue = report.queue
    out.name = report.name
    out.yarn_application_state = number(report.state)
    write_attempt_id(report.current_attempt_id, out.currentApplicationAttemptId)
    out.host = report.host
    out.rpc_port = report.rpc_port
    out.trackingUrl = report.tracking_url
    out.originalTrackingUrl = report.original_tracking_url
    out.diagnostics = report.diagnostics
    out.submitTime = report.submit_time_ms
    out.startTime = report.start_time_ms
    out.launchTime = report.launch_time_ms
    out.finishTime = report.finish_time_ms
    out.final_application_status = number(report.final_status)
    _write_usage(report.usage, out.app_resource_Usage)
    out.progress = report.progress
    out.applicationType = report.type
    out.applicationTags.extend(sorted(report.tags))
    out.unmanaged_application = report.unmanaged
    out.priority.priority = report.priority
    if report.log_aggregation is not None:
        out.log_aggregation_status = number(report.log_aggregation)
    out.appNodeLabelExpression = report.label_expression
    if report.am_label_expression is not None:
        out.amNodeLabelExpression = report.am_label_expression
    timeout = out.appTimeouts.add(application_timeout_type=pb.APP_TIMEOUT_LIFETIME).application_timeout
    timeout.application_timeout_type = pb.APP_TIMEOUT_LIFETIME
    timeout.expire_time = report.lifetime_ends
    timeout.remaining_time = report.lifetime_remaining_s
    if report.am_rm_token is not None:
        write_token(report.am_rm_token, out.am_rm_token)


def read_application_report(proto: pb.ApplicationReportProto) -> ApplicationReport:
    timeouts = [entry.application_timeout for entry in proto.appTimeouts] or [_NO_TIMEOUT]
    return ApplicationReport(
        read_application_id(required(proto, "applicationId")),
        text(proto, "user"),
        text(proto, "queue"),
        text(proto, "name"),
        member(APPLICATION_STATES, proto, "yarn_application_state"),
        read_attempt_id(required(proto, "currentApplicationAttemptId")),
        host=text(proto, "host"),
        rpc_port=proto.rpc_port,
        tracking_url=text(proto, "trackingUrl"),
        original_tracking_url=text(proto, "originalTrackingUrl"),
        diagnostics=text(proto, "diagnostics"),
        submit_time_ms=proto.submitTime,
        start_time_ms=proto.startTime,
        launch_time_ms=proto.launchTime,
        finish_time_ms=proto.finishTime,
        final_status=_FINAL_STATUSES[proto.final_application_status],
        usage=_read_usage(proto.app_resource_Usage),
        progress=proto.progress,
        type=text(proto, "applicationType"),
        tags=frozenset(texts(proto, "applicationTags")),
        unmanaged=proto.unmanaged_application,
        priority=proto.priority.priority,
        log_aggregation=optional_member(_LOG_STATUSES, proto, "log_aggregation_status"),
        label_expression=text(proto, "appNodeLabelExpression"),
        am_label_expression=optional_text(proto, "amNodeLabelExpression"),
        lifetime_ends=text(timeouts[-1], "expire_time"),
        lifetime_remaining_s=timeouts[-1].remaining_time,
        am_rm_token=read_token(proto.am_rm_token) if proto.HasField("am_rm_token") else None,
    )


def write_attempt_report(report: ApplicationAttemptReport, out: pb.ApplicationAttemptReportProto) -> None:
    write_attempt_id(report.attempt_id, out.application_attempt_id)
    out.yarn_application_attempt_state = number(report.state)
    if report.am_container_id is not None:
        write_container_id(report.am_container_id, out.am_container_id)
    out.host = report.host
    out.rpc_port = report.rpc_port
    out.tracking_url = report.tracking_url
    out.original_tracking_url = report.original_tracking_url
    out.diagnostics = report.diagnostics
    out.startTime = report.start_time_ms
    out.finishTime = report.finish_time_ms


def read_attempt_report(proto: pb.ApplicationAttemptReportProto) -> ApplicationAttemptReport:
    return ApplicationAttemptReport(
        read_attempt_id(required(proto, "application_attempt_id")),
        member(_ATTEMPT_STATES, proto, "yarn_application_attempt_state"),
        read_container_id(proto.am_container_id) if proto.HasField("am_container_id") else None,
        text(proto, "host"),
        proto.rpc_port,
        text(proto, "tracking_url"),
        text(proto, "original_tracking_url"),
        text(proto, "diagnostics"),
        proto.startTime,
        proto.finishTime,
    )


def write_container_report(report: ContainerReport, out: pb.ContainerReportProto) -> None:
    write_container_id(report.container_id, out.container_id)
    write_resource(report.resource, out.resource)
    write_node_id(report.node_id, out.node_id)
    out.priority.priority = report.priority
    out.container_state = number(report.state)
    out.creation_time = report.creation_time_ms
    out.finish_time = report.finish_time_ms
    out.container_exit_status = report.exit_status
    if report.diagnostics:
        out.diagnostics_info = report.diagnostics
    out.log_url = report.log_url
    out.node_http_address = report.node_http_address
    out.executionType = number(report.execution_type)


def read_container_report(proto: pb.ContainerReportProto) -> ContainerReport:
    return ContainerReport(
        read_container_id(required(proto, "container_id")),
        read_resource(required(proto, "resource")),
        read_node_id(required(proto, "node_id")),
        proto.priority.priority,
        member(_CONTAINER_STATES, proto, "container_state"),
        proto.creation_time,
        proto.finish_time,
        proto.container_exit_status,
        optional_text(proto, "diagnostics_info") or "",
        text(proto, "log_url"),
        text(proto, "node_http_address"),
        EXECUTION_TYPES[proto.executionType],
    )
