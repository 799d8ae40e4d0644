"""The usage in an application's report."""

from __future__ import annotations

from tests.rm.scheduler.cluster import GB
from tests.rm.scheduler.conftest import StartCluster
from yarn.ids import ApplicationId
from yarn.resource import Resource


def test_needed_resources_are_used_and_reserved_ones(start_cluster: StartCluster) -> None:
    """Percentages are of the queue's guarantee and of the cluster, without reservations."""
    cluster = start_cluster({"root.queues": "a,b", "root.a.capacity": "50", "root.b.capacity": "50"})
    cluster.node("n1", 8 * GB)
    cluster.node("n2", 8 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 1, 7 * GB + 512)
    cluster.heartbeat("n1")
    usage = cluster.scheduler.application_usage(cluster.attempt("app1").attempt_id.application_id)
    assert usage is not None
    assert (usage.used_containers, usage.reserved_containers) == (1, 1)
    assert (usage.used, usage.reserved) == (Resource(GB, 1), Resource(8 * GB, 1))
    assert usage.needed == Resource(9 * GB, 2)
    assert (usage.queue_usage_percentage, usage.cluster_usage_percentage) == (12.5, 6.25)


def test_in_an_empty_cluster_percentages_are_zero(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    cluster.submit("app1")
    usage = cluster.scheduler.application_usage(cluster.attempt("app1").attempt_id.application_id)
    assert usage is not None
    assert (usage.queue_usage_percentage, usage.cluster_usage_percentage) == (0.0, 0.0)


def test_an_unknown_application_has_no_usage(start_cluster: StartCluster) -> None:
    assert start_cluster().scheduler.application_usage(ApplicationId(1, 1)) is None
