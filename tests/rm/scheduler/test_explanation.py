"""The explanation of why a container was not allocated: Hadoop's sentences with the numbers behind them."""

from __future__ import annotations

import pytest

from rm.core.explain.obstacles import obstacles
from rm.scheduler.model.last_refusals import REFUSALS_MAX, Refusals
from rm.scheduler.model.refusals import Reason
from tests.rm.scheduler.cluster import GB, Cluster, row
from tests.rm.scheduler.conftest import StartCluster
from yarn.ids import ApplicationId, NodeId


def explain(cluster: Cluster, app: str) -> list[str]:
    """The obstacles as text, without the attempt's id."""
    attempt_id = cluster.attempt(app).attempt_id
    found = obstacles(cluster.scheduler, attempt_id.application_id)
    return [str(obstacle).replace(str(attempt_id), app) for obstacle in found]


@pytest.fixture
def cluster(start_cluster: StartCluster) -> Cluster:
    cluster = start_cluster()
    cluster.node("n1", 4 * GB)
    cluster.node("n2", 4 * GB)
    cluster.run("app1", "n1")
    return cluster


def test_a_full_node_is_reported_with_what_is_available(cluster: Cluster) -> None:
    cluster.request("app1", 1, 4 * GB)
    cluster.heartbeat("n1")
    assert explain(cluster, "app1") == [
        "app1 on n1: Node does not have sufficient resource for request "
        "(requested <memory:4096, vCores:1>, available <memory:3072, vCores:3>)"
    ]


def test_a_blacklisted_node_is_reported(cluster: Cluster) -> None:
    cluster.request("app1", 1)
    cluster.blacklist("app1", "n2")
    cluster.heartbeat("n2")
    assert explain(cluster, "app1") == ["app1 on n2: Node is blacklisted"]


@pytest.mark.case("C7")
def test_a_node_reserved_for_another_application_is_reported(cluster: Cluster) -> None:
    """To the owner of the reservation the node is full; an application without requests has no obstacles."""
    cluster.run("app2", "n1")
    cluster.request("app1", 1, 4 * GB)
    cluster.heartbeat("n1")
    assert explain(cluster, "app2") == []
    cluster.request("app2", 1)
    cluster.heartbeat("n1")
    assert explain(cluster, "app2") == [
        "root on n1: Queue skipped because node has been reserved (reserved <memory:4096, vCores:1>)"
    ]
    assert explain(cluster, "app1") == [
        "app1 on n1: Node does not have sufficient resource for request "
        "(requested <memory:4096, vCores:1>, available <memory:2048, vCores:2>)"
    ]


def test_waiting_for_a_better_node_is_reported(cluster: Cluster) -> None:
    cluster.send("app1", [row(2, name="far"), row(2, name="/far"), row(2)])
    cluster.heartbeat("n2")
    assert explain(cluster, "app1") == [
        "app1 on n2: Node skipped because of off-switch delay (requested <memory:1024, vCores:1>)"
    ]


def test_a_new_refusal_on_a_node_replaces_the_last_one(cluster: Cluster) -> None:
    cluster.request("app1", 1)
    cluster.blacklist("app1", "n2")
    cluster.heartbeat("n2")
    cluster.scheduler.allocate(cluster.attempt("app1").attempt_id, [], [], [], ["n2"], [], cluster.now_ms)
    cluster.send("app1", [row(2, name="far"), row(2, name="/far"), row(2)])
    cluster.heartbeat("n2")
    assert [line.split(" (")[0] for line in explain(cluster, "app1")] == [
        "app1 on n2: Node skipped because of off-switch delay"
    ]


def test_an_unknown_application_has_no_obstacles(cluster: Cluster) -> None:
    assert obstacles(cluster.scheduler, ApplicationId(1, 99)) == []


def test_refusals_since_a_time_are_the_last_first() -> None:
    refusals = Refusals()
    for host, at_ms in (("n1", 1), ("n2", 2), ("n3", 3), ("n1", 4)):
        refusals.note(NodeId(host, 1), Reason.NODE_FULL, at_ms)
    found = [(node_id.host, refusal.at_ms) for node_id, refusal in refusals.since(3)]
    assert found == [("n1", 4), ("n3", 3)]


def test_only_refusals_on_the_last_nodes_are_kept() -> None:
    refusals = Refusals()
    for i in range(REFUSALS_MAX + 5):
        refusals.note(NodeId(f"n{i}", 1), Reason.NODE_FULL, i)
    refusals.note(NodeId("n5", 1), Reason.NODE_BLACKLISTED, 999)
    refusals.note(NodeId("new", 1), Reason.NODE_FULL, 1000)
    kept = refusals.by_node()
    assert len(kept) == REFUSALS_MAX
    assert NodeId("n4", 1) not in kept
    assert kept[NodeId("n5", 1)].at_ms == 999
