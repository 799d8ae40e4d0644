"""Invariants of what happens in time: I-16 and I-29 (decommissioning), I-34 (launches), I-61 (lost nodes)."""

from __future__ import annotations

from collections.abc import Iterator

from rm.core.context import RMContext
from rm.core.effects import Effect
from rm.core.events import (
    Allocate,
    Event,
    FinishApplicationMaster,
    NodeHeartbeat,
    ProcessStalled,
    RegisterApplicationMaster,
    RegisterNode,
)
from rm.core.rm_node import RMNode
from rm.scheduler.model.rm_container import RMContainerState
from yarn.ids import ContainerId, NodeId
from yarn.machine import Reply, StateChanged, Tick
from yarn.protocols.tracker import NodeHeartbeatResponse, RegisterNodeManagerResponse
from yarn.resource import Resource
from yarn.states import ContainerState, NodeAction, NodeState

EXPIRIES_MAX = 2
"""After so many expiry intervals something that is silent has certainly expired: it is checked three times in one."""
EMPTY_HEARTBEATS_MAX = 2
"""Heartbeats that a decommissioning node without applications may still send."""


class LivenessAudit:
    """I-34 and I-61. The time during which the ResourceManager was stalled does not count."""

    def __init__(self, context: RMContext) -> None:
        self._context = context
        self._heard_ms: dict[NodeId, int] = {}
        self._acquired_ms: dict[ContainerId, int] = {}

    def violations(self, event: Event, effects: list[Effect], booked_on: list[NodeId]) -> Iterator[str]:
        now_ms = self._context.now_ms
        if isinstance(event, ProcessStalled):
            self._heard_ms = {key: since_ms + event.for_ms for key, since_ms in self._heard_ms.items()}
            self._acquired_ms = {key: since_ms + event.for_ms for key, since_ms in self._acquired_ms.items()}
        elif isinstance(event, NodeHeartbeat | RegisterNode) and not _is_shut_down(effects):
            self._heard_ms[event.request.node_id] = now_ms
        yield from self._lost_too_early(effects, now_ms)
        yield from self._unheard_master(event, effects, now_ms)
        if isinstance(event, ProcessStalled | Tick):
            # After a Tick, further ones may be due, which handle what else has expired.
            return
        yield from self._silent_nodes(now_ms)
        yield from self._acquired(now_ms)

    def _lost_too_early(self, effects: list[Effect], now_ms: int) -> Iterator[str]:
        for effect in effects:
            if isinstance(effect, StateChanged) and effect.kind == "RMNode" and effect.target == NodeState.LOST.name:
                silent_ms = now_ms - self._heard_ms.pop(NodeId.parse(effect.subject), 0)
                if silent_ms < self._context.settings.node_expiry_ms:
                    yield f"I-61: {effect.subject} is LOST after a silence of {silent_ms} ms"

    def _unheard_master(self, event: Event, effects: list[Effect], now_ms: int) -> Iterator[str]:
        """Check that a call of an AM extends its expiry, also a repeated one that waits for the state store."""
        if not isinstance(event, RegisterApplicationMaster | Allocate | FinishApplicationMaster):
            return
        heard_ms = self._context.am_liveness.last_ping_ms(event.attempt_id)
        if heard_ms is not None and heard_ms < now_ms and any(isinstance(effect, Reply) for effect in effects):
            yield f"I-61: {event.attempt_id} called, and its expiry still counts from {now_ms - heard_ms} ms ago"

    def _silent_nodes(self, now_ms: int) -> Iterator[str]:
        most_ms = EXPIRIES_MAX * self._context.settings.node_expiry_ms
        for node_id in self._context.nodes:
            silent_ms = now_ms - self._heard_ms.setdefault(node_id, now_ms)
            if silent_ms > most_ms:
                yield f"I-61: {node_id} is not LOST after a silence of {silent_ms} ms"

    def _acquired(self, now_ms: int) -> Iterator[str]:
        most_ms, before = EXPIRIES_MAX * self._context.settings.allocation_expiry_ms, self._acquired_ms
        self._acquired_ms = {}
        for application in self._context.scheduler.applications.values():
            attempt = application.current_attempt
            for container in attempt.live_containers.values() if attempt is not None else ():
                if container.state is RMContainerState.ACQUIRED:
                    since_ms = self._acquired_ms[container.id] = before.get(container.id, now_ms)
                    if now_ms - since_ms > most_ms:
                        yield f"I-34: {container.id} was not launched for {now_ms - since_ms} ms, and is kept"


def _is_shut_down(effects: list[Effect]) -> bool:
    """True if the reply of this step orders a node to shut down: nothing else was done about its call."""
    replies = (effect.value for effect in effects if isinstance(effect, Reply))
    answers = (each for each in replies if isinstance(each, NodeHeartbeatResponse | RegisterNodeManagerResponse))
    return any(each.action is NodeAction.SHUTDOWN for each in answers)


class DecommissioningAudit:
    """I-16, and I-29 for nodes that are being decommissioned.

    As in Hadoop (DecommissioningNodesWatcher.update) a timeout counts from the first heartbeat of the node in that
    state. If the node is recommissioned, or comes back, and is decommissioned again between two heartbeats, it goes on
    counting from there.
    """

    def __init__(self, context: RMContext) -> None:
        self._context = context
        self._since_ms: dict[NodeId, int] = {}
        self._in_use: dict[NodeId, Resource] = {}
        self._empty: dict[NodeId, int] = {}
        self._replies: dict[NodeId, NodeHeartbeatResponse] = {}

    def violations(self, event: Event, effects: list[Effect], booked_on: list[NodeId]) -> Iterator[str]:
        yield from self._left(event, effects)
        yield from self._not_running(booked_on)
        if isinstance(event, RegisterNode):
            self._forget_heartbeats(event.request.node_id)
        if not isinstance(event, NodeHeartbeat):
            return
        node_id = event.request.node_id
        node = self._context.nodes.get(node_id)
        if node is None:
            self._forget_heartbeats(node_id)
            return
        is_repeated = self._is_repeated(node)
        if node.state is not NodeState.DECOMMISSIONING:
            self._forget_heartbeats(node_id)
            self._since_ms.pop(node_id, None)
        elif not is_repeated:
            yield from self._stays(node)
            if event.request.health.healthy:
                yield from self._keeps_its_size(node_id)

    def _left(self, event: Event, effects: list[Effect]) -> Iterator[str]:
        now_ms, leaving, gone = self._context.now_ms, NodeState.DECOMMISSIONING.name, NodeState.DECOMMISSIONED.name
        for effect in effects:
            if not isinstance(effect, StateChanged) or effect.kind != "RMNode":
                continue
            node_id = NodeId.parse(effect.subject)
            if effect.target == leaving and effect.source != leaving:
                self._since_ms.setdefault(node_id, now_ms)
                self._forget_heartbeats(node_id)
            if (effect.source, effect.target) != (leaving, gone) or not isinstance(event, NodeHeartbeat | Tick):
                continue
            since_ms, node = self._since_ms.get(node_id, now_ms), self._context.node(node_id)
            timeout_ms = 1000 * node.decommissioning_timeout_s if node is not None else 0
            is_over = 0 <= timeout_ms <= now_ms - since_ms
            if node is not None and node.running_apps and not is_over:
                apps = ", ".join(map(str, node.running_apps))
                yield f"I-29: {node_id} is DECOMMISSIONED after {now_ms - since_ms} ms, although {apps} needs it"
            if isinstance(event, NodeHeartbeat) and not is_over:
                yield from self._lost_masters(event, effects)

    def _lost_masters(self, event: NodeHeartbeat, effects: list[Effect]) -> Iterator[str]:
        """I-29: no attempt ends with a node that leaves although it has just reported the attempt's AM.

        One that it has not reported yet is lost, as in Hadoop (DecommissioningNodesWatcher counts reported containers).
        """
        ended = {effect.subject for effect in effects if isinstance(effect, StateChanged)}
        for status in event.request.containers:
            attempt = self._context.attempt(status.container_id.attempt_id)
            am = attempt.am_container if attempt is not None else None
            if am is None or am.id != status.container_id or status.state is ContainerState.COMPLETE:
                continue
            if str(am.id.attempt_id) in ended:
                yield f"I-29: {event.request.node_id} is DECOMMISSIONED while {am.id}, an AM, is launched there"

    def _not_running(self, booked_on: list[NodeId]) -> Iterator[str]:
        """I-16: nothing is booked on a node that is not RUNNING, as its lifecycle says, not the scheduler's copy."""
        for node_id in booked_on:
            node = self._context.nodes.get(node_id)
            if node is not None and node.state is not NodeState.RUNNING:
                yield f"I-16: a container was booked on {node_id}, which is {node.state.name}"

    def _is_repeated(self, node: RMNode) -> bool:
        """True if the heartbeat was sent again, or refused: nothing was done about it."""
        before = self._replies.get(node.node_id)
        self._replies[node.node_id] = node.last_response
        return node.last_response is before

    def _forget_heartbeats(self, node_id: NodeId) -> None:
        self._in_use.pop(node_id, None)
        self._empty.pop(node_id, None)

    def _stays(self, node: RMNode) -> Iterator[str]:
        is_empty = not node.running_apps and not self._context.scheduler.has_master_on(node.node_id)
        self._empty[node.node_id] = self._empty.get(node.node_id, 0) + 1 if is_empty else 0
        if self._empty[node.node_id] > EMPTY_HEARTBEATS_MAX:
            yield f"I-29: {node} stays DECOMMISSIONING, although nothing needs it"

    def _keeps_its_size(self, node_id: NodeId) -> Iterator[str]:
        """I-16: each heartbeat that reaches the scheduler shrinks the node to the amount in use.

        Nothing is added to that, so the size is at most what was in use after the last such heartbeat. A heartbeat of
        an unhealthy node, one that is refused, and one that is sent again do not reach the scheduler.
        """
        node = self._context.scheduler.nodes.get(node_id)
        if node is None:
            return
        before = self._in_use.get(node_id)
        self._in_use[node_id] = node.allocated
        if before is not None and not self._context.scheduler.context.calculator.fits_in(node.total, before):
            yield f"I-16: {node_id} is being decommissioned, and has {node.total} after {before} was in use"
