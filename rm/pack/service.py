"""The RM's service for NMs that share a process: each call contains calls of ResourceTracker for many nodes.

The core gets the same events as from single nodes: one per node, in order, each answered separately. Batching saves
calls, tokens and messages. The heartbeat of a node without news contains only the node's number: its request is derived
from the node's last request, which is kept here.
"""

from __future__ import annotations

import asyncio

from rm.core.events import NodeHeartbeat, RegisterNode, UnregisterNode
from rm.shell.effects import ResourceManagerShell
from rm.shell.response_signer import ResponseSigner
from wire.caller import Caller
from wire.files.topology import Topology
from wire.protocols.pack import PackTokenSecretManager, PackTrackerProtocol
from wire.rpc import handles
from wire.server import RpcServer
from yarn.errors import AccessControlException, InvalidArgumentException, YarnException
from yarn.ids import NodeId
from yarn.protocols.pack import Pack, PackHeartbeat, PackHeartbeatReply, RegisterOutcome
from yarn.protocols.tracker import (
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RegisterNodeManagerRequest,
    RegisterNodeManagerResponse,
)
from yarn.states import NodeAction

STEPS_A_TURN = 16
"""Steps of the core before other calls are served; they take half a millisecond."""


def serve_packs(
    server: RpcServer, cluster_secret: bytes, shell: ResourceManagerShell, signer: ResponseSigner, topology: Topology
) -> None:
    """Register the service for packed nodes with `server`. The ResourceManager uses this package only here."""
    tokens = PackTokenSecretManager(cluster_secret)
    service = PackTrackerService(shell, signer, topology)
    server.add(PackTrackerProtocol.rpcs, service, lambda caller: tokens.check(caller.token))


class _KnownPack:
    """The last heartbeats of a pack.

    `heard[number]`: the request of node `number`; `answered[number]`: its reply's id.
    """

    def __init__(self, pack: Pack) -> None:
        self.pack = pack
        self.nodes = pack.nodes()
        self.heard: list[NodeHeartbeatRequest | None] = [None] * pack.count
        self.answered = [0] * pack.count

    def heartbeat(self, number: int, response_id: int, beat: PackHeartbeat) -> NodeHeartbeatRequest | None:
        """The complete heartbeat of a node in `beat`; None if it refers to an earlier one that is not known here."""
        full = beat.full.get(number)
        if full is not None:
            return full
        heard = self.heard[number]
        if heard is None or self.answered[number] != response_id:
            return None
        return NodeHeartbeatRequest(
            heard.node_id,
            response_id,
            heard.containers,
            heard.health,
            heard.keep_alive_applications,
            heard.containers_utilization,
            beat.node_utilization or heard.node_utilization,
            (),
            beat.container_token_key_id,
            beat.nm_token_key_id,
        )

    def note(self, number: int, heartbeat: NodeHeartbeatRequest, reply: NodeHeartbeatResponse) -> None:
        if reply.action is NodeAction.NORMAL:
            self.heard[number], self.answered[number] = heartbeat, reply.response_id
        else:
            self.heard[number] = None


class PackTrackerService:
    """PackTrackerProtocol. A pack may act only for its own nodes."""

    def __init__(self, shell: ResourceManagerShell, signer: ResponseSigner, topology: Topology) -> None:
        self._shell = shell
        self._signer = signer
        self._topology = topology
        self._packs: dict[str, _KnownPack] = {}

    @handles(PackTrackerProtocol.register_nodes)
    async def register_nodes(
        self, caller: Caller[Pack], request: tuple[RegisterNodeManagerRequest, ...]
    ) -> tuple[RegisterOutcome, ...]:
        nodes = frozenset(self._known(caller.verified).nodes)
        others = [str(node.node_id) for node in request if node.node_id not in nodes]
        if others:
            raise AccessControlException(f"the pack of {caller.verified.first} may not act for {', '.join(others[:5])}")
        answers = []
        for count, registration in enumerate(request, 1):
            answers.append(self._register(registration))
            if _ends_turn(count):
                await asyncio.sleep(0)
        return tuple([await self._outcome(answer) for answer in answers])

    @handles(PackTrackerProtocol.pack_heartbeat)
    async def pack_heartbeat(self, caller: Caller[Pack], request: PackHeartbeat) -> PackHeartbeatReply:
        known = self._known(caller.verified)
        _check_numbers(caller.verified, (*request.nodes, *request.full))
        for number, full in request.full.items():
            if full.node_id != known.nodes[number]:
                raise AccessControlException(f"node {number} of {known.pack.first} may not act for {full.node_id}")
        steps: list[tuple[int, NodeHeartbeatRequest, asyncio.Future[NodeHeartbeatResponse]]] = []
        unknown: set[int] = set()
        for number, response_id in zip(request.nodes, request.response_ids, strict=True):
            heartbeat = known.heartbeat(number, response_id, request)
            if heartbeat is None:
                unknown.add(number)
                continue
            steps.append((number, heartbeat, self._beat(heartbeat)))
            if _ends_turn(len(steps)):
                await asyncio.sleep(0)
        return await self._replied(known, request, steps, unknown)

    @handles(PackTrackerProtocol.unregister_nodes)
    async def unregister_nodes(self, caller: Caller[Pack], request: tuple[int, ...]) -> None:
        known = self._known(caller.verified)
        _check_numbers(caller.verified, request)
        for number in request:
            known.heard[number] = None
        answers = []
        for count, number in enumerate(request, 1):
            answers.append(self._unregister(known.nodes[number]))
            if _ends_turn(count):
                await asyncio.sleep(0)
        for answer in answers:
            await answer

    def _register(self, request: RegisterNodeManagerRequest) -> asyncio.Future[RegisterNodeManagerResponse]:
        rack = self._topology.rack_of(request.node_id.host)
        return self._shell.begin(lambda call: RegisterNode(call, request, rack))

    def _beat(self, heartbeat: NodeHeartbeatRequest) -> asyncio.Future[NodeHeartbeatResponse]:
        return self._shell.begin(lambda call: NodeHeartbeat(call, heartbeat))

    def _unregister(self, node_id: NodeId) -> asyncio.Future[None]:
        return self._shell.begin(lambda call: UnregisterNode(call, node_id))

    async def _replied(
        self,
        known: _KnownPack,
        request: PackHeartbeat,
        steps: list[tuple[int, NodeHeartbeatRequest, asyncio.Future[NodeHeartbeatResponse]]],
        unknown: set[int],
    ) -> PackHeartbeatReply:
        response_ids: dict[int, int] = {}
        full: dict[int, NodeHeartbeatResponse] = {}
        failed: dict[int, YarnException] = {}
        interval_ms = 0
        have_keys = self._signer.are_newest(request.container_token_key_id, request.nm_token_key_id)
        for number, heartbeat, answer in steps:
            try:
                reply = answer.result() if answer.done() else await answer
                is_quiet = reply.is_quiet
                if not (is_quiet and have_keys) or number in request.full:
                    reply = self._signer.sign_heartbeat(heartbeat, reply)
                    is_quiet = reply.is_quiet
            except YarnException as error:
                known.heard[number] = None
                failed[number] = error
                continue
            known.note(number, heartbeat, reply)
            interval_ms = interval_ms or reply.next_heartbeat_ms
            if is_quiet and reply.next_heartbeat_ms == interval_ms:
                response_ids[number] = reply.response_id
            else:
                full[number] = reply
        return PackHeartbeatReply(
            tuple([response_ids.get(number, 0) for number in request.nodes]),
            interval_ms,
            full,
            frozenset(unknown),
            failed,
        )

    async def _outcome(self, answer: asyncio.Future[RegisterNodeManagerResponse]) -> RegisterOutcome:
        try:
            return self._signer.sign_node_registration(await answer)
        except YarnException as error:
            return error

    def _known(self, pack: Pack) -> _KnownPack:
        """The state of a pack. A new pack with the first address of an earlier one replaces it."""
        known = self._packs.get(pack.first.host)
        if known is None or known.pack != pack:
            known = self._packs[pack.first.host] = _KnownPack(pack)
        return known


def _check_numbers(pack: Pack, numbers: tuple[int, ...]) -> None:
    if numbers and max(numbers) >= pack.count:
        raise InvalidArgumentException(f"node {max(numbers)}: the pack of {pack.first} has nodes 0 to {pack.count - 1}")


def _ends_turn(count: int) -> bool:
    """True if other calls should be served after this many steps.

    Not a coroutine, since it is called for every node.
    """
    return count % STEPS_A_TURN == 0
