"""Moving applications between leaves, and changing their priority (CapacityScheduler, spec 8.11 and 2.6)."""

from __future__ import annotations

import pytest

from tests.rm.scheduler.cluster import GB, Cluster
from yarn.errors import YarnException

TWO_QUEUES = {
    "root.queues": "a,b",
    "root.a.capacity": "50",
    "root.b.capacity": "50",
    "maximum-am-resource-percent": "1",
    "per-node-heartbeat.maximum-offswitch-assignments": "10",
}


def running_in_a(conf: dict[str, str] | None = None) -> Cluster:
    """app1 in a: its AM and one container, two more requested; n1 is full, so one of them is reserved."""
    cluster = Cluster({**TWO_QUEUES, **(conf or {}), "root.a.user-limit-factor": "10"})
    cluster.node("n1", 4 * GB)
    cluster.node("n2", 8 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 1)
    cluster.heartbeat("n1")
    cluster.request("app1", 2, 3 * GB)
    cluster.heartbeat("n1")
    return cluster


@pytest.mark.case("C6")
def test_a_move_transfers_usage_and_requests() -> None:
    """CapacityScheduler.moveApplication: containers and reservations one by one, then what is pending."""
    cluster = running_in_a()
    pending = cluster.leaf("a").usage.pending("")
    assert pending.memory_mb == 6 * GB
    cluster.move("app1", "b")
    assert (cluster.used("a"), cluster.used("b")) == (0, 5 * GB)
    assert cluster.leaf("a").usage.pending("").memory_mb == 0
    assert cluster.leaf("b").usage.pending("") == pending
    assert list(cluster.leaf("a").users.users) == []
    assert cluster.leaf("b").users.is_active("user")
    assert cluster.leaf("b").active_count == 1
    assert cluster.attempt("app1").leaf is cluster.leaf("b")


def test_a_move_leaves_the_reserved_amounts_with_the_source() -> None:
    """AbstractLeafQueue.detachContainer subtracts only used amounts: Hadoop leaves the queues' reserved ones."""
    cluster = running_in_a()
    cluster.move("app1", "b")
    assert cluster.leaf("a").usage.reserved("").memory_mb == 3 * GB
    assert cluster.leaf("b").usage.reserved("").memory_mb == 0
    assert cluster.leaf("a").reserved_metric.memory_mb == 0
    assert cluster.leaf("b").reserved_metric.memory_mb == 3 * GB


def test_a_moved_application_waits_for_activation_in_the_target() -> None:
    """LeafQueue.submitApplicationAttempt: the target's AM limit applies."""
    cluster = running_in_a({"root.b.maximum-am-resource-percent": "0.1"})
    cluster.submit("first", queue="b")
    cluster.move("app1", "b")
    assert (cluster.leaf("b").active_count, cluster.leaf("b").pending_count) == (1, 1)


def test_a_move_to_the_same_queue_recreates_the_users_entry() -> None:
    """The user's only attempt is finished and submitted: its entry is dropped and created again without usage."""
    cluster = running_in_a()
    cluster.move("app1", "a")
    assert cluster.used("a") == 5 * GB
    assert cluster.leaf("a").users.users["user"].usage.used("").memory_mb == 0


@pytest.mark.parametrize(
    ("queue", "message"),
    [
        ("nosuch", "The specified Queue: nosuch doesn't exist"),
        ("root", "The specified Queue: root is not a Leaf Queue."),
        (
            "b",
            "org.apache.hadoop.security.AccessControlException: Queue root.b is STOPPED. Cannot accept submission of",
        ),
    ],
)
def test_a_refused_move_changes_nothing(queue: str, message: str) -> None:
    """CapacityScheduler.preValidateMoveApplication, with the messages of a real cluster."""
    cluster = running_in_a({"root.b.state": "STOPPED"})
    with pytest.raises(YarnException) as refused:
        cluster.move("app1", queue)
    assert refused.value.message.startswith(message)
    assert cluster.used("a") == 5 * GB
    assert cluster.attempt("app1").leaf is cluster.leaf("a")


def test_a_move_is_refused_by_the_targets_application_limit() -> None:
    """The checks of a submission apply to a move: maximum-applications."""
    cluster = running_in_a({"root.b.maximum-applications": "1"})
    cluster.submit("first", queue="b")
    with pytest.raises(YarnException, match=r"Queue root\.b already has 1 applications, cannot accept"):
        cluster.move("app1", "b")


@pytest.mark.case("C6")
def test_a_raised_priority_is_served_first() -> None:
    """LeafQueue.updateApplicationPriority removes the attempt from its ordered list and adds it again."""
    cluster = Cluster(TWO_QUEUES)
    cluster.node("n1", 8 * GB)
    cluster.run("low", "n1")
    cluster.run("other", "n1")
    cluster.request("low", 1)
    cluster.request("other", 1)
    cluster.prioritize("other", 3)
    assert cluster.heartbeat("n1") == ["other/2 on n1 1024", "low/2 on n1 1024"]


def test_a_change_to_the_submitted_priority_is_ignored() -> None:
    """updateApplicationPriority compares with the submission's priority, which it never changes."""
    cluster = Cluster(TWO_QUEUES)
    cluster.node("n1", 8 * GB)
    cluster.run("app1", "n1")
    cluster.prioritize("app1", 3)
    cluster.prioritize("app1", 0)
    assert cluster.attempt("app1").priority == 3
    cluster.retry("app1")
    assert cluster.attempt("app1").priority == 0
