"""max-parallel-apps of queues and users: applications held back and started later (CSMaxRunningAppsEnforcer)."""

from __future__ import annotations

from rm.core.explain.obstacles import obstacles
from tests.rm.scheduler.cluster import GB, Cluster
from tests.rm.scheduler.conftest import StartCluster

TWO = {
    "root.queues": "a,b",
    "root.a.capacity": "50",
    "root.b.capacity": "50",
    "maximum-am-resource-percent": "1",
    "user-limit-factor": "10",
}


def start(start_cluster: StartCluster, *exempt: str, **limits: str) -> Cluster:
    """Two queues on a node of 20 GB; keys of `limits` use _ for . and -."""
    cluster = start_cluster({**TWO, **_keys(limits)}, alone=True, exempt=exempt)
    cluster.node("n1", 20 * GB)
    return cluster


def _keys(limits: dict[str, str]) -> dict[str, str]:
    prefixes = {"root": "root.", "a": "root.a.", "b": "root.b.", "each": "", "user": "user.", "ann": "user.ann."}
    return {f"{prefixes[name]}max-parallel-apps": limit for name, limit in limits.items()}


def submit(cluster: Cluster, *apps: str, user: str = "user", queue: str = "a") -> None:
    """Submit one application per millisecond."""
    for app in apps:
        cluster.now_ms += 1
        cluster.submit(app, user=user, queue=queue)


def counts(cluster: Cluster, queue: str = "a") -> tuple[int, int, int]:
    """Numbers of active, pending and held back applications."""
    leaf = cluster.leaf(queue)
    return leaf.active_count, leaf.pending_count, len(leaf.held_back)


def test_an_application_above_the_queues_limit_is_held_back(start_cluster: StartCluster) -> None:
    """An application held back counts as an application of the queue, and nowhere else."""
    cluster = start(start_cluster, a="2")
    submit(cluster, "app1", "app2", "app3")
    assert counts(cluster) == (2, 0, 1)
    assert cluster.leaf().application_total() == 3
    assert cluster.heartbeat("n1", 4) == ["app1/1 on n1 1024 master", "app2/1 on n1 1024 master"]
    cluster.end("app1")
    assert counts(cluster) == (2, 0, 0)
    assert "app3/1 on n1 1024 master" in cluster.heartbeat("n1")


def test_a_held_back_application_reports_its_reason(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster, a="1")
    submit(cluster, "app1", "app2")
    (obstacle,) = obstacles(cluster.scheduler, cluster.attempt("app2").attempt_id.application_id)
    assert (
        "everywhere: Application is not started yet: a queue or the user already runs max-parallel-apps applications"
        in str(obstacle)
    )
    cluster.end("app1")
    assert obstacles(cluster.scheduler, cluster.attempt("app2").attempt_id.application_id) == []


def test_a_held_back_application_counts_for_the_queues_maximum(start_cluster: StartCluster) -> None:
    cluster = start_cluster({**TWO, **_keys({"a": "1"}), "root.a.maximum-applications": "2"}, alone=True)
    cluster.node("n1", 20 * GB)
    submit(cluster, "app1", "app2")
    (refusal,) = cluster.submit("app3")
    assert "Queue root.a already has 2 applications" in refusal


def test_a_parents_limit_applies_to_all_queues_below(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster, root="2")
    submit(cluster, "app1", queue="a")
    submit(cluster, "app2", "app3", queue="b")
    submit(cluster, "app4", queue="a")
    assert (counts(cluster, "a"), counts(cluster, "b")) == ((1, 0, 1), (1, 0, 1))
    cluster.end("app1")
    assert (counts(cluster, "a"), counts(cluster, "b")) == ((0, 0, 1), (2, 0, 0)), "app3 waited longer than app4"


def test_the_default_limit_applies_to_each_queue(start_cluster: StartCluster) -> None:
    """The default applies to root too, which has all applications."""
    cluster = start(start_cluster, each="2")
    submit(cluster, "app1", "app2", queue="a")
    submit(cluster, "app3", queue="b")
    assert counts(cluster, "b") == (0, 0, 1)


def test_a_users_limit_applies_across_queues(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster, user="1", ann="2")
    submit(cluster, "app1", "app2", user="ann")
    submit(cluster, "app3", user="ann", queue="b")
    submit(cluster, "app4", user="bob")
    submit(cluster, "app5", user="bob", queue="b")
    assert (counts(cluster, "a"), counts(cluster, "b")) == ((3, 0, 0), (0, 0, 2))
    cluster.end("app4")
    assert counts(cluster, "b") == (1, 0, 1)
    assert cluster.attempt("app5").is_runnable


def test_a_finished_application_starts_at_most_one_per_leaf(start_cluster: StartCluster) -> None:
    """CSMaxRunningAppsEnforcer.updateRunnabilityOnAppRemoval has a list for each leaf below the queue that was full.

    With two leaves two applications may start, and each is checked again.
    """
    cluster = start(start_cluster, root="3")
    submit(cluster, "app1", "app2", "app3")
    submit(cluster, "app4", "app5", queue="b")
    cluster.end("app1")
    assert counts(cluster, "b") == (1, 0, 1), "the parent's limit lets only one start"


def test_a_held_back_application_may_end(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster, a="1")
    submit(cluster, "app1", "app2", user="ann")
    submit(cluster, "app3", user="bob")
    cluster.end("app2")
    assert counts(cluster) == (1, 0, 1)
    cluster.end("app1")
    assert cluster.attempt("app3").is_runnable


def test_the_end_of_a_held_back_application_can_drop_its_users_entry(start_cluster: StartCluster) -> None:
    """The user's pending count is decremented although it was never incremented; usage starts again at 0."""
    cluster = start(start_cluster, "I-06", a="1")
    submit(cluster, "app1")
    cluster.heartbeat("n1")
    submit(cluster, "app2")
    assert cluster.leaf().users.users["user"].usage.used("").memory_mb == GB
    cluster.end("app2")
    assert "user" not in cluster.leaf().users.users


def test_a_refresh_that_raises_a_limit_starts_all_it_can(start_cluster: StartCluster) -> None:
    """updateRunnabilityOnReload: without the limit of one application per list."""
    cluster = start(start_cluster, a="1")
    submit(cluster, "app1", "app2", "app3", "app4")
    cluster.refresh({**TWO, **_keys({"a": "3"})})
    assert counts(cluster) == (3, 0, 1)
    cluster.refresh({**TWO, **_keys({"a": "1"})})
    assert counts(cluster) == (3, 0, 1), "running applications continue"


def test_the_next_attempt_is_checked_again(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster, a="1")
    submit(cluster, "app1", "app2")
    cluster.heartbeat("n1")
    cluster.now_ms += 1
    cluster.retry("app1")
    assert cluster.attempt("app2").is_runnable
    assert not cluster.attempt("app1").is_runnable
