"""A leaf records the containers that borrow from a non-exclusive partition, under the node's label at allocation.

Source: AbstractLeafQueue.
"""

from __future__ import annotations

import pytest

from tests.rm.scheduler.cluster import GB, Cluster, row
from tests.rm.scheduler.conftest import StartCluster
from yarn.nodes import NodeLabel

CONF = {
    "yarn.node-labels.enabled": "true",
    "root.queues": "a",
    "root.a.capacity": "100",
    "root.a.accessible-node-labels.x.capacity": "100",
    "maximum-am-resource-percent": "1",
    "user-limit-factor": "10",
}


@pytest.fixture
def cluster(start_cluster: StartCluster) -> Cluster:
    """n1 has no label and is filled by the AM; n2 of x, which is not exclusive, has 4 GB."""
    cluster = start_cluster(CONF, alone=True)
    cluster.scheduler.labels.add([NodeLabel("x", exclusive=False)])
    cluster.label("n2", "x")
    cluster.node("n1", GB)
    cluster.node("n2", 4 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 2)
    return cluster


def borrowed_mb(cluster: Cluster) -> dict[str, list[str]]:
    leaf = cluster.leaf()
    return {
        partition: [cluster.name_of(found) for found in containers] for partition, containers in leaf.borrowed.items()
    }


def test_a_borrowing_container_is_recorded_until_it_completes(cluster: Cluster) -> None:
    assert cluster.heartbeat("n2", 3) == ["app1/2 on n2 1024", "app1/3 on n2 1024"]
    assert borrowed_mb(cluster) == {"x": ["app1/2", "app1/3"]}
    cluster.release("app1", 2)
    assert borrowed_mb(cluster) == {"x": ["app1/3"]}
    cluster.release("app1", 3)
    assert borrowed_mb(cluster) == {}


def test_a_container_requested_with_the_label_is_not_borrowing(cluster: Cluster) -> None:
    cluster.send("app1", [row(1, label="x", priority=2)])
    assert cluster.heartbeat("n2") == ["app1/2 on n2 1024"]
    assert borrowed_mb(cluster) == {}


def test_a_new_label_of_the_node_does_not_change_the_record(cluster: Cluster) -> None:
    """At completion it is looked up under the new label, so it stays recorded under the old one for good."""
    cluster.heartbeat("n2", 2)
    cluster.label("n2")
    assert borrowed_mb(cluster) == {"x": ["app1/2"]}
    cluster.release("app1", 2)
    assert borrowed_mb(cluster) == {"x": ["app1/2"]}


def test_a_moved_container_borrows_for_the_target_leaf(start_cluster: StartCluster) -> None:
    conf = {**CONF, "root.queues": "a,b", "root.a.capacity": "50", "root.b.capacity": "50"}
    conf |= {"root.a.accessible-node-labels.x.capacity": "50", "root.b.accessible-node-labels.x.capacity": "50"}
    cluster = start_cluster(conf, alone=True)
    cluster.scheduler.labels.add([NodeLabel("x", exclusive=False)])
    cluster.label("n2", "x")
    cluster.node("n1", GB)
    cluster.node("n2", 4 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 1)
    cluster.heartbeat("n2", 2)
    cluster.move("app1", "b")
    assert borrowed_mb(cluster) == {}
    assert list(cluster.leaf("b").borrowed) == ["x"]


def test_a_reservation_is_fulfilled_although_its_request_now_has_a_label(start_cluster: StartCluster) -> None:
    """The partition is checked when a node is chosen, and not again (RegularContainerAllocator)."""
    cluster = start_cluster(CONF, alone=True)
    cluster.scheduler.labels.add([NodeLabel("x")])
    cluster.node("n1", 4 * GB)
    cluster.node("n2", 4 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 1, 2 * GB)
    assert cluster.heartbeat("n1") == ["app1/2 on n1 2048"]
    cluster.request("app1", 1, 2 * GB)
    assert cluster.heartbeat("n1") == ["app1/3 reserved on n1 2048"]
    cluster.send("app1", [row(1, 2 * GB, label="x")])
    cluster.release("app1", 2)
    assert "app1/3 on n1 2048" in cluster.heartbeat("n1")
    assert cluster.violations() == []
