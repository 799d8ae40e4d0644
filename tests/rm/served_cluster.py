"""A ResourceManager served over real gRPC in the test's own loop, and nodes and AMs that are driven by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rm.daemon import ResourceManager
from tests.wire.serving import socket_dir
from wire.address import Address
from wire.caller import Caller
from wire.cluster_secret import read_cluster_secret, write_cluster_secret
from wire.files.credentials import Credentials
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.inspection import InspectionProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.protocols.tracker import ResourceTracker
from wire.server import RpcServer
from wire.tokens import (
    ClientTokenSecretManager,
    ContainerTokenSecretManager,
    KeyRing,
    NMTokenSecretManager,
    NodeTokenSecretManager,
)
from yarn.applications import ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.containers import (
    AMRM_KIND,
    ContainerLaunchContext,
    ContainerStatus,
    ContainerTokenIdentifier,
    NMTokenIdentifier,
    Token,
)
from yarn.errors import YarnException
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    SignalContainerRequest,
    StartContainerRequest,
    StartContainersResponse,
    StopContainersResponse,
    UpdateContainersResponse,
)
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse, RegisterNodeManagerRequest
from yarn.resource import Resource
from yarn.states import ApplicationAccessType, ContainerState

SOON_S = 120.0
ADDRESSES = ("address", "scheduler.address", "resource-tracker.address", "admin.address")
CLIENT, SCHEDULER, TRACKER, ADMIN = (f"yarn.resourcemanager.{name}" for name in ADDRESSES)


def configuration(directory: Path, **overrides: str) -> Configuration:
    """A queue, free ports, a secret; `overrides` with `__` for dots and `_` for dashes."""
    secret = directory / "secret"
    if not secret.exists():
        write_cluster_secret(secret)
    values = {
        **{f"yarn.resourcemanager.{name}": "127.0.0.1:0" for name in ADDRESSES},
        "yarn.yarnling.cluster-secret-file": str(secret),
        "yarn.scheduler.capacity.root.queues": "default",
        "yarn.scheduler.capacity.root.default.capacity": "100",
        "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
    }
    values.update({key.replace("__", ".").replace("_", "-"): value for key, value in overrides.items()})
    return Configuration.of(values)


class Cluster:
    """The ways to an RM that is served at `addresses` {key: host:port}; `rm` itself, if it is in this process."""

    rm: ResourceManager

    def __init__(self, addresses: dict[str, str], conf: Configuration, stack: AsyncExitStack) -> None:
        self.addresses = addresses
        self.secret = read_cluster_secret(conf)
        self.node_tokens = NodeTokenSecretManager(self.secret)
        self.client_token = ClientTokenSecretManager(self.secret).create()
        self._stack = stack

    async def client(self, user: str = "ann") -> ApplicationClientProtocol:
        proxy = ApplicationClientProtocol(self.addresses[CLIENT], user=user, token=self.client_token)
        return await self._stack.enter_async_context(proxy)

    async def inspection(self) -> InspectionProtocol:
        proxy = InspectionProtocol(self.addresses[CLIENT], user="ann", token=self.client_token)
        return await self._stack.enter_async_context(proxy)

    async def admin(self, user: str = "") -> ResourceManagerAdministrationProtocol:
        proxy = ResourceManagerAdministrationProtocol(self.addresses[ADMIN], user=user, token=self.client_token)
        return await self._stack.enter_async_context(proxy)

    async def am(self, token: Token | None) -> ApplicationMasterProtocol:
        proxy = ApplicationMasterProtocol(self.addresses[SCHEDULER], token=token)
        return await self._stack.enter_async_context(proxy)

    async def node(self, host: str = "127.0.0.2", memory_mb: int = 8192) -> Node:
        """A registered node that only reports its containers as started."""
        node = Node(host, self)
        self._stack.push_async_callback(node.close)
        await node.open(memory_mb)
        return node

    async def tracker(self, token: Token | None) -> ResourceTracker:
        proxy = ResourceTracker(self.addresses[TRACKER], token=token)
        return await self._stack.enter_async_context(proxy)


@asynccontextmanager
async def serving(conf: Configuration, **options: object) -> AsyncIterator[Cluster]:
    rm = ResourceManager(conf, **options)  # type: ignore[arg-type]
    async with rm.running(), AsyncExitStack() as stack:
        cluster = Cluster(rm.addresses, conf, stack)
        cluster.rm = rm
        yield cluster


@dataclass
class Started:
    """The containers that a node was asked to start."""

    identifier: ContainerTokenIdentifier
    context: ContainerLaunchContext
    caller: NMTokenIdentifier


@dataclass
class Node:
    """An NM by hand: `started` is what it was asked to run; `refusal` answers starts with an error."""

    host: str
    cluster: Cluster
    started: list[Started] = field(default_factory=list)
    stopped: list[ContainerId] = field(default_factory=list)
    refusal: YarnException | None = None
    response_id: int = 0
    nm_tokens: NMTokenSecretManager = field(default_factory=lambda: NMTokenSecretManager(KeyRing()))
    container_tokens: ContainerTokenSecretManager = field(
        default_factory=lambda: ContainerTokenSecretManager(KeyRing())
    )

    async def open(self, memory_mb: int) -> None:
        await self.listen()
        self.proxy = await self.cluster.tracker(self.cluster.node_tokens.create(self.node_id))
        request = RegisterNodeManagerRequest(self.node_id, 8042, Resource(memory_mb, 8))
        self.registration = await self.proxy.register_node_manager(request)
        assert self.registration.nm_token_key is not None
        assert self.registration.container_token_key is not None
        self.nm_tokens.keys.accept(self.registration.nm_token_key)
        self.container_tokens.keys.accept(self.registration.container_token_key)

    async def listen(self) -> None:
        """Serve the container protocol; the node is not registered by this."""
        self._server = RpcServer(Address(self.host, 0), socket_dir())
        self._server.add(
            ContainerManagementProtocol.rpcs, self, lambda caller: self.nm_tokens.check_for(caller.token, self.node_id)
        )
        self.node_id = NodeId(self.host, await self._server.start())

    async def close(self) -> None:
        await self._server.stop(0)

    async def beat(self, *containers: ContainerStatus) -> NodeHeartbeatResponse:
        keys = self.container_tokens.keys.current, self.nm_tokens.keys.current
        container_key, nm_key = (key.key_id if key is not None else 0 for key in keys)
        request = NodeHeartbeatRequest(
            self.node_id,
            self.response_id,
            containers,
            container_token_key_id=container_key,
            nm_token_key_id=nm_key,
        )
        reply = await self.proxy.node_heartbeat(request)
        self.response_id = reply.response_id
        return reply

    def running(self, container_id: ContainerId) -> ContainerStatus:
        return ContainerStatus(container_id, ContainerState.RUNNING)

    def amrm_token(self, number: int = -1) -> Token:
        """The token in the credentials of an AM that was started here."""
        token = Credentials.from_bytes(self.started[number].context.tokens).token_of_kind(AMRM_KIND)
        assert token is not None
        return token

    async def start_containers(
        self, caller: Caller[NMTokenIdentifier], request: tuple[StartContainerRequest, ...]
    ) -> StartContainersResponse:
        succeeded, failed = [], {}
        for one in request:
            identifier = self.container_tokens.check_for(one.token, self.node_id)
            self.started.append(Started(identifier, one.launch_context, caller.verified))
            if self.refusal is not None:
                failed[identifier.container_id] = self.refusal
            else:
                succeeded.append(identifier.container_id)
        return StartContainersResponse(tuple(succeeded), failed)

    async def stop_containers(
        self, caller: Caller[NMTokenIdentifier], request: tuple[ContainerId, ...]
    ) -> StopContainersResponse:
        self.stopped += request
        return StopContainersResponse(request)

    async def get_container_statuses(
        self, caller: Caller[NMTokenIdentifier], request: tuple[ContainerId, ...]
    ) -> GetContainerStatusesResponse:
        return GetContainerStatusesResponse()

    async def update_container(
        self, caller: Caller[NMTokenIdentifier], request: tuple[Token, ...]
    ) -> UpdateContainersResponse:
        return UpdateContainersResponse()

    async def signal_to_container(self, caller: Caller[NMTokenIdentifier], request: SignalContainerRequest) -> None:
        return None


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that other tasks establish; it is polled, as there is no event for it."""
    async with asyncio.timeout(SOON_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def submit(
    client: ApplicationClientProtocol,
    *,
    environment: dict[str, str] | None = None,
    tokens: bytes = b"",
    acls: dict[ApplicationAccessType, str] | None = None,
) -> ApplicationId:
    """Submit an application whose AM is one container of 1024 MB."""
    new = await client.get_new_application()
    context = ApplicationSubmissionContext(
        new.application_id,
        ContainerLaunchContext(("sleep 1",), environment or {}, tokens=tokens, application_acls=acls or {}),
        Resource(1024, 1),
    )
    await client.submit_application(context)
    return new.application_id
