"""Call sequences of fake NodeManagers, alone or as a pack: they report wrongly, forget, repeat and come back."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.cluster.rpc_fuzz.applications import DAMAGE
from tests.cluster.rpc_fuzz.caller import FuzzCaller, forged
from tests.cluster.rpc_fuzz.known import HOSTS, SIZES, TEXTS, Known
from tests.rm.served_cluster import Cluster, Node
from tests.wire.serving import socket_dir
from wire.address import Address
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.pack import PackTokenSecretManager, PackTrackerProtocol
from wire.protocols.tracker import ResourceTracker
from wire.server import RpcServer
from yarn.containers import Container, ContainerStatus, NMContainerStatus, Token
from yarn.errors import YarnException
from yarn.ids import ContainerId, NodeId
from yarn.nodes import NodeHealth, ResourceUtilization
from yarn.protocols.pack import Pack, PackHeartbeat, PackHeartbeatReply
from yarn.protocols.tracker import (
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RegisterNodeManagerRequest,
    RegisterNodeManagerResponse,
)
from yarn.resource import INT32_MAX, Resource
from yarn.states import ContainerState, NodeAction

STEPS_MAX = 60
EXITS = (0, 1, -1000, -100, -102, -105, 137, 143, INT32_MAX, -INT32_MAX - 1)
PACK_HOST = "127.0.2.{}"
PACK_NODES = 5
LISTED_MAX = 200
"""The number of containers in a large heartbeat."""


class PlayedNode(Node):
    """A fake node: it accepts starts, and the fuzzer makes its calls to the ResourceManager."""

    async def serve(self) -> None:
        self._server = RpcServer(Address(self.host, 0), socket_dir())
        self._server.add(ContainerManagementProtocol.rpcs, self, lambda caller: self.nm_tokens.check(caller.token))
        self.node_id = NodeId(self.host, await self._server.start())


@dataclass
class Nodes:
    """A host of fake nodes, one node after another, until cancelled."""

    caller: FuzzCaller
    known: Known
    rng: Random
    cluster: Cluster
    host: str
    reported: list[ContainerId] = field(default_factory=list)

    async def run(self) -> None:
        while True:
            async with AsyncExitStack() as stack:
                node = PlayedNode(self.host, self.cluster)
                await node.serve()
                stack.push_async_callback(node.close)
                self.known.keep(self.rng, self.known.nodes, node.node_id)
                try:
                    await self._register(node)
                    for _ in range(self.rng.randint(1, STEPS_MAX)):
                        step = self.rng.choices(*_WEIGHTED)[0]
                        await step(self, node)
                        await asyncio.sleep(self.rng.choice((0, 0, 0.005, 0.02)))
                finally:
                    if node.node_id in self.known.nodes:
                        self.known.nodes.remove(node.node_id)

    async def _register(self, node: PlayedNode) -> None:
        rng = self.rng
        request = RegisterNodeManagerRequest(
            node.node_id,
            rng.choice((8042, 0, -1, INT32_MAX)),
            rng.choice((Resource(2048, 8), Resource(2048, 8), rng.choice(SIZES))),
            rng.choice(("3.4.1", "", *TEXTS)),
            tuple(self._listed(node) for _ in range(rng.choice((0, 0, 1, 3, rng.choice((3, LISTED_MAX))))))
            if self.known.nodes_list_ended
            else (),
            tuple(rng.choice(self.known.apps) for _ in range(rng.choice((0, 1, 2))) if self.known.apps),
            health=self._health(),
        )
        reply = await self.caller.ask(
            rng, ResourceTracker.register_node_manager, request, token=self._token(node), damage=DAMAGE
        )
        if isinstance(reply, RegisterNodeManagerResponse) and reply.action is NodeAction.NORMAL:
            node.response_id = 0
            for keys, key in (
                (node.nm_tokens.keys, reply.nm_token_key),
                (node.container_tokens.keys, reply.container_token_key),
            ):
                if key is not None:
                    keys.accept(key)

    async def _beat(self, node: PlayedNode) -> None:
        """A correct heartbeat, with the containers that it was asked to start, running or complete."""
        self._note_starts(node)
        request = self._heartbeat(node, node.response_id)
        reply = await self.caller.ask(
            self.rng, ResourceTracker.node_heartbeat, request, token=self._token(node), damage=DAMAGE / 2
        )
        if isinstance(reply, NodeHeartbeatResponse):
            node.response_id = reply.response_id
            if reply.action is not NodeAction.NORMAL and self.rng.random() < 0.8:
                await self._register(node)

    async def _beat_wrongly(self, node: PlayedNode) -> None:
        off = self.rng.choice((-1, -1, -2, 1, 100, INT32_MAX - node.response_id, -INT32_MAX))
        number = max(-INT32_MAX - 1, min(INT32_MAX, node.response_id + off))
        await self.caller.ask(
            self.rng, ResourceTracker.node_heartbeat, self._heartbeat(node, number), token=self._token(node)
        )

    async def _beat_at_once(self, node: PlayedNode) -> None:
        token = self._token(node)
        requests = [self._heartbeat(node, node.response_id) for _ in range(3)]
        replies = await asyncio.gather(
            *(self.caller.ask(self.rng, ResourceTracker.node_heartbeat, one, token=token) for one in requests)
        )
        for reply in replies:
            if isinstance(reply, NodeHeartbeatResponse):
                node.response_id = reply.response_id

    async def _unregister(self, node: PlayedNode) -> None:
        await self.caller.ask(self.rng, ResourceTracker.unregister_node_manager, node.node_id, token=self._token(node))

    async def _impostor(self, node: PlayedNode) -> None:
        """A heartbeat with the token, or in the name, of another node, real ones included."""
        rng = self.rng
        other = rng.choice((*self.known.nodes, *self.known.real_nodes, NodeId(rng.choice(HOSTS), 1)))
        own = self.cluster.node_tokens.create(rng.choice((other, node.node_id)))
        token = rng.choice((own, forged(rng, own), self.known.token(rng), None))
        rpc = rng.choice(ResourceTracker.rpcs)
        record: Any = self.known.request(rng, rpc.path, self.caller.harmless)
        if rpc is ResourceTracker.register_node_manager and not self.known.nodes_list_ended:
            record = RegisterNodeManagerRequest(other, 8042, rng.choice(SIZES))
        if rng.random() < 0.5 and rpc is ResourceTracker.node_heartbeat:
            record = NodeHeartbeatRequest(other, rng.choice((0, 1, 5)))
        await self.caller.ask(rng, rpc, record, token=token, damage=DAMAGE)

    async def _replay(self, node: PlayedNode) -> None:
        await self.caller.replay(self.rng)

    def _token(self, node: PlayedNode) -> Token:
        return self.cluster.node_tokens.create(node.node_id)

    def _note_starts(self, node: PlayedNode) -> None:
        """The AMRM tokens of started AMs, for tests that act as an ApplicationMaster."""
        for number in range(len(node.started)):
            container_id = node.started[number].identifier.container_id
            self.reported.append(container_id)
            try:
                token = node.amrm_token(number)
            except (AssertionError, YarnException):
                continue
            self.known.keep(self.rng, self.known.master_tokens, token)
            self.known.keep(self.rng, self.known.apps, container_id.application_id)
        node.started.clear()
        self.reported = self.reported[-20:]

    def _heartbeat(self, node: PlayedNode, response_id: int) -> NodeHeartbeatRequest:
        rng = self.rng
        keys = node.container_tokens.keys.current, node.nm_tokens.keys.current
        container_key, nm_key = (key.key_id if key is not None else rng.choice((0, -1, INT32_MAX)) for key in keys)
        return NodeHeartbeatRequest(
            node.node_id,
            response_id,
            tuple(self._status() for _ in range(rng.choice((0, 1, 2, rng.choice((5, LISTED_MAX)))))),
            self._health(),
            tuple(rng.choice(self.known.apps) for _ in range(rng.choice((0, 0, 1))) if self.known.apps),
            rng.choice((None, ResourceUtilization(1, 1, 0.5), ResourceUtilization(-1, INT32_MAX, float("nan")))),
            rng.choice((None, ResourceUtilization(INT32_MAX, -1, float("inf")))),
            tuple(self._increased(node) for _ in range(rng.choice((0, 0, 0, 1)))),
            container_key,
            nm_key,
        )

    def _status(self) -> ContainerStatus:
        rng = self.rng
        state = rng.choice(
            (ContainerState.RUNNING, ContainerState.RUNNING, ContainerState.COMPLETE, ContainerState.NEW)
        )
        size = rng.choice((None, *SIZES))
        return ContainerStatus(self._container(), state, rng.choice(EXITS), rng.choice(("", *TEXTS)), size)

    def _listed(self, node: PlayedNode) -> NMContainerStatus:
        rng = self.rng
        return NMContainerStatus(
            self._container(),
            rng.choice(list(ContainerState)),
            rng.choice(SIZES),
            rng.choice((0, -1, INT32_MAX)),
            rng.choice(EXITS),
            rng.choice(TEXTS),
            rng.choice((0, -1, 1 << 62)),
            rng.choice((0, 1, -1, INT32_MAX)),
            rng.choice(("", "gpu", "nope")),
        )

    def _increased(self, node: PlayedNode) -> Container:
        rng = self.rng
        return Container(self._container(), node.node_id, "", rng.choice(SIZES), 0, version=rng.choice((0, 1, -1)))

    def _container(self) -> ContainerId:
        """The id of a container that it has, that others have, or that never existed."""
        rng = self.rng
        if self.reported and rng.random() < 0.6:
            return rng.choice(self.reported)
        if self.known.containers and rng.random() < 0.5:
            return rng.choice(self.known.containers)
        record: ContainerId = self.known.at_home(rng, ContainerId.parse("container_1_1_1_1"), self.caller.harmless)
        return record

    def _health(self) -> NodeHealth:
        rng = self.rng
        return NodeHealth(rng.random() < 0.9, rng.choice(("", *TEXTS)), rng.choice((0, -1, 1 << 62)))


_STEPS = (
    (Nodes._beat, 40),
    (Nodes._beat_wrongly, 6),
    (Nodes._beat_at_once, 2),
    (Nodes._register, 3),
    (Nodes._unregister, 2),
    (Nodes._impostor, 4),
    (Nodes._replay, 3),
)
_WEIGHTED = [step for step, _ in _STEPS], [weight for _, weight in _STEPS]


@dataclass
class Packs:
    """A pack of fake nodes. `secret` is the cluster's."""

    caller: FuzzCaller
    known: Known
    rng: Random
    secret: bytes
    number: int = 1

    async def run(self) -> None:
        while True:
            host = PACK_HOST.format(self.rng.choice((1, 20, 240)))
            count = self.rng.choice((PACK_NODES, PACK_NODES, 1, 100))
            token = PackTokenSecretManager(self.secret).create(Pack(NodeId(host, 1), count))
            ids = [NodeId(PACK_HOST.format(int(host.rpartition(".")[2]) + n), 1) for n in range(PACK_NODES)]
            answered = [0] * PACK_NODES
            for _ in range(self.rng.randint(1, STEPS_MAX)):
                await self._step(token, ids, answered)
                await asyncio.sleep(0.01)
            await self.caller.ask(self.rng, PackTrackerProtocol.unregister_nodes, tuple(range(PACK_NODES)), token=token)

    async def _step(self, token: Token, ids: list[NodeId], answered: list[int]) -> None:
        rng = self.rng
        kind = rng.random()
        if rng.random() < 0.1:
            token = rng.choice((forged(rng, token), self.known.token(rng) or token))
        if kind < 0.15:
            nodes = tuple(
                RegisterNodeManagerRequest(rng.choice(ids), 8042, rng.choice((Resource(512, 4), *SIZES)))
                for _ in range(rng.randint(0, PACK_NODES))
            )
            await self.caller.ask(rng, PackTrackerProtocol.register_nodes, nodes, token=token, damage=DAMAGE)
        elif kind < 0.9:
            reply = await self.caller.ask(
                rng, PackTrackerProtocol.pack_heartbeat, self._heartbeat(ids, answered), token=token, damage=DAMAGE
            )
            if isinstance(reply, PackHeartbeatReply):
                self._take(reply, answered)
        elif kind < 0.95:
            numbers = tuple(rng.choice((0, 1, 4, 5, 100, INT32_MAX)) for _ in range(rng.randint(0, 4)))
            await self.caller.ask(rng, PackTrackerProtocol.unregister_nodes, numbers, token=token, damage=DAMAGE)
        else:
            rpc = rng.choice(PackTrackerProtocol.rpcs if self.known.nodes_list_ended else PackTrackerProtocol.rpcs[1:])
            record = self.known.request(rng, rpc.path, self.caller.harmless)
            await self.caller.ask(rng, rpc, record, token=token, damage=DAMAGE)

    def _heartbeat(self, ids: list[NodeId], answered: list[int]) -> PackHeartbeat:
        rng = self.rng
        numbers = tuple(rng.sample(range(len(ids)), rng.randint(0, len(ids))))
        if rng.random() < 0.1:
            numbers = (*numbers, *(rng.choice((0, 0, 4, 5, 99, INT32_MAX)) for _ in range(2)))
        response_ids = [answered[n] if n < len(answered) else 0 for n in numbers]
        if response_ids and rng.random() < 0.1:
            response_ids[0] += rng.choice((-1, 1))
        heartbeats = {
            number: NodeHeartbeatRequest(
                ids[number] if number < len(ids) and rng.random() < 0.95 else rng.choice(ids),
                answered[number] if number < len(answered) else 0,
            )
            for number in numbers
            if rng.random() < 0.5
        }
        return PackHeartbeat(numbers, tuple(response_ids), heartbeats)

    def _take(self, reply: PackHeartbeatReply, answered: list[int]) -> None:
        for number, answer in reply.full.items():
            if number < len(answered):
                answered[number] = answer.response_id
