"""What is lent of a partition is remembered by its leaf, under the label that the node had (AbstractLeafQueue)."""

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
    """n1 without a label is full of the master; n2 of x, which is shared, has 4 GB."""
    cluster = start_cluster(CONF, alone=True)
    cluster.scheduler.labels.add([NodeLabel("x", exclusive=False)])
    cluster.label("n2", "x")
    cluster.node("n1", GB)
    cluster.node("n2", 4 * GB)
    cluster.run("app1", "n1")
    cluster.ask("app1", 2)
    return cluster


def lent(cluster: Cluster) -> dict[str, list[str]]:
    leaf = cluster.leaf()
    return {
        partition: [cluster.name_of(found) for found in containers] for partition, containers in leaf.borrowed.items()
    }


def test_it_is_remembered_until_it_ends(cluster: Cluster) -> None:
    assert cluster.beat("n2", 3) == ["app1/2 on n2 1024", "app1/3 on n2 1024"]
    assert lent(cluster) == {"x": ["app1/2", "app1/3"]}
    cluster.release("app1", 2)
    assert lent(cluster) == {"x": ["app1/3"]}
    cluster.release("app1", 3)
    assert lent(cluster) == {}


def test_what_asked_for_the_label_is_not_lent(cluster: Cluster) -> None:
    cluster.send("app1", [row(1, label="x", priority=2)])
    assert cluster.beat("n2") == ["app1/2 on n2 1024"]
    assert lent(cluster) == {}


def test_a_new_label_of_the_node_does_not_change_it(cluster: Cluster) -> None:
    """It is looked for under the new label when it ends, and stays under the old one for good."""
    cluster.beat("n2", 2)
    cluster.label("n2")
    assert lent(cluster) == {"x": ["app1/2"]}
    cluster.release("app1", 2)
    assert lent(cluster) == {"x": ["app1/2"]}


def test_what_moves_to_another_leaf_is_lent_there(start_cluster: StartCluster) -> None:
    conf = {**CONF, "root.queues": "a,b", "root.a.capacity": "50", "root.b.capacity": "50"}
    conf |= {"root.a.accessible-node-labels.x.capacity": "50", "root.b.accessible-node-labels.x.capacity": "50"}
    cluster = start_cluster(conf, alone=True)
    cluster.scheduler.labels.add([NodeLabel("x", exclusive=False)])
    cluster.label("n2", "x")
    cluster.node("n1", GB)
    cluster.node("n2", 4 * GB)
    cluster.run("app1", "n1")
    cluster.ask("app1", 1)
    cluster.beat("n2", 2)
    cluster.move("app1", "b")
    assert lent(cluster) == {}
    assert list(cluster.leaf("b").borrowed) == ["x"]


def test_a_reservation_is_filled_though_its_ask_wants_a_label_now(start_cluster: StartCluster) -> None:
    """The partition is looked at when a node is chosen, and not again (RegularContainerAllocator)."""
    cluster = start_cluster(CONF, alone=True)
    cluster.scheduler.labels.add([NodeLabel("x")])
    cluster.node("n1", 4 * GB)
    cluster.node("n2", 4 * GB)
    cluster.run("app1", "n1")
    cluster.ask("app1", 1, 2 * GB)
    assert cluster.beat("n1") == ["app1/2 on n1 2048"]
    cluster.ask("app1", 1, 2 * GB)
    assert cluster.beat("n1") == ["app1/3 reserved on n1 2048"]
    cluster.send("app1", [row(1, 2 * GB, label="x")])
    cluster.release("app1", 2)
    assert "app1/3 on n1 2048" in cluster.beat("n1")
    assert cluster.violations() == []
