"""ApplicationClientProtocol: the calls of a client to the RM."""

from __future__ import annotations

from google.protobuf.message import Message

from wire.codec.application_filter import read_filter, write_filter
from wire.codec.applications import (
    read_application_report,
    read_attempt_report,
    read_container_report,
    read_submission,
    write_application_report,
    write_attempt_report,
    write_container_report,
    write_submission,
)
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
)
from wire.codec.containers import read_signal, write_signal
from wire.codec.fields import members, number, optional_text, refuse_too_many, required, text
from wire.codec.message_codec import MessageCodec, empty, holding, holding_text, listing, listing_texts
from wire.codec.nodes import (
    LABELS_MAX,
    NODE_STATES,
    read_cluster_metrics,
    read_label,
    read_node_labels,
    read_node_report,
    write_cluster_metrics,
    write_label,
    write_node_labels,
    write_node_report,
)
from wire.codec.queues import read_queue_info, write_queue_info
from wire.generated import yarn_protos_pb2 as yarn_pb
from wire.generated import yarn_service_protos_pb2 as pb
from wire.rpc import Proxy, Rpc
from yarn.applications import (
    ApplicationAttemptReport,
    ApplicationFilter,
    ApplicationReport,
    ApplicationSubmissionContext,
    ContainerReport,
)
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.nodes import ClusterMetrics, NodeLabel, NodeReport
from yarn.protocols.client import (
    GetNewApplicationResponse,
    KillApplicationRequest,
    KillApplicationResponse,
    LabelsToNodes,
    MoveApplicationRequest,
    NodesToLabels,
    QueueInfoRequest,
    QueueUserAcls,
    UpdatePriorityRequest,
    UpdateTimeoutsRequest,
)
from yarn.protocols.container_management import SignalContainerRequest
from yarn.protocols.master import ResourceTypeInfo
from yarn.queues import QueueInfo
from yarn.resource import Resource
from yarn.states import NodeState, QueueACL

TIMEOUTS_MAX = 8
"""The maximum of timeouts in one request; YARN has only one kind."""
_QUEUE_ACLS = members(QueueACL)


def _write_new_application(reply: GetNewApplicationResponse, out: pb.GetNewApplicationResponseProto) -> None:
    write_application_id(reply.application_id, out.application_id)
    write_resource(reply.maximum_capability, out.maximumCapability)


def _read_new_application(proto: pb.GetNewApplicationResponseProto) -> GetNewApplicationResponse:
    app_id = read_application_id(required(proto, "application_id"))
    return GetNewApplicationResponse(app_id, read_resource(required(proto, "maximumCapability")))


def _write_kill(request: KillApplicationRequest, out: pb.KillApplicationRequestProto) -> None:
    write_application_id(request.application_id, out.application_id)
    if request.diagnostics:
        out.diagnostics = request.diagnostics


def _read_kill(proto: pb.KillApplicationRequestProto) -> KillApplicationRequest:
    return KillApplicationRequest(read_application_id(required(proto, "application_id")), text(proto, "diagnostics"))


def _write_killed(reply: KillApplicationResponse, out: pb.KillApplicationResponseProto) -> None:
    out.is_kill_completed = reply.is_kill_completed


def _read_killed(proto: pb.KillApplicationResponseProto) -> KillApplicationResponse:
    return KillApplicationResponse(proto.is_kill_completed)


def _write_node_states(states: frozenset[NodeState], out: pb.GetClusterNodesRequestProto) -> None:
    out.nodeStates.extend(sorted(number(state) for state in states))


def _read_node_states(proto: pb.GetClusterNodesRequestProto) -> frozenset[NodeState]:
    return frozenset(NODE_STATES[state] for state in proto.nodeStates)


def _write_queue_request(request: QueueInfoRequest, out: pb.GetQueueInfoRequestProto) -> None:
    out.queueName = request.queue
    out.includeApplications = request.applications
    out.includeChildQueues = request.children
    out.recursive = request.recursive


def _read_queue_request(proto: pb.GetQueueInfoRequestProto) -> QueueInfoRequest:
    return QueueInfoRequest(
        text(proto, "queueName"), proto.includeApplications, proto.includeChildQueues, proto.recursive
    )


def _write_queue(queue: QueueInfo | None, out: pb.GetQueueInfoResponseProto) -> None:
    if queue is not None:
        write_queue_info(queue, out.queueInfo)


def _read_queue(proto: pb.GetQueueInfoResponseProto) -> QueueInfo | None:
    return read_queue_info(proto.queueInfo) if proto.HasField("queueInfo") else None


def _write_move(request: MoveApplicationRequest, out: pb.MoveApplicationAcrossQueuesRequestProto) -> None:
    write_application_id(request.application_id, out.application_id)
    out.target_queue = request.queue


def _read_move(proto: pb.MoveApplicationAcrossQueuesRequestProto) -> MoveApplicationRequest:
    return MoveApplicationRequest(read_application_id(proto.application_id), text(proto, "target_queue"))


def _write_priority_change(request: UpdatePriorityRequest, out: pb.UpdateApplicationPriorityRequestProto) -> None:
    write_application_id(request.application_id, out.applicationId)
    out.applicationPriority.priority = request.priority


def _read_priority_change(proto: pb.UpdateApplicationPriorityRequestProto) -> UpdatePriorityRequest:
    return UpdatePriorityRequest(read_application_id(proto.applicationId), proto.applicationPriority.priority)


def _write_priority(priority: int, out: pb.UpdateApplicationPriorityResponseProto) -> None:
    out.applicationPriority.priority = priority


def _read_priority(proto: pb.UpdateApplicationPriorityResponseProto) -> int:
    return int(required(proto, "applicationPriority").priority)


def _write_timeouts_change(request: UpdateTimeoutsRequest, out: pb.UpdateApplicationTimeoutsRequestProto) -> None:
    write_application_id(request.application_id, out.applicationId)
    _write_timeouts(request.lifetime_ends, out)


def _read_timeouts_change(proto: pb.UpdateApplicationTimeoutsRequestProto) -> UpdateTimeoutsRequest:
    return UpdateTimeoutsRequest(read_application_id(proto.applicationId), _read_timeouts(proto))


def _write_timeouts(
    lifetime_ends: str | None,
    out: pb.UpdateApplicationTimeoutsRequestProto | pb.UpdateApplicationTimeoutsResponseProto,
) -> None:
    if lifetime_ends is not None:
        entry = out.application_timeouts.add(expire_time=lifetime_ends)
        entry.application_timeout_type = yarn_pb.APP_TIMEOUT_LIFETIME


def _read_timeouts(
    proto: pb.UpdateApplicationTimeoutsRequestProto | pb.UpdateApplicationTimeoutsResponseProto,
) -> str | None:
    """The end of the lifetime. If there are several, the last one counts, as in the map that Hadoop uses."""
    refuse_too_many(proto, "application_timeouts", TIMEOUTS_MAX)
    named = [entry for entry in proto.application_timeouts if entry.HasField("application_timeout_type")]
    return optional_text(named[-1], "expire_time") if named else None


def _write_queue_acls(queues: tuple[QueueUserAcls, ...], out: pb.GetQueueUserAclsInfoResponseProto) -> None:
    for queue in queues:
        entry = out.queueUserAcls.add(queueName=queue.queue)
        entry.userAcls.extend(sorted(number(acl) for acl in queue.acls))


def _read_queue_acls(proto: pb.GetQueueUserAclsInfoResponseProto) -> tuple[QueueUserAcls, ...]:
    return tuple(
        QueueUserAcls(text(entry, "queueName"), frozenset(_QUEUE_ACLS[acl] for acl in entry.userAcls))
        for entry in proto.queueUserAcls
    )


def _write_resource_types(types: tuple[ResourceTypeInfo, ...], out: pb.GetAllResourceTypeInfoResponseProto) -> None:
    for kind in types:
        out.resource_type_info.add(name=kind.name, units=kind.units, type=yarn_pb.COUNTABLE)


def _read_resource_types(proto: pb.GetAllResourceTypeInfoResponseProto) -> tuple[ResourceTypeInfo, ...]:
    return tuple(ResourceTypeInfo(text(kind, "name"), text(kind, "units")) for kind in proto.resource_type_info)


def _write_profiles(profiles: dict[str, Resource], out: pb.GetAllResourceProfilesResponseProto) -> None:
    # A required message must be present even if it is empty.
    out.resource_profiles.SetInParent()
    for name, amount in profiles.items():
        write_resource(amount, out.resource_profiles.resource_profiles_map.add(name=name).resources)


def _read_profiles(proto: pb.GetAllResourceProfilesResponseProto) -> dict[str, Resource]:
    entries = proto.resource_profiles.resource_profiles_map
    return {text(entry, "name"): read_resource(entry.resources) for entry in entries}


def _write_cluster_labels(labels: tuple[NodeLabel, ...], out: pb.GetClusterNodeLabelsResponseProto) -> None:
    for label in labels:
        write_label(label, out.nodeLabels.add())
    out.deprecatedNodeLabels.extend(label.name for label in labels)


def _read_cluster_labels(proto: pb.GetClusterNodeLabelsResponseProto) -> tuple[NodeLabel, ...]:
    return tuple(read_label(label) for label in proto.nodeLabels)


def _write_labels_to_nodes(labels: LabelsToNodes, out: pb.GetLabelsToNodesResponseProto) -> None:
    for name, nodes in labels:
        entry = out.labelsToNodes.add(nodeLabels=name)
        for node_id in nodes:
            write_node_id(node_id, entry.nodeId.add())


def _read_labels_to_nodes(proto: pb.GetLabelsToNodesResponseProto) -> LabelsToNodes:
    return tuple(
        (text(entry, "nodeLabels"), tuple(read_node_id(node_id) for node_id in entry.nodeId))
        for entry in proto.labelsToNodes
    )


def _application(proto: type[Message]) -> MessageCodec[ApplicationId]:
    """The codec of a request that is an application's id."""
    return holding(proto, "application_id", write_application_id, read_application_id)


def _attempt(proto: type[Message]) -> MessageCodec[ApplicationAttemptId]:
    """The codec of a request that is an attempt's id."""
    return holding(proto, "application_attempt_id", write_attempt_id, read_attempt_id)


class ApplicationClientProtocol(Proxy):
    """A client's calls to the RM (yarn.resourcemanager.address), made as the proxy's `user`."""

    service = "hadoop.yarn.ApplicationClientProtocolService"

    get_new_application: Rpc[None, GetNewApplicationResponse] = Rpc(
        "getNewApplication",
        empty(pb.GetNewApplicationRequestProto),
        MessageCodec(pb.GetNewApplicationResponseProto, _write_new_application, _read_new_application),
        idempotent=True,
    )
    submit_application: Rpc[ApplicationSubmissionContext, None] = Rpc(
        "submitApplication",
        holding(pb.SubmitApplicationRequestProto, "application_submission_context", write_submission, read_submission),
        empty(pb.SubmitApplicationResponseProto),
        idempotent=True,
    )
    """Returns before the application is accepted; its report shows when it is. Submitting the same id again is not
    an error."""
    get_application_report: Rpc[ApplicationId, ApplicationReport] = Rpc(
        "getApplicationReport",
        _application(pb.GetApplicationReportRequestProto),
        holding(
            pb.GetApplicationReportResponseProto,
            "application_report",
            write_application_report,
            read_application_report,
        ),
        reads=True,
    )
    get_applications: Rpc[ApplicationFilter, tuple[ApplicationReport, ...]] = Rpc(
        "getApplications",
        MessageCodec(pb.GetApplicationsRequestProto, write_filter, read_filter),
        listing(pb.GetApplicationsResponseProto, "applications", write_application_report, read_application_report),
        reads=True,
        bulky=True,
    )
    force_kill_application: Rpc[KillApplicationRequest, KillApplicationResponse] = Rpc(
        "forceKillApplication",
        MessageCodec(pb.KillApplicationRequestProto, _write_kill, _read_kill),
        MessageCodec(pb.KillApplicationResponseProto, _write_killed, _read_killed),
        idempotent=True,
    )
    """Call again until the reply states that the kill is completed."""
    fail_application_attempt: Rpc[ApplicationAttemptId, None] = Rpc(
        "failApplicationAttempt",
        _attempt(pb.FailApplicationAttemptRequestProto),
        empty(pb.FailApplicationAttemptResponseProto),
    )
    move_application_across_queues: Rpc[MoveApplicationRequest, None] = Rpc(
        "moveApplicationAcrossQueues",
        MessageCodec(pb.MoveApplicationAcrossQueuesRequestProto, _write_move, _read_move),
        empty(pb.MoveApplicationAcrossQueuesResponseProto),
        idempotent=True,
    )
    update_application_priority: Rpc[UpdatePriorityRequest, int] = Rpc(
        "updateApplicationPriority",
        MessageCodec(pb.UpdateApplicationPriorityRequestProto, _write_priority_change, _read_priority_change),
        MessageCodec(pb.UpdateApplicationPriorityResponseProto, _write_priority, _read_priority),
        idempotent=True,
    )
    """Returns the new priority, which the cluster's maximum may have reduced."""
    update_application_timeouts: Rpc[UpdateTimeoutsRequest, str | None] = Rpc(
        "updateApplicationTimeouts",
        MessageCodec(pb.UpdateApplicationTimeoutsRequestProto, _write_timeouts_change, _read_timeouts_change),
        MessageCodec(pb.UpdateApplicationTimeoutsResponseProto, _write_timeouts, _read_timeouts),
        idempotent=True,
    )
    """Returns the new end of the application's lifetime (yarn.times), which the queue's maximum may have limited."""
    signal_to_container: Rpc[SignalContainerRequest, None] = Rpc(
        "signalToContainer",
        MessageCodec(pb.SignalContainerRequestProto, write_signal, read_signal),
        empty(pb.SignalContainerResponseProto),
    )
    """The node receives the signal with the reply to its next heartbeat."""
    get_application_attempt_report: Rpc[ApplicationAttemptId, ApplicationAttemptReport] = Rpc(
        "getApplicationAttemptReport",
        _attempt(pb.GetApplicationAttemptReportRequestProto),
        holding(
            pb.GetApplicationAttemptReportResponseProto,
            "application_attempt_report",
            write_attempt_report,
            read_attempt_report,
        ),
        reads=True,
    )
    get_application_attempts: Rpc[ApplicationId, tuple[ApplicationAttemptReport, ...]] = Rpc(
        "getApplicationAttempts",
        _application(pb.GetApplicationAttemptsRequestProto),
        listing(
            pb.GetApplicationAttemptsResponseProto, "application_attempts", write_attempt_report, read_attempt_report
        ),
        reads=True,
        bulky=True,
    )
    get_container_report: Rpc[ContainerId, ContainerReport] = Rpc(
        "getContainerReport",
        holding(pb.GetContainerReportRequestProto, "container_id", write_container_id, read_container_id),
        holding(pb.GetContainerReportResponseProto, "container_report", write_container_report, read_container_report),
        reads=True,
    )
    get_containers: Rpc[ApplicationAttemptId, tuple[ContainerReport, ...]] = Rpc(
        "getContainers",
        _attempt(pb.GetContainersRequestProto),
        listing(pb.GetContainersResponseProto, "containers", write_container_report, read_container_report),
        reads=True,
        bulky=True,
    )

    get_cluster_metrics: Rpc[None, ClusterMetrics] = Rpc(
        "getClusterMetrics",
        empty(pb.GetClusterMetricsRequestProto),
        holding(pb.GetClusterMetricsResponseProto, "cluster_metrics", write_cluster_metrics, read_cluster_metrics),
        reads=True,
    )
    get_cluster_nodes: Rpc[frozenset[NodeState], tuple[NodeReport, ...]] = Rpc(
        "getClusterNodes",
        MessageCodec(pb.GetClusterNodesRequestProto, _write_node_states, _read_node_states),
        listing(pb.GetClusterNodesResponseProto, "nodeReports", write_node_report, read_node_report),
        reads=True,
        bulky=True,
    )
    """Returns the nodes in these states; all nodes for an empty set."""
    get_queue_info: Rpc[QueueInfoRequest, QueueInfo | None] = Rpc(
        "getQueueInfo",
        MessageCodec(pb.GetQueueInfoRequestProto, _write_queue_request, _read_queue_request),
        MessageCodec(pb.GetQueueInfoResponseProto, _write_queue, _read_queue),
        reads=True,
        bulky=True,
    )
    """Returns None if there is no such queue."""
    get_queue_user_acls: Rpc[None, tuple[QueueUserAcls, ...]] = Rpc(
        "getQueueUserAcls",
        empty(pb.GetQueueUserAclsInfoRequestProto),
        MessageCodec(pb.GetQueueUserAclsInfoResponseProto, _write_queue_acls, _read_queue_acls),
        reads=True,
        bulky=True,
    )
    """Returns what the calling user may do in each queue."""
    get_resource_type_info: Rpc[None, tuple[ResourceTypeInfo, ...]] = Rpc(
        "getResourceTypeInfo",
        empty(pb.GetAllResourceTypeInfoRequestProto),
        MessageCodec(pb.GetAllResourceTypeInfoResponseProto, _write_resource_types, _read_resource_types),
        reads=True,
    )
    get_resource_profiles: Rpc[None, dict[str, Resource]] = Rpc(
        "getResourceProfiles",
        empty(pb.GetAllResourceProfilesRequestProto),
        MessageCodec(pb.GetAllResourceProfilesResponseProto, _write_profiles, _read_profiles),
        reads=True,
    )
    get_resource_profile: Rpc[str, Resource] = Rpc(
        "getResourceProfile",
        holding_text(pb.GetResourceProfileRequestProto, "profile"),
        holding(pb.GetResourceProfileResponseProto, "resources", write_resource, read_resource),
        reads=True,
    )
    get_node_to_labels: Rpc[None, NodesToLabels] = Rpc(
        "getNodeToLabels",
        empty(pb.GetNodesToLabelsRequestProto),
        listing(pb.GetNodesToLabelsResponseProto, "nodeToLabels", write_node_labels, read_node_labels),
        reads=True,
        bulky=True,
    )
    """Returns the nodes and whole hosts (port 0) that have labels."""
    get_labels_to_nodes: Rpc[tuple[str, ...], LabelsToNodes] = Rpc(
        "getLabelsToNodes",
        listing_texts(pb.GetLabelsToNodesRequestProto, "nodeLabels", limit=LABELS_MAX),
        MessageCodec(pb.GetLabelsToNodesResponseProto, _write_labels_to_nodes, _read_labels_to_nodes),
        reads=True,
        bulky=True,
    )
    """Returns the nodes that have these labels; for an empty request those of every label."""
    get_cluster_node_attributes: Rpc[None, None] = Rpc(
        "getClusterNodeAttributes",
        empty(pb.GetClusterNodeAttributesRequestProto),
        empty(pb.GetClusterNodeAttributesResponseProto),
        reads=True,
    )
    """Nodes have no attributes here: this reply and the next two are empty."""
    get_attributes_to_nodes: Rpc[None, None] = Rpc(
        "getAttributesToNodes",
        empty(pb.GetAttributesToNodesRequestProto),
        empty(pb.GetAttributesToNodesResponseProto),
        reads=True,
    )
    get_nodes_to_attributes: Rpc[None, None] = Rpc(
        "getNodesToAttributes",
        empty(pb.GetNodesToAttributesRequestProto),
        empty(pb.GetNodesToAttributesResponseProto),
        reads=True,
    )
    get_cluster_node_labels: Rpc[None, tuple[NodeLabel, ...]] = Rpc(
        "getClusterNodeLabels",
        empty(pb.GetClusterNodeLabelsRequestProto),
        MessageCodec(pb.GetClusterNodeLabelsResponseProto, _write_cluster_labels, _read_cluster_labels),
        reads=True,
    )
