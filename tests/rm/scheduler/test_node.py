"""Free capacity on nodes, and the largest container that they could run."""

from __future__ import annotations

import pytest

from rm.scheduler.model.node import NodeTracker, SchedulerNode
from rm.scheduler.model.rm_container import RMContainer
from tests.rm.scheduler.cluster import GB, ONE_QUEUE, Cluster
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.resource import Resource

CONFIGURED = Resource(8192, 4)
SETTLE_MS = 10_000


def node(name: str, memory_mb: int, vcores: int) -> SchedulerNode:
    return SchedulerNode(NodeId(name, 1), name, "/r1", Resource(memory_mb, vcores), "")


def test_the_configured_maximum_holds_until_nodes_have_had_time_to_join() -> None:
    """Strictly longer than the wait; once over, it stays over."""
    tracker = NodeTracker({}, CONFIGURED, started_ms=1000)
    tracker.add(node("n1", 4096, 8))
    assert tracker.maximum_allocation(11_000, SETTLE_MS) == CONFIGURED
    assert tracker.maximum_allocation(11_001, SETTLE_MS) == Resource(4096, 4)
    assert tracker.maximum_allocation(2_000, SETTLE_MS) == Resource(4096, 4)


def test_without_a_node_the_configured_maximum_holds_again() -> None:
    tracker = NodeTracker({}, CONFIGURED, started_ms=0)
    tracker.add(node("n1", 4096, 8))
    assert tracker.maximum_allocation(20_000, SETTLE_MS) == Resource(4096, 4)
    tracker.remove(NodeId("n1", 1))
    assert tracker.maximum_allocation(20_000, SETTLE_MS) == CONFIGURED


def test_each_types_maximum_comes_from_the_node_with_most_of_it() -> None:
    tracker = NodeTracker({}, CONFIGURED, started_ms=0)
    tracker.add(node("memory", 6144, 1))
    tracker.add(node("vcores", 1024, 3))
    assert tracker.maximum_allocation(20_000, SETTLE_MS) == Resource(6144, 3)


def test_a_smaller_total_keeps_what_is_allocated() -> None:
    """SchedulerNode.updateTotalResource: unallocated = total - allocated, and may be negative."""
    shrunk = node("n1", 4096, 4)
    shrunk.allocated, shrunk.unallocated = Resource(3072, 3), Resource(1024, 1)
    shrunk.update_total(Resource(2048, 2))
    assert shrunk.unallocated == Resource(-1024, -1)
    assert shrunk.allocated == Resource(3072, 3)


def test_completing_an_unknown_container_changes_nothing() -> None:
    one = node("n1", 4096, 4)
    one.release_container(ContainerId(ApplicationAttemptId(ApplicationId(1, 1), 1), 1), by_node=True)
    assert one.unallocated == one.total


def numbers(containers: list[RMContainer]) -> list[int]:
    return [container.id.number for container in containers]


def first_and_fourteenth(most: int) -> Cluster:
    """A node with containers 1 and 14 of one application, which once had `most` at the same time."""
    cluster = Cluster({**ONE_QUEUE, "per-node-heartbeat.maximum-offswitch-assignments": "100"})
    cluster.node("n1", most * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", most - 1)
    run_all(cluster)
    cluster.finish("app1", *range(2, most + 1))
    cluster.request("app1", 14 - most)
    run_all(cluster)
    cluster.finish("app1", *range(most + 1, 14))
    cluster.heartbeat("n1")
    assert sorted(numbers(list(cluster.node_of("n1").containers.values()))) == [1, 14]
    return cluster


def run_all(cluster: Cluster) -> None:
    cluster.heartbeat("n1")
    cluster.poll("app1")
    cluster.heartbeat("n1")


@pytest.mark.parametrize(
    ("most", "of_node", "of_attempt"), [(11, [14, 1], [14, 1]), (12, [14, 1], [1, 14]), (13, [1, 14], [1, 14])]
)
def test_containers_are_iterated_in_the_order_of_maps_that_never_shrink(
    most: int, of_node: list[int], of_attempt: list[int]
) -> None:
    """SchedulerNode.launchedContainers is a HashMap, SchedulerApplicationAttempt.liveContainers a concurrent one."""
    cluster = first_and_fourteenth(most)
    assert numbers(cluster.node_of("n1").containers_in_hash_order()) == of_node
    assert numbers(cluster.attempt("app1").live_in_hash_order()) == of_attempt


def test_a_lost_nodes_containers_complete_in_that_order() -> None:
    """If it had never had so many containers, the fourteenth would complete first."""
    assert [line.split()[0] for line in first_and_fourteenth(13).lose("n1")] == ["app1/1", "app1/14"]
