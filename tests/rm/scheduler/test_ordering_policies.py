"""The order of a leaf's applications: fifo, fair, fair by size, fifo-for-pending-apps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from rm.scheduler.capacity.queue_update import reorder
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.application_order import GivenOrderingPolicy
from rm.scheduler.model.leaf_queue import LeafQueue
from tests.rm.scheduler.cluster import GB, ONE_QUEUE, Cluster
from yarn.faults import ConfigurationException

FAIR = {**ONE_QUEUE, "root.a.ordering-policy": "fair", "root.a.user-limit-factor": "10"}
BY_SIZE = {**FAIR, "root.a.ordering-policy.fair.enable-size-based-weight": "true"}


def two_applications(conf: dict[str, str]) -> Cluster:
    """`old` and `new` run on n0; n1 is empty."""
    cluster = Cluster(conf)
    cluster.node("n0", 16 * GB)
    cluster.node("n1", 16 * GB)
    cluster.run("old", "n0")
    cluster.now_ms += 1
    cluster.run("new", "n0")
    return cluster


@pytest.mark.case("D1")
def test_fifo_serves_the_older_application_first() -> None:
    """FifoOrderingPolicy: the older application gets all it requests before the next gets anything."""
    cluster = two_applications(ONE_QUEUE)
    cluster.request("old", 2)
    cluster.request("new", 2)
    assert cluster.heartbeat("n1", times=3) == ["old/2 on n1 1024", "old/3 on n1 1024", "new/2 on n1 1024"]


@pytest.mark.case("D1")
def test_fair_serves_the_application_with_least_memory() -> None:
    """FairOrderingPolicy: they take turns; equal ones in the order of their start."""
    cluster = two_applications(FAIR)
    cluster.request("old", 2)
    cluster.request("new", 2)
    assert cluster.heartbeat("n1", times=4) == [
        "old/2 on n1 1024",
        "new/2 on n1 1024",
        "old/3 on n1 1024",
        "new/3 on n1 1024",
    ]


def test_fair_ignores_priorities() -> None:
    """FairOrderingPolicy compares only usage, start and age."""
    cluster = Cluster({**FAIR})
    cluster.node("n0", 16 * GB)
    cluster.submit("low")
    cluster.now_ms += 1
    cluster.submit("high", priority=5)
    assert cluster.heartbeat("n0", times=2) == ["low/1 on n0 1024 master", "high/1 on n0 1024 master"]


def test_fair_uses_a_release_at_the_next_pass() -> None:
    """AbstractComparatorOrderingPolicy: containerReleased inserts the application again by its new usage."""
    cluster = two_applications(FAIR)
    cluster.request("old", 1, 4 * GB)
    cluster.heartbeat("n1")
    cluster.poll("old")
    cluster.request("old", 1)
    cluster.request("new", 1, 2 * GB)
    cluster.release("old", 2)
    cluster.read_story()
    assert cluster.heartbeat("n1") == ["old/3 on n1 1024"]


def test_fair_by_size_lets_the_larger_application_hold_more() -> None:
    """FairOrderingPolicy: used memory / log2(1 + requested memory): 1024 / log2(21 GB) < 1024 / log2(2 GB)."""
    cluster = two_applications(BY_SIZE)
    cluster.request("old", 1)
    cluster.request("new", 20)
    assert cluster.heartbeat("n1") == ["new/2 on n1 1024"]


def test_a_refresh_drops_outstanding_reorderings() -> None:
    """LeafQueue.setupQueueConfigs creates a new policy; applications keep the sort keys that were last computed."""
    cluster = two_applications(FAIR)
    cluster.request("old", 1, 4 * GB)
    cluster.heartbeat("n1")
    cluster.refresh(FAIR)
    assert cluster.attempt("old").ordered_used_mb == GB, "the pass that placed old/2 counted its AM"
    cluster.request("old", 1)
    cluster.request("new", 1)
    assert cluster.heartbeat("n1") == ["old/3 on n1 1024"]


def test_fifo_for_pending_apps_orders_like_fifo() -> None:
    """FifoOrderingPolicyForPendingApps: recovering applications first, then by priority and age."""
    cluster = Cluster({**ONE_QUEUE, "root.a.ordering-policy": "fifo-for-pending-apps"})
    cluster.node("n0", 16 * GB)
    cluster.submit("low")
    cluster.submit("high", priority=5)
    assert cluster.heartbeat("n0", times=2) == ["high/1 on n0 1024 master", "low/1 on n0 1024 master"]


def test_an_unknown_policy_is_refused() -> None:
    """CapacitySchedulerConfiguration.getAppOrderingPolicy."""
    with pytest.raises(ConfigurationException, match="Unable to construct ordering policy for: x"):
        Cluster({**ONE_QUEUE, "root.a.ordering-policy": "x"})


def given(cluster: Cluster, order: Callable[[Sequence[FiCaSchedulerApp]], Sequence[FiCaSchedulerApp]]) -> None:
    """Order the applications of leaf `a` by a function."""
    leaf = cluster.scheduler.queue("a")
    assert isinstance(leaf, LeafQueue)
    reorder(leaf, GivenOrderingPolicy(order))


def test_a_given_order_decides_who_is_served() -> None:
    cluster = two_applications(ONE_QUEUE)
    given(cluster, lambda applications: applications[::-1])
    cluster.request("old", 2)
    cluster.request("new", 2)
    assert cluster.heartbeat("n1", times=3) == ["new/2 on n1 1024", "new/3 on n1 1024", "old/2 on n1 1024"]


def test_a_given_order_is_asked_again_when_use_or_requests_change() -> None:
    cluster = two_applications(ONE_QUEUE)
    given(cluster, lambda applications: sorted(applications, key=lambda one: one.usage.pending("").memory_mb))
    cluster.request("old", 2)
    cluster.request("new", 1)
    assert cluster.heartbeat("n1", times=2) == ["new/2 on n1 1024", "old/2 on n1 1024"]
    cluster.request("new", 3)
    assert cluster.heartbeat("n1", times=2) == ["old/3 on n1 1024", "new/3 on n1 1024"]


def test_a_given_order_gets_applications_as_they_were_submitted_and_forgets_those_that_end() -> None:
    seen: list[list[int]] = []

    def order(applications: Sequence[FiCaSchedulerApp]) -> Sequence[FiCaSchedulerApp]:
        seen.append([one.attempt_id.application_id.id for one in applications])
        return sorted(applications, key=lambda one: -one.attempt_id.application_id.id)

    cluster = two_applications(ONE_QUEUE)
    given(cluster, order)
    cluster.request("old", 1)
    cluster.request("new", 1)
    assert cluster.heartbeat("n1") == ["new/2 on n1 1024"]
    cluster.run("third", "n1")
    cluster.end("new")
    cluster.request("third", 1)
    assert cluster.heartbeat("n1", times=2) == ["third/2 on n1 1024", "old/2 on n1 1024"]
    assert [1, 2] in seen
    assert seen[-1] == [1, 3]
