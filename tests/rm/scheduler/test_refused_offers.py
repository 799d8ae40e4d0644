"""An offer to a leaf is passed over if it would do nothing again: the leaf refused the node, and nothing has changed.

Random operations on queues whose users are often at their limits run with the memo, without it, and with each offer
that the memo passes over made all the same, which must do nothing. Wrong rules are planted, and this must find them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.placement import offer
from rm.scheduler.placement.allocator import Assignment, SkippedType
from rm.scheduler.placement.memo import RefusedOffers
from tests.compiled import only_interpreted
from tests.conformance.cluster import RecordedCluster
from tests.rm.scheduler.cluster import GB, Cluster, row
from tests.rm.scheduler.test_straightforward import (
    FEATURES,
    NOTHING_REQUESTED,
    PREEMPTION,
    first_that_starts,
    step,
    with_idle_rounds,
)
from yarn.nodes import NodeLabel
from yarn.resource import Resource

LEAVES = ("a", "b", "c", "d", "e", "f")
TREE = {
    "root.queues": "a,b,c,p",
    "root.p.queues": "d,e,f",
    "root.a.capacity": "20",
    "root.a.maximum-capacity": "30",
    "root.b.capacity": "20",
    "root.b.ordering-policy": "fair",
    "root.c.capacity": "20",
    "root.p.capacity": "40",
    "root.p.maximum-capacity": "60",
    "root.p.d.capacity": "30",
    "root.p.e.capacity": "30",
    "root.p.e.minimum-user-limit-percent": "50",
    "root.p.f.capacity": "40",
    **{f"{path}.user-limit-factor": "0.4" for path in ("root.a", "root.b", "root.c", "root.p.d", "root.p.f")},
    **{f"{path}.accessible-node-labels": "x" for path in ("root", "root.a", "root.b", "root.p", "root.p.d")},
    **{f"{path}.accessible-node-labels.x.capacity": "50" for path in ("root.a", "root.b")},
    "root.accessible-node-labels.x.capacity": "100",
    "root.p.accessible-node-labels.x.capacity": "0",
    "maximum-am-resource-percent": "1",
    "node-locality-delay": "2",
    "yarn.node-labels.enabled": "true",
    "yarn.scheduler.maximum-allocation-mb": str(16 * GB),
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
}
NODES = ("n1", "n2", "n3", "n4")
STEPS = 600
LIMITED = {"capacity": "50", "user-limit-factor": "0.1"}
APPS_MAX = 14


class RandomOperations:
    """Random operations on a cluster. The same seed gives the same ones, as long as the same decisions are made."""

    def __init__(self, seed: int) -> None:
        self._rng = rng = random.Random(seed)
        dominant = rng.choice(["Default", "Dominant"])
        calculator = f"org.apache.hadoop.yarn.util.resource.{dominant}ResourceCalculator"
        lazy = {"lazy-preemption-enabled": rng.choice(["true", "false"])}
        self.cluster = Cluster({**TREE, **lazy, "resource-calculator": calculator})
        self.cluster.scheduler.labels.add([NodeLabel("x", False)])
        for number, node in enumerate(NODES):
            self.cluster.node(node, rng.choice([16, 32, 64]) * GB, rack=f"/r{number % 2}")
        if rng.random() < 0.5:
            self.cluster.label("n4", "x")
        self._apps: list[str] = []
        self._submitted = 0
        self._story: list[str] = []

    def stories(self, steps: int = STEPS) -> Iterator[object]:
        """The events of each step, and what the queues and applications have then."""
        operations: list[tuple[Callable[[], object], int]] = [
            (self._heartbeat, 60),
            (self._all_heartbeats, 20),
            (self._send, 30),
            (self._poll, 6),
            (self._finish, 3),
            (self._release, 1),
            (self._blacklist, 2),
            (self._submit, 3),
            (self._end, 1),
            (self._move, 1),
            (self._resize, 1),
            (self._preempt, 1),
        ]
        for _ in range(8):
            self._submit()
            self._all_heartbeats()
        for _ in range(steps):
            self._rng.choices([each for each, _ in operations], [weight for _, weight in operations])[0]()
            yield [*self._story, *self.cluster.read_story()], [self._state(app) for app in self._apps]
            self._story.clear()

    def _state(self, app: str) -> object:
        attempt = self.cluster.attempt(app)
        leaf = LeafQueue.of(attempt)
        counts = (dict(attempt.opportunities), dict(attempt.missed_non_partitioned), dict(attempt.re_reservations))
        refused = {node_id: refusal.reason for node_id, refusal in leaf.last_refusals(attempt).items()}
        reasons = {node_id: reason for node_id, reason in refused.items() if reason not in NOTHING_REQUESTED}
        return app, leaf.path, leaf.current_limit, leaf.copied_limit, counts, attempt.usage.pending(""), reasons

    def _heartbeat(self) -> None:
        self._story += self.cluster.heartbeat(self._rng.choice(NODES), self._rng.choice([1, 1, 1, 2]))

    def _all_heartbeats(self) -> None:
        for node in NODES:
            self._story += self.cluster.heartbeat(node)

    def _running(self) -> str | None:
        running = [app for app in self._apps if self.cluster.attempt(app).has_master]
        return self._rng.choice(running) if running else None

    def _send(self) -> None:
        app, rng = self._running(), self._rng
        if app is None:
            return
        size, priority = rng.choice([1, 1, 2, 3, 8, 16]) * GB, rng.choice([1, 1, 2])
        rows = [row(rng.choice([0, 1, 4, 20]), size, priority=priority, label="x" if rng.random() < 0.1 else None)]
        if rng.random() < 0.2:
            rows += [row(2, size, priority=priority, name=name) for name in ("n2", "/r1")]
        if rows[0].label is None or len(rows) == 1:
            self._story += self.cluster.send(app, rows)

    def _poll(self) -> None:
        app = self._running()
        if app is not None:
            self.cluster.poll(app)

    def _container(self) -> tuple[str, int] | None:
        """A container that is not an AM's."""
        app = self._running()
        live = [] if app is None else self.cluster.attempt(app).live_containers.values()
        numbers = [container.id.number for container in live if not container.is_am]
        return (app, self._rng.choice(numbers)) if app is not None and numbers else None

    def _finish(self) -> None:
        found = self._container()
        if found is not None:
            self.cluster.finish(*found)

    def _release(self) -> None:
        found = self._container()
        if found is not None:
            self._story += self.cluster.release(*found)

    def _blacklist(self) -> None:
        app = self._running()
        if app is not None:
            change = self._rng.choice([self.cluster.blacklist, self.cluster.remove_from_blacklist])
            change(app, self._rng.choice([*NODES, "/r1"]))

    def _submit(self) -> None:
        if len(self._apps) < APPS_MAX:
            self._submitted += 1
            app = f"app{self._submitted}"
            user, queue = self._rng.choice(["ann", "bob"]), self._rng.choice(LEAVES)
            self._story += self.cluster.submit(app, user, queue)
            self._apps.append(app)

    def _end(self) -> None:
        if self._apps:
            app = self._apps.pop(self._rng.randrange(len(self._apps)))
            self._story += self.cluster.end(app)

    def _move(self) -> None:
        app = self._running()
        if app is not None:
            self.cluster.move(app, self._rng.choice(LEAVES))

    def _resize(self) -> None:
        self._story += self.cluster.resize(self._rng.choice(NODES), self._rng.choice([16, 32, 64]) * GB)

    def _preempt(self) -> None:
        self._story += self.cluster.preempt()


Include = Callable[[RefusedOffers, CSQueue, Resource], bool]


class MadeOffers:
    """Makes the offers that would be passed over, and checks that each does nothing. `count` is their number."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._known: CSQueue | None = None
        self._assign = offer.assign_in_leaf
        self._pass_over = offer._pass_over
        patch.setattr(RefusedOffers, "include", self._noting(RefusedOffers.include))
        patch.setattr(offer, "assign_in_leaf", self._assign_in_leaf)
        patch.setattr(offer, "_pass_over", self._pass_over_unless_known)

    def _noting(self, include: Include) -> Include:
        """Notes a leaf that would be passed over, and returns False."""

        def noted(refused: RefusedOffers, queue: CSQueue, available: Resource) -> bool:
            self._known = queue if include(refused, queue, available) else None
            return False

        return noted

    def _pass_over_unless_known(self, child: CSQueue, node: SchedulerNode, *rest: object) -> bool:
        passed_over = self._pass_over(child, node, *rest)  # type: ignore[arg-type]
        assert not passed_over or self._known is None, f"{child} requests nothing any more"
        return passed_over

    def _assign_in_leaf(self, leaf: LeafQueue, node: SchedulerNode, *rest: object) -> Assignment:
        is_known, self._known = self._known is leaf, None
        before = leaf.context.change_count
        assignment = self._assign(leaf, node, *rest)  # type: ignore[arg-type]
        if is_known:
            self.count += 1
            assert assignment is SkippedType.NONE, f"{leaf} accepts {node.node_id}"
            assert leaf.context.change_count == before, f"the offer of {node.node_id} to {leaf} changed something"
        return assignment


def made_offers(seed: int, patch: pytest.MonkeyPatch) -> int:
    """Run the operations of a seed; returns the number of offers that are made although the memo passes over them."""
    with patch.context() as inner:
        offers = MadeOffers(inner)
        list(RandomOperations(seed).stories())
    return offers.count


seeds = pytest.mark.parametrize(
    "scenario_seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 60))]
)


@only_interpreted
@seeds
def test_the_same_is_decided_without_the_memo(scenario_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with_memo = list(RandomOperations(scenario_seed).stories())
    monkeypatch.setattr(RefusedOffers, "include", lambda *_: False)
    for number, (with_it, without) in enumerate(zip(with_memo, RandomOperations(scenario_seed).stories(), strict=True)):
        assert with_it == without, number


@only_interpreted
@seeds
def test_offers_that_are_passed_over_would_do_nothing(scenario_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert made_offers(scenario_seed, monkeypatch) > 0


@only_interpreted
@pytest.mark.soak
@pytest.mark.unmeasured
@pytest.mark.parametrize("features", [FEATURES, PREEMPTION])
def test_offers_that_are_passed_over_would_do_nothing_in_recorded_scenarios(
    features: frozenset[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    offers = MadeOffers(monkeypatch)
    for seed in range(100, 130):
        scenario = first_that_starts(seed, 100, features)
        cluster = RecordedCluster(scenario.configuration)
        for action in with_idle_rounds(scenario.steps, 3):
            step(cluster, action)
    assert offers.count > 10


def _forget_own_changes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CSQueue, "change_count", property(lambda queue: queue.context.shared_change_count))


def _forget_changes_of_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CSQueue, "change_count", property(lambda queue: queue.own_change_count))
    patch.setattr(SchedulerContext, "shared_change_count", 0)


def _forget_what_is_available(patch: pytest.MonkeyPatch) -> None:
    include, add, one = RefusedOffers.include, RefusedOffers.add, Resource(1, 1)
    patch.setattr(RefusedOffers, "include", lambda refused, queue, _: include(refused, queue, one))
    patch.setattr(RefusedOffers, "add", lambda refused, leaf, _, **about: add(refused, leaf, one, **about))


@only_interpreted
@pytest.mark.parametrize(
    ("plant", "scenario_seed"),
    [(_forget_own_changes, 0), (_forget_changes_of_all, 0), (_forget_what_is_available, 6)],
)
def test_a_wrong_rule_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], scenario_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=r"accepts|changed something|requests nothing"):
        made_offers(scenario_seed, monkeypatch)


@only_interpreted
def test_a_request_is_a_change_for_its_own_leaf_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The users of both queues are at their limits."""
    offered: list[str] = []
    assign = offer.assign_in_leaf

    def noted(leaf: LeafQueue, *rest: object) -> Assignment:
        offered.append(leaf.name)
        return assign(leaf, *rest)  # type: ignore[arg-type]

    limited = {f"root.{leaf}.{key}": value for leaf in "ab" for key, value in LIMITED.items()}
    cluster = Cluster({"root.queues": "a,b", "maximum-am-resource-percent": "1", **limited})
    cluster.node("n1", 64 * GB)
    for app, queue in (("app1", "a"), ("app2", "b")):
        cluster.run(app, "n1", queue=queue)
        cluster.request(app, 50)
    cluster.heartbeat("n1", 20)
    for app in ("app1", "app2"):
        cluster.poll(app)
    cluster.heartbeat("n1", 2)
    monkeypatch.setattr(offer, "assign_in_leaf", noted)
    cluster.request("app1", 40)
    cluster.heartbeat("n1")
    assert offered == ["a"]
    cluster.release("app2", 2)
    cluster.heartbeat("n1", 2)
    assert sorted(set(offered[1:])) == ["a", "b"]
