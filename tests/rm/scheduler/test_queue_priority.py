"""Priorities of queues: PriorityUtilizationQueueOrderingPolicy."""

from __future__ import annotations

import pytest

from tests.rm.scheduler.cluster import GB, Cluster
from tests.rm.scheduler.conftest import StartCluster

SMALL_AND_BIG = {
    "root.queues": "small,big",
    "root.small.capacity": "20",
    "root.big.capacity": "80",
    "root.ordering-policy": "priority-utilization",
    "maximum-am-resource-percent": "1",
    "user-limit-factor": "10",
}


def start(start_cluster: StartCluster, priority: str) -> Cluster:
    """20 GB; small uses 2 of its 4 GB, big 4 of its 16; both request more."""
    cluster = start_cluster({**SMALL_AND_BIG, "root.small.priority": priority}, alone=True)
    cluster.node("n1", 20 * GB)
    cluster.run("app1", "n1", queue="small", am_mb=2 * GB)
    cluster.run("app2", "n1", queue="big", am_mb=4 * GB)
    cluster.request("app1", 20)
    cluster.request("app2", 20)
    return cluster


@pytest.mark.case("A6")
def test_with_equal_priorities_the_less_used_queue_comes_first(start_cluster: StartCluster) -> None:
    """Relative to the guarantee: big uses twice as much, but only a quarter of its guarantee."""
    cluster = start(start_cluster, "0")
    assert cluster.heartbeat("n1") == ["app2/2 on n1 1024"]


@pytest.mark.case("A6")
def test_the_higher_priority_comes_first_up_to_its_guarantee(start_cluster: StartCluster) -> None:
    """Above its guarantee, a queue comes after those below their own guarantee, whatever the priorities."""
    cluster = start(start_cluster, "5")
    assert cluster.heartbeat("n1", 2) == ["app1/2 on n1 1024", "app1/3 on n1 1024"]
    assert cluster.used("small") == 4 * GB
    assert cluster.heartbeat("n1") == ["app2/2 on n1 1024"]


@pytest.mark.case("A6")
def test_the_utilization_policy_ignores_priorities(start_cluster: StartCluster) -> None:
    cluster = start_cluster(
        {**SMALL_AND_BIG, "root.small.priority": "5", "root.ordering-policy": "utilization"}, alone=True
    )
    cluster.node("n1", 20 * GB)
    cluster.run("app1", "n1", queue="small", am_mb=2 * GB)
    cluster.run("app2", "n1", queue="big", am_mb=4 * GB)
    cluster.request("app1", 1)
    cluster.request("app2", 1)
    assert cluster.heartbeat("n1")[0] == "app2/2 on n1 1024"


def test_equally_used_queues_with_amounts_are_ordered_by_memory_first(start_cluster: StartCluster) -> None:
    """By the configured amount, not by the resulting share: a has half of the cluster's cores."""
    amounts = {"root.a.capacity": "[memory=2048,vcores=8]", "root.b.capacity": "[memory=4096,vcores=2]"}
    limits = {"maximum-am-resource-percent": "1", "resource-calculator": "DominantResourceCalculator"}
    cluster = start_cluster({"root.queues": "a,b", **amounts, **limits}, alone=True)
    cluster.node("n1", 16 * GB)
    assert (
        cluster.leaf("a").capacities.default.absolute_capacity > cluster.leaf("b").capacities.default.absolute_capacity
    )
    cluster.submit("app1", queue="a")
    cluster.submit("app2", queue="b")
    assert cluster.heartbeat("n1") == ["app2/1 on n1 1024 master"]
