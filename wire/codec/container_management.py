"""Requests and replies between an AM and an NM."""

from __future__ import annotations

from typing import Any

from protos import yarn_service_protos_pb2 as pb
from wire.codec.containers import read_container_status, write_container_status
from wire.codec.errors import read_failed, write_failed
from wire.codec.fields import member, members, number, refuse_too_many, required, text
from wire.codec.ids import read_container_id, write_container_id
from wire.codec.launch import read_launch_context, write_launch_context
from wire.codec.tokens import read_token, write_token
from yarn.containers import Token
from yarn.ids import ContainerId
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    SignalContainerRequest,
    StartContainerRequest,
    StartContainersResponse,
    StopContainersResponse,
    UpdateContainersResponse,
)
from yarn.states import SignalContainerCommand

CONTAINERS_MAX = 10_000
"""Containers in one call to an NM; no node holds as many."""

_COMMANDS = members(SignalContainerCommand)


def write_starts(requests: tuple[StartContainerRequest, ...], out: pb.StartContainersRequestProto) -> None:
    for request in requests:
        entry = out.start_container_request.add()
        write_launch_context(request.launch_context, entry.container_launch_context)
        write_token(request.token, entry.container_token)


def read_starts(proto: pb.StartContainersRequestProto) -> tuple[StartContainerRequest, ...]:
    refuse_too_many(proto, "start_container_request", CONTAINERS_MAX)
    return tuple(
        StartContainerRequest(
            read_launch_context(required(entry, "container_launch_context")),
            read_token(required(entry, "container_token")),
        )
        for entry in proto.start_container_request
    )


def write_started(reply: StartContainersResponse, out: pb.StartContainersResponseProto) -> None:
    for service, data in reply.services_metadata.items():
        out.services_meta_data.add(key=service, value=data)
    for container_id in reply.succeeded:
        write_container_id(container_id, out.succeeded_requests.add())
    write_failed(reply.failed, out.failed_requests)


def read_started(proto: pb.StartContainersResponseProto) -> StartContainersResponse:
    return StartContainersResponse(
        tuple(read_container_id(container_id) for container_id in proto.succeeded_requests),
        read_failed(proto.failed_requests),
        {text(entry, "key"): entry.value for entry in proto.services_meta_data},
    )


def write_container_ids(container_ids: tuple[ContainerId, ...], out: Any) -> None:
    """`out`: a request whose only field is the repeated container_id."""
    for container_id in container_ids:
        write_container_id(container_id, out.container_id.add())


def read_container_ids(proto: Any) -> tuple[ContainerId, ...]:
    refuse_too_many(proto, "container_id", CONTAINERS_MAX)
    return tuple(read_container_id(container_id) for container_id in proto.container_id)


def write_stopped(reply: StopContainersResponse, out: pb.StopContainersResponseProto) -> None:
    for container_id in reply.succeeded:
        write_container_id(container_id, out.succeeded_requests.add())
    write_failed(reply.failed, out.failed_requests)


def read_stopped(proto: pb.StopContainersResponseProto) -> StopContainersResponse:
    return StopContainersResponse(
        tuple(read_container_id(container_id) for container_id in proto.succeeded_requests),
        read_failed(proto.failed_requests),
    )


def write_statuses(reply: GetContainerStatusesResponse, out: pb.GetContainerStatusesResponseProto) -> None:
    for status in reply.statuses:
        write_container_status(status, out.status.add())
    write_failed(reply.failed, out.failed_requests)


def read_statuses(proto: pb.GetContainerStatusesResponseProto) -> GetContainerStatusesResponse:
    return GetContainerStatusesResponse(
        tuple(read_container_status(status) for status in proto.status), read_failed(proto.failed_requests)
    )


def write_updates(tokens: tuple[Token, ...], out: pb.ContainerUpdateRequestProto) -> None:
    for token in tokens:
        write_token(token, out.update_container_token.add())


def read_updates(proto: pb.ContainerUpdateRequestProto) -> tuple[Token, ...]:
    refuse_too_many(proto, "update_container_token", CONTAINERS_MAX)
    return tuple(read_token(token) for token in proto.update_container_token)


def write_updated(reply: UpdateContainersResponse, out: pb.ContainerUpdateResponseProto) -> None:
    for container_id in reply.succeeded:
        write_container_id(container_id, out.succeeded_requests.add())
    write_failed(reply.failed, out.failed_requests)


def read_updated(proto: pb.ContainerUpdateResponseProto) -> UpdateContainersResponse:
    return UpdateContainersResponse(
        tuple(read_container_id(container_id) for container_id in proto.succeeded_requests),
        read_failed(proto.failed_requests),
    )


def write_signal(request: SignalContainerRequest, out: pb.SignalContainerRequestProto) -> None:
    write_container_id(request.container_id, out.container_id)
    out.command = number(request.command)


def read_signal(proto: pb.SignalContainerRequestProto) -> SignalContainerRequest:
    container_id = read_container_id(required(proto, "container_id"))
    return SignalContainerRequest(container_id, member(_COMMANDS, proto, "command"))
