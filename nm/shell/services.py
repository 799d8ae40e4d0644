"""ContainerManagementProtocol at the door: seals are checked here, by who has the keys; the rest is the core's."""

from __future__ import annotations

from nm.core.events import (
    GetContainerStatuses,
    SignalToContainer,
    StartContainers,
    StartRequest,
    StopContainers,
    UpdateContainers,
)
from nm.shell.effects import NodeShell
from wire.caller import Caller
from wire.tokens import ContainerTokenSecretManager, NMTokenSecretManager
from yarn.containers import NMTokenIdentifier, Token
from yarn.errors import InvalidToken
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    SignalContainerRequest,
    StartContainerRequest,
    StartContainersResponse,
    StopContainersResponse,
    UpdateContainersResponse,
)


class ContainerManagementService:
    """What masters call (Hadoop's ContainerManagerImpl).

    It is served before the node has its name, which holds the port; until `open` nobody is let in.
    """

    def __init__(self, container_tokens: ContainerTokenSecretManager, nm_tokens: NMTokenSecretManager) -> None:
        self.container_tokens = container_tokens
        self._nm_tokens = nm_tokens
        self._attempts: dict[ApplicationId, set[ApplicationAttemptId]] = {}
        self._node_id = NodeId("", 0)
        self._shell: NodeShell | None = None

    def open(self, node_id: NodeId, shell: NodeShell) -> None:
        """Let masters in that have a token for `node_id`."""
        self._node_id, self._shell = node_id, shell

    def close(self) -> None:
        """Let nobody in any more: the node is over."""
        self._shell = None

    @property
    def shell(self) -> NodeShell:
        assert self._shell is not None, "nobody is let in before `open`"
        return self._shell

    def authenticate(self, caller: Caller[None]) -> NMTokenIdentifier:
        """The attempt whose master calls. Raises InvalidToken."""
        if self._shell is None:
            raise InvalidToken("the NodeManager has not registered yet, or is over")
        return self._nm_tokens.check_for(caller.token, self._node_id)

    def forget(self, application_id: ApplicationId) -> None:
        """The application is over here: its attempts' keys are good for nothing more."""
        for attempt_id in self._attempts.pop(application_id, ()):
            self._nm_tokens.forget(attempt_id)

    async def start_containers(
        self, caller: Caller[NMTokenIdentifier], request: tuple[StartContainerRequest, ...]
    ) -> StartContainersResponse:
        starts: list[StartRequest] = []
        forged: InvalidToken | None = None
        for start in request:
            try:
                token = self.container_tokens.check_for(start.token, self._node_id)
            except InvalidToken as error:
                forged = error
                break
            starts.append(StartRequest(start.launch_context, token))
        self._remember(caller.verified)
        response: StartContainersResponse = await self.shell.ask(
            lambda call: StartContainers(call, caller.verified, tuple(starts), forged)
        )
        return response

    async def stop_containers(
        self, caller: Caller[NMTokenIdentifier], request: tuple[ContainerId, ...]
    ) -> StopContainersResponse:
        response: StopContainersResponse = await self.shell.ask(
            lambda call: StopContainers(call, caller.verified, request)
        )
        return response

    async def get_container_statuses(
        self, caller: Caller[NMTokenIdentifier], request: tuple[ContainerId, ...]
    ) -> GetContainerStatusesResponse:
        response: GetContainerStatusesResponse = await self.shell.ask(
            lambda call: GetContainerStatuses(call, caller.verified, request)
        )
        return response

    async def update_container(
        self, caller: Caller[NMTokenIdentifier], request: tuple[Token, ...]
    ) -> UpdateContainersResponse:
        """A token whose seal is not good refuses the whole call, and nothing of it is done."""
        tokens = tuple(self.container_tokens.check_for(token, self._node_id) for token in request)
        self._remember(caller.verified)
        response: UpdateContainersResponse = await self.shell.ask(
            lambda call: UpdateContainers(call, caller.verified, tokens)
        )
        return response

    async def signal_to_container(self, caller: Caller[NMTokenIdentifier], request: SignalContainerRequest) -> None:
        await self.shell.ask(lambda call: SignalToContainer(call, caller.verified, request))

    def _remember(self, identifier: NMTokenIdentifier) -> None:
        """An attempt that starts containers goes on with the key it came with, however often keys change."""
        self._nm_tokens.remember(identifier)
        self._attempts.setdefault(identifier.attempt_id.application_id, set()).add(identifier.attempt_id)
