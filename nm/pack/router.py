"""Finds the node of a pack that a call is for.

A node's name is its address, because AMs, which know nothing of packs, dial it. But it is the NM token of a call that
identifies the node, not the address where the call arrived.
"""

from __future__ import annotations

from collections.abc import Mapping

from nm.shell.services import ContainerManagementService
from wire.caller import Caller
from wire.protocols.container_management import ContainerManagementProtocol
from wire.rpc import handles
from wire.tokens import NMTokenSecretManager
from yarn.containers import NMTokenIdentifier, Token
from yarn.errors import InvalidToken
from yarn.ids import ContainerId
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    SignalContainerRequest,
    StartContainerRequest,
    StartContainersResponse,
    StopContainersResponse,
    UpdateContainersResponse,
)


class NodesByToken:
    """Hands each call to the node that its NM token is for; `services` {host: service of the node there}."""

    def __init__(self, tokens: NMTokenSecretManager, services: Mapping[str, ContainerManagementService]) -> None:
        self._tokens = tokens
        self._services = services

    def authenticate(self, caller: Caller[None]) -> NMTokenIdentifier:
        """The attempt whose AM calls. Raises InvalidToken, also if its token is for a node that is not here."""
        node_id = self._tokens.node_of(caller.token)
        service = None if node_id is None else self._services.get(node_id.host)
        if service is not None:
            return service.authenticate(caller)
        identifier = self._tokens.check(caller.token)
        raise InvalidToken(
            f"Given NMToken for application : {identifier.attempt_id} is not valid for any node of this process"
        )

    def token_of(self, identifier: bytes) -> Token:
        """The NM token with this identifier, from the keys of its node. Raises InvalidToken."""
        node_id = self._tokens.node_of(Token(identifier, b"", self._tokens.kind, ""))
        service = None if node_id is None else self._services.get(node_id.host)
        return self._tokens.token_of(identifier) if service is None else service.token_of(identifier)

    @handles(ContainerManagementProtocol.start_containers)
    async def start_containers(
        self, caller: Caller[NMTokenIdentifier], request: tuple[StartContainerRequest, ...]
    ) -> StartContainersResponse:
        return await self._service_for(caller).start_containers(caller, request)

    @handles(ContainerManagementProtocol.stop_containers)
    async def stop_containers(
        self, caller: Caller[NMTokenIdentifier], request: tuple[ContainerId, ...]
    ) -> StopContainersResponse:
        return await self._service_for(caller).stop_containers(caller, request)

    @handles(ContainerManagementProtocol.get_container_statuses)
    async def get_container_statuses(
        self, caller: Caller[NMTokenIdentifier], request: tuple[ContainerId, ...]
    ) -> GetContainerStatusesResponse:
        return await self._service_for(caller).get_container_statuses(caller, request)

    @handles(ContainerManagementProtocol.update_container)
    async def update_container(
        self, caller: Caller[NMTokenIdentifier], request: tuple[Token, ...]
    ) -> UpdateContainersResponse:
        return await self._service_for(caller).update_container(caller, request)

    @handles(ContainerManagementProtocol.signal_to_container)
    async def signal_to_container(self, caller: Caller[NMTokenIdentifier], request: SignalContainerRequest) -> None:
        await self._service_for(caller).signal_to_container(caller, request)

    def _service_for(self, caller: Caller[NMTokenIdentifier]) -> ContainerManagementService:
        return self._services[caller.verified.node_id.host]
