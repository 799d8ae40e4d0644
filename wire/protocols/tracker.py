"""ResourceTracker: the calls of an NM to the RM."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.message import Message

from wire.codec.basic import (
    read_application_id,
    read_container_id,
    read_node_id,
    read_resource,
    read_utilization,
    write_application_id,
    write_container_id,
    write_node_id,
    write_resource,
    write_sum,
    write_utilization,
)
from wire.codec.containers import (
    read_container,
    read_container_status,
    read_nm_container_status,
    read_signal,
    write_container,
    write_container_status,
    write_nm_container_status,
    write_signal,
)
from wire.codec.fields import member, members, number, refuse_too_many, required, text
from wire.codec.message_codec import MessageCodec, empty, holding
from wire.codec.nodes import read_health, write_health
from wire.generated import yarn_server_common_protos_pb2 as common_pb
from wire.generated import yarn_server_common_service_protos_pb2 as pb
from wire.generated import yarnling_pb2 as own_pb
from wire.rpc import Proxy, Rpc
from yarn.ids import NodeId
from yarn.nodes import NodeHealth
from yarn.protocols.container_management import SignalContainerRequest
from yarn.protocols.tracker import (
    LogAggregationReport,
    MasterKey,
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RefusedStart,
    RegisterNodeManagerRequest,
    RegisterNodeManagerResponse,
)
from yarn.states import LogAggregationStatus, NodeAction

STATUSES_MAX = 100_000
"""The maximum of containers, or of applications, in one report of a node: live ones, and ended ones not yet
acknowledged."""
REFUSED_STARTS_MAX = 1000
"""The maximum of refused starts in one heartbeat."""
DEFAULT_HEARTBEAT_MS = 1000
"""The heartbeat interval in ms if a reply has none."""
_ACTIONS = members(NodeAction)
_LOG_STATUSES = members(LogAggregationStatus)


def _write_master_key(key: MasterKey, out: common_pb.MasterKeyProto) -> None:
    out.key_id = key.key_id
    out.bytes = key.secret


def _read_master_key(proto: common_pb.MasterKeyProto) -> MasterKey:
    return MasterKey(proto.key_id, proto.bytes)


def write_register_node(request: RegisterNodeManagerRequest, out: pb.RegisterNodeManagerRequestProto) -> None:
    write_node_id(request.node_id, out.node_id)
    out.http_port = request.http_port
    write_resource(request.resource, out.resource)
    out.nm_version = request.nm_version
    for status in request.containers:
        write_nm_container_status(status, out.container_statuses.add())
    for app_id in request.running_applications:
        write_application_id(app_id, out.runningApplications.add())
    if request.physical_resource is not None:
        write_resource(request.physical_resource, out.physicalResource)
    write_health(request.health, out.nodeStatus.nodeHealthStatus)
    _write_log_reports(request.log_aggregation_reports, out)


def read_register_node(proto: pb.RegisterNodeManagerRequestProto) -> RegisterNodeManagerRequest:
    """A registration. A node that does not report its health counts as healthy, as NMs of old releases do in Hadoop."""
    refuse_too_many(proto, "container_statuses", STATUSES_MAX)
    refuse_too_many(proto, "runningApplications", STATUSES_MAX)
    status = proto.nodeStatus
    return RegisterNodeManagerRequest(
        read_node_id(required(proto, "node_id")),
        proto.http_port,
        read_resource(required(proto, "resource")),
        text(proto, "nm_version"),
        tuple(read_nm_container_status(entry) for entry in proto.container_statuses),
        tuple(read_application_id(app_id) for app_id in proto.runningApplications),
        read_resource(proto.physicalResource) if proto.HasField("physicalResource") else None,
        read_health(status.nodeHealthStatus) if status.HasField("nodeHealthStatus") else NodeHealth(),
        _read_log_reports(proto),
    )


def write_registered_node(reply: RegisterNodeManagerResponse, out: pb.RegisterNodeManagerResponseProto) -> None:
    out.nodeAction = number(reply.action)
    out.rm_identifier = reply.rm_identifier
    if reply.container_token_key is not None:
        _write_master_key(reply.container_token_key, out.container_token_master_key)
    if reply.nm_token_key is not None:
        _write_master_key(reply.nm_token_key, out.nm_token_master_key)
    out.diagnostics_message = reply.diagnostics
    out.rm_version = reply.rm_version
    if reply.resource is not None:
        write_sum(reply.resource, out.resource)


def read_registered_node(proto: pb.RegisterNodeManagerResponseProto) -> RegisterNodeManagerResponse:
    return RegisterNodeManagerResponse(
        member(_ACTIONS, proto, "nodeAction"),
        proto.rm_identifier,
        _optional_key(proto, "container_token_master_key"),
        _optional_key(proto, "nm_token_master_key"),
        text(proto, "diagnostics_message"),
        text(proto, "rm_version"),
        read_resource(proto.resource) if proto.HasField("resource") else None,
    )


def _write_log_reports(
    reports: Iterable[LogAggregationReport],
    out: pb.NodeHeartbeatRequestProto | pb.RegisterNodeManagerRequestProto,
) -> None:
    for report in reports:
        proto = out.log_aggregation_reports_for_apps.add()
        write_application_id(report.application_id, proto.application_id)
        proto.log_aggregation_status = number(report.status)
        proto.diagnostics = report.diagnostics


def _read_log_reports(
    proto: pb.NodeHeartbeatRequestProto | pb.RegisterNodeManagerRequestProto,
) -> tuple[LogAggregationReport, ...]:
    refuse_too_many(proto, "log_aggregation_reports_for_apps", STATUSES_MAX)
    return tuple(
        LogAggregationReport(
            read_application_id(required(report, "application_id")),
            member(_LOG_STATUSES, report, "log_aggregation_status"),
            text(report, "diagnostics"),
        )
        for report in proto.log_aggregation_reports_for_apps
    )


def _optional_key(proto: Message, field: str) -> MasterKey | None:
    return _read_master_key(getattr(proto, field)) if proto.HasField(field) else None


def write_heartbeat(request: NodeHeartbeatRequest, out: pb.NodeHeartbeatRequestProto) -> None:
    status = out.node_status
    write_node_id(request.node_id, status.node_id)
    status.response_id = request.response_id
    for container in request.containers:
        write_container_status(container, status.containersStatuses.add())
    write_health(request.health, status.nodeHealthStatus)
    for app_id in request.keep_alive_applications:
        write_application_id(app_id, status.keep_alive_applications.add())
    if request.containers_utilization is not None:
        write_utilization(request.containers_utilization, status.containers_utilization)
    if request.node_utilization is not None:
        write_utilization(request.node_utilization, status.node_utilization)
    for increased in request.increased_containers:
        write_container(increased, status.increased_containers.add())
    out.last_known_container_token_master_key.key_id = request.container_token_key_id
    out.last_known_nm_token_master_key.key_id = request.nm_token_key_id
    _write_log_reports(request.log_aggregation_reports, out)
    for refused in request.refused_starts:
        entry = out.Extensions[own_pb.refused_starts].starts.add(reason=refused.reason)
        write_container_id(refused.container_id, entry.container_id)


def _read_refused_starts(proto: pb.NodeHeartbeatRequestProto) -> tuple[RefusedStart, ...]:
    if not proto.HasExtension(own_pb.refused_starts):
        return ()
    refused = proto.Extensions[own_pb.refused_starts]
    refuse_too_many(refused, "starts", REFUSED_STARTS_MAX)
    return tuple(
        RefusedStart(read_container_id(required(entry, "container_id")), text(entry, "reason"))
        for entry in refused.starts
    )


def read_heartbeat(proto: pb.NodeHeartbeatRequestProto) -> NodeHeartbeatRequest:
    status = required(proto, "node_status")
    refuse_too_many(status, "containersStatuses", STATUSES_MAX)
    refuse_too_many(status, "keep_alive_applications", STATUSES_MAX)
    return NodeHeartbeatRequest(
        read_node_id(required(status, "node_id")),
        status.response_id,
        tuple(read_container_status(container) for container in status.containersStatuses),
        read_health(status.nodeHealthStatus) if status.HasField("nodeHealthStatus") else NodeHealth(),
        tuple(read_application_id(app_id) for app_id in status.keep_alive_applications),
        read_utilization(status.containers_utilization) if status.HasField("containers_utilization") else None,
        read_utilization(status.node_utilization) if status.HasField("node_utilization") else None,
        tuple(read_container(container) for container in status.increased_containers),
        proto.last_known_container_token_master_key.key_id,
        proto.last_known_nm_token_master_key.key_id,
        _read_log_reports(proto),
        _read_refused_starts(proto),
    )


def write_heartbeat_reply(reply: NodeHeartbeatResponse, out: pb.NodeHeartbeatResponseProto) -> None:
    out.response_id = reply.response_id
    out.nodeAction = number(reply.action)
    out.nextHeartBeatInterval = reply.next_heartbeat_ms
    for container_id in reply.containers_to_clean_up:
        write_container_id(container_id, out.containers_to_cleanup.add())
    for app_id in reply.applications_to_clean_up:
        write_application_id(app_id, out.applications_to_cleanup.add())
    for container_id in reply.containers_to_forget:
        write_container_id(container_id, out.containers_to_be_removed_from_nm.add())
    for container_id, command in reply.containers_to_signal:
        write_signal(SignalContainerRequest(container_id, command), out.containers_to_signal.add())
    for container in reply.containers_to_update:
        write_container(container, out.containers_to_update.add())
    out.diagnostics_message = reply.diagnostics
    if reply.resource is not None:
        write_sum(reply.resource, out.resource)
    if reply.container_token_key is not None:
        _write_master_key(reply.container_token_key, out.container_token_master_key)
    if reply.nm_token_key is not None:
        _write_master_key(reply.nm_token_key, out.nm_token_master_key)


def read_heartbeat_reply(proto: pb.NodeHeartbeatResponseProto) -> NodeHeartbeatResponse:
    signals = tuple(read_signal(signal) for signal in proto.containers_to_signal)
    return NodeHeartbeatResponse(
        proto.response_id,
        member(_ACTIONS, proto, "nodeAction"),
        proto.nextHeartBeatInterval if proto.HasField("nextHeartBeatInterval") else DEFAULT_HEARTBEAT_MS,
        tuple(read_container_id(container_id) for container_id in proto.containers_to_cleanup),
        tuple(read_application_id(app_id) for app_id in proto.applications_to_cleanup),
        tuple(read_container_id(container_id) for container_id in proto.containers_to_be_removed_from_nm),
        tuple((signal.container_id, signal.command) for signal in signals),
        tuple(read_container(container) for container in proto.containers_to_update),
        text(proto, "diagnostics_message"),
        read_resource(proto.resource) if proto.HasField("resource") else None,
        _optional_key(proto, "container_token_master_key"),
        _optional_key(proto, "nm_token_master_key"),
    )


class ResourceTracker(Proxy):
    """An NM's calls to the RM (yarn.resourcemanager.resource-tracker.address), with its node token."""

    service = "hadoop.yarn.ResourceTrackerService"

    register_node_manager: Rpc[RegisterNodeManagerRequest, RegisterNodeManagerResponse] = Rpc(
        "registerNodeManager",
        MessageCodec(pb.RegisterNodeManagerRequestProto, write_register_node, read_register_node),
        MessageCodec(pb.RegisterNodeManagerResponseProto, write_registered_node, read_registered_node),
    )
    node_heartbeat: Rpc[NodeHeartbeatRequest, NodeHeartbeatResponse] = Rpc(
        "nodeHeartbeat",
        MessageCodec(pb.NodeHeartbeatRequestProto, write_heartbeat, read_heartbeat),
        MessageCodec(pb.NodeHeartbeatResponseProto, write_heartbeat_reply, read_heartbeat_reply),
    )
    """After CallOutcomeUnknown send a heartbeat with the same response id: nothing is lost or done twice."""
    unregister_node_manager: Rpc[NodeId, None] = Rpc(
        "unRegisterNodeManager",
        holding(pb.UnRegisterNodeManagerRequestProto, "node_id", write_node_id, read_node_id),
        empty(pb.UnRegisterNodeManagerResponseProto),
    )
