"""ContainerManagementProtocol: the calls of an AM, or of the RM for AMs, to an NM."""

from __future__ import annotations

from google.protobuf.message import Message

from wire.codec.basic import read_container_id, write_container_id
from wire.codec.containers import (
    read_container_status,
    read_launch_context,
    read_signal,
    read_token,
    write_container_status,
    write_launch_context,
    write_signal,
    write_token,
)
from wire.codec.fields import required, text
from wire.codec.message_codec import MessageCodec, empty, listing
from wire.errors import read_failed, write_failed
from wire.generated import yarn_service_protos_pb2 as pb
from wire.rpc import Proxy, Rpc
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

CONTAINERS_MAX = 10_000
"""The maximum of containers in one call to an NM; no node has as many."""


def _write_started(reply: StartContainersResponse, out: pb.StartContainersResponseProto) -> None:
    for service, data in reply.services_metadata.items():
        out.services_meta_data.add(key=service, value=data)
    for container_id in reply.succeeded:
        write_container_id(container_id, out.succeeded_requests.add())
    write_failed(reply.failed, out.failed_requests)


def _read_started(proto: pb.StartContainersResponseProto) -> StartContainersResponse:
    return StartContainersResponse(
        tuple(read_container_id(container_id) for container_id in proto.succeeded_requests),
        read_failed(proto.failed_requests),
        {text(entry, "key"): entry.value for entry in proto.services_meta_data},
    )


def _write_outcomes(
    reply: StopContainersResponse | UpdateContainersResponse,
    out: pb.StopContainersResponseProto | pb.ContainerUpdateResponseProto,
) -> None:
    for container_id in reply.succeeded:
        write_container_id(container_id, out.succeeded_requests.add())
    write_failed(reply.failed, out.failed_requests)


def _read_stopped(proto: pb.StopContainersResponseProto) -> StopContainersResponse:
    return StopContainersResponse(
        tuple(read_container_id(container_id) for container_id in proto.succeeded_requests),
        read_failed(proto.failed_requests),
    )


def _write_statuses(reply: GetContainerStatusesResponse, out: pb.GetContainerStatusesResponseProto) -> None:
    for status in reply.statuses:
        write_container_status(status, out.status.add())
    write_failed(reply.failed, out.failed_requests)


def _read_statuses(proto: pb.GetContainerStatusesResponseProto) -> GetContainerStatusesResponse:
    return GetContainerStatusesResponse(
        tuple(read_container_status(status) for status in proto.status), read_failed(proto.failed_requests)
    )


def _read_updated(proto: pb.ContainerUpdateResponseProto) -> UpdateContainersResponse:
    return UpdateContainersResponse(
        tuple(read_container_id(container_id) for container_id in proto.succeeded_requests),
        read_failed(proto.failed_requests),
    )


def _write_start(request: StartContainerRequest, out: pb.StartContainerRequestProto) -> None:
    write_launch_context(request.launch_context, out.container_launch_context)
    write_token(request.token, out.container_token)


def _read_start(proto: pb.StartContainerRequestProto) -> StartContainerRequest:
    return StartContainerRequest(
        read_launch_context(required(proto, "container_launch_context")),
        read_token(required(proto, "container_token")),
    )


def _container_ids(proto: type[Message]) -> MessageCodec[tuple[ContainerId, ...]]:
    """The codec of a request that is ids of containers."""
    return listing(proto, "container_id", write_container_id, read_container_id, limit=CONTAINERS_MAX)


class ContainerManagementProtocol(Proxy):
    """An AM's calls to an NM, with an NM token for that node. The RM makes the same calls to start AMs."""

    service = "hadoop.yarn.ContainerManagementProtocolService"

    start_containers: Rpc[tuple[StartContainerRequest, ...], StartContainersResponse] = Rpc(
        "startContainers",
        listing(
            pb.StartContainersRequestProto, "start_container_request", _write_start, _read_start, limit=CONTAINERS_MAX
        ),
        MessageCodec(pb.StartContainersResponseProto, _write_started, _read_started),
    )
    stop_containers: Rpc[tuple[ContainerId, ...], StopContainersResponse] = Rpc(
        "stopContainers",
        _container_ids(pb.StopContainersRequestProto),
        MessageCodec(pb.StopContainersResponseProto, _write_outcomes, _read_stopped),
    )
    get_container_statuses: Rpc[tuple[ContainerId, ...], GetContainerStatusesResponse] = Rpc(
        "getContainerStatuses",
        _container_ids(pb.GetContainerStatusesRequestProto),
        MessageCodec(pb.GetContainerStatusesResponseProto, _write_statuses, _read_statuses),
        reads=True,
    )
    update_container: Rpc[tuple[Token, ...], UpdateContainersResponse] = Rpc(
        "updateContainer",
        listing(
            pb.ContainerUpdateRequestProto, "update_container_token", write_token, read_token, limit=CONTAINERS_MAX
        ),
        MessageCodec(pb.ContainerUpdateResponseProto, _write_outcomes, _read_updated),
    )
    """After CallOutcomeUnknown query the statuses: a token that was accepted once is refused the second time."""
    signal_to_container: Rpc[SignalContainerRequest, None] = Rpc(
        "signalToContainer",
        MessageCodec(pb.SignalContainerRequestProto, write_signal, read_signal),
        empty(pb.SignalContainerResponseProto),
    )
