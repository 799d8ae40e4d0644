"""Containers as allocated and as reported by nodes."""

from __future__ import annotations

from protos import yarn_protos_pb2 as pb
from protos import yarn_server_common_service_protos_pb2 as tracker_pb
from wire.codec.asks import EXECUTION_TYPES
from wire.codec.fields import member, members, number, optional_member, required, text
from wire.codec.ids import read_container_id, read_node_id, write_container_id, write_node_id
from wire.codec.resources import read_resource, write_resource
from wire.codec.tokens import read_token, write_token
from yarn.containers import Container, ContainerStatus, NMContainerStatus
from yarn.states import ContainerState, ContainerSubState

_STATES = members(ContainerState)
_SUB_STATES = members(ContainerSubState)


def write_container(container: Container, out: pb.ContainerProto) -> None:
    write_container_id(container.id, out.id)
    write_node_id(container.node_id, out.nodeId)
    out.node_http_address = container.node_http_address
    write_resource(container.resource, out.resource)
    out.priority.priority = container.priority
    if container.token is not None:
        write_token(container.token, out.container_token)
    out.execution_type = number(container.execution_type)
    out.allocation_request_id = container.allocation_request_id
    out.version = container.version


def read_container(proto: pb.ContainerProto) -> Container:
    return Container(
        read_container_id(required(proto, "id")),
        read_node_id(required(proto, "nodeId")),
        text(proto, "node_http_address"),
        read_resource(required(proto, "resource")),
        proto.priority.priority,
        read_token(proto.container_token) if proto.HasField("container_token") else None,
        EXECUTION_TYPES[proto.execution_type],
        proto.allocation_request_id,
        proto.version,
    )


def write_container_status(status: ContainerStatus, out: pb.ContainerStatusProto) -> None:
    write_container_id(status.container_id, out.container_id)
    out.state = number(status.state)
    out.exit_status = status.exit_status
    out.diagnostics = status.diagnostics
    if status.capability is not None:
        write_resource(status.capability, out.capability)
    out.executionType = number(status.execution_type)
    if status.sub_state is not None:
        out.container_sub_state = number(status.sub_state)


def read_container_status(proto: pb.ContainerStatusProto) -> ContainerStatus:
    return ContainerStatus(
        read_container_id(required(proto, "container_id")),
        member(_STATES, proto, "state"),
        proto.exit_status,
        text(proto, "diagnostics"),
        read_resource(proto.capability) if proto.HasField("capability") else None,
        EXECUTION_TYPES[proto.executionType],
        optional_member(_SUB_STATES, proto, "container_sub_state"),
    )


def write_nm_container_status(status: NMContainerStatus, out: tracker_pb.NMContainerStatusProto) -> None:
    write_container_id(status.container_id, out.container_id)
    out.container_state = number(status.state)
    write_resource(status.resource, out.resource)
    out.priority.priority = status.priority
    out.container_exit_status = status.exit_status
    out.diagnostics = status.diagnostics
    out.creation_time = status.creation_time_ms
    out.version = status.version
    out.nodeLabelExpression = status.node_label_expression
    out.executionType = number(status.execution_type)
    out.allocation_request_id = status.allocation_request_id


def read_nm_container_status(proto: tracker_pb.NMContainerStatusProto) -> NMContainerStatus:
    return NMContainerStatus(
        read_container_id(required(proto, "container_id")),
        member(_STATES, proto, "container_state"),
        read_resource(required(proto, "resource")),
        proto.priority.priority,
        proto.container_exit_status,
        text(proto, "diagnostics"),
        proto.creation_time,
        proto.version,
        text(proto, "nodeLabelExpression"),
        EXECUTION_TYPES[proto.executionType],
        proto.allocation_request_id,
    )
