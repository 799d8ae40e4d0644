"""Which child is offered a node first, and the limits that the tree sets."""

from __future__ import annotations

from tests.rm.scheduler.cluster import GB, Cluster
from tests.rm.scheduler.conftest import StartCluster


def start_two(start_cluster: StartCluster, a: str = "30", b: str = "70", **conf: str) -> Cluster:
    """Two leaves with one application each, running on one node of 20 GB."""
    cluster = start_cluster(
        {
            "root.queues": "a,b",
            "root.a.capacity": a,
            "root.b.capacity": b,
            "user-limit-factor": "100",
            "maximum-am-resource-percent": "1",
            **conf,
        },
        alone=True,
    )
    cluster.node("n1", 20 * GB)
    cluster.run("in-a", "n1", queue="a")
    cluster.run("in-b", "n1", queue="b")
    return cluster


def test_the_least_served_queue_is_first(start_cluster: StartCluster) -> None:
    """testSingleLevelQueues: a uses 1 of 6 GB, b 1 of 14: b; then 2 of 14: b again; 3 of 14 is more than 1 of 6: a."""
    cluster = start_two(start_cluster)
    cluster.request("in-a", 10)
    cluster.request("in-b", 10)
    story = cluster.heartbeat("n1", 4)
    assert [line.split("/")[0] for line in story] == ["in-b", "in-b", "in-a", "in-b"]


def test_on_a_tie_the_larger_guarantee_is_first(start_cluster: StartCluster) -> None:
    """Both are unused: the larger absolute capacity is first."""
    cluster = start_cluster(
        {"root.queues": "a,b", "root.a.capacity": "30", "root.b.capacity": "70", "maximum-am-resource-percent": "1"},
        alone=True,
    )
    cluster.node("n1", 20 * GB)
    cluster.submit("in-a", queue="a")
    cluster.submit("in-b", queue="b")
    assert cluster.heartbeat("n1") == ["in-b/1 on n1 1024 master"]


def test_equal_queues_keep_the_order_of_the_file(start_cluster: StartCluster) -> None:
    cluster = start_cluster(
        {"root.queues": "z,a", "root.a.capacity": "50", "root.z.capacity": "50", "maximum-am-resource-percent": "1"},
        alone=True,
    )
    cluster.node("n1", 20 * GB)
    cluster.submit("in-a", queue="a")
    cluster.submit("in-z", queue="z")
    assert cluster.heartbeat("n1") == ["in-z/1 on n1 1024 master"]


def test_a_queue_without_a_guarantee_is_last(start_cluster: StartCluster) -> None:
    """PriorityUtilizationQueueOrderingPolicy: absolute capacity above 0 comes first, whatever is used."""
    cluster = start_two(start_cluster, "0", "100", **{"root.a.maximum-applications": "5"})
    cluster.request("in-b", 10)
    cluster.request("in-a", 10)
    assert [line.split("/")[0] for line in cluster.heartbeat("n1", 3)] == ["in-b"] * 3


def test_a_higher_priority_is_first_while_both_are_under_their_guarantee(start_cluster: StartCluster) -> None:
    """testQueuePriorityOrdering: a up to its guarantee of 6 GB, then b despite its lower priority."""
    cluster = start_two(start_cluster, **{"root.ordering-policy": "priority-utilization", "root.a.priority": "1"})
    cluster.request("in-a", 20)
    cluster.request("in-b", 20)
    story = cluster.heartbeat("n1", 8)
    assert [line.split("/")[0] for line in story] == ["in-a"] * 5 + ["in-b"] * 3


def test_one_off_switch_container_ends_the_heartbeat(start_cluster: StartCluster) -> None:
    """testOffSwitchScheduling: one assignment, no second queue in the same call."""
    cluster = start_two(start_cluster)
    cluster.request("in-a", 5)
    cluster.request("in-b", 5)
    assert len(cluster.heartbeat("n1")) == 1


def test_a_queue_at_its_maximum_does_not_block_its_siblings(start_cluster: StartCluster) -> None:
    """testAllocationCannotBeBlockedWhenFormerQueueReachedItsLimit."""
    cluster = start_two(start_cluster, "50", "50", **{"root.a.maximum-capacity": "10"})
    cluster.request("in-a", 5, 2 * GB)
    cluster.request("in-b", 5, 2 * GB)
    assert cluster.heartbeat("n1") == ["in-b/2 on n1 2048"]
    assert cluster.held("in-a") == GB


def test_capacity_that_a_needier_queue_cannot_use_is_kept_for_it(start_cluster: StartCluster) -> None:
    """assignContainersToChildQueues: a leaf stopped by its headroom blocks that headroom for later siblings."""
    cluster = start_cluster(
        {
            "root.queues": "p,q",
            "root.p.capacity": "50",
            "root.p.maximum-capacity": "50",
            "root.q.capacity": "50",
            "root.p.queues": "a,b",
            "root.p.a.capacity": "50",
            "root.p.b.capacity": "50",
            "user-limit-factor": "100",
            "maximum-am-resource-percent": "1",
        },
        alone=True,
    )
    cluster.node("n1", 20 * GB)
    cluster.run("in-a", "n1", queue="a")
    cluster.run("in-b", "n1", queue="b")
    cluster.request("in-b", 5)
    cluster.heartbeat("n1", 5)
    # p may use 10 GB and uses 7; a requests 4 of the remaining 3: b must leave those free.
    cluster.request("in-a", 1, 4 * GB)
    cluster.request("in-b", 5)
    assert cluster.heartbeat("n1", 3) == []
    assert cluster.used("root.p") == 7 * GB


def test_a_queue_may_have_a_maximum_below_its_capacity(start_cluster: StartCluster) -> None:
    """The configuration loads, and the maximum limits the queue."""
    cluster = start_two(start_cluster, "50", "50", **{"root.a.maximum-capacity": "20"})
    assert cluster.leaf("a").effective_maximum("").memory_mb == 4 * GB
    cluster.request("in-a", 20)
    cluster.heartbeat("n1", 20)
    assert cluster.used("a") == 4 * GB


def test_capacities_are_rounded_to_32_bits(start_cluster: StartCluster) -> None:
    """70 % of 100 GB."""
    cluster = start_cluster({"root.queues": "a,b", "root.a.capacity": "70", "root.b.capacity": "30"}, alone=True)
    cluster.node("n1", 100 * GB)
    assert cluster.leaf("a").effective_minimum("").memory_mb == 71679
