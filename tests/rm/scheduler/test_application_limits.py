"""Limits on AMs and on applications: Hadoop's TestApplicationLimits, with its numbers."""

from __future__ import annotations

import pytest

from rm.scheduler.capacity.activation import user_am_limit
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.refusals import Reason, Refusal
from tests.rm.scheduler.cluster import GB, Cluster
from tests.rm.scheduler.conftest import StartCluster


def am_refusal(cluster: Cluster, app: str) -> Refusal | None:
    attempt = cluster.attempt(app)
    return LeafQueue.of(attempt).am_refusal(attempt)


def start_ten_percent_queue(start_cluster: StartCluster, memory_mb: int, **conf: str) -> Cluster:
    """Queue a: 10 %, minimum-user-limit-percent 50, user-limit-factor 5; maximum-am-resource-percent 10 %; one node."""
    cluster = start_cluster(
        {
            "root.queues": "a,b",
            "root.a.capacity": "10",
            "root.b.capacity": "90",
            "root.a.minimum-user-limit-percent": "50",
            "root.a.user-limit-factor": "5",
            "yarn.scheduler.maximum-allocation-mb": str(16 * GB),
            **{key.replace("_", "-"): value for key, value in conf.items()},
        },
        alone=True,
    )
    cluster.node("n1", memory_mb)
    return cluster


@pytest.mark.parametrize(
    ("nodes", "percent", "queue_gb", "user_gb"), [(100, "0.1", 160, 80), (120, "0.1", 192, 96), (100, "0.5", 800, 400)]
)
def test_limits_change_with_the_cluster(
    start_cluster: StartCluster, nodes: int, percent: str, queue_gb: int, user_gb: int
) -> None:
    """testLimitsComputation: the queue's AM limit is of its maximum (all), a user's of its guarantee: 10 % x 5."""
    cluster = start_ten_percent_queue(start_cluster, 16 * GB, maximum_am_resource_percent=percent)
    for i in range(2, nodes + 1):
        cluster.node(f"n{i}", 16 * GB)
    leaf = cluster.leaf()
    assert leaf.am_limit("").memory_mb == queue_gb * GB
    assert user_am_limit(leaf, "", 1.0).memory_mb == user_gb * GB


def test_each_user_has_an_am_limit(start_cluster: StartCluster) -> None:
    """testAMResourceLimit, 80 GB: the queue's AMs may use 8 GB, those of one user 4 GB."""
    cluster = start_ten_percent_queue(start_cluster, 80 * GB)
    cluster.submit("app1", "user0", am_mb=2 * GB)
    cluster.submit("app2", "user0", am_mb=2 * GB)
    cluster.submit("app3", "user0", am_mb=2 * GB)
    leaf = cluster.leaf()
    assert leaf.am_limit("").memory_mb == 8 * GB
    assert (leaf.active_count, leaf.pending_count) == (2, 1)
    refusal = am_refusal(cluster, "app3")
    assert refusal is not None
    assert refusal.reason is Reason.AM_USER_LIMIT
    cluster.end("app1")
    assert (leaf.active_count, leaf.pending_count) == (2, 0)


def test_an_application_that_does_not_fit_does_not_block_one_that_does(start_cluster: StartCluster) -> None:
    """testActiveApplicationLimits, 160 GB: user0's third waits for its user's limit, user2's first for the queue's."""
    cluster = start_ten_percent_queue(start_cluster, 160 * GB)
    for app in ("u0-1", "u0-2", "u0-3"):
        cluster.submit(app, "user0", am_mb=4 * GB)
    assert [app for app in ("u0-1", "u0-2", "u0-3") if am_refusal(cluster, app)] == ["u0-3"]
    cluster.end("u0-1")
    assert am_refusal(cluster, "u0-3") is None
    cluster.submit("u0-4", "user0", am_mb=4 * GB)
    cluster.submit("u1", "user1", am_mb=8 * GB)
    cluster.submit("u2", "user2", am_mb=4 * GB)
    refusals = {app: am_refusal(cluster, app) for app in ("u0-4", "u1", "u2")}
    assert refusals["u1"] is None
    assert refusals["u0-4"] is not None
    assert refusals["u2"] is not None
    assert refusals["u2"].reason is Reason.AM_QUEUE_LIMIT
    cluster.end("u1")
    assert am_refusal(cluster, "u2") is None
    assert am_refusal(cluster, "u0-4") is not None


def test_no_application_is_activated_in_an_empty_cluster(start_cluster: StartCluster) -> None:
    """LeafQueue.activateApplications: what is submitted to an empty cluster waits for the first node."""
    cluster = start_cluster()
    cluster.submit("app1")
    assert cluster.leaf().pending_count == 1
    cluster.node("n1", 8 * GB)
    assert cluster.leaf().active_count == 1


def test_activation_follows_an_added_node_not_a_completed_container(start_cluster: StartCluster) -> None:
    """LeafQueue.completedContainer: activateApplications is not called when a container completes."""
    cluster = start_cluster({"maximum-am-resource-percent": "0.1"})
    cluster.node("n1", 10 * GB)
    cluster.run("app1", "n1")
    cluster.submit("app2")
    cluster.request("app1", 1)
    cluster.heartbeat("n1")
    cluster.poll("app1")
    cluster.heartbeat("n1")
    cluster.finish("app1", 2)
    cluster.heartbeat("n1")
    assert cluster.leaf().pending_count == 1
    cluster.node("n2", 10 * GB)
    assert cluster.leaf().pending_count == 0


def test_an_application_activated_late_leaves_its_user_inactive(start_cluster: StartCluster) -> None:
    """Its AM was requested while it waited, so only its next new request makes the user active."""
    cluster = start_cluster({"maximum-am-resource-percent": "0.1"})
    cluster.node("n1", 10 * GB)
    cluster.submit("app1", "user0")
    cluster.submit("app2", "user1")
    assert not cluster.leaf().users.is_active("user1")
    cluster.end("app1")
    assert cluster.leaf().active_count == 1
    assert not cluster.leaf().users.is_active("user1")
    cluster.heartbeat("n1")
    cluster.request("app2", 1)
    assert cluster.leaf().users.is_active("user1")


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ({"root.a.capacity": "1", "root.b.capacity": "99"}, (100, 50)),
        ({"root.a.capacity": "0.009", "root.b.capacity": "99.991", "maximum-applications": "10000"}, (0, 0)),
        ({"root.a.maximum-applications": "7"}, (7, 3)),
        ({"global-queue-max-application": "30"}, (30, 15)),
        ({"root.a.maximum-applications": "7", "root.a.user-limit-factor": "-1"}, (7, 7)),
    ],
)
def test_the_application_limit_is_a_truncated_share(
    start_cluster: StartCluster, conf: dict[str, str], expected: tuple[int, int]
) -> None:
    """updateMaximumApplications: 10000 x the absolute capacity, truncated; a user's limit by percentage and factor."""
    cluster = start_cluster(
        {
            "root.queues": "a,b",
            "root.a.capacity": "10",
            "root.b.capacity": "90",
            "root.a.minimum-user-limit-percent": "50",
            **conf,
        },
        alone=True,
    )
    leaf = cluster.leaf()
    assert (leaf.maximum_applications, leaf.maximum_applications_per_user) == expected


def test_a_refused_submission_leaves_only_the_users_entry(start_cluster: StartCluster) -> None:
    """UsersManager.removeUser: the entry is made when the check reaches the user's limit, even if it then refuses."""
    cluster = start_cluster({"root.a.maximum-applications": "2", "root.a.minimum-user-limit-percent": "1"})
    cluster.node("n1", 8 * GB)
    story = cluster.submit("app1", "user0")
    assert story == [
        "refused: org.apache.hadoop.security.AccessControlException: Queue root.a already has 0 applications from "
        "user user0 cannot accept submission of application: application_1700000000000_0001"
    ]
    assert list(cluster.leaf().users.users) == ["user0"]
    assert cluster.scheduler.queues["root"].application_total() == 0


def test_an_added_node_makes_the_queue_activate_twice(start_cluster: StartCluster) -> None:
    """The first pass counts ben as a user with only pending applications, which halves a user's limit, and activates
    one of his; so the second pass uses the full limit and activates the other (NODE_LABELS_UPDATE).
    """
    cluster = start_ten_percent_queue(start_cluster, 10 * GB, maximum_am_resource_percent="0.2")
    cluster.submit("app1", "ann", am_mb=GB)
    cluster.submit("app2", "ben", am_mb=4 * GB)
    cluster.node("n2", 10 * GB)
    cluster.submit("app3", "ben", am_mb=2 * GB)
    leaf = cluster.leaf()
    assert (leaf.active_count, leaf.pending_count) == (1, 2)

    cluster.node("n3", 60 * GB)

    assert (leaf.active_count, leaf.pending_count) == (3, 0)
