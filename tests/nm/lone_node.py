"""A real NodeManager with a fake ResourceManager: real calls, real processes, no scheduling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from nm.daemon import hosting
from nm.launcher.processes import all_processes, environment_of
from nm.shell.node_host import NodeHost
from nm.shell.node_manager import NodeManager
from wire.address import Address
from wire.caller import Caller
from wire.cluster_secret import read_cluster_secret, socket_dir, write_cluster_secret
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.pack import PackTokenSecretManager, PackTrackerProtocol
from wire.protocols.tracker import ResourceTracker
from wire.server import RpcServer
from wire.tokens import (
    ContainerTokenSecretManager,
    KeyRing,
    NMTokenSecretManager,
    NodeTokenSecretManager,
    new_master_key,
)
from yarn.configuration import Configuration
from yarn.containers import ContainerLaunchContext, ContainerStatus, ContainerTokenIdentifier
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.protocols.container_management import StartContainerRequest, StartContainersResponse
from yarn.protocols.pack import Pack, PackHeartbeat, PackHeartbeatReply, RegisterOutcome
from yarn.protocols.tracker import (
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RegisterNodeManagerRequest,
    RegisterNodeManagerResponse,
)
from yarn.resource import Resource
from yarn.states import ContainerState, NodeAction

RM_IDENTIFIER = 1_795_222_023_200
ATTEMPT = ApplicationAttemptId(ApplicationId(RM_IDENTIFIER, 8), 1)
WAIT_S = 120.0


class FakeResourceManager:
    """Registers the node and answers its heartbeats.

    `orders` are sent with the next answer; `ends` are the reported ends.
    """

    def __init__(self, interval_ms: int = 100) -> None:
        self.container_tokens = ContainerTokenSecretManager(KeyRing(new_master_key()))
        self.nm_tokens = NMTokenSecretManager(KeyRing(new_master_key()))
        self.registrations: list[RegisterNodeManagerRequest] = []
        self.heartbeats: list[NodeHeartbeatRequest] = []
        self.unregistered: list[NodeId] = []
        self.ends: dict[ContainerId, ContainerStatus] = {}
        self.orders: dict[str, object] = {}
        self.action = NodeAction.NORMAL
        self._interval_ms = interval_ms
        self._response_ids: dict[NodeId, int] = {}
        self._news = asyncio.Condition()

    async def register_node_manager(
        self, caller: Caller[NodeId], request: RegisterNodeManagerRequest
    ) -> RegisterNodeManagerResponse:
        assert caller.verified == request.node_id
        self.registrations.append(request)
        self._response_ids[request.node_id] = 0
        return RegisterNodeManagerResponse(
            NodeAction.NORMAL,
            RM_IDENTIFIER,
            self.container_tokens.keys.current,
            self.nm_tokens.keys.current,
        )

    async def node_heartbeat(self, caller: Caller[NodeId], request: NodeHeartbeatRequest) -> NodeHeartbeatResponse:
        assert request.response_id == self._response_ids[request.node_id]
        self.heartbeats.append(request)
        for status in request.containers:
            if status.state is ContainerState.COMPLETE:
                self.ends.setdefault(status.container_id, status)
        self._response_ids[request.node_id] += 1
        orders, self.orders = self.orders, {}
        action, self.action = self.action, NodeAction.NORMAL
        async with self._news:
            self._news.notify_all()
        return NodeHeartbeatResponse(self._response_ids[request.node_id], action, self._interval_ms, **orders)  # type: ignore[arg-type]

    async def unregister_node_manager(self, caller: Caller[NodeId], request: NodeId) -> None:
        self.unregistered.append(request)

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` holds; it is checked after each heartbeat."""
        async with asyncio.timeout(WAIT_S), self._news:
            await self._news.wait_for(condition)


class FakePackTracker:
    """The fake RM for nodes that share a process: it requests full heartbeats, and handles each as one node's."""

    def __init__(self, rm: FakeResourceManager) -> None:
        self._rm = rm

    async def register_nodes(
        self, caller: Caller[Pack], request: tuple[RegisterNodeManagerRequest, ...]
    ) -> tuple[RegisterOutcome, ...]:
        return tuple(
            [await self._rm.register_node_manager(replace(caller, verified=node.node_id), node) for node in request]
        )

    async def pack_heartbeat(self, caller: Caller[Pack], request: PackHeartbeat) -> PackHeartbeatReply:
        told = {
            number: await self._rm.node_heartbeat(replace(caller, verified=beat.node_id), beat)
            for number, beat in request.full.items()
        }
        unknown = frozenset(request.nodes) - told.keys()
        return PackHeartbeatReply((0,) * len(request.nodes), 0, told, unknown)

    async def unregister_nodes(self, caller: Caller[Pack], request: tuple[int, ...]) -> None:
        nodes = caller.verified.nodes()
        for number in request:
            await self._rm.unregister_node_manager(replace(caller, verified=nodes[number]), nodes[number])


class LoneNode:
    """The node, its fake RM, and an AM that starts containers on it.

    `is_packed`: the node's directories are named after its host.
    """

    def __init__(self, node: NodeManager, rm: FakeResourceManager, directory: Path, *, is_packed: bool) -> None:
        self.node = node
        self.rm = rm
        self.directory = directory
        part = node.node_id.host if is_packed else "."
        self.local_dir = directory / "local" / part
        self.log_dir = directory / "logs" / part
        self.attempt = ATTEMPT
        self._numbers = 0

    def container_id(self) -> ContainerId:
        self._numbers += 1
        return ContainerId(self.attempt, self._numbers)

    def request(
        self, launch: ContainerLaunchContext, container_id: ContainerId, memory_mb: int = 128, user: str = "alice"
    ) -> StartContainerRequest:
        now_ms = self.node.clock()
        identifier = ContainerTokenIdentifier(
            container_id,
            self.node.node_id,
            user,
            Resource(memory_mb, 1),
            now_ms + 600_000,
            0,
            RM_IDENTIFIER,
            0,
            now_ms,
        )
        return StartContainerRequest(launch, self.rm.container_tokens.create(identifier))

    def application_master(self) -> ContainerManagementProtocol:
        """The connection of the attempt's AM to the node."""
        token = self.rm.nm_tokens.create(self.attempt, self.node.node_id, "alice")
        return ContainerManagementProtocol(str(self.node.node_id), token=token)

    async def start(self, launch: ContainerLaunchContext, memory_mb: int = 128) -> ContainerId:
        """Start one container, which the node must accept."""
        container_id = self.container_id()
        response = await self.start_all((self.request(launch, container_id, memory_mb),))
        assert response.succeeded == (container_id,), response.failed
        return container_id

    async def start_all(self, requests: tuple[StartContainerRequest, ...]) -> StartContainersResponse:
        async with self.application_master() as am:
            return await am.start_containers(requests)

    async def status(self, container_id: ContainerId) -> ContainerStatus:
        async with self.application_master() as am:
            response = await am.get_container_statuses((container_id,))
        (status,) = response.statuses
        return status

    async def end_of(self, container_id: ContainerId) -> ContainerStatus:
        """The container's status at its end, as reported to the RM."""
        await self.rm.wait_for(lambda: container_id in self.rm.ends)
        return self.rm.ends[container_id]

    async def run(self, launch: ContainerLaunchContext, memory_mb: int = 128) -> ContainerStatus:
        return await self.end_of(await self.start(launch, memory_mb))

    async def running(self, container_id: ContainerId, log_dir: Path | None = None) -> None:
        """Wait until the container's command runs: its launch script has written its last line."""
        out = (log_dir or self.log_dir) / str(container_id.application_id) / str(container_id) / "prelaunch.out"
        async with asyncio.timeout(WAIT_S):
            while not (_exists(out) and "Launching container\n" in out.read_text()):  # noqa: ASYNC110  a file has no event
                await asyncio.sleep(0.01)

    def logs_of(self, container_id: ContainerId) -> Path:
        return self.log_dir / str(container_id.application_id) / str(container_id)

    async def finish_application(self) -> None:
        """Report the end of the application to the node, and wait until the node has dropped it."""
        self.rm.orders = {"applications_to_clean_up": (self.attempt.application_id,)}
        await self.rm.wait_for(lambda: not self.node.core.applications)


@asynccontextmanager
async def lone_node(
    directory: Path, settings: dict[str, str] | None = None, environ: dict[str, str] | None = None
) -> AsyncIterator[LoneNode]:
    """A node over `directory`/local and `directory`/logs that stops at the end of the context."""
    async with lone_nodes(directory, settings, environ) as (node,):
        yield node


@asynccontextmanager
async def lone_nodes(
    directory: Path, settings: dict[str, str] | None = None, environ: dict[str, str] | None = None
) -> AsyncIterator[list[LoneNode]]:
    """The nodes of one process; the settings may request several."""
    rm = FakeResourceManager()
    secret = directory / "secret"
    if not _exists(secret):
        write_cluster_secret(secret)
    async with _tracker(rm, secret) as port:
        conf = node_configuration(directory, port, settings or {})
        stopping = asyncio.Event()
        async with NodeHost.start(hosting(conf), environ or {}, stopping) as host:
            assert await host.wait_registered()
            try:
                yield [LoneNode(node, rm, directory, is_packed=len(host.nodes) > 1) for node in host.nodes]
            finally:
                stopping.set()
                async with asyncio.timeout(WAIT_S):
                    assert await host.stopped == ""


def node_configuration(directory: Path, tracker_port: int, settings: dict[str, str]) -> Configuration:
    return Configuration.of(
        {
            "yarn.nodemanager.hostname": "127.0.0.1",
            "yarn.nodemanager.local-dirs": str(directory / "local"),
            "yarn.nodemanager.log-dirs": str(directory / "logs"),
            "yarn.nodemanager.resource.memory-mb": "2048",
            "yarn.nodemanager.resource.cpu-vcores": "4",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
            "yarn.resourcemanager.resource-tracker.address": f"127.0.0.1:{tracker_port}",
            "yarn.yarnling.cluster-secret-file": str(directory / "secret"),
            **settings,
        }
    )


@asynccontextmanager
async def fake_resource_manager(directory: Path) -> AsyncIterator[tuple[FakeResourceManager, int]]:
    """A fake RM for nodes that the test starts itself, and its tracker's port; its secret is `directory`/secret."""
    rm = FakeResourceManager()
    write_cluster_secret(directory / "secret")
    async with _tracker(rm, directory / "secret") as port:
        yield rm, port


@asynccontextmanager
async def _tracker(rm: FakeResourceManager, secret: Path) -> AsyncIterator[int]:
    conf = Configuration.of({"yarn.yarnling.cluster-secret-file": str(secret)})
    tokens = NodeTokenSecretManager(read_cluster_secret(conf))
    server = RpcServer(Address("127.0.0.1", 0), socket_dir(conf))
    server.add(ResourceTracker.rpcs, rm, lambda caller: tokens.check(caller.token))
    packs = PackTokenSecretManager(read_cluster_secret(conf))
    server.add(PackTrackerProtocol.rpcs, FakePackTracker(rm), lambda caller: packs.check(caller.token))
    port = await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


def _exists(path: Path) -> bool:
    return path.exists()


def tagged(node: LoneNode, container_id: ContainerId) -> list[int]:
    """The processes of a container, which have its tag and a token file below this node's directory."""
    found = []
    for process in all_processes():
        variables = environment_of(process.pid)
        token = variables.get("HADOOP_TOKEN_FILE_LOCATION", "")
        if variables.get("CONTAINER_ID") == str(container_id) and token.startswith(str(node.directory)):
            found.append(process.pid)
    return found
