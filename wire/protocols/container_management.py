"""ContainerManagementProtocol: an AM (or the RM, for masters) to an NM."""

from __future__ import annotations

from typing import Any, Protocol

from protos import yarn_service_protos_pb2 as pb
from wire.caller import Caller
from wire.codec.container_management import (
    read_container_ids,
    read_signal,
    read_started,
    read_starts,
    read_statuses,
    read_stopped,
    read_updated,
    read_updates,
    write_container_ids,
    write_signal,
    write_started,
    write_starts,
    write_statuses,
    write_stopped,
    write_updated,
    write_updates,
)
from wire.rpc import Form, Rpc, empty
from yarn.containers import NMTokenIdentifier, Token
from yarn.ids import ContainerId
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    SignalContainerRequest,
    StartContainerRequest,
    StartContainersResponse,
    StopContainersResponse,
    UpdateContainersResponse,
)

SERVICE = "hadoop.yarn.ContainerManagementProtocolService"


class ContainerManagementHandler(Protocol):
    """What answers at an NM; which attempt's master calls is in `caller.verified`."""

    async def start_containers(
        self, caller: Caller[NMTokenIdentifier], request: tuple[StartContainerRequest, ...]
    ) -> StartContainersResponse: ...
    async def stop_containers(
        self, caller: Caller[NMTokenIdentifier], request: tuple[ContainerId, ...]
    ) -> StopContainersResponse: ...
    async def get_container_statuses(
        self, caller: Caller[NMTokenIdentifier], request: tuple[ContainerId, ...]
    ) -> GetContainerStatusesResponse: ...
    async def update_container(
        self, caller: Caller[NMTokenIdentifier], request: tuple[Token, ...]
    ) -> UpdateContainersResponse: ...
    async def signal_to_container(self, caller: Caller[NMTokenIdentifier], request: SignalContainerRequest) -> None: ...


START_CONTAINERS: Rpc[tuple[StartContainerRequest, ...], StartContainersResponse] = Rpc(
    SERVICE,
    "startContainers",
    "start_containers",
    Form(pb.StartContainersRequestProto, write_starts, read_starts),
    Form(pb.StartContainersResponseProto, write_started, read_started),
)
STOP_CONTAINERS: Rpc[tuple[ContainerId, ...], StopContainersResponse] = Rpc(
    SERVICE,
    "stopContainers",
    "stop_containers",
    Form(pb.StopContainersRequestProto, write_container_ids, read_container_ids),
    Form(pb.StopContainersResponseProto, write_stopped, read_stopped),
)
GET_CONTAINER_STATUSES: Rpc[tuple[ContainerId, ...], GetContainerStatusesResponse] = Rpc(
    SERVICE,
    "getContainerStatuses",
    "get_container_statuses",
    Form(pb.GetContainerStatusesRequestProto, write_container_ids, read_container_ids),
    Form(pb.GetContainerStatusesResponseProto, write_statuses, read_statuses),
    reads=True,
)
UPDATE_CONTAINER: Rpc[tuple[Token, ...], UpdateContainersResponse] = Rpc(
    SERVICE,
    "updateContainer",
    "update_container",
    Form(pb.ContainerUpdateRequestProto, write_updates, read_updates),
    Form(pb.ContainerUpdateResponseProto, write_updated, read_updated),
)
SIGNAL_TO_CONTAINER: Rpc[SignalContainerRequest, None] = Rpc(
    SERVICE,
    "signalToContainer",
    "signal_to_container",
    Form(pb.SignalContainerRequestProto, write_signal, read_signal),
    empty(pb.SignalContainerResponseProto),
)

RPCS: tuple[Rpc[Any, Any], ...] = (
    START_CONTAINERS,
    STOP_CONTAINERS,
    GET_CONTAINER_STATUSES,
    UPDATE_CONTAINER,
    SIGNAL_TO_CONTAINER,
)
