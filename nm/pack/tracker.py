"""Sends the calls of a pack's nodes to the RM: registrations, heartbeats and unregistrations, many nodes in one call.

In a call, a node whose heartbeat equals its last answered one is only a number and a response id. If a heartbeat may
have been lost, the node's next heartbeat is sent in full.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from msgspec.structs import replace

from nm.core.events import (
    Event,
    NodeHeartbeatAnswered,
    NodeHeartbeatFailed,
    NodeRegistered,
    RegistrationFailed,
    UnregisterCompleted,
)
from nm.pack.batcher import NODES_PER_CALL, HeartbeatBatcher, Heartbeats
from nm.shell.resource_tracker import (
    UNREGISTER_TIMEOUT_S,
    accept_keys,
    heartbeat_failed,
    registered_until_answered,
    unregistered_or_timed_out,
    verified_updates,
)
from wire.protocols.pack import PackTrackerProtocol
from wire.retry import RetryPolicy
from wire.tokens import ContainerTokenSecretManager, KeyRing
from yarn.errors import YarnException
from yarn.ids import NodeId
from yarn.nodes import ResourceUtilization
from yarn.protocols.pack import PackHeartbeat, PackHeartbeatReply, RegisterOutcome
from yarn.protocols.tracker import (
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RegisterNodeManagerRequest,
    RegisterNodeManagerResponse,
)
from yarn.states import NodeAction


class PackTracker:
    """The connection of a pack to the RM. Each node has at most one call in progress, as in ResourceTrackerCalls.

    `calls` contains the calls of each node, in the order of `add`; a node's number is its index there.
    """

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
        keys_changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`interval_ms` is the heartbeat interval.

        `utilization` returns the machine's usage, None if each node reports its own. `keys_changed` is called when the
        RM has sent a new key.
        """
        self.calls: list[PackedCalls] = []
        self._proxy = proxy
        self._retry = retry
        self._container_keys, self._nm_keys = container_keys, nm_keys
        self._interval_s = interval_ms / 1000
        self._batcher = HeartbeatBatcher(self._interval_s, lambda heartbeats: self._start(self._heartbeat(heartbeats)))
        self._tasks = tasks
        self._utilization = utilization
        self._keys_changed = keys_changed
        self._running: set[asyncio.Task[None]] = set()
        self._registrations: dict[int, RegisterNodeManagerRequest] = {}
        self._answered: dict[int, NodeHeartbeatRequest] = {}
        self._newly_registered: set[int] = set()
        self._unregistrations: list[int] = []

    def add(
        self, node_id: NodeId, container_tokens: ContainerTokenSecretManager, send: Callable[[Event], None]
    ) -> PackedCalls:
        """Add the next node of the pack and return its calls. `send` receives the answers."""
        calls = PackedCalls(self, len(self.calls), node_id, container_tokens, send)
        self.calls.append(calls)
        return calls

    def cancel(self) -> None:
        self._batcher.cancel()
        for task in self._running:
            task.cancel()

    async def join(self) -> None:
        if self._running:
            await asyncio.wait(tuple(self._running), timeout=UNREGISTER_TIMEOUT_S)

    def register(self, number: int, request: RegisterNodeManagerRequest) -> None:
        self._answered.pop(number, None)
        if not self._registrations:
            asyncio.get_running_loop().call_soon(self._send_registrations)
        self._registrations[number] = request

    def heartbeat(self, number: int, request: NodeHeartbeatRequest, *, at_once: bool) -> None:
        """Send a heartbeat together with those of other nodes.

        The first heartbeat after a registration is delayed, so that the heartbeats of a pack are spread evenly over the
        interval.
        """
        if number in self._newly_registered:
            self._newly_registered.discard(number)
            delay_s = first_heartbeat_after_s(number, len(self.calls), self._interval_s)
            asyncio.get_running_loop().call_later(delay_s, self._batcher.put, number, request)
        else:
            self._batcher.put(number, request, at_once=at_once)

    def unregister(self, number: int) -> None:
        if not self._unregistrations:
            asyncio.get_running_loop().call_soon(self._send_unregistrations)
        self._unregistrations.append(number)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _send_registrations(self) -> None:
        waiting, self._registrations = list(self._registrations.items()), {}
        for first in range(0, len(waiting), NODES_PER_CALL):
            self._start(self._register(dict(waiting[first : first + NODES_PER_CALL])))

    async def _register(self, requests: dict[int, RegisterNodeManagerRequest]) -> None:
        async def register() -> tuple[RegisterOutcome, ...]:
            return await self._proxy.register_nodes(tuple(requests.values()))

        try:
            outcomes = await registered_until_answered(register, self._retry)
        except YarnException as error:
            outcomes = (error,) * len(requests)
        for number, outcome in zip(requests, outcomes, strict=True):
            node = self.calls[number]
            if isinstance(outcome, RegisterNodeManagerResponse):
                self._accept_keys(outcome)
                self._newly_registered.add(number)
                node.send(NodeRegistered(outcome))
            else:
                node.send(RegistrationFailed(outcome.message))

    async def _heartbeat(self, heartbeats: Heartbeats) -> None:
        machine = self._utilization()
        container_key, nm_key = self._container_keys.current, self._nm_keys.current
        key_ids = container_key.key_id if container_key else 0, nm_key.key_id if nm_key else 0
        in_full = {
            number: _completed(request, machine, *key_ids)
            for number, request in heartbeats.items()
            if not _is_unchanged(request, self._answered.get(number), with_machine=machine is None)
        }
        response_ids = tuple([request.response_id for request in heartbeats.values()])
        call = PackHeartbeat(tuple(heartbeats), response_ids, in_full, machine, *key_ids)
        try:
            reply = await self._proxy.pack_heartbeat(call)
        except YarnException as error:
            for number in heartbeats:
                self._answered.pop(number, None)
                self.calls[number].send(heartbeat_failed(error))
        else:
            self._take_reply(heartbeats, reply)

    def _take_reply(self, heartbeats: Heartbeats, reply: PackHeartbeatReply) -> None:
        self._batcher.expect(heartbeats.keys() - reply.unknown - reply.failed.keys(), len(self.calls))
        for (number, request), response_id in zip(heartbeats.items(), reply.response_ids, strict=True):
            node, in_full = self.calls[number], reply.full.get(number)
            if number in reply.unknown:
                self._answered.pop(number, None)
                self._batcher.put(number, request, at_once=True)
            elif number in reply.failed:
                self._answered.pop(number, None)
                node.send(NodeHeartbeatFailed(reply.failed[number].message, unreachable=False))
            elif in_full is None:
                self._answered[number] = request
                quiet = NodeHeartbeatResponse(response_id, NodeAction.NORMAL, reply.next_heartbeat_ms)
                node.send(NodeHeartbeatAnswered(quiet, ()))
            else:
                self._answered[number] = request
                self._accept_keys(in_full)
                updates = verified_updates(in_full, node.container_tokens, node.node_id)
                node.send(NodeHeartbeatAnswered(in_full, updates))

    def _accept_keys(self, response: RegisterNodeManagerResponse | NodeHeartbeatResponse) -> None:
        if accept_keys(response, self._container_keys, self._nm_keys):
            self._keys_changed()

    def _send_unregistrations(self) -> None:
        numbers, self._unregistrations = tuple(self._unregistrations), []
        if len(numbers) == len(self.calls):
            # All nodes are stopping, so answers to earlier calls are not needed any more.
            self.cancel()
        self._start(self._unregister(numbers))

    async def _unregister(self, numbers: Sequence[int]) -> None:
        await unregistered_or_timed_out(self._proxy.unregister_nodes(tuple(numbers)))
        for number in numbers:
            self.calls[number].send(UnregisterCompleted())


class PackedCalls:
    """The calls of one node of a pack (see nm.shell.resource_tracker.TrackerCalls). `send` receives the answers."""

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

    def send_registration(self, request: RegisterNodeManagerRequest) -> None:
        self._tracker.register(self._number, request)

    def send_heartbeat(self, request: NodeHeartbeatRequest, *, at_once: bool) -> None:
        self._tracker.heartbeat(self._number, request, at_once=at_once)

    def send_unregistration(self) -> None:
        self._tracker.unregister(self._number)


def first_heartbeat_after_s(number: int, count: int, interval_s: float) -> float:
    """The delay before node `number` of `count` sends its first heartbeat, in seconds.

    A hundred nodes send it together, and the calls are spread evenly over the interval.
    """
    turns = max(1, count // NODES_PER_CALL)
    return interval_s * (number % turns) / turns


def _is_unchanged(request: NodeHeartbeatRequest, answered: NodeHeartbeatRequest | None, *, with_machine: bool) -> bool:
    """True if the heartbeat equals the answered one, apart from what the call states once for all nodes."""
    return answered is not None and (
        request.containers == answered.containers
        and request.containers_utilization == answered.containers_utilization
        and (not with_machine or request.node_utilization == answered.node_utilization)
        and request.health == answered.health
        and request.keep_alive_applications == answered.keep_alive_applications
        and not request.increased_containers
        and not answered.increased_containers
        and not request.log_aggregation_reports
        and not answered.log_aggregation_reports
        and not request.refused_starts
        and not answered.refused_starts
    )


def _completed(
    request: NodeHeartbeatRequest, machine: ResourceUtilization | None, container_key_id: int, nm_key_id: int
) -> NodeHeartbeatRequest:
    """Add what only the shell knows to a heartbeat: the machine's utilization and the ids of the keys."""
    return replace(
        request,
        node_utilization=machine or request.node_utilization,
        container_token_key_id=container_key_id,
        nm_token_key_id=nm_key_id,
    )
