"""A process that hosts a pack of nodes: what differs from a process with one node (nm.shell.node_host.OneNode).

All nodes of a pack share one server. AMs do not know about packs: they call a node at the address in its node id. The
server finds the node that a call is for by the call's NM token, not by the address where the call arrived.
"""

from __future__ import annotations

import asyncio
import ipaddress
import random
from collections.abc import Mapping
from functools import partial

from nm.launcher.directories import NodeDirectories
from nm.pack.tracker import PackTracker
from nm.shell.host_environment import HostEnvironment
from nm.shell.node_host import DESCRIPTORS_OF_NODE, NodeHost, NodeWebServices
from nm.shell.resource_tracker import TrackerAccess
from nm.shell.server import ContainerManagerServer
from nm.shell.services import ContainerManagementService
from wire.address import Address
from wire.caller import Caller
from wire.channel import Channels
from wire.connection_limits import DESCRIPTORS_KEPT, allow_descriptors
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.pack import PackTokenSecretManager, PackTrackerProtocol
from wire.rpc import handles
from wire.tokens import NMTokenSecretManager
from yarn.configuration import Configuration
from yarn.containers import NMTokenIdentifier, Token
from yarn.errors import InvalidToken, YarnException
from yarn.ids import ContainerId
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    SignalContainerRequest,
    StartContainerRequest,
    StartContainersResponse,
    StopContainersResponse,
    UpdateContainersResponse,
)
from yarn.protocols.pack import Pack
from yarn.settings import nodemanager
from yarn.settings.yarnling import PACK


class NodePack:
    """A process with many nodes: they share one server and one connection to the RM.

    Each has a directory named after its host. They have no web services, which would need one more socket each.
    """

    web: NodeWebServices | None = None

    def __init__(self, conf: Configuration) -> None:
        """Raises YarnException if there are too few loopback addresses, or the limit of open files is too low."""
        self.environment = pack_environment(conf)
        self.server = ContainerManagerServer(self.environment)
        services = dict(zip(self.environment.hosts, self.server.services, strict=True))
        router = NodesByToken(NMTokenSecretManager(self.server.nm_keys), services)
        self.server.serve(router, router.authenticate, router.token_of)
        listeners = 1 + len(nodemanager.AUX_SERVICES.of(conf))
        allow_descriptors(
            len(services) * listeners + DESCRIPTORS_KEPT,
            f"a process with {len(services)} nodes",
            f"; or make {PACK.key} smaller",
            wanted=len(services) * DESCRIPTORS_OF_NODE + DESCRIPTORS_KEPT,
        )

    def connect(self, host: NodeHost, rm: TrackerAccess, channels: Channels, tasks: asyncio.TaskGroup) -> PackTracker:
        """Connect all nodes to the RM; each call carries the requests of many nodes."""
        first = host.nodes[0]
        token = PackTokenSecretManager(rm.cluster_secret).create(Pack(first.node_id, len(host.nodes)))
        emulates = first.settings.emulation is not None
        tracker = PackTracker(
            PackTrackerProtocol(rm.target, token=token, retry=rm.retry, channels=channels, timeout_s=rm.timeout_s),
            rm.retry,
            container_keys=self.server.container_keys,
            nm_keys=self.server.nm_keys,
            interval_ms=first.settings.heartbeat_interval_ms,
            tasks=tasks,
            utilization=lambda: None if emulates else host.monitors.machine,
            keys_changed=partial(host.store_keys, self.server),
        )
        for node in host.nodes:
            tracker.add(node.node_id, node.service.container_tokens, node.take_answer)
        return tracker


def pack_environment(conf: Configuration) -> HostEnvironment:
    """The environment of a pack.

    The nodes of the pack have consecutive loopback addresses, starting with the configured one. Raises YarnException if
    there are not enough addresses, or if the nodes are configured to listen elsewhere.
    """
    bind_host = nodemanager.BIND_HOST.maybe_of(conf)
    if bind_host:
        raise YarnException(
            f"{nodemanager.BIND_HOST.key} = {bind_host}: each node of a pack listens on its own address "
            f"(unset it, or {PACK.key})"
        )
    address = Address.read(conf, nodemanager.ADDRESS)
    local_dirs, log_dirs = nodemanager.LOCAL_DIRS.of(conf), nodemanager.LOG_DIRS.of(conf)
    directories = {
        host: NodeDirectories(
            [f"{directory}/{host}" for directory in local_dirs],
            [f"{directory}/{host}" for directory in log_dirs],
            random.Random(),
        )
        for host in _hosts(address, PACK.of(conf))
    }
    return HostEnvironment(conf, directories, address)


def _hosts(address: Address, count: int) -> list[str]:
    try:
        first = ipaddress.IPv4Address(address.host)
    except ValueError:
        first = ipaddress.IPv4Address(0)
    if not first.is_loopback or not (first + (count - 1)).is_loopback:
        raise YarnException(
            f"{PACK.key} = {count}: the pack needs {count} consecutive loopback addresses from {address.said} on, one "
            f"for each node (set {nodemanager.HOSTNAME.key} to 127.0.0.2, for example)"
        )
    return [str(first + number) for number in range(count)]


class NodesByToken:
    """Passes each call to the node for which its NM token was issued.

    `services` is {host: service of the node there}.
    """

    def __init__(self, tokens: NMTokenSecretManager, services: Mapping[str, ContainerManagementService]) -> None:
        self._tokens = tokens
        self._services = services

    def authenticate(self, caller: Caller[None]) -> NMTokenIdentifier:
        """The identity of the calling AM. Raises InvalidToken, also if the token is for a node of another process."""
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
