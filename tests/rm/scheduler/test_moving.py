"""Moving applications between leaves, and changes of their priority (CapacityScheduler, spec 8.11 and 2.6)."""

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
    """app1 in a: its master and one container, two more asked for; n1 is full, so one of them is reserved."""
    cluster = Cluster({**TWO_QUEUES, **(conf or {}), "root.a.user-limit-factor": "10"})
    cluster.node("n1", 4 * GB)
    cluster.node("n2", 8 * GB)
    cluster.run("app1", "n1")
    cluster.ask("app1", 1)
    cluster.beat("n1")
    cluster.ask("app1", 2, 3 * GB)
    cluster.beat("n1")
    return cluster


@pytest.mark.case("C6")
def test_a_move_takes_usage_and_asks_along() -> None:
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
    """AbstractLeafQueue.detachContainer books used amounts only: Hadoop forgets the queues' reserved ones."""
    cluster = running_in_a()
    cluster.move("app1", "b")
    assert cluster.leaf("a").usage.reserved("").memory_mb == 3 * GB
    assert cluster.leaf("b").usage.reserved("").memory_mb == 0
    assert cluster.leaf("a").reserved_metric.memory_mb == 0
    assert cluster.leaf("b").reserved_metric.memory_mb == 3 * GB


def test_a_moved_application_waits_for_activation_in_the_target() -> None:
    """LeafQueue.submitApplicationAttempt: the target's limit for masters holds for it too."""
    cluster = running_in_a({"root.b.maximum-am-resource-percent": "0.1"})
    cluster.submit("first", queue="b")
    cluster.move("app1", "b")
    assert (cluster.leaf("b").active_count, cluster.leaf("b").pending_count) == (1, 1)


def test_a_move_to_its_own_queue_makes_the_user_anew() -> None:
    """The user's only attempt is finished and submitted: its entry is dropped and made anew with nothing used."""
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
def test_a_refused_move_moves_nothing(queue: str, message: str) -> None:
    """CapacityScheduler.preValidateMoveApplication, in the words of a real cluster."""
    cluster = running_in_a({"root.b.state": "STOPPED"})
    with pytest.raises(YarnException) as refused:
        cluster.move("app1", queue)
    assert refused.value.message.startswith(message)
    assert cluster.used("a") == 5 * GB
    assert cluster.attempt("app1").leaf is cluster.leaf("a")


def test_the_target_counts_its_applications() -> None:
    """The checks of a submission hold for a move: maximum-applications."""
    cluster = running_in_a({"root.b.maximum-applications": "1"})
    cluster.submit("first", queue="b")
    with pytest.raises(YarnException, match=r"Queue root\.b already has 1 applications, cannot accept"):
        cluster.move("app1", "b")


@pytest.mark.case("C6")
def test_a_higher_priority_is_served_first_from_now_on() -> None:
    """LeafQueue.updateApplicationPriority takes the attempt out of its list and puts it back."""
    cluster = Cluster(TWO_QUEUES)
    cluster.node("n1", 8 * GB)
    cluster.run("low", "n1")
    cluster.run("other", "n1")
    cluster.ask("low", 1)
    cluster.ask("other", 1)
    cluster.prioritize("other", 3)
    assert cluster.beat("n1") == ["other/2 on n1 1024", "low/2 on n1 1024"]


def test_the_priority_of_the_submission_decides_what_is_no_change() -> None:
    """updateApplicationPriority compares with the submission's priority, which it never changes."""
    cluster = Cluster(TWO_QUEUES)
    cluster.node("n1", 8 * GB)
    cluster.run("app1", "n1")
    cluster.prioritize("app1", 3)
    cluster.prioritize("app1", 0)
    assert cluster.attempt("app1").priority == 3
    cluster.retry("app1")
    assert cluster.attempt("app1").priority == 0
