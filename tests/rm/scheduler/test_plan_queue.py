"""Queues that reservations could be made in: PlanQueue and ReservationQueue, in a cluster without reservations."""

from __future__ import annotations

import pytest

from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from tests.rm.scheduler.cluster import GB, Cluster, configuration
from tests.rm.scheduler.conftest import StartCluster
from yarn.errors import YarnException
from yarn.faults import ConfigurationException
from yarn.java.binary32 import f32
from yarn.resource import Resource

PLAN = {
    "root.queues": "a,b",
    "root.a.capacity": "25",
    "root.a.maximum-capacity": "80",
    "root.a.reservable": "true",
    "root.a.minimum-user-limit-percent": "50",
    "root.a.user-limit-factor": "2",
    "root.b.capacity": "75",
    "maximum-am-resource-percent": "0.5",
}


def shares(cluster: Cluster, queue: str) -> tuple[float, float]:
    found = cluster.scheduler.queue(queue)
    assert found is not None
    own = found.capacities.default
    return own.absolute_capacity, own.absolute_maximum_capacity


def test_it_has_one_leaf_with_all_of_it(start_cluster: StartCluster) -> None:
    cluster = start_cluster(PLAN, alone=True)
    cluster.node("n1", 16 * GB)
    leaf = cluster.leaf("root.a.a-default")
    assert leaf.effective_minimum("") == Resource(4096, 4)
    assert leaf.effective_maximum("") == Resource(13107, 12)
    assert (leaf.configuration.user_limit, leaf.configuration.user_limit_factor) == (50.0, 2.0)


def test_one_master_runs_at_a_time(start_cluster: StartCluster) -> None:
    """No share of the leaf is set aside for masters, so only one is let in."""
    cluster = start_cluster(PLAN, alone=True)
    cluster.node("n1", 16 * GB)
    cluster.submit("app1", queue="a")
    cluster.submit("app2", queue="a-default")
    leaf = cluster.leaf("a-default")
    assert (leaf.am_limit(""), leaf.active_count, leaf.pending_count) == (Resource(0, 0), 1, 1)


def test_who_names_it_is_led_to_its_leaf_by_the_short_name_alone(start_cluster: StartCluster) -> None:
    """Hadoop adds to the name that was given, which with a path names a sibling that there is not."""
    cluster = start_cluster(PLAN, alone=True)
    cluster.node("n1", 16 * GB)
    assert cluster.submit("app1", queue="a") == []
    (refusal,) = cluster.submit("app2", queue="root.a")
    assert "submitted by user user to unknown queue: root.a-default" in refusal
    with pytest.raises(YarnException, match=r"The specified Queue: root\.a-default doesn't exist"):
        cluster.move("app1", "root.a")
    cluster.submit("app3", queue="b")
    cluster.move("app3", "a")
    assert cluster.leaf("a-default").application_total() == 2


def test_a_refresh_keeps_what_runs_in_it(start_cluster: StartCluster) -> None:
    cluster = start_cluster(PLAN, alone=True)
    cluster.node("n1", 16 * GB)
    cluster.submit("app1", queue="a")
    cluster.refresh({**PLAN, "root.a.capacity": "50", "root.b.capacity": "50", "root.a.user-limit-factor": "3"})
    leaf = cluster.leaf("a-default")
    assert (leaf.active_count, leaf.effective_minimum(""), leaf.shape.user_limit_factor) == (1, Resource(8192, 8), 3.0)


@pytest.mark.parametrize(
    ("a", "b", "minimum"),
    [("2w", "6w", Resource(4096, 4)), ("[memory=4096,vcores=4]", "[memory=4096,vcores=4]", Resource(4096, 4))],
)
def test_any_notation_will_do(start_cluster: StartCluster, a: str, b: str, minimum: Resource) -> None:
    conf = {**PLAN, "root.a.capacity": a, "root.b.capacity": b}
    cluster = start_cluster({**conf, "root.a.maximum-capacity": "100"}, alone=True)
    cluster.node("n1", 16 * GB)
    cluster.refresh({**conf, "root.a.maximum-capacity": "100"})
    assert cluster.leaf("a-default").effective_minimum("") == minimum


def test_its_shares_outlive_an_empty_cluster_without_legacy_mode(start_cluster: StartCluster) -> None:
    cluster = start_cluster({**PLAN, "legacy-queue-mode.enabled": "false"}, alone=True)
    kept = (0.25, f32(0.8))
    assert [shares(cluster, queue) for queue in ("a", "a-default", "b")] == [kept, kept, (0.0, 1.0)]


def test_only_leaves_are_reservable() -> None:
    conf = {**PLAN, "root.a.queues": "x", "root.a.x.capacity": "100"}
    with pytest.raises(ConfigurationException) as refusal:
        CapacitySchedulerConfiguration.read(configuration(conf))
    assert [fault.problem for fault in refusal.value.faults] == ["Only Leaf Queues can be reservable for root.a"]
