"""The starts of one AM's containers over the network: the cores of am.core.container_starts, one for each node.

`launch` starts a container, and ContainerStarted or ContainerStartFailed follows.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from functools import partial
from typing import Any, TypeAlias, assert_never

from am.core.actions import Launch
from am.core.container_starts import (
    ContainerFound,
    ContainerStarts,
    FindContainer,
    FindFailed,
    SendStarts,
    StartAbandoned,
    StartEffect,
    StartEvent,
    StartsAnswered,
    StartSettled,
    StartsFailed,
    StartWanted,
)
from am.core.events import ContainerStarted, ContainerStartFailed
from am.core.invariants import CheckedContainerStarts
from wire.protocols.container_management import ContainerManagementProtocol
from wire.retry import RetryPolicy
from yarn.containers import Token
from yarn.errors import InvalidToken, YarnException
from yarn.ids import ContainerId, NodeId
from yarn.machine import Tick
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    StartContainerRequest,
    StartContainersResponse,
)
from yarnling.simulation.engine import Rank
from yarnling.simulation.network import UnderWay
from yarnling.simulation.process import Alarm, Process

Settled: TypeAlias = Callable[[ContainerStarted | ContainerStartFailed], None]


class NetworkStarts:
    """The starts of the AM that runs in `am`. `to_node`: calls a node. `settled` gets the outcome of each start."""

    def __init__(
        self,
        am: Process,
        retry: RetryPolicy,
        to_node: Callable[[NodeId], Callable[..., Any]],
        nm_tokens: MutableMapping[NodeId, Token],
        settled: Settled,
        *,
        check_invariants: bool,
    ) -> None:
        self._am = am
        self._retry = retry
        self._to_node = to_node
        self.nm_tokens = nm_tokens
        self._settled = settled
        self._make_core = CheckedContainerStarts if check_invariants else ContainerStarts
        self._starts: dict[NodeId, tuple[ContainerStarts, Alarm]] = {}
        self._launches: dict[int, tuple[ContainerId, NodeId]] = {}
        self._numbers = 0

    def has_called(self, node_id: NodeId) -> bool:
        """True if containers were started on that node, or are about to be."""
        return node_id in self._starts

    def launch(self, launch: Launch) -> None:
        """Start a container."""
        self._launch(launch, self._am.engine.now_ms)

    def go_on(self, launches: Sequence[Launch], under_way: UnderWay, made_ms: int) -> None:
        """Go on with the call that starts containers on one node, which was made at `made_ms`."""
        for launch in launches:
            self._launch(launch, made_ms)
        self._handle(launches[0].container.node_id, Tick(), made_ms, under_way)

    def abandon(self, container_id: ContainerId) -> None:
        """Stop trying to start a container."""
        for number, (launched, node_id) in list(self._launches.items()):
            if launched == container_id:
                del self._launches[number]
                self._handle(node_id, StartAbandoned(number), self._am.engine.now_ms)

    def _launch(self, launch: Launch, now_ms: int) -> None:
        container, problem = launch.container, None
        if container.node_id not in self.nm_tokens:
            problem = InvalidToken(f"No token available for {container.node_id}")
        elif container.token is None:
            problem = InvalidToken(f"{container.id} has no container token")
        if problem is not None or container.token is None:
            failed = ContainerStartFailed(container.id, str(problem))
            self._am.after(0, Rank.TIMER, partial(self._settled, failed))
            return
        self._numbers += 1
        self._launches[self._numbers] = (container.id, container.node_id)
        request = StartContainerRequest(launch.launch_context, container.token)
        self._handle(container.node_id, StartWanted(self._numbers, container.id, request), now_ms)

    def _now(self, node_id: NodeId, event: StartEvent) -> None:
        self._handle(node_id, event, self._am.engine.now_ms)

    def _handle(self, node_id: NodeId, event: StartEvent, now_ms: int, under_way: UnderWay | None = None) -> None:
        if node_id not in self._starts:
            core = self._make_core(self._retry.max_wait_ms, self._retry.interval_ms)
            alarm = Alarm(self._am, core.next_deadline_ms, partial(self._now, node_id, Tick()))
            self._starts[node_id] = (core, alarm)
        core, alarm = self._starts[node_id]
        effects = core.handle(event, now_ms)
        alarm.set()
        for effect in effects:
            self._carry_out(node_id, effect, under_way)

    def _carry_out(self, node_id: NodeId, effect: StartEffect, under_way: UnderWay | None) -> None:
        match effect:
            case SendStarts(requests):
                self._send(node_id, requests, under_way)
            case FindContainer(number, container_id):
                self._find(node_id, number, container_id)
            case StartSettled(number, error):
                launched = self._launches.pop(number, None)
                if launched is not None:
                    event = ContainerStarted(launched[0])
                    self._settled(event if error is None else ContainerStartFailed(launched[0], str(error)))
            case _:
                assert_never(effect)

    def _send(self, node_id: NodeId, requests: tuple[StartContainerRequest, ...], under_way: UnderWay | None) -> None:
        def done(outcome: StartContainersResponse | YarnException) -> None:
            if isinstance(outcome, YarnException):
                self._now(node_id, StartsFailed(outcome))
            else:
                self._now(node_id, StartsAnswered(outcome))

        start = self._to_node(node_id)
        start(ContainerManagementProtocol.start_containers, requests, done, under_way=under_way)

    def _find(self, node_id: NodeId, number: int, container_id: ContainerId) -> None:
        def done(outcome: GetContainerStatusesResponse | YarnException) -> None:
            if isinstance(outcome, YarnException):
                self._now(node_id, FindFailed(number, outcome))
            else:
                is_there = any(status.container_id == container_id for status in outcome.statuses)
                self._now(node_id, ContainerFound(number, is_there))

        self._to_node(node_id)(ContainerManagementProtocol.get_container_statuses, (container_id,), done)
