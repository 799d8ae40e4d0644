"""A pass over pending applications activates what Hadoop's loop over all of them does, at a fixed cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rm.scheduler.capacity import activation, queue_update
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.pending_applications import PendingApplications
from rm.scheduler.model.refusals import Reason
from tests.compiled import only_interpreted
from tests.rm.scheduler.cluster import GB, Cluster
from tests.rm.scheduler.conftest import StartCluster
from yarn.resource import Resource

Refused: TypeAlias = dict[FiCaSchedulerApp, Reason]
Trace: TypeAlias = list[tuple[list[str], list[tuple[str, Reason | None]]]]

SMALL_AM_SHARE = {"root.a.minimum-user-limit-percent": "40", "maximum-am-resource-percent": "0.4"}
USERS = ("ann", "ben", "cat")

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.sampled_from(USERS), st.integers(1, 3), st.integers(0, 2)),
        st.tuples(st.just("end"), st.integers(0, 50)),
        st.tuples(st.just("prioritize"), st.integers(0, 50), st.integers(0, 3)),
        st.tuples(st.just("node"), st.integers(3, 6)),
        st.tuples(st.just("lose"), st.integers(0, 50)),
        st.tuples(st.just("resize"), st.integers(0, 50), st.integers(3, 12)),
    ),
    min_size=8,
    max_size=40,
)

MORE_ROOM_ENDS_A_REFUSAL_BY_THE_QUEUE = [
    ("submit", "ann", 1, 0),
    ("submit", "ben", 1, 0),
    ("end", 0),
    ("submit", "ann", 2, 0),
    ("node", 2),
    ("submit", "ann", 3, 0),
    ("node", 1),
]
"""The queue's limit refuses ann's last application; with the third node only her own limit does."""

ANOTHER_IS_ACTIVATED_BETWEEN_TWO_REFUSALS = [
    ("submit", "ben", 3, 0),
    ("submit", "cat", 1, 0),
    ("submit", "ben", 3, 0),
    ("submit", "cat", 3, 0),
    ("node", 3),
    ("submit", "ben", 3, 0),
    ("end", 1),
]
"""In the last pass ben's limit refuses his second application, cat's is activated, and now the queue's limit refuses
ben's third, of the same size.
"""

THE_CLUSTER_IS_EMPTY = [
    ("submit", "ann", 3, 0),
    ("submit", "ann", 3, 0),
    ("lose", 0),
    ("submit", "ann", 3, 0),
]
"""Nobody looks at the last application, which is like the one that was refused before."""


def activate_by_full_walk(leaf: LeafQueue, refused: Refused) -> None:
    """LeafQueue.activateApplications as Hadoop writes it; records why each application was refused."""
    for partition in leaf.label_partitions():
        activation.compute_am_limit(leaf, partition)
    limits: dict[str, Resource] = {}
    for application in list(leaf.pending):
        partition = application.am_partition
        refusal = activation._queue_refusal(leaf, application)
        if refusal is None:
            user = leaf.users.get_or_add(application.user)
            if partition not in limits:
                limits[partition] = activation.user_am_limit(leaf, partition, user.weight)
            refusal = activation._user_refusal(leaf, application, user, limits[partition])
        if refusal is None:
            activation._activate(leaf, application, user)
        else:
            refused[application] = refusal.reason


def trace(steps: list[tuple[object, ...]], refusal_of: Callable[[FiCaSchedulerApp], Reason | None]) -> Trace:
    """After each pass: the active applications, and the pending ones with their reasons."""
    cluster = Cluster({"root.queues": "a", "root.a.capacity": "100", **SMALL_AM_SHARE})
    cluster.node("n0", 10 * GB)
    live, nodes = list[str](), ["n0"]
    found: Trace = []
    for number, step in enumerate(steps):
        match step:
            case ("submit", str(user), int(gb), int(priority)):
                live.append(f"app{number}")
                cluster.submit(live[-1], user, am_mb=gb * GB, priority=priority)
            case ("end", int(index)) if live:
                cluster.end(live.pop(index % len(live)))
            case ("prioritize", int(index), int(priority)) if live:
                cluster.prioritize(live[index % len(live)], priority)
            case ("node", int(gb)):
                nodes.append(f"n{number + 1}")
                cluster.node(nodes[-1], gb * GB)
            case ("lose", int(index)) if nodes:
                cluster.lose(nodes.pop(index % len(nodes)))
            case ("resize", int(index), int(gb)) if nodes:
                cluster.resize(nodes[index % len(nodes)], gb * GB)
            case _:
                continue
        leaf = cluster.leaf()
        waiting = [(str(app), refusal_of(app)) for app in leaf.pending]
        found.append(([str(app) for app in leaf.active], waiting))
    assert cluster.violations() == []
    return found


def reason_of(application: FiCaSchedulerApp) -> Reason | None:
    refusal = LeafQueue.of(application).am_refusal(application)
    return None if refusal is None else refusal.reason


@only_interpreted
@settings(max_examples=60, deadline=None)
@given(STEPS)
@example(MORE_ROOM_ENDS_A_REFUSAL_BY_THE_QUEUE)
@example(THE_CLUSTER_IS_EMPTY)
@example(ANOTHER_IS_ACTIVATED_BETWEEN_TWO_REFUSALS)
def test_a_pass_activates_what_a_full_walk_does(steps: list[tuple[object, ...]]) -> None:
    refused: Refused = {}
    with pytest.MonkeyPatch.context() as patch:
        # A change of the cluster causes a pass, too.
        for module in (activation, queue_update):
            patch.setattr(module, "activate_applications", lambda leaf: activate_by_full_walk(leaf, refused))
        patch.delattr(PendingApplications, "candidates")
        expected = trace(steps, lambda application: refused.get(application, Reason.AM_NO_CLUSTER))
    assert trace(steps, reason_of) == expected


def test_a_changed_priority_keeps_the_reason_for_waiting(start_cluster: StartCluster) -> None:
    """A change of priority causes no pass, so the reason of the last pass is reported."""
    cluster = start_cluster(SMALL_AM_SHARE)
    cluster.node("n1", 10 * GB)
    cluster.submit("app1", am_mb=4 * GB)
    cluster.submit("app2", am_mb=2 * GB)
    cluster.prioritize("app2", 3)
    assert reason_of(cluster.attempt("app2")) is Reason.AM_QUEUE_LIMIT


def test_the_cost_of_a_submission_does_not_grow_with_pending_applications(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sizes and three users: a pass checks each size once, for 6 or for 150 pending applications."""
    cluster = start_cluster({"maximum-am-resource-percent": "0.1"})
    cluster.node("n1", 20 * GB)
    checks = 0
    original = activation._refusal

    def count(*arguments: object) -> object:
        nonlocal checks
        checks += 1
        return original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(activation, "_refusal", count)
    costs = []
    for number in range(150):
        checks = 0
        cluster.submit(f"app{number}", USERS[number % 3], am_mb=GB * (1 + number % 2))
        costs.append(checks)
    assert cluster.leaf().pending_count > 140
    assert max(costs[-10:]) <= max(costs[6:16])
