"""A fake RM and fake NMs for the tests of am's clients: real servers on loopback with prepared answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from msgspec.structs import replace

from tests.am.builders import GB, ended
from tests.wire.serving import socket_dir
from wire.address import Address
from wire.caller import Caller
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.server import RpcServer
from yarn.containers import Token
from yarn.errors import (
    ApplicationMasterNotRegisteredException,
    CallOutcomeUnknown,
    InvalidApplicationMasterRequestException,
    YarnException,
)
from yarn.ids import ContainerId, NodeId
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    SignalContainerRequest,
    StartContainerRequest,
    StartContainersResponse,
    StopContainersResponse,
    UpdateContainersResponse,
)
from yarn.protocols.master import (
    AllocateRequest,
    AllocateResponse,
    FinishApplicationMasterRequest,
    FinishApplicationMasterResponse,
    RegisterApplicationMasterRequest,
    RegisterApplicationMasterResponse,
)
from yarn.resource import Resource

Reply = AllocateResponse | YarnException


@dataclass
class FakeResourceManager:
    """The RM's service for AMs, with Hadoop's rules for response ids. Each heartbeat gets the next of `replies`.

    The service sets the response ids of the replies. An exception among `replies` is raised. After the last of them,
    replies are empty.
    """

    replies: list[Reply] = field(default_factory=list)
    finishes_needed: int = 1
    heard: list[AllocateRequest] = field(default_factory=list)
    tokens: list[Token | None] = field(default_factory=list)
    registered: int = 0
    registrations_lost: int = 0
    """The number of registrations that are not answered: the RM is killed before it handles them, or after
    (`loses_answers_only`)."""
    loses_answers_only: bool = False
    finished: list[FinishApplicationMasterRequest] = field(default_factory=list)
    is_registered: bool = False
    last: AllocateResponse | None = None
    before_reply: Callable[[AllocateRequest], None] = lambda request: None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def register_application_master(
        self, caller: Caller[None], request: RegisterApplicationMasterRequest
    ) -> RegisterApplicationMasterResponse:
        if self.is_registered:
            raise InvalidApplicationMasterRequestException("Application Master is already registered")
        if self.registrations_lost > 0:
            self.registrations_lost -= 1
            self.is_registered = self.loses_answers_only
            self.last = AllocateResponse(0, GB, 1)
            raise CallOutcomeUnknown("the connection was lost")
        self.is_registered = True
        self.registered += 1
        self.last = AllocateResponse(0, GB, 1)
        return RegisterApplicationMasterResponse(GB, "root.default")

    async def allocate(self, caller: Caller[None], request: AllocateRequest) -> AllocateResponse:
        self.tokens.append(caller.token)
        if not self.is_registered or self.last is None:
            raise ApplicationMasterNotRegisteredException("not registered")
        if request.response_id == self.last.response_id - 1:
            return self.last
        assert request.response_id == self.last.response_id
        self.before_reply(request)
        reply = self.replies.pop(0) if self.replies else AllocateResponse(0, GB, 1)
        if isinstance(reply, YarnException):
            raise reply
        self.heard.append(request)
        self.changed.set()
        self.last = with_response_id(reply, request.response_id + 1)
        return self.last

    async def finish_application_master(
        self, caller: Caller[None], request: FinishApplicationMasterRequest
    ) -> FinishApplicationMasterResponse:
        if not self.is_registered:
            raise ApplicationMasterNotRegisteredException("not registered")
        self.finished.append(request)
        return FinishApplicationMasterResponse(len(self.finished) >= self.finishes_needed)

    def forget(self) -> None:
        """Forget the AM, as an RM does that restarts."""
        self.is_registered = False


def with_response_id(reply: AllocateResponse, response_id: int) -> AllocateResponse:

    return replace(reply, response_id=response_id)


@dataclass
class FakeNodeManager:
    """An NM's service: it starts containers, but while there are `refusals`, each call gets the next of these."""

    refusals: list[YarnException] = field(default_factory=list)
    started: list[ContainerId] = field(default_factory=list)
    stopped: list[ContainerId] = field(default_factory=list)
    signalled: list[SignalContainerRequest] = field(default_factory=list)
    tokens: list[Token | None] = field(default_factory=list)
    sizes: dict[ContainerId, Resource] = field(default_factory=dict)
    has_gone: bool = False
    """True if the NM was replaced by another process, which has none of its containers."""

    async def start_containers(
        self, caller: Caller[None], requests: tuple[StartContainerRequest, ...]
    ) -> StartContainersResponse:
        self.tokens.append(caller.token)
        container_ids = tuple(ContainerId.parse(request.token.identifier.decode()) for request in requests)
        if self.refusals:
            return StartContainersResponse(failed=dict.fromkeys(container_ids, self.refusals.pop(0)))
        self.started += container_ids
        return StartContainersResponse(succeeded=container_ids)

    async def stop_containers(
        self, caller: Caller[None], container_ids: tuple[ContainerId, ...]
    ) -> StopContainersResponse:
        if container_ids[0] not in self.started:
            return StopContainersResponse(failed={container_ids[0]: self.unknown(container_ids[0])})
        self.stopped += container_ids
        return StopContainersResponse(succeeded=container_ids)

    async def get_container_statuses(
        self, caller: Caller[None], container_ids: tuple[ContainerId, ...]
    ) -> GetContainerStatusesResponse:
        known = tuple(
            replace(ended(found.number), capability=self.sizes.get(found))
            for found in container_ids
            if self._has(found)
        )
        failed = {found: self.unknown(found) for found in container_ids if not self._has(found)}
        return GetContainerStatusesResponse(known, failed)

    async def update_container(self, caller: Caller[None], tokens: tuple[Token, ...]) -> UpdateContainersResponse:
        """Change the size of a container; the new size is the token's password."""
        container_id = ContainerId.parse(tokens[0].identifier.decode())
        if self.refusals:
            return UpdateContainersResponse(failed={container_id: self.refusals.pop(0)})
        self.sizes[container_id] = Resource(int(tokens[0].password), 1)
        return UpdateContainersResponse(succeeded=(container_id,))

    async def signal_to_container(self, caller: Caller[None], request: SignalContainerRequest) -> None:
        self.signalled.append(request)

    def _has(self, container_id: ContainerId) -> bool:
        return container_id in self.started and not self.has_gone

    @staticmethod
    def unknown(container_id: ContainerId) -> YarnException:
        return YarnException(f"Container {container_id} is not handled by this NodeManager")


@asynccontextmanager
async def served(handler: FakeResourceManager | FakeNodeManager) -> AsyncIterator[NodeId]:
    """Serve a fake handler; yields its address."""
    server = RpcServer(Address("127.0.0.1", 0), socket_dir())
    rpcs = (
        ApplicationMasterProtocol.rpcs if isinstance(handler, FakeResourceManager) else ContainerManagementProtocol.rpcs
    )
    server.add(rpcs, handler, lambda caller: None)
    port = await server.start()
    try:
        yield NodeId("127.0.0.1", port)
    finally:
        await server.stop(0)
