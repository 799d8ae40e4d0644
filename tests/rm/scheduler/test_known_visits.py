"""A visit of a node that is known to do nothing does nothing: a simulation leaves it out.

With random operations, each such visit is made all the same. Wrong rules are planted, and this must find them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.placement.memo import RefusedOffers, VisitMemo
from rm.scheduler.preemption.preemption_round import PreemptionRound
from rm.scheduler.preemption.queue_priority_container_candidate_selector import move_reservation
from tests.compiled import only_interpreted
from tests.rm.scheduler.cluster import GB, Cluster, row
from tests.rm.scheduler.test_refused_offers import RandomOperations, seeds
from yarn.ids import NodeId
from yarn.nodes import NodeLabel


def visit_known(cluster: Cluster) -> int:
    """Visit the nodes on which that would do nothing, and check it; returns how many are refused like all others."""
    placement, context = cluster.scheduler.placement, cluster.scheduler.context
    refused = 0
    for node in context.nodes.values():
        if not placement.is_known(node):
            continue
        refused += context.root_usage.is_pending() and not placement.is_full(node) and node.reserved_container is None
        before = context.change_count
        if node.reserved_container is not None:
            placement.serve_reservation(node)
        elif (proposal := placement.propose(node)) is not None:
            placement.commit(proposal)
        assert context.change_count == before, f"the visit of {node.node_id} changed something"
    return refused


@seeds
def test_visits_that_are_known_do_nothing(scenario_seed: int) -> None:
    operations, refused = RandomOperations(scenario_seed), 0
    for _ in operations.stories():
        refused += visit_known(operations.cluster)
    assert refused > 0


def labelled() -> Cluster:
    """Nodes n1 and n2 of partition x, and n0 without a label; an application in each of two queues that may use x."""
    cluster = Cluster(
        {
            "root.queues": "a,b",
            **{f"root.{leaf}.capacity": "50" for leaf in ("a", "b")},
            **{f"{path}.accessible-node-labels": "x" for path in ("root", "root.a", "root.b")},
            **{f"root.{leaf}.accessible-node-labels.x.capacity": "50" for leaf in ("a", "b")},
            "root.accessible-node-labels.x.capacity": "100",
            "maximum-am-resource-percent": "1",
            "yarn.node-labels.enabled": "true",
        }
    )
    cluster.scheduler.labels.add([NodeLabel("x", True)])
    for node in ("n0", "n1", "n2"):
        cluster.node(node, 8 * GB)
    cluster.label("n1", "x")
    cluster.label("n2", "x")
    for app, leaf in (("app1", "a"), ("app2", "b")):
        cluster.submit(app, "ann", leaf)
        cluster.heartbeat("n0")
    return cluster


def known(cluster: Cluster) -> list[str]:
    placement, nodes = cluster.scheduler.placement, cluster.scheduler.context.nodes
    return [node.name for node in nodes.values() if placement.is_known(node)]


def test_a_refusal_because_of_the_node_says_nothing_of_others() -> None:
    cluster = labelled()
    cluster.blacklist("app1", "n1")
    cluster.send("app1", [row(1, GB, label="x")])
    cluster.heartbeat("n1", 2)
    assert known(cluster) == ["n1"]
    # Of the other queue only: what queue a has refused is known at the next visit of the same node.
    cluster.send("app2", [row(1, GB)])
    cluster.heartbeat("n1", 2)
    assert known(cluster) == ["n1"]
    assert cluster.heartbeat("n2") == ["app1/2 on n2 1024"]


def test_a_partition_that_nobody_requests_refuses_all_its_nodes() -> None:
    cluster = labelled()
    cluster.send("app1", [row(1, GB)])
    assert known(cluster) == []
    cluster.heartbeat("n1")
    assert known(cluster) == ["n1", "n2"]


def test_a_node_to_which_a_reservation_is_moved_is_visited_again() -> None:
    cluster = Cluster({"root.queues": "a", "root.a.capacity": "100"})
    for node in ("n1", "n2"):
        cluster.node(node, 4 * GB)
    cluster.submit("app1")
    cluster.heartbeat("n1")
    cluster.send("app1", [row(1, 4 * GB)])
    cluster.heartbeat("n1")
    first, second = cluster.scheduler.context.nodes.values()
    assert first.reserved_container is not None
    first.watch = second.watch = watched = dict[NodeId, None]()
    scheduler = cluster.scheduler
    the_round = PreemptionRound(
        scheduler.context,
        scheduler.queues["root"],
        scheduler._applications.table,
        killable={},
        killable_ids=frozenset(),
    )
    assert move_reservation(first.reserved_container, second, the_round)
    assert list(watched) == [second.node_id]


def _forget_node_checks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SchedulerContext, "note_node_check", lambda _: None)


def _forget_checks_of_known_offers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RefusedOffers, "depends_on_node", lambda *_: False)


def _forget_changes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VisitMemo, "refuses_all", lambda memo, partition: partition in memo._refusing)


@only_interpreted
@pytest.mark.parametrize("plant", [_forget_node_checks, _forget_checks_of_known_offers])
def test_a_wrong_rule_for_checks_of_nodes_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        test_a_refusal_because_of_the_node_says_nothing_of_others()


@only_interpreted
def test_a_wrong_rule_for_changes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    _forget_changes(monkeypatch)
    with pytest.raises(AssertionError, match="changed something"):
        test_visits_that_are_known_do_nothing(0)
