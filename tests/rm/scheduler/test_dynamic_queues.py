"""Queues that are created when they are first used (Hadoop: TestCapacitySchedulerNewQueueAutoCreation)."""

from __future__ import annotations

import pytest

from tests.rm.scheduler.cluster import GB, Cluster
from tests.rm.scheduler.conftest import StartCluster
from yarn.faults import ConfigurationException
from yarn.states import QueueState

CREATION = "auto-queue-creation-v2."
AUTO_CREATION = {
    "root.queues": "a,b",
    "root.a.capacity": "1w",
    "root.b.capacity": "1w",
    f"root.a.{CREATION}enabled": "true",
    "maximum-am-resource-percent": "1",
}


def start(start_cluster: StartCluster, conf: dict[str, str] | None = None) -> Cluster:
    cluster = start_cluster({**AUTO_CREATION, **(conf or {})}, alone=True)
    cluster.node("n1", 24 * GB)
    return cluster


def guaranteed(cluster: Cluster, path: str) -> int:
    return cluster.scheduler.queues[path].effective_minimum("").memory_mb // GB


def test_a_parent_with_auto_creation_is_a_parent_even_without_children(start_cluster: StartCluster) -> None:
    """CapacitySchedulerQueueManager.parseQueue."""
    assert start(start_cluster).submit("app1", queue="root.a") == [
        "refused: Application application_1700000000000_0001 submitted by user : user to non-leaf queue : root.a"
    ]


def test_a_queue_is_created_at_first_use_and_siblings_share_by_weight(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster, {f"root.a.{CREATION}leaf-template.capacity": "2w"})
    cluster.run("app1", "n1", queue="root.a.x")
    assert guaranteed(cluster, "root.a.x") == 12
    cluster.run("app2", "n1", queue="root.a.y")
    assert (guaranteed(cluster, "root.a.x"), guaranteed(cluster, "root.a.y")) == (6, 6)
    assert cluster.scheduler.queue_path("y") == "root.a.y"


def test_one_user_and_its_ams_may_use_all_of_a_dynamic_leaf(start_cluster: StartCluster) -> None:
    """AbstractLeafQueue.parseAndSetDynamicTemplates: user-limit-factor -1, AMs up to everything."""
    cluster = start(start_cluster, {"maximum-am-resource-percent": "0.1"})
    cluster.submit("app1", queue="root.a.x")
    cluster.submit("app2", queue="root.a.x")
    assert cluster.leaf("x").active_count == 2
    cluster.heartbeat("n1", 2)
    cluster.request("app1", 30)
    cluster.heartbeat("n1", 30)
    assert cluster.used("root.a.x") == 24 * GB


def test_missing_parents_are_created_down_to_the_maximum_depth(start_cluster: StartCluster) -> None:
    """CapacitySchedulerQueueManager.determineMissingParents; a parent-template applies only to them."""
    cluster = start(start_cluster, {f"root.a.{CREATION}parent-template.capacity": "3w"})
    cluster.submit("app1", queue="root.a.staff.ann")
    cluster.submit("app2", queue="root.a.bob")
    assert (guaranteed(cluster, "root.a.staff"), guaranteed(cluster, "root.a.bob")) == (9, 3)
    assert "unknown queue" in cluster.submit("app3", queue="root.a.staff.team.ann")[0]
    assert "root.a.staff.team" not in cluster.scheduler.queues


@pytest.mark.parametrize(
    ("conf", "queue", "problem"),
    [
        (
            {},
            "root.b.x",
            "Could not auto create hierarchy of root.b.x. Queue root.b is not a ParentQueue.",
        ),
        (
            {},
            "root.x",
            "Auto creation of queue root.x is not enabled under parent root",
        ),
        (
            {f"root.a.{CREATION}max-queues": "0"},
            "root.a.x",
            "Cannot auto create queue root.a.x. Max Child Queue limit exceeded which is configured as: 0 and number of "
            "child queues is: 0",
        ),
        (
            {f"{CREATION}maximum-queue-depth": "1"},
            "root.a.x.y",
            "Could not auto create queue root.a.x.y. The distance of the LeafQueue from the first static ParentQueue "
            "is 2, which is above the limit.",
        ),
        (
            {"root.a.queues": "p", "root.a.p.capacity": "100"},
            "root.a.x",
            "Trying to create new queue=root.a.x but not all the queues under parent=root.a are using weight-based "
            "capacity. Failed to created queue",
        ),
        ({}, "nobody.x", "Could not auto-create queue nobody.x parent queue does not exist."),
    ],
)
def test_an_application_placed_by_a_rule_gets_the_reason_why_no_queue_was_created(
    start_cluster: StartCluster, conf: dict[str, str], queue: str, problem: str
) -> None:
    """CapacityScheduler.handleQueueCreationError; other submissions are refused with "unknown queue"."""
    cluster = start(start_cluster, conf)
    app = "application_1700000000000_0001"
    refused = f"refused: Application {app} submission by user : user to  queue : {queue} failed : {problem}"
    assert cluster.submit("app1", queue=queue.rpartition(".")[2], placed=queue) == [refused]
    unknown = f"refused: Application {app} submitted by user user to unknown queue: {queue}"
    assert cluster.submit("app1", queue=queue) == [unknown]


@pytest.mark.parametrize("queue", ["root.a.", "root..x", "x", ".x"])
def test_an_invalid_path_is_an_unknown_queue_for_every_submission(start_cluster: StartCluster, queue: str) -> None:
    cluster = start(start_cluster)
    assert f"unknown queue: {queue}" in cluster.submit("app1", queue="here", placed=queue)[0]


def test_a_template_cannot_give_a_percentage(start_cluster: StartCluster) -> None:
    """Hadoop's scheduler thread throws at this mix and the ResourceManager exits (recorded; docs/fidelity.md)."""
    cluster = start(start_cluster, {f"root.a.{CREATION}template.capacity": "10"})
    assert "must have a weight, as its siblings have" in cluster.submit("app1", queue="here", placed="root.a.x")[0]
    assert "root.a.x" not in cluster.scheduler.queues


def test_a_value_that_is_only_warned_of_does_not_prevent_a_queue(start_cluster: StartCluster) -> None:
    """Hadoop takes a minimum-user-limit-percent above 100 as it is (UsersManager.setUserLimit)."""
    cluster = start(start_cluster, {f"root.a.{CREATION}template.minimum-user-limit-percent": "150"})
    cluster.submit("app1", queue="root.a.x")
    assert "root.a.x" in cluster.scheduler.queues


def test_a_queue_is_created_even_if_the_submission_is_then_refused(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster, {f"root.a.{CREATION}template.maximum-applications": "0"})
    assert "Queue root.a.x already has 0 applications" in cluster.submit("app1", queue="root.a.x")[0]
    assert "root.a.x" in cluster.scheduler.queues


def test_a_queue_created_below_a_stopped_parent_is_stopped(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster)
    cluster.refresh({**AUTO_CREATION, "root.a.state": "STOPPED"})
    assert "Queue root.a.x is STOPPED" in cluster.submit("app1", queue="root.a.x")[0]
    assert cluster.scheduler.queues["root.a.x"].state is QueueState.STOPPED


@pytest.mark.parametrize("queue", ["a.new", "a.x", "x.new"])
def test_a_path_that_starts_with_a_short_name_is_an_unknown_queue(start_cluster: StartCluster, queue: str) -> None:
    """Hadoop creates `a.new`, and the attempts of its application do not find it (recorded; docs/fidelity.md)."""
    cluster = start(start_cluster)
    cluster.submit("app1", queue="root.a.x")
    assert f"unknown queue: {queue}" in cluster.submit("app2", queue=queue)[0]
    assert list(cluster.scheduler.queues) == ["root", "root.a", "root.b", "root.a.x"]


# Refresh


def test_a_refresh_keeps_dynamic_queues_and_reads_their_templates_again(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster)
    cluster.submit("app1", queue="root.a.x.y")
    cluster.submit("app2", queue="root.a.z")
    cluster.refresh({**AUTO_CREATION, f"root.a.{CREATION}template.capacity": "3w", "root.a.z.capacity": "1w"})
    assert (guaranteed(cluster, "root.a.x"), guaranteed(cluster, "root.a.z")) == (9, 3)
    assert cluster.leaf("y").active_count == 1
    assert cluster.scheduler.queues["root.a.x"].is_dynamic


def test_a_dynamic_queue_that_is_configured_later_becomes_static(start_cluster: StartCluster) -> None:
    """AbstractLeafQueue.reinitialize: templates no longer apply, and only once stopped it can be removed."""
    cluster = start(start_cluster)
    cluster.submit("app1", queue="root.a.x.y")
    named = {**AUTO_CREATION, "root.a.queues": "x", "root.a.x.capacity": "5w"}
    cluster.refresh(named)
    assert not cluster.scheduler.queues["root.a.x"].is_dynamic
    assert cluster.scheduler.queues["root.a.x.y"].is_dynamic
    with pytest.raises(ConfigurationException, match="the queue is not yet in stopped state"):
        cluster.refresh(AUTO_CREATION)


def test_a_refused_refresh_leaves_dynamic_queues_unchanged(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster)
    cluster.submit("app1", queue="root.a.x")
    with pytest.raises(ConfigurationException, match="mixed of  weight mode"):
        cluster.refresh({**AUTO_CREATION, "root.a.queues": "p", "root.a.p.capacity": "100"})
    assert cluster.scheduler.queues["root.a.x"].is_dynamic
    assert guaranteed(cluster, "root.a.x") == 12


def test_dynamic_queues_are_removed_with_their_stopped_parent(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster)
    cluster.submit("app1", queue="root.a.x.y")
    cluster.end("app1")
    cluster.refresh({**AUTO_CREATION, "root.a.state": "STOPPED"})
    cluster.refresh({"root.queues": "b", "root.b.capacity": "1w"})
    assert list(cluster.scheduler.queues) == ["root", "root.b"]


def test_a_parent_cannot_become_a_leaf_while_its_dynamic_queues_have_applications(start_cluster: StartCluster) -> None:
    """In Hadoop it can: CapacitySchedulerQueueManager.isDanglingDynamicQueue keeps those queues, outside the tree."""
    cluster = start(start_cluster)
    cluster.submit("app1", queue="root.a.x")
    leaf = {key: value for key, value in AUTO_CREATION.items() if CREATION not in key}
    with pytest.raises(ConfigurationException, match=r"root\.a\.x has applications"):
        cluster.refresh(leaf)
    cluster.end("app1")
    cluster.refresh(leaf)
    assert list(cluster.scheduler.queues) == ["root", "root.a", "root.b"]


def test_the_largest_container_of_a_dynamic_queue_may_shrink(start_cluster: StartCluster) -> None:
    """AbstractLeafQueue.reinitialize compares the queue with itself, so it sees no difference."""
    cluster = start(start_cluster)
    cluster.submit("app1", queue="root.a.x")
    cluster.refresh({**AUTO_CREATION, f"root.a.{CREATION}template.maximum-allocation-mb": "2048"})
    assert cluster.leaf("x").configuration.maximum_allocation.memory_mb == 2048


# Removal


def test_an_idle_queue_is_removed_once_two_rounds_have_found_it_idle(start_cluster: StartCluster) -> None:
    """AutoCreatedQueueDeletionPolicy: only then is its parent found empty, and removed two rounds later."""
    cluster = start(start_cluster)
    cluster.submit("app1", queue="root.a.x.y")
    cluster.submit("app2", queue="root.a.z")
    cluster.end("app1")
    cluster.remove_idle_queues(301_000)
    assert "root.a.x.y" in cluster.scheduler.queues
    cluster.remove_idle_queues()
    assert "root.a.x.y" not in cluster.scheduler.queues
    cluster.remove_idle_queues()
    assert "root.a.x" in cluster.scheduler.queues
    cluster.remove_idle_queues()
    assert list(cluster.scheduler.queues) == ["root", "root.a", "root.b", "root.a.z"]
    assert guaranteed(cluster, "root.a.z") == 12
    assert cluster.scheduler.queue("x") is None


def test_a_queue_stays_until_it_expires_after_its_last_submission(start_cluster: StartCluster) -> None:
    """AbstractCSQueue.isInactiveDynamicQueue counts whole seconds, which must exceed the expiry."""
    cluster = start(start_cluster, {f"{CREATION}queue-expiration-time": "10"})
    cluster.submit("app1", queue="root.a.x")
    cluster.end("app1")
    cluster.remove_idle_queues()
    cluster.remove_idle_queues(10_999)
    assert "root.a.x" in cluster.scheduler.queues
    cluster.remove_idle_queues()
    cluster.remove_idle_queues(1)
    assert "root.a.x" not in cluster.scheduler.queues


def test_a_queue_that_was_not_idle_long_enough_is_not_marked(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster)
    cluster.submit("app1", queue="root.a.x")
    cluster.end("app1")
    cluster.remove_idle_queues()
    cluster.remove_idle_queues(1000)
    cluster.remove_idle_queues(301_000)
    assert "root.a.x" in cluster.scheduler.queues, "this round marks it for the first time"
    cluster.remove_idle_queues()
    assert "root.a.x" not in cluster.scheduler.queues


def test_a_queue_without_automatic_removal_stays(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster, {f"root.a.{CREATION}template.{CREATION}queue-auto-removal.enable": "false"})
    cluster.submit("app1", queue="root.a.x")
    cluster.end("app1")
    for _ in range(4):
        cluster.remove_idle_queues(301_000)
    assert "root.a.x" in cluster.scheduler.queues


def test_configured_queues_are_never_idle(start_cluster: StartCluster) -> None:
    cluster = start(start_cluster)
    for _ in range(4):
        cluster.remove_idle_queues(301_000)
    assert list(cluster.scheduler.queues) == ["root", "root.a", "root.b"]
