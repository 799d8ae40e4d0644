"""Room on nodes, and the largest container that they could hold."""

from __future__ import annotations

from rm.scheduler.node import NodeTracker, SchedulerNode
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.resource import Resource

CONFIGURED = Resource(8192, 4)
SETTLE_MS = 10_000


def node(name: str, memory_mb: int, vcores: int) -> SchedulerNode:
    return SchedulerNode(NodeId(name, 1), name, "/r1", Resource(memory_mb, vcores), "")


def test_the_configured_maximum_holds_until_nodes_have_had_time_to_join() -> None:
    """Strictly more than the wait; once over, it stays over."""
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


def test_each_type_is_taken_from_the_node_that_has_most_of_it() -> None:
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


def test_the_end_of_an_unknown_container_changes_nothing() -> None:
    one = node("n1", 4096, 4)
    one.release_container(ContainerId(ApplicationAttemptId(ApplicationId(1, 1), 1), 1), by_node=True)
    assert one.unallocated == one.total
