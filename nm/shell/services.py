"""ContainerManagementProtocol as served: signatures are checked here, with the RM's keys; the core does the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nm.core.events import (
    Event,
    GetContainerStatuses,
    SignalToContainer,
    StartContainers,
    StopContainers,
    UpdateContainers,
    VerifiedStart,
)
from wire.caller import Caller
from wire.core_shell import Asks
from wire.protocols.container_management import ContainerManagementProtocol
from wire.rpc import handles
from wire.tokens import ContainerTokenSecretManager, NMTokenSecretManager
from yarn.containers import NMTokenIdentifier, Token
from yarn.errors import InvalidToken, YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    SignalContainerRequest,
    StartContainerRequest,
    StartContainersResponse,
    StopContainersResponse,
    UpdateContainersResponse,
)
from yarn.protocols.tracker import MasterKey

if TYPE_CHECKING:
    # Only a NodeManager that recovers has the store in its memory.
    from nm.shell.recovery_writer import RecoveryWriter


class ContainerManagementService:
    """The calls of AMs (Hadoop's ContainerManagerImpl).

    The server needs it before the node has its id, which contains the port; it refuses all callers until `open`.
    """

    def __init__(self, container_tokens: ContainerTokenSecretManager, nm_tokens: NMTokenSecretManager) -> None:
        self.container_tokens = container_tokens
        self._nm_tokens = nm_tokens
        self._attempts: dict[ApplicationId, set[ApplicationAttemptId]] = {}
        self._node_id = NodeId("", 0)
        self._shell: Asks[Event] | None = None
        self._recovery: RecoveryWriter | None = None

    def open(self, node_id: NodeId, shell: Asks[Event], recovery: RecoveryWriter | None = None) -> None:
        """Accept AMs that have an NM token for `node_id`. `recovery` stores the keys of their tokens."""
        self._node_id, self._shell, self._recovery = node_id, shell, recovery

    def recover_keys(self, keys: Mapping[ApplicationAttemptId, MasterKey]) -> None:
        """Accept the tokens with which attempts have started containers on an earlier NM."""
        for attempt_id, key in keys.items():
            self._nm_tokens.recover(attempt_id, key)
            self._attempts.setdefault(attempt_id.application_id, set()).add(attempt_id)

    def close(self) -> None:
        """Refuse all callers from now on: the node has ended."""
        self._shell = None

    @property
    def shell(self) -> Asks[Event]:
        assert self._shell is not None, "callers are refused before `open`"
        return self._shell

    def authenticate(self, caller: Caller[None]) -> NMTokenIdentifier:
        """The attempt whose AM calls. Raises InvalidToken."""
        if self._shell is None:
            raise InvalidToken("the NodeManager has not registered yet, or has ended")
        return self._nm_tokens.check_for(caller.token, self._node_id)

    def token_of(self, identifier: bytes) -> Token:
        """The NM token with this identifier. Raises InvalidToken if none with it is accepted."""
        return self._nm_tokens.token_of(identifier)

    def forget_keys(self, application_id: ApplicationId) -> None:
        """Drop the keys remembered for an application's attempts: it has ended on this node."""
        for attempt_id in self._attempts.pop(application_id, ()):
            self._nm_tokens.forget(attempt_id)
        if self._recovery is not None:
            self._recovery.remove_attempt_keys(application_id)

    @handles(ContainerManagementProtocol.start_containers)
    async def start_containers(
        self, caller: Caller[NMTokenIdentifier], request: tuple[StartContainerRequest, ...]
    ) -> StartContainersResponse:
        if self._recovery is not None and self._recovery.problem is not None:
            raise YarnException(f"no container can be started now: {self._recovery.problem.message}")
        starts: list[VerifiedStart] = []
        forged: InvalidToken | None = None
        for start in request:
            try:
                token = self.container_tokens.check_for(start.token, self._node_id)
            except InvalidToken as error:
                forged = error
                break
            starts.append(VerifiedStart(start.launch_context, token))
        self._remember_key(caller.verified)
        response: StartContainersResponse = await self.shell.ask(
            lambda call: StartContainers(call, caller.verified, tuple(starts), forged)
        )
        return response

    @handles(ContainerManagementProtocol.stop_containers)
    async def stop_containers(
        self, caller: Caller[NMTokenIdentifier], request: tuple[ContainerId, ...]
    ) -> StopContainersResponse:
        response: StopContainersResponse = await self.shell.ask(
            lambda call: StopContainers(call, caller.verified, request)
        )
        return response

    @handles(ContainerManagementProtocol.get_container_statuses)
    async def get_container_statuses(
        self, caller: Caller[NMTokenIdentifier], request: tuple[ContainerId, ...]
    ) -> GetContainerStatusesResponse:
        response: GetContainerStatusesResponse = await self.shell.ask(
            lambda call: GetContainerStatuses(call, caller.verified, request)
        )
        return response

    @handles(ContainerManagementProtocol.update_container)
    async def update_container(
        self, caller: Caller[NMTokenIdentifier], request: tuple[Token, ...]
    ) -> UpdateContainersResponse:
        """Update containers; one token with a wrong signature refuses the whole call, and nothing is updated."""
        tokens = tuple(self.container_tokens.check_for(token, self._node_id) for token in request)
        self._remember_key(caller.verified)
        response: UpdateContainersResponse = await self.shell.ask(
            lambda call: UpdateContainers(call, caller.verified, tokens)
        )
        return response

    @handles(ContainerManagementProtocol.signal_to_container)
    async def signal_to_container(self, caller: Caller[NMTokenIdentifier], request: SignalContainerRequest) -> None:
        await self.shell.ask(lambda call: SignalToContainer(call, caller.verified, request))

    def _remember_key(self, identifier: NMTokenIdentifier) -> None:
        """Keep the key of an attempt's NM token: its later calls may use it even after the RM has rolled its keys."""
        key = self._nm_tokens.remember(identifier)
        if key is not None and self._recovery is not None:
            self._recovery.write_attempt_key(identifier.attempt_id, key)
        self._attempts.setdefault(identifier.attempt_id.application_id, set()).add(identifier.attempt_id)
