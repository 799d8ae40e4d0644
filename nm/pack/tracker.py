"""Carries the calls of nodes that share a process to the RM: registrations, heartbeats and good-byes, many in a call.

A node that has nothing to say but that it lives is a number and a response id in the call. That it has nothing new is
told against the heartbeat that was answered last: after one that may have been lost, it is told in full.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from msgspec.structs import replace

from nm.core.effects import RegisterNode, SendHeartbeat, UnregisterNode
from nm.core.events import (
    Event,
    HeartbeatAnswered,
    HeartbeatFailed,
    NodeRegistered,
    RegistrationFailed,
    UnregisterCompleted,
)
from nm.pack.gathering import NODES_A_CALL, Beats, Gathering
from nm.shell.resource_tracker import UNREGISTER_TIMEOUT_S, good_bye_over, registered_until_answered, updates_of
from wire.protocols.pack import PackTrackerProtocol
from wire.retry import RetryPolicy
from wire.tokens import ContainerTokenSecretManager, KeyRing
from yarn.errors import ServerUnavailable, YarnException
from yarn.ids import NodeId
from yarn.nodes import ResourceUtilization
from yarn.protocols.pack import PackHeartbeat, PackHeartbeatReply, RegisterOutcome
from yarn.protocols.tracker import (
    MasterKey,
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RegisterNodeManagerRequest,
    RegisterNodeManagerResponse,
)
from yarn.states import NodeAction

_logger = logging.getLogger(__name__)


class PackTracker:
    """The calls of all nodes of a pack. A node has one call on its way at the most, as with ResourceTrackerCalls."""

    def __init__(
        self,
        proxy: PackTrackerProtocol,
        retry: RetryPolicy,
        *,
        container_keys: KeyRing,
        nm_keys: KeyRing,
        interval_ms: int,
        tasks: asyncio.TaskGroup,
        utilization: Callable[[], ResourceUtilization | None],
    ) -> None:
        """`interval_ms` is that between two heartbeats; `utilization` the machine's, None if each node has its own."""
        self._proxy = proxy
        self._retry = retry
        self._container_keys, self._nm_keys = container_keys, nm_keys
        self._interval_s = interval_ms / 1000
        self._gathering = Gathering(self._interval_s, lambda beats: self._start(self._beat_all(beats)))
        self._tasks = tasks
        self._utilization = utilization
        self._nodes: list[PackedCalls] = []
        self._running: set[asyncio.Task[None]] = set()
        self._registrations: dict[int, RegisterNodeManagerRequest] = {}
        self._answered: dict[int, NodeHeartbeatRequest] = {}
        self._fresh: set[int] = set()
        self._goodbyes: list[int] = []

    def add(
        self, node_id: NodeId, container_tokens: ContainerTokenSecretManager, send: Callable[[Event], None]
    ) -> PackedCalls:
        """The way of the pack's next node; `send` takes the answers."""
        calls = PackedCalls(self, len(self._nodes), node_id, container_tokens, send)
        self._nodes.append(calls)
        return calls

    def cancel(self) -> None:
        """Send no more heartbeats, and wait for no more answers."""
        self._gathering.cancel()
        for task in self._running:
            task.cancel()

    async def join(self) -> None:
        """Wait for the calls that are under way, a moment at the most."""
        if self._running:
            await asyncio.wait(tuple(self._running), timeout=UNREGISTER_TIMEOUT_S)

    # Called by the nodes, from within their steps

    def register(self, number: int, request: RegisterNodeManagerRequest) -> None:
        self._answered.pop(number, None)
        if not self._registrations:
            asyncio.get_running_loop().call_soon(self._send_registrations)
        self._registrations[number] = request

    def beat(self, number: int, request: NodeHeartbeatRequest, *, at_once: bool) -> None:
        """Send it with those of other nodes that are due. The first one after a registration waits for its turn.

        So the nodes of a pack beat spread over the interval, and the RM's load is even.
        """
        if number in self._fresh:
            self._fresh.discard(number)
            delay_s = first_beat_after_s(number, len(self._nodes), self._interval_s)
            asyncio.get_running_loop().call_later(delay_s, self._gathering.put, number, request)
        else:
            self._gathering.put(number, request, at_once=at_once)

    def unregister(self, number: int) -> None:
        if not self._goodbyes:
            asyncio.get_running_loop().call_soon(self._send_goodbyes)
        self._goodbyes.append(number)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    # Registration

    def _send_registrations(self) -> None:
        waiting, self._registrations = list(self._registrations.items()), {}
        for first in range(0, len(waiting), NODES_A_CALL):
            self._start(self._register(dict(waiting[first : first + NODES_A_CALL])))

    async def _register(self, requests: dict[int, RegisterNodeManagerRequest]) -> None:
        async def register() -> tuple[RegisterOutcome, ...]:
            return await self._proxy.register_nodes(tuple(requests.values()))

        try:
            outcomes = await registered_until_answered(register, self._retry)
        except YarnException as error:
            outcomes = (error,) * len(requests)
        for number, outcome in zip(requests, outcomes, strict=True):
            node = self._nodes[number]
            if isinstance(outcome, RegisterNodeManagerResponse):
                self._take_keys(outcome.container_token_key, outcome.nm_token_key)
                self._fresh.add(number)
                node.send(NodeRegistered(outcome))
            else:
                node.send(RegistrationFailed(outcome.message))

    # Heartbeats

    async def _beat_all(self, beats: Beats) -> None:
        machine = self._utilization()
        container_key, nm_key = self._container_keys.current, self._nm_keys.current
        key_ids = container_key.key_id if container_key else 0, nm_key.key_id if nm_key else 0
        told = {
            number: _completed(request, machine, *key_ids)
            for number, request in beats.items()
            if not _is_as(request, self._answered.get(number), with_machine=machine is None)
        }
        call = PackHeartbeat(
            tuple(beats), tuple([request.response_id for request in beats.values()]), told, machine, *key_ids
        )
        try:
            reply = await self._proxy.pack_heartbeat(call)
        except YarnException as error:
            unreachable = isinstance(error, ServerUnavailable) and error.definite
            for number in beats:
                self._answered.pop(number, None)
                self._nodes[number].send(HeartbeatFailed(error.message, unreachable))
        else:
            self._take_reply(beats, reply)

    def _take_reply(self, beats: Beats, reply: PackHeartbeatReply) -> None:
        self._gathering.expect(beats.keys() - reply.unknown - reply.failed.keys(), len(self._nodes))
        for (number, request), response_id in zip(beats.items(), reply.response_ids, strict=True):
            node, told = self._nodes[number], reply.full.get(number)
            if number in reply.unknown:
                self._answered.pop(number, None)
                self._gathering.put(number, request, at_once=True)
            elif number in reply.failed:
                self._answered.pop(number, None)
                node.send(HeartbeatFailed(reply.failed[number].message, unreachable=False))
            elif told is None:
                self._answered[number] = request
                node.send(
                    HeartbeatAnswered(
                        NodeHeartbeatResponse(response_id, NodeAction.NORMAL, reply.next_heartbeat_ms), ()
                    )
                )
            else:
                self._answered[number] = request
                self._take_keys(told.container_token_key, told.nm_token_key)
                node.send(HeartbeatAnswered(told, updates_of(told, node.container_tokens, node.node_id)))

    # The end

    def _send_goodbyes(self) -> None:
        numbers, self._goodbyes = tuple(self._goodbyes), []
        if len(numbers) == len(self._nodes):
            # Whatever else waits for an answer of the RM waits for nothing.
            self.cancel()
        self._start(self._unregister(numbers))

    async def _unregister(self, numbers: Sequence[int]) -> None:
        await good_bye_over(self._proxy.unregister_nodes(tuple(numbers)))
        for number in numbers:
            self._nodes[number].send(UnregisterCompleted())

    def _take_keys(self, container_key: MasterKey | None, nm_key: MasterKey | None) -> None:
        if container_key is not None:
            self._container_keys.accept(container_key)
        if nm_key is not None:
            self._nm_keys.accept(nm_key)


class PackedCalls:
    """The way of one node of a pack to the RM (nm.shell.node_parts.TrackerCalls)."""

    def __init__(
        self,
        tracker: PackTracker,
        number: int,
        node_id: NodeId,
        container_tokens: ContainerTokenSecretManager,
        send: Callable[[Event], None],
    ) -> None:
        self._tracker = tracker
        self._number = number
        self.node_id = node_id
        self.container_tokens = container_tokens
        self.send = send

    def call(self, effect: RegisterNode | SendHeartbeat | UnregisterNode) -> None:
        if isinstance(effect, SendHeartbeat):
            self._tracker.beat(self._number, effect.request, at_once=effect.at_once)
        elif isinstance(effect, RegisterNode):
            self._tracker.register(self._number, effect.request)
        else:
            self._tracker.unregister(self._number)


def first_beat_after_s(number: int, count: int, interval_s: float) -> float:
    """When node `number` of `count` beats for the first time: a hundred together, calls evenly over the interval."""
    turns = max(1, count // NODES_A_CALL)
    return interval_s * (number % turns) / turns


def _is_as(request: NodeHeartbeatRequest, answered: NodeHeartbeatRequest | None, *, with_machine: bool) -> bool:
    """Whether the node has nothing to say that its answered heartbeat did not say, but what is said for all nodes."""
    return answered is not None and (
        request.containers == answered.containers
        and request.containers_utilization == answered.containers_utilization
        and (not with_machine or request.node_utilization == answered.node_utilization)
        and request.health == answered.health
        and request.keep_alive_applications == answered.keep_alive_applications
        and not request.increased_containers
        and not answered.increased_containers
    )


def _completed(
    request: NodeHeartbeatRequest, machine: ResourceUtilization | None, container_key_id: int, nm_key_id: int
) -> NodeHeartbeatRequest:
    return replace(
        request,
        node_utilization=machine or request.node_utilization,
        container_token_key_id=container_key_id,
        nm_token_key_id=nm_key_id,
    )
