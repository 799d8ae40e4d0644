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
    write_container_ids,
    write_signal,
    write_started,
    write_starts,
    write_statuses,
    write_stopped,
)
from wire.rpc import Form, Rpc, empty
from yarn.containers import NMTokenIdentifier
from yarn.ids import ContainerId
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    SignalContainerRequest,
    StartContainerRequest,
    StartContainersResponse,
    StopContainersResponse,
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
SIGNAL_TO_CONTAINER: Rpc[SignalContainerRequest, None] = Rpc(
    SERVICE,
    "signalToContainer",
    "signal_to_container",
    Form(pb.SignalContainerRequestProto, write_signal, read_signal),
    empty(pb.SignalContainerResponseProto),
)

RPCS: tuple[Rpc[Any, Any], ...] = (START_CONTAINERS, STOP_CONTAINERS, GET_CONTAINER_STATUSES, SIGNAL_TO_CONTAINER)
