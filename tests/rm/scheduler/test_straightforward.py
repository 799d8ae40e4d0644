"""The scheduler skips work whose outcome is known. It must decide like one that skips nothing.

That one is the second oracle, beside Hadoop: both run random scenarios of the conformance generator, and everything
that recordings show is compared after each step, and why nodes were refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter

import pytest

from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.refusals import Reason
from rm.scheduler.placement.memo import DemandIndex, RefusedOffers, RefusedUsers
from rm.scheduler.placement.visit import Placement
from rm.scheduler.preemption.monitor import SchedulingMonitor
from rm.scheduler.preemption.temp_queue_per_partition import TempQueuePerPartition
from tests.compiled import only_interpreted
from tests.conformance.cluster import RecordedCluster, Unsupported
from tests.conformance.generated.features import SETS
from tests.conformance.generator import generate
from tests.conformance.recording import Json
from tests.conformance.scenario import Scenario
from tests.conformance.view import look
from yarn.faults import ConfigurationException

STEPS = 60
FEATURES = SETS["random"] - {"execution", "expiry"}
PREEMPTION = SETS["preemption"] | {"labels"}
NOTHING_REQUESTED = (Reason.QUEUE_SATISFIED, Reason.APPLICATION_SATISFIED)
"""These refusals nobody is told of. Work that is skipped for such a reason does not note it again."""


@contextmanager
def without_shortcuts(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every node is visited at every heartbeat, every leaf and every application is tried, and no round is skipped."""
    with patch.context() as inner:
        inner.setattr(Placement, "begin", lambda *_: True)
        inner.setattr(DemandIndex, "rest", lambda *_: None)
        inner.setattr(RefusedUsers, "include", lambda *_: False)
        inner.setattr(RefusedOffers, "include", lambda *_: False)
        inner.setattr(SchedulingMonitor, "is_settled", lambda *_: False)
        inner.setattr(TempQueuePerPartition, "is_unused", lambda *_: False)
        yield


def with_idle_rounds(steps: Iterable[Json], rounds: int) -> Iterator[Json]:
    """The steps with rounds of heartbeats between them, so that the cluster is idle before each step.

    Rounds of preemption are repeated too.
    """
    nodes: dict[str, None] = {}
    for action in steps:
        yield action
        if action["op"] == "register_node":
            nodes[action["node"]] = None
        for _ in range(rounds):
            for node in nodes:
                yield {"op": "heartbeat", "node": node}
            if action["op"] == "preempt":
                yield action


def first_that_starts(seed: int, steps: int, features: frozenset[str]) -> Scenario:
    """The scenario of the seed or of a later one: some generated configurations are meant to be refused."""
    while True:
        scenario = generate(seed, steps, features)
        with suppress(ConfigurationException):
            RecordedCluster(scenario.configuration)
            return scenario
        seed += 1000


def step(cluster: RecordedCluster, action: Json) -> Json | None:
    try:
        return cluster.step(action)
    except Unsupported:
        return None


def reasons(cluster: RecordedCluster) -> list[tuple[str, str, Reason]]:
    """(queue or application, node, reason) of all refusals that explanations and diagnostics may name."""
    scheduler = cluster.core.scheduler
    refused = [(queue.path, queue.refusals.by_node()) for queue in scheduler.queues.values()]
    for application in scheduler.applications.values():
        attempt = application.current_attempt
        if attempt is not None and not attempt.is_stopped:
            refused.append((str(attempt), LeafQueue.of(attempt).last_refusals(attempt)))
    return sorted(
        (
            (subject, str(node_id), refusal.reason)
            for subject, of_nodes in refused
            for node_id, refusal in of_nodes.items()
            if refusal.reason not in NOTHING_REQUESTED
        ),
        key=itemgetter(0, 1),
    )


@only_interpreted
@pytest.mark.parametrize(
    ("features", "scenario_seed"),
    [
        pytest.param(FEATURES, 0, marks=pytest.mark.unmeasured),
        *(pytest.param(FEATURES, seed, marks=(pytest.mark.unmeasured, pytest.mark.slow)) for seed in range(1, 6)),
        *(pytest.param(FEATURES, seed, marks=(pytest.mark.unmeasured, pytest.mark.soak)) for seed in range(6, 30)),
        *(pytest.param(PREEMPTION, seed, marks=pytest.mark.slow) for seed in (2, 3)),
    ],
)
def test_both_schedulers_decide_the_same(
    features: frozenset[str], scenario_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = first_that_starts(scenario_seed, STEPS if features is FEATURES else 3 * STEPS, features)
    quick, plain = RecordedCluster(scenario.configuration), RecordedCluster(scenario.configuration)
    for number, action in enumerate(with_idle_rounds(scenario.steps, 3)):
        reply = step(quick, action)
        with without_shortcuts(monkeypatch):
            assert step(plain, action) == reply, number
        assert look(quick) == look(plain), (number, action)
        assert reasons(quick) == reasons(plain), (number, action)


@only_interpreted
def test_shortcuts_skip_visits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the test above would compare the scheduler with itself."""
    visits: list[object] = []
    end = Placement.end
    monkeypatch.setattr(
        Placement, "end", lambda placement, node, count: (visits.append(node), end(placement, node, count))
    )
    scenario = generate(3, STEPS, FEATURES)
    cluster = RecordedCluster(scenario.configuration)
    heartbeats = 0
    for action in with_idle_rounds(scenario.steps, 3):
        heartbeats += action["op"] == "heartbeat"
        step(cluster, action)
    assert 0 < len(visits) < heartbeats / 2
