"""Resource requests and container updates of an AM, and the preemption messages it receives."""

from __future__ import annotations

from wire.codec.basic import read_container_id, read_resource, write_container_id, write_resource
from wire.codec.fields import (
    member,
    members,
    name_of,
    number,
    optional_member,
    optional_text,
    required,
    text,
)
from wire.generated import yarn_protos_pb2 as pb
from wire.generated import yarn_service_protos_pb2 as service_pb
from yarn.containers import Preemption, ResourceRequest, UpdateContainerError, UpdateContainerRequest
from yarn.errors import InvalidArgumentException
from yarn.states import ContainerUpdateType, ExecutionType

EXECUTION_TYPES = members(ExecutionType)
UPDATE_TYPES = members(ContainerUpdateType)


def write_ask(ask: ResourceRequest, out: pb.ResourceRequestProto) -> None:
    out.priority.priority = ask.priority
    out.resource_name = ask.resource_name
    write_resource(ask.capability, out.capability)
    out.num_containers = ask.count
    out.relax_locality = ask.relax_locality
    if ask.label is not None:
        out.node_label_expression = ask.label
    out.allocation_request_id = ask.allocation_request_id
    out.execution_type_request.execution_type = number(ask.execution_type)
    out.execution_type_request.enforce_execution_type = ask.enforce_execution_type


def read_ask(proto: pb.ResourceRequestProto) -> ResourceRequest:
    name = text(proto, "resource_name")
    if not name:
        raise InvalidArgumentException(f"{name_of(proto, 'resource_name')} is missing (a host, a /rack or *)")
    execution = proto.execution_type_request
    return ResourceRequest(
        proto.priority.priority,
        name,
        read_resource(required(proto, "capability")),
        proto.num_containers,
        proto.relax_locality,
        optional_text(proto, "node_label_expression"),
        proto.allocation_request_id,
        EXECUTION_TYPES[execution.execution_type],
        execution.enforce_execution_type,
    )


def write_update(update: UpdateContainerRequest, out: service_pb.UpdateContainerRequestProto) -> None:
    out.container_version = update.version
    write_container_id(update.container_id, out.container_id)
    out.update_type = number(update.type)
    if update.capability is not None:
        write_resource(update.capability, out.capability)
    if update.execution_type is not None:
        out.execution_type = number(update.execution_type)


def read_update(proto: service_pb.UpdateContainerRequestProto) -> UpdateContainerRequest:
    return UpdateContainerRequest(
        read_container_id(required(proto, "container_id")),
        proto.container_version,
        member(UPDATE_TYPES, proto, "update_type"),
        read_resource(proto.capability) if proto.HasField("capability") else None,
        optional_member(EXECUTION_TYPES, proto, "execution_type"),
    )


def write_update_error(error: UpdateContainerError, out: service_pb.UpdateContainerErrorProto) -> None:
    out.reason = error.reason
    write_update(error.request, out.update_request)
    out.current_container_version = error.current_version


def read_update_error(proto: service_pb.UpdateContainerErrorProto) -> UpdateContainerError:
    request = read_update(required(proto, "update_request"))
    return UpdateContainerError(text(proto, "reason"), request, proto.current_container_version)


def write_preemption(preemption: Preemption, out: pb.PreemptionMessageProto) -> None:
    out.SetInParent()
    for container_id in preemption.strict:
        write_container_id(container_id, out.strictContract.container.add().id)
    for container_id in preemption.negotiable:
        write_container_id(container_id, out.contract.container.add().id)
    for ask in preemption.asks:
        write_ask(ask, out.contract.resource.add().resource)


def read_preemption(proto: pb.PreemptionMessageProto) -> Preemption:
    return Preemption(
        tuple(read_container_id(required(entry, "id")) for entry in proto.strictContract.container),
        tuple(read_container_id(required(entry, "id")) for entry in proto.contract.container),
        tuple(read_ask(required(entry, "resource")) for entry in proto.contract.resource),
    )
