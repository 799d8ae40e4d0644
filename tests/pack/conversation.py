"""Both ends of a pack's calls without a socket: NM cores and their tracker, the RM's service and core.

The connection between them loses requests and replies as the test says; messages are encoded and decoded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from nm.core import NodeManagerCore
from nm.core.events import NodeRegistered, Start, UnregisterCompleted
from nm.core.settings import CoreSettings, NodeFacts
from nm.pack.tracker import PackTracker
from nm.shell.effects import NodeParts, NodeShell
from rm.core.events import Event as RMEvent
from rm.core.events import NodeHeartbeat
from rm.core.resource_manager import ResourceManagerCore
from rm.pack.service import PackTrackerService
from rm.shell.effects import ResourceManagerShell
from rm.shell.master_keys import MasterKeys
from rm.shell.response_signer import ResponseSigner
from tests.rm.builders import ONE_QUEUE
from wire.caller import Caller
from wire.core_shell import WallClock
from wire.files.topology import Topology
from wire.protocols.pack import PackTrackerProtocol
from wire.retry import FOR_EVER, RetryPolicy
from wire.rpc import Rpc
from wire.tokens import ContainerTokenSecretManager, KeyRing
from yarn.configuration import Configuration
from yarn.errors import CallOutcomeUnknown
from yarn.ids import NodeId
from yarn.nodes import ResourceUtilization
from yarn.protocols.pack import Pack, PackHeartbeat
from yarn.protocols.tracker import NodeHeartbeatRequest
from yarn.resource import Resource

INTERVAL_MS = 20
MACHINE = ResourceUtilization(100, 200, 0.5)
FIRST = NodeId("127.0.0.2", 40000)


class FakeManager:
    """The RM. `received` {node: heartbeats of its core}, `order` the nodes in the order of their events."""

    def __init__(self) -> None:
        conf = Configuration.of(
            ONE_QUEUE | {"yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": str(INTERVAL_MS)}
        )
        clock = WallClock()
        self.core = ResourceManagerCore(conf, cluster_timestamp=clock())
        self.shell = ResourceManagerShell(self.core, clock)
        self.keys = MasterKeys(conf)
        signer = ResponseSigner(
            self.keys, rm_identifier=clock(), token_lifetime_ms=600_000, user_of=lambda _: "ann", clock=clock
        )
        self.service = PackTrackerService(self.shell, signer, Topology({}))
        self.received: dict[NodeId, list[NodeHeartbeatRequest]] = {}
        self.order: list[NodeId] = []
        handle = self.core.handle

        def watched(event: RMEvent, now_ms: int) -> Any:
            if isinstance(event, NodeHeartbeat):
                self.received.setdefault(event.request.node_id, []).append(event.request)
                self.order.append(event.request.node_id)
            return handle(event, now_ms)

        self.core.handle = watched  # type: ignore[method-assign]


class LossyProxy:
    """A proxy that is also the connection. `lose(rpc, call number)`: loses the "request", the "reply" or nothing."""

    def __init__(self, manager: FakeManager, pack: Pack) -> None:
        self.manager = manager
        self.pack = pack
        self.lose: Callable[[str, int], str] = lambda name, number: ""
        self.calls: list[tuple[str, Any]] = []

    async def register_nodes(self, request: Any) -> Any:
        return await self._call(PackTrackerProtocol.register_nodes, request)

    async def pack_heartbeat(self, request: PackHeartbeat) -> Any:
        return await self._call(PackTrackerProtocol.pack_heartbeat, request)

    async def unregister_nodes(self, request: Any) -> Any:
        return await self._call(PackTrackerProtocol.unregister_nodes, request)

    @property
    def beats(self) -> list[PackHeartbeat]:
        return [request for name, request in self.calls if name == "pack_heartbeat"]

    async def _call(self, rpc: Rpc[Any, Any], request: Any) -> Any:
        self.calls.append((rpc.method, request))
        lost = self.lose(rpc.method, len(self.calls))
        await asyncio.sleep(0)
        if lost == "request":
            raise CallOutcomeUnknown("lost on the way")
        received = rpc.request.decode(rpc.request.encode(request))
        caller = Caller("", None, "", self.pack)
        reply = await getattr(self.manager.service, rpc.method)(caller, received)
        if lost == "reply":
            raise CallOutcomeUnknown("lost on the way back")
        return rpc.reply.decode(rpc.reply.encode(reply))


class FakeNode:
    """A node without containers' processes. `sent`: the heartbeats that its core ordered."""

    def __init__(self, node_id: NodeId) -> None:
        clock = WallClock()
        settings = CoreSettings(heartbeat_interval_ms=INTERVAL_MS)
        self.node_id = node_id
        self.core = NodeManagerCore(node_id, NodeFacts(Resource(2048, 4), Resource(8192, 2)), settings)
        self.shell = NodeShell(self.core, clock)
        self.sent: list[NodeHeartbeatRequest] = []
        self.registered = self.unregistered = 0

    def begin(self, tracker: PackTracker, keys: KeyRing) -> None:
        def send(event: Any) -> None:
            self.registered += isinstance(event, NodeRegistered)
            self.unregistered += isinstance(event, UnregisterCompleted)
            self.shell.send(event)

        calls = tracker.add(self.node_id, ContainerTokenSecretManager(keys), send)
        send_heartbeat = calls.send_heartbeat

        def note_heartbeat(request: NodeHeartbeatRequest, *, at_once: bool) -> None:
            self.sent.append(request)
            send_heartbeat(request, at_once=at_once)

        calls.send_heartbeat = note_heartbeat  # type: ignore[method-assign]
        no_part: Any = None
        self.shell.parts = NodeParts(calls, *[no_part] * (len(NodeParts.__struct_fields__) - 2))
        self.shell.send(Start())


class Conversation:
    def __init__(self, count: int, tasks: asyncio.TaskGroup) -> None:
        pack = Pack(FIRST, count)
        self.machine: ResourceUtilization | None = MACHINE
        self.manager = FakeManager()
        self.proxy = LossyProxy(self.manager, pack)
        self.nodes = [FakeNode(node_id) for node_id in pack.nodes()]
        proxy: Any = self.proxy
        self.containers_keys, self.nodes_keys = KeyRing(), KeyRing()
        self.tracker = PackTracker(
            proxy,
            RetryPolicy(max_wait_ms=FOR_EVER, interval_ms=1),
            container_keys=self.containers_keys,
            nm_keys=self.nodes_keys,
            interval_ms=INTERVAL_MS,
            tasks=tasks,
            utilization=lambda: self.machine,
        )

    def begin(self) -> None:
        for node in self.nodes:
            node.begin(self.tracker, KeyRing())

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110  cores have no event
                await asyncio.sleep(INTERVAL_MS / 4000)

    async def beats(self, count: int) -> None:
        """Wait until the RM received `count` more heartbeats of each node."""
        received = self.manager.received
        wanted = {node.node_id: len(received.get(node.node_id, ())) + count for node in self.nodes}
        await self.until(lambda: all(len(received.get(node_id, ())) >= least for node_id, least in wanted.items()))


@asynccontextmanager
async def conversation(count: int, lose: Callable[[str, int], str] | None = None) -> AsyncIterator[Conversation]:
    """A pack of `count` nodes that have started."""
    async with asyncio.TaskGroup() as tasks:
        talk = Conversation(count, tasks)
        if lose is not None:
            talk.proxy.lose = lose
        talk.begin()
        try:
            yield talk
        finally:
            talk.tracker.cancel()
            for node in talk.nodes:
                node.shell.close()
            talk.manager.shell.close()
