"""A heartbeat without news that may be left out changes nothing, in random scenarios of the conformance generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from rm.core.effects import Effect
from rm.core.events import Event, NodeHeartbeat
from rm.core.resource_manager import ResourceManagerCore
from tests.conformance.cluster import RecordedCluster, Unsupported
from tests.conformance.generated.features import SETS
from tests.conformance.recording import Json
from tests.conformance.view import look
from tests.rm.scheduler.test_straightforward import first_that_starts
from yarn.ids import NodeId
from yarn.protocols.tracker import NodeHeartbeatRequest

STEPS = 60
FEATURES = SETS["random"] - {"execution", "expiry"}
PREEMPTION = SETS["preemption"] | {"labels"}
IDLE_ROUNDS = 2


class WatchedCluster:
    """All nodes of a recorded cluster are watched, as by a simulation that leaves heartbeats out."""

    def __init__(self, configuration: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.recorded = RecordedCluster(configuration)
        self.core = self.recorded.core
        self.quiet: dict[NodeId, None] = {}
        self.left_out = 0
        self._last: dict[NodeId, NodeHeartbeatRequest] = {}
        self._has_news = False
        monkeypatch.setattr(self.recorded.rm, "core", _NotedCore(self.core, self._note))

    def _note(self, event: Event) -> None:
        if isinstance(event, NodeHeartbeat):
            request = event.request
            last, self._last[request.node_id] = self._last.get(request.node_id), request
            self._has_news = last is None or (last.containers, last.health) != (request.containers, request.health)

    def step(self, action: Json) -> None:
        """A step; if it is a heartbeat that may be left out, it changes nothing."""
        node = self.recorded.nodes.get(action["node"]) if action["op"] == "heartbeat" else None
        is_quiet = node is not None and node.node_id in self.quiet
        before = self._state()
        with suppress(Unsupported):
            self.recorded.step(action)
        if is_quiet and not self._has_news:
            self.left_out += 1
            assert self._state() == before, action
        self._watch()

    def _watch(self) -> None:
        """A node stays quiet until it is due."""
        quiet_nodes, now_ms = self.core.quiet_nodes, self.core.context.dispatcher.now_ms
        for node_id in quiet_nodes.due():
            self.quiet.pop(node_id, None)
        due = quiet_nodes.idle_due()
        self.quiet = {node_id: None for node_id in self.quiet if quiet_nodes.idle_partition(node_id) not in due}
        for node in self.recorded.nodes.values():
            quiet_nodes.suspend(node.node_id)
            is_quiet = quiet_nodes.watch(node.node_id, now_ms)
            assert is_quiet or node.node_id not in self.quiet, f"{node.node_id} is not quiet any more, and was not due"
            if is_quiet:
                self.quiet[node.node_id] = None

    def _state(self) -> tuple[object, ...]:
        scheduler = self.core.scheduler
        attempts = [scheduler.attempt_of(application_id) for application_id in self.core.context.apps]
        counts = [
            (dict(attempt.opportunities), dict(attempt.missed_non_partitioned), dict(attempt.re_reservations))
            for attempt in attempts
            if attempt is not None
        ]
        return look(self.recorded), counts, scheduler.context.change_count


class _NotedCore:
    """A core whose events are noted first. A compiled core has no attribute `handle` that could be replaced."""

    def __init__(self, core: ResourceManagerCore, note: Callable[[Event], None]) -> None:
        self._core = core
        self._note = note

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        self._note(event)
        return self._core.handle(event, now_ms)

    def __getattr__(self, name: str) -> object:
        return getattr(self._core, name)


def with_idle_rounds(steps: list[Json]) -> Iterator[Json]:
    nodes: dict[str, None] = {}
    for action in steps:
        yield action
        if action["op"] == "register_node":
            nodes[action["node"]] = None
        for _ in range(IDLE_ROUNDS):
            yield from ({"op": "heartbeat", "node": node} for node in nodes)


@pytest.mark.parametrize(
    ("features", "scenario_seed"),
    [
        (FEATURES, 0),
        (PREEMPTION, 0),
        *(pytest.param(FEATURES, seed, marks=pytest.mark.slow) for seed in range(1, 5)),
        pytest.param(PREEMPTION, 1, marks=pytest.mark.slow),
        *(pytest.param(FEATURES, seed, marks=pytest.mark.soak) for seed in range(5, 40)),
        *(pytest.param(PREEMPTION, seed, marks=pytest.mark.soak) for seed in range(2, 20)),
    ],
)
def test_what_may_be_left_out_changes_nothing(
    features: frozenset[str], scenario_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = first_that_starts(scenario_seed, STEPS, features)
    cluster = WatchedCluster(scenario.configuration, monkeypatch)
    for action in with_idle_rounds(list(scenario.steps)):
        cluster.step(action)
    assert cluster.left_out
