"""Which child is offered a node first, and how far the tree lets it go."""

from __future__ import annotations

from tests.rm.scheduler.cluster import GB, Cluster
from tests.rm.scheduler.conftest import StartCluster


def start_two(start_cluster: StartCluster, a: str = "30", b: str = "70", **conf: str) -> Cluster:
    """Two leaves with an application each, that run on one node of 20 GB."""
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
    """testSingleLevelQueues: a 1 of 6 GB, b 1 of 14: b; then 2 of 14 still; 3 of 14 is more than 1 of 6."""
    cluster = start_two(start_cluster)
    cluster.ask("in-a", 10)
    cluster.ask("in-b", 10)
    story = cluster.beat("n1", 4)
    assert [line.split("/")[0] for line in story] == ["in-b", "in-b", "in-a", "in-b"]


def test_on_a_tie_the_larger_guarantee_is_first(start_cluster: StartCluster) -> None:
    """Both unused: larger absolute capacity."""
    cluster = start_cluster(
        {"root.queues": "a,b", "root.a.capacity": "30", "root.b.capacity": "70", "maximum-am-resource-percent": "1"},
        alone=True,
    )
    cluster.node("n1", 20 * GB)
    cluster.submit("in-a", queue="a")
    cluster.submit("in-b", queue="b")
    assert cluster.beat("n1") == ["in-b/1 on n1 1024 master"]


def test_equal_queues_keep_the_order_of_the_file(start_cluster: StartCluster) -> None:
    cluster = start_cluster(
        {"root.queues": "z,a", "root.a.capacity": "50", "root.z.capacity": "50", "maximum-am-resource-percent": "1"},
        alone=True,
    )
    cluster.node("n1", 20 * GB)
    cluster.submit("in-a", queue="a")
    cluster.submit("in-z", queue="z")
    assert cluster.beat("n1") == ["in-z/1 on n1 1024 master"]


def test_a_queue_without_guarantee_is_last(start_cluster: StartCluster) -> None:
    """PriorityUtilizationQueueOrderingPolicy: absolute capacity above 0 comes first, whatever is used."""
    cluster = start_two(start_cluster, "0", "100", **{"root.a.maximum-applications": "5"})
    cluster.ask("in-b", 10)
    cluster.ask("in-a", 10)
    assert [line.split("/")[0] for line in cluster.beat("n1", 3)] == ["in-b"] * 3


def test_a_higher_priority_is_first_while_both_are_under_their_guarantee(start_cluster: StartCluster) -> None:
    """testQueuePriorityOrdering: priority-utilization; a of 6 GB first, up to its guarantee, then b though less."""
    cluster = start_two(start_cluster, **{"root.ordering-policy": "priority-utilization", "root.a.priority": "1"})
    cluster.ask("in-a", 20)
    cluster.ask("in-b", 20)
    story = cluster.beat("n1", 8)
    assert [line.split("/")[0] for line in story] == ["in-a"] * 5 + ["in-b"] * 3


def test_one_off_switch_container_ends_the_heartbeat(start_cluster: StartCluster) -> None:
    """testOffSwitchScheduling: one assignment, no second queue in the same call."""
    cluster = start_two(start_cluster)
    cluster.ask("in-a", 5)
    cluster.ask("in-b", 5)
    assert len(cluster.beat("n1")) == 1


def test_a_queue_at_its_maximum_does_not_hold_up_its_siblings(start_cluster: StartCluster) -> None:
    """testAllocationCannotBeBlockedWhenFormerQueueReachedItsLimit."""
    cluster = start_two(start_cluster, "50", "50", **{"root.a.maximum-capacity": "10"})
    cluster.ask("in-a", 5, 2 * GB)
    cluster.ask("in-b", 5, 2 * GB)
    assert cluster.beat("n1") == ["in-b/2 on n1 2048"]
    assert cluster.held("in-a") == GB


def test_room_that_a_needier_queue_cannot_take_is_kept_for_it(start_cluster: StartCluster) -> None:
    """assignContainersToChildQueues: a leaf stopped by its headroom blocks that headroom for the siblings after it."""
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
    cluster.ask("in-b", 5)
    cluster.beat("n1", 5)
    # p may use 10 GB and holds 7; a wants 4 of the 3 that are left: b must leave those alone.
    cluster.ask("in-a", 1, 4 * GB)
    cluster.ask("in-b", 5)
    assert cluster.beat("n1", 3) == []
    assert cluster.used("root.p") == 7 * GB


def test_a_queue_may_have_less_maximum_than_capacity(start_cluster: StartCluster) -> None:
    """It loads, and the maximum bounds it."""
    cluster = start_two(start_cluster, "50", "50", **{"root.a.maximum-capacity": "20"})
    assert cluster.leaf("a").effective_maximum("").memory_mb == 4 * GB
    cluster.ask("in-a", 20)
    cluster.beat("n1", 20)
    assert cluster.used("a") == 4 * GB


def test_capacities_lose_by_32_bits(start_cluster: StartCluster) -> None:
    """70 % of 100 GB."""
    cluster = start_cluster({"root.queues": "a,b", "root.a.capacity": "70", "root.b.capacity": "30"}, alone=True)
    cluster.node("n1", 100 * GB)
    assert cluster.leaf("a").effective_minimum("").memory_mb == 71679
