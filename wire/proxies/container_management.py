"""ContainerManagementProtocol, as a master calls an NM."""

from __future__ import annotations

from wire.protocols import container_management
from wire.proxy import Proxy
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


class ContainerManagementProxy(Proxy):
    """A master's way to an NM; it shows its NM token for that node."""

    async def start_containers(self, requests: tuple[StartContainerRequest, ...]) -> StartContainersResponse:
        return await self.call(container_management.START_CONTAINERS, requests)

    async def stop_containers(self, container_ids: tuple[ContainerId, ...]) -> StopContainersResponse:
        return await self.call(container_management.STOP_CONTAINERS, container_ids)

    async def get_container_statuses(self, container_ids: tuple[ContainerId, ...]) -> GetContainerStatusesResponse:
        return await self.call(container_management.GET_CONTAINER_STATUSES, container_ids)

    async def update_container(self, tokens: tuple[Token, ...]) -> UpdateContainersResponse:
        """After CallOutcomeUnknown ask for the statuses: a promise that was taken is refused the second time."""
        return await self.call(container_management.UPDATE_CONTAINER, tokens)

    async def signal_to_container(self, request: SignalContainerRequest) -> None:
        await self.call(container_management.SIGNAL_TO_CONTAINER, request)
