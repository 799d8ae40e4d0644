"""The calls of an AM, played: what their messages lead to happens at its time, without messages.

In a run of a workload nothing disturbs the calls of an AM. An `allocate` is two events, its arrival at the
ResourceManager and the reply's at the AM; the starts of tasks on one node are one, the arrival of the call there. There
are no tokens, as nobody could forge them.

A start may have another outcome only if its node is not there for it: it has ended, has not registered yet, or stops.
Such starts go over the network, and so do those under way when their node ends. Then the connection is what it would be
had all starts gone over it. So do more starts than one call takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from am.core.actions import Launch
from am.core.container_starts import STARTS_PER_CALL_MAX
from wire.protocols.master import ApplicationMasterProtocol
from yarn.containers import ContainerTokenIdentifier
from yarn.errors import YarnException
from yarn.ids import NodeId
from yarn.protocols.master import AllocateRequest, AllocateResponse
from yarnling.simulation.application_master import ApplicationMasterProcess, NodeLink
from yarnling.simulation.engine import Rank
from yarnling.simulation.machine import SimulatedMachine
from yarnling.simulation.network import Done, Network, UnderWay
from yarnling.simulation.node_manager import NodeManagerProcess
from yarnling.simulation.resource_manager import NUMBER, ResourceManagerProcess
from yarnling.simulation.server import Envelope


@dataclass(slots=True, eq=False)
class _StartCall:
    """A call that starts tasks on a node, made at `made_ms`, that is sent at `sent_ms`, once the AM has connected."""

    machine: SimulatedMachine
    made_ms: int
    sent_ms: int
    launches: list[Launch] = field(default_factory=list[Launch])


class MasterCalls:
    """The calls of one AM (PlayedCalls, PlayedCaller). `machine_of`: the machine of a node.

    `_calls`: those under way, at most one for each node. `_connected_ms`: since when the AM has a connection to a node.
    """

    def __init__(
        self,
        am: ApplicationMasterProcess,
        network: Network,
        rm: ResourceManagerProcess,
        machine_of: Callable[[NodeId], SimulatedMachine],
        node_link: NodeLink,
    ) -> None:
        self._am = am
        self._engine = am.engine
        self._network = network
        self._delay_ms = network.conditions.delay_ms
        self._rm = rm
        self._machine_of = machine_of
        self._node_link = node_link
        self._calls: dict[NodeId, _StartCall] = {}
        self._connected_ms: dict[NodeId, int] = {}
        am.on_exit(self._over)

    def _over(self) -> None:
        """The AM has ended, and its connections with it."""
        for node_id in self._connected_ms:
            del self._machine_of(node_id).nm.played_callers[self]
        self._connected_ms.clear()
        self._calls.clear()

    def allocate(self, request: AllocateRequest, done: Done[AllocateResponse], under_way: UnderWay | None) -> None:
        if under_way is not None and under_way.reply is not None:
            self._answer(under_way.sent_ms, under_way.reply.content(False), done)
            return
        am, sent_ms = self._am, self._engine.now_ms if under_way is None else under_way.sent_ms
        arrives = partial(self._allocate_arrives, request, done)
        self._engine.at(sent_ms + self._delay_ms, Rank.MESSAGE, am.number, arrives, lane=am.lane)

    def _allocate_arrives(self, request: AllocateRequest, done: Done[AllocateResponse]) -> None:
        if self._am.is_up:
            self._answer(self._engine.now_ms, self.answer_of(request).content(False), done)

    def _answer(self, sent_ms: int, outcome: AllocateResponse | YarnException, done: Done[AllocateResponse]) -> None:
        arrives = partial(self._am.deliver, self._am.starts, partial(done, outcome))
        self._engine.at(sent_ms + self._delay_ms, Rank.MESSAGE, NUMBER, arrives)

    def answer_of(self, request: AllocateRequest) -> Envelope:
        try:
            reply = self._rm.play_allocate(self._am.attempt_id, request)
        except YarnException as error:
            return Envelope(ApplicationMasterProtocol.allocate, None, error=error)
        return Envelope(ApplicationMasterProtocol.allocate, reply)

    def launch(self, launch: Launch) -> bool:
        node_id, now_ms = launch.container.node_id, self._engine.now_ms
        call = self._calls.get(node_id)
        if call is None:
            call = self._call(node_id)
        elif call.made_ms != now_ms or len(call.launches) == STARTS_PER_CALL_MAX:
            self._send_over_network(call)
            call = None
        if call is None:
            self._am.network_starts.launch(self._signed(launch, now_ms))
        else:
            call.launches.append(launch)
        return True

    def _call(self, node_id: NodeId) -> _StartCall | None:
        """Make a call to the node; None if it has to go over the network."""
        machine, am, now_ms = self._machine_of(node_id), self._am, self._engine.now_ms
        if am.network_starts.has_called(node_id) or not machine.nm.plays_starts(node_id):
            self._connect(machine.nm)
            return None
        if node_id not in self._connected_ms:
            self._connected_ms[node_id] = now_ms + self._delay_ms
            machine.nm.played_callers[self] = None
        sent_ms = max(now_ms, self._connected_ms[node_id])
        call = self._calls[node_id] = _StartCall(machine, now_ms, sent_ms)
        arrives = partial(self._starts_arrive, node_id, call)
        self._engine.at(sent_ms + self._delay_ms, Rank.MESSAGE, am.number, arrives, lane=am.lane)
        return call

    def _starts_arrive(self, node_id: NodeId, call: _StartCall) -> None:
        if self._calls.get(node_id) is not call:
            return
        if call.machine.nm.plays_starts(node_id):
            del self._calls[node_id]
            call.machine.play_tasks(self._permits(call))
        else:
            self._send_over_network(call)

    def _permit(self, launch: Launch, made_ms: int) -> ContainerTokenIdentifier:
        return self._rm.start_permit(launch.container, self._am.user, made_ms - self._delay_ms)

    def _permits(self, call: _StartCall) -> list[ContainerTokenIdentifier]:
        return [self._permit(launch, call.made_ms) for launch in call.launches]

    def before_exit(self, nm: NodeManagerProcess) -> None:
        call = self._calls.get(nm.node_id)
        if call is not None:
            self._send_over_network(call)
        else:
            self._connect(nm)

    def _send_over_network(self, call: _StartCall) -> None:
        """Let a call become what it would be had it been made over the network."""
        am, node_id = self._am, call.launches[0].container.node_id
        del self._calls[node_id]
        self._connect(call.machine.nm)
        launches = [self._signed(launch, call.made_ms) for launch in call.launches]
        if call.made_ms == self._engine.now_ms:
            for launch in launches:
                am.network_starts.launch(launch)
        else:
            is_unsent = not self._engine.is_over(call.sent_ms, Rank.MESSAGE, am.number, am.lane)
            am.network_starts.go_on(launches, UnderWay(call.sent_ms, None, is_unsent, call.made_ms), call.made_ms)

    def _connect(self, nm: NodeManagerProcess) -> None:
        """Make the connection that the AM has to a node, if it has one, into one that can break."""
        connected_ms, am = self._connected_ms.pop(nm.node_id, None), self._am
        if connected_ms is None:
            return
        del nm.played_callers[self]
        link, endpoint = self._node_link(nm.node_id)
        served = endpoint()
        if served is not None and self._engine.is_over(connected_ms, Rank.MESSAGE, am.number, am.lane):
            self._network.connect(am, self._network.link(link), served)

    def _signed(self, launch: Launch, made_ms: int) -> Launch:
        """The launch with the token that its container would have; the AM gets the NM token, too."""
        container_token, nm_token = self._rm.signed(self._permit(launch, made_ms))
        self._am.network_starts.nm_tokens[launch.container.node_id] = nm_token
        return Launch(replace(launch.container, token=container_token), launch.launch_context)
