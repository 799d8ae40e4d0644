"""The server that masters call: one for all nodes of a process, which has an address for each of them.

A node's name is its address, as masters that know nothing of packs dial it. What tells the nodes of a pack apart is
not where a call came in but whom its NM token is for.
"""

from __future__ import annotations

import resource

from nm.shell.resources import Ground
from nm.shell.services import ContainerManagementService
from wire.caller import Caller
from wire.protocols.container_management import ContainerManagementProtocol
from wire.server import ConnectionLimits, RpcServer
from wire.tokens import ContainerTokenSecretManager, KeyRing, NMTokenSecretManager
from wire.watching import CallWatch
from yarn.containers import NMTokenIdentifier, Token
from yarn.errors import InvalidToken, YarnException
from yarn.ids import ContainerId, NodeId
from yarn.machine import StateChanged
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    SignalContainerRequest,
    StartContainerRequest,
    StartContainersResponse,
    StopContainersResponse,
    UpdateContainersResponse,
)
from yarn.settings.yarnling import LISTEN_BEYOND_LOOPBACK, PACK

_FURTHER_DESCRIPTORS = 256
"""What a process has open besides a listener a node: channels, files, pipes of the first containers."""
CONNECTIONS_MAX = 512
"""Connections to a node: from the RM, and from each ApplicationMaster that has containers there. The usual limit of
1,024 open files leaves the rest to containers' pipes and logs; it is not raised, since containers inherit it."""


class Door:
    """The server, and the keys that the tokens of its callers are checked under: the RM's, the same for every node."""

    def __init__(self, ground: Ground) -> None:
        self.conf = conf = ground.conf
        self.container_keys, self.nm_keys = KeyRing(), KeyRing()
        self.services = [
            ContainerManagementService(
                ContainerTokenSecretManager(self.container_keys), NMTokenSecretManager(self.nm_keys)
            )
            for _ in ground.hosts
        ]
        self._hosts = ground.hosts
        self._watch = CallWatch.read(conf)
        self._server = RpcServer(
            ground.listening,
            further_hosts=ground.hosts[1:],
            observers=() if self._watch is None else (self._watch,),
            beyond_loopback=LISTEN_BEYOND_LOOPBACK.of(conf),
            limits=ConnectionLimits(CONNECTIONS_MAX),
        )
        self._router = NodesByToken(NMTokenSecretManager(self.nm_keys))
        handler = self._router if ground.is_pack else self.services[0]
        self._server.add(ContainerManagementProtocol.rpcs, handler, handler.authenticate)

    async def listen(self) -> list[NodeId]:
        """Take the port; it is part of the nodes' names."""
        if len(self._hosts) > 1:
            _allow_descriptors(len(self._hosts) + _FURTHER_DESCRIPTORS)
        port = await self._server.start()
        node_ids = [NodeId(host, port) for host in self._hosts]
        for node_id, service in zip(node_ids, self.services, strict=True):
            self._router.services[node_id] = service
        if self._watch is not None:
            await self._watch.open(str(node_ids[0]))
        return node_ids

    def send_change(self, node_id: NodeId, change: StateChanged) -> None:
        """Show watchers that a container or application of the node is in another state."""
        if self._watch is not None:
            self._watch.changed(
                str(node_id),
                change.kind,
                change.subject,
                event=change.event,
                source=change.source,
                target=change.target,
            )

    async def close(self) -> None:
        if self._watch is not None:
            await self._watch.close()
        await self._server.stop()


class NodesByToken:
    """Hands each call to the node that its NM token is for; `services` {node: what answers for it}."""

    def __init__(self, tokens: NMTokenSecretManager) -> None:
        self.services: dict[NodeId, ContainerManagementService] = {}
        self._tokens = tokens

    def authenticate(self, caller: Caller[None]) -> NMTokenIdentifier:
        """The attempt whose master calls. Raises InvalidToken, also if its token is for a node that is not here."""
        node_id = self._tokens.node_of(caller.token)
        service = None if node_id is None else self.services.get(node_id)
        if service is not None:
            return service.authenticate(caller)
        identifier = self._tokens.check(caller.token)
        raise InvalidToken(
            f"Given NMToken for application : {identifier.attempt_id} is not valid for any node of this process"
        )

    async def start_containers(
        self, caller: Caller[NMTokenIdentifier], request: tuple[StartContainerRequest, ...]
    ) -> StartContainersResponse:
        return await self.services[caller.verified.node_id].start_containers(caller, request)

    async def stop_containers(
        self, caller: Caller[NMTokenIdentifier], request: tuple[ContainerId, ...]
    ) -> StopContainersResponse:
        return await self.services[caller.verified.node_id].stop_containers(caller, request)

    async def get_container_statuses(
        self, caller: Caller[NMTokenIdentifier], request: tuple[ContainerId, ...]
    ) -> GetContainerStatusesResponse:
        return await self.services[caller.verified.node_id].get_container_statuses(caller, request)

    async def update_container(
        self, caller: Caller[NMTokenIdentifier], request: tuple[Token, ...]
    ) -> UpdateContainersResponse:
        return await self.services[caller.verified.node_id].update_container(caller, request)

    async def signal_to_container(self, caller: Caller[NMTokenIdentifier], request: SignalContainerRequest) -> None:
        await self.services[caller.verified.node_id].signal_to_container(caller, request)


def _allow_descriptors(needed: int) -> None:
    """Raise the process's limit if it must be. Raises YarnException if it may not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise YarnException(
            f"{PACK.key}: the process needs {needed} file descriptors, one a node among them, and may have {hard} "
            f"(use a smaller pack, or raise `ulimit -Hn`)"
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
