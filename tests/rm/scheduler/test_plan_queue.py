"""Queues of the reservation system: PlanQueue and ReservationQueue, in a cluster without such reservations."""

from __future__ import annotations

import pytest

from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from tests.rm.scheduler.cluster import GB, Cluster, configuration
from tests.rm.scheduler.conftest import StartCluster
from yarn.errors import YarnException
from yarn.faults import ConfigurationException, Severity
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


def test_a_plan_queue_has_one_leaf_with_all_its_capacity(start_cluster: StartCluster) -> None:
    cluster = start_cluster(PLAN, alone=True)
    cluster.node("n1", 16 * GB)
    leaf = cluster.leaf("root.a.a-default")
    assert leaf.effective_minimum("") == Resource(4096, 4)
    assert leaf.effective_maximum("") == Resource(13107, 12)
    assert (leaf.configuration.user_limit, leaf.configuration.user_limit_factor) == (50.0, 2.0)


def test_one_am_runs_at_a_time(start_cluster: StartCluster) -> None:
    """The leaf has no AM share, so only one application is activated."""
    cluster = start_cluster(PLAN, alone=True)
    cluster.node("n1", 16 * GB)
    cluster.submit("app1", queue="a")
    cluster.submit("app2", queue="a-default")
    leaf = cluster.leaf("a-default")
    assert (leaf.am_limit(""), leaf.active_count, leaf.pending_count) == (Resource(0, 0), 1, 1)


def test_a_submission_reaches_the_leaf_only_by_the_plan_queues_short_name(start_cluster: StartCluster) -> None:
    """CapacityScheduler.resolveReservationQueueName and handleMoveToPlanQueue append to the name given.

    So with a full path they look for a sibling that does not exist.
    """
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


def test_a_refresh_keeps_applications_of_a_plan_queue(start_cluster: StartCluster) -> None:
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
def test_a_plan_queue_accepts_any_notation(start_cluster: StartCluster, a: str, b: str, minimum: Resource) -> None:
    conf = {**PLAN, "root.a.capacity": a, "root.b.capacity": b}
    cluster = start_cluster({**conf, "root.a.maximum-capacity": "100"}, alone=True)
    cluster.node("n1", 16 * GB)
    cluster.refresh({**conf, "root.a.maximum-capacity": "100"})
    assert cluster.leaf("a-default").effective_minimum("") == minimum


def test_the_leafs_shares_survive_an_empty_cluster_without_legacy_mode(start_cluster: StartCluster) -> None:
    cluster = start_cluster({**PLAN, "legacy-queue-mode.enabled": "false"}, alone=True)
    kept = (0.25, f32(0.8))
    assert [shares(cluster, queue) for queue in ("a", "a-default", "b")] == [kept, kept, (0.0, 1.0)]


def test_only_leaves_are_reservable() -> None:
    conf = {**PLAN, "root.a.queues": "x", "root.a.x.capacity": "100"}
    with pytest.raises(ConfigurationException) as refusal:
        CapacitySchedulerConfiguration.read(configuration(conf))
    errors = [fault.problem for fault in refusal.value.faults if fault.severity is Severity.ERROR]
    assert errors == ["Only Leaf Queues can be reservable for root.a"]
