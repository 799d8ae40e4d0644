"""ApplicationMasterProtocol: the calls of an AM to the RM."""

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
from wire.codec.containers import (
    read_acls,
    read_container,
    read_container_status,
    read_token,
    write_acls,
    write_container,
    write_container_status,
    write_token,
)
from wire.codec.fields import int32, member, members, number, refuse_too_many, required, text, texts
from wire.codec.message_codec import MessageCodec
from wire.codec.nodes import read_node_report, write_node_report
from wire.codec.requests import (
    UPDATE_TYPES,
    read_ask,
    read_preemption,
    read_update,
    read_update_error,
    write_ask,
    write_preemption,
    write_update,
    write_update_error,
)
from wire.generated import yarn_protos_pb2 as yarn_pb
from wire.generated import yarn_service_protos_pb2 as pb
from wire.rpc import Proxy, Rpc
from yarn.protocols.master import (
    AllocateRequest,
    AllocateResponse,
    FinishApplicationMasterRequest,
    FinishApplicationMasterResponse,
    NMToken,
    RegisterApplicationMasterRequest,
    RegisterApplicationMasterResponse,
    ResourceTypeInfo,
    UpdatedContainer,
)
from yarn.states import FinalApplicationStatus, SchedulerResourceTypes

ASKS_MAX = 100_000
"""The maximum of resource requests, releases or updates in one call; a job of 10,000 tasks with three hosts each
sends about 40,000 requests."""
BLACKLIST_MAX = 10_000
"""The maximum of hosts and racks in one change of the blacklist."""
_FINAL_STATUSES = members(FinalApplicationStatus)
_SCHEDULER_RESOURCE_TYPES = members(SchedulerResourceTypes)


def _write_register(request: RegisterApplicationMasterRequest, out: pb.RegisterApplicationMasterRequestProto) -> None:
    out.host = request.host
    out.rpc_port = request.rpc_port
    out.tracking_url = request.tracking_url
    if request.has_placement_constraints:
        out.placement_constraints.add()


def _read_register(proto: pb.RegisterApplicationMasterRequestProto) -> RegisterApplicationMasterRequest:
    return RegisterApplicationMasterRequest(
        text(proto, "host"), proto.rpc_port, text(proto, "tracking_url"), len(proto.placement_constraints) > 0
    )


def _write_registered(reply: RegisterApplicationMasterResponse, out: pb.RegisterApplicationMasterResponseProto) -> None:
    write_resource(reply.maximum_capability, out.maximumCapability)
    out.queue = reply.queue
    for container in reply.containers_from_previous_attempts:
        write_container(container, out.containers_from_previous_attempts.add())
    for token in reply.nm_tokens:
        _write_nm_token(token, out.nm_tokens_from_previous_attempts.add())
    for kind in reply.resource_types:
        out.resource_types.add(name=kind.name, units=kind.units, type=yarn_pb.COUNTABLE)
    out.scheduler_resource_types.extend(number(kind) for kind in reply.scheduler_resource_types)
    write_acls(reply.application_acls, out.application_ACLs)


def _read_registered(proto: pb.RegisterApplicationMasterResponseProto) -> RegisterApplicationMasterResponse:
    return RegisterApplicationMasterResponse(
        read_resource(required(proto, "maximumCapability")),
        text(proto, "queue"),
        tuple(read_container(container) for container in proto.containers_from_previous_attempts),
        tuple(_read_nm_token(token) for token in proto.nm_tokens_from_previous_attempts),
        tuple(ResourceTypeInfo(text(entry, "name"), text(entry, "units")) for entry in proto.resource_types),
        read_acls(proto.application_ACLs),
        tuple(_SCHEDULER_RESOURCE_TYPES[kind] for kind in proto.scheduler_resource_types),
    )


def _write_nm_token(token: NMToken, out: pb.NMTokenProto) -> None:
    write_node_id(token.node_id, out.nodeId)
    if token.token is not None:
        write_token(token.token, out.token)


def _read_nm_token(proto: pb.NMTokenProto) -> NMToken:
    return NMToken(read_node_id(required(proto, "nodeId")), read_token(required(proto, "token")))


def _write_allocate(request: AllocateRequest, out: pb.AllocateRequestProto) -> None:
    out.response_id = request.response_id
    out.progress = request.progress
    for ask in request.asks:
        write_ask(ask, out.ask.add())
    for container_id in request.releases:
        write_container_id(container_id, out.release.add())
    if request.blacklist_additions or request.blacklist_removals:
        out.blacklist_request.blacklist_additions.extend(request.blacklist_additions)
        out.blacklist_request.blacklist_removals.extend(request.blacklist_removals)
    for update in request.updates:
        write_update(update, out.update_requests.add())
    if request.tracking_url:
        out.tracking_url = request.tracking_url
    if request.has_scheduling_requests:
        out.scheduling_requests.add()


def _read_allocate(proto: pb.AllocateRequestProto) -> AllocateRequest:
    for field in ("ask", "release", "update_requests"):
        refuse_too_many(proto, field, ASKS_MAX)
    blacklist = proto.blacklist_request
    refuse_too_many(blacklist, "blacklist_additions", BLACKLIST_MAX)
    refuse_too_many(blacklist, "blacklist_removals", BLACKLIST_MAX)
    return AllocateRequest(
        proto.response_id,
        proto.progress,
        tuple(read_ask(ask) for ask in proto.ask),
        tuple(read_container_id(container_id) for container_id in proto.release),
        texts(blacklist, "blacklist_additions"),
        texts(blacklist, "blacklist_removals"),
        tuple(read_update(update) for update in proto.update_requests),
        text(proto, "tracking_url"),
        len(proto.scheduling_requests) > 0,
    )


def _write_allocated(reply: AllocateResponse, out: pb.AllocateResponseProto) -> None:
    out.response_id = reply.response_id
    write_sum(reply.headroom, out.limit)
    out.num_cluster_nodes = int32(reply.cluster_nodes)
    for container in reply.allocated:
        write_container(container, out.allocated_containers.add())
    for status in reply.completed:
        write_container_status(status, out.completed_container_statuses.add())
    for node in reply.updated_nodes:
        write_node_report(node, out.updated_nodes.add())
    for token in reply.nm_tokens:
        _write_nm_token(token, out.nm_tokens.add())
    if reply.preemption is not None:
        write_preemption(reply.preemption, out.preempt)
    _write_changes(reply, out)
    if reply.am_rm_token is not None:
        write_token(reply.am_rm_token, out.am_rm_token)
    out.application_priority.priority = reply.application_priority


def _read_allocated(proto: pb.AllocateResponseProto) -> AllocateResponse:
    return AllocateResponse(
        proto.response_id,
        read_resource(proto.limit),
        proto.num_cluster_nodes,
        tuple(read_container(container) for container in proto.allocated_containers),
        tuple(read_container_status(status) for status in proto.completed_container_statuses),
        tuple(read_node_report(node) for node in proto.updated_nodes),
        tuple(_read_nm_token(token) for token in proto.nm_tokens),
        read_preemption(proto.preempt) if proto.HasField("preempt") else None,
        tuple(_read_updated(updated) for updated in proto.updated_containers),
        tuple(read_update_error(error) for error in proto.update_errors),
        tuple(read_container(container) for container in proto.containers_from_previous_attempts),
        read_token(proto.am_rm_token) if proto.HasField("am_rm_token") else None,
        proto.application_priority.priority,
    )


def _write_changes(reply: AllocateResponse, out: pb.AllocateResponseProto) -> None:
    for updated in reply.updated_containers:
        entry = out.updated_containers.add(update_type=number(updated.type))
        write_container(updated.container, entry.container)
    for error in reply.update_errors:
        write_update_error(error, out.update_errors.add())
    for container in reply.containers_from_previous_attempts:
        write_container(container, out.containers_from_previous_attempts.add())


def _read_updated(proto: pb.UpdatedContainerProto) -> UpdatedContainer:
    return UpdatedContainer(member(UPDATE_TYPES, proto, "update_type"), read_container(required(proto, "container")))


def _write_finish(request: FinishApplicationMasterRequest, out: pb.FinishApplicationMasterRequestProto) -> None:
    out.final_application_status = number(request.final_status)
    out.diagnostics = request.diagnostics
    out.tracking_url = request.tracking_url


def _read_finish(proto: pb.FinishApplicationMasterRequestProto) -> FinishApplicationMasterRequest:
    status = member(_FINAL_STATUSES, proto, "final_application_status")
    return FinishApplicationMasterRequest(status, text(proto, "diagnostics"), text(proto, "tracking_url"))


def _write_finished(reply: FinishApplicationMasterResponse, out: pb.FinishApplicationMasterResponseProto) -> None:
    out.isUnregistered = reply.is_unregistered


def _read_finished(proto: pb.FinishApplicationMasterResponseProto) -> FinishApplicationMasterResponse:
    return FinishApplicationMasterResponse(proto.isUnregistered)


class ApplicationMasterProtocol(Proxy):
    """An AM's calls to the RM (yarn.resourcemanager.scheduler.address), with its AMRM token.

    The token proves which attempt calls; nothing in a request can name another one.
    """

    service = "hadoop.yarn.ApplicationMasterProtocolService"

    register_application_master: Rpc[RegisterApplicationMasterRequest, RegisterApplicationMasterResponse] = Rpc(
        "registerApplicationMaster",
        MessageCodec(pb.RegisterApplicationMasterRequestProto, _write_register, _read_register),
        MessageCodec(pb.RegisterApplicationMasterResponseProto, _write_registered, _read_registered),
    )
    allocate: Rpc[AllocateRequest, AllocateResponse] = Rpc(
        "allocate",
        MessageCodec(pb.AllocateRequestProto, _write_allocate, _read_allocate),
        MessageCodec(pb.AllocateResponseProto, _write_allocated, _read_allocated),
    )
    """After CallOutcomeUnknown send the same request again: the RM recognises it by its response id."""
    finish_application_master: Rpc[FinishApplicationMasterRequest, FinishApplicationMasterResponse] = Rpc(
        "finishApplicationMaster",
        MessageCodec(pb.FinishApplicationMasterRequestProto, _write_finish, _read_finish),
        MessageCodec(pb.FinishApplicationMasterResponseProto, _write_finished, _read_finished),
    )
    """Call again until the reply states that the AM is unregistered."""
