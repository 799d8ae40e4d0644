"""Capacity reserved for a request that does not fit yet: Hadoop's TestReservations, with its numbers."""

from __future__ import annotations

from rm.scheduler.capacity.limits import can_assign, can_assign_to_user
from rm.scheduler.model.context import RESPECT
from rm.scheduler.model.requests import SchedulerKey
from rm.scheduler.model.usage import ResourceLimits
from tests.rm.scheduler.cluster import GB, Cluster, row
from tests.rm.scheduler.conftest import StartCluster
from yarn.resource import Resource


def start_reducers(start_cluster: StartCluster, **conf: str) -> Cluster:
    """Three nodes of 8 GB; an AM of 2 GB and maps of 3 GB use 5 GB of n0, 3 of n1; two reduces request 5 GB each."""
    cluster = start_cluster({key.replace("_", "-"): value for key, value in conf.items()})
    for name in ("n0", "n1", "n2"):
        cluster.node(name, 8 * GB)
    cluster.run("app1", "n0", am_mb=2 * GB)
    cluster.request("app1", 2, 3 * GB, priority=5)
    cluster.heartbeat("n0")
    cluster.heartbeat("n1")
    cluster.request("app1", 2, 5 * GB, priority=10)
    return cluster


def test_a_reservation_is_exchanged_for_free_capacity_elsewhere(start_cluster: StartCluster) -> None:
    """testReservation."""
    cluster = start_reducers(start_cluster)
    assert cluster.heartbeat("n0") == ["app1/4 reserved on n0 5120"]
    assert cluster.used() == 13 * GB
    assert cluster.heartbeat("n2") == ["app1/5 on n2 5120"]
    assert cluster.used() == 18 * GB
    assert cluster.poll("app1").headroom.memory_mb == 6 * GB
    assert cluster.heartbeat("n1") == ["app1/6 on n1 5120", "app1/4 not reserved on n0 any more"]
    assert cluster.used() == 18 * GB
    assert [cluster.node_of(name).allocated.memory_mb // GB for name in ("n0", "n1", "n2")] == [5, 8, 5]
    assert cluster.leaf().usage.pending("").is_none()


def test_without_continue_looking_the_reservation_stays(start_cluster: StartCluster) -> None:
    """testReservationNoContinueLook."""
    cluster = start_reducers(start_cluster, reservations_continue_look_all_nodes="false")
    cluster.heartbeat("n0")
    cluster.heartbeat("n2")
    assert cluster.heartbeat("n1") == []
    assert cluster.leaf().usage.reserved("").memory_mb == 5 * GB
    assert cluster.leaf().usage.pending("").memory_mb == 5 * GB


def test_a_queue_at_its_limit_may_continue_if_reservations_use_part_of_it(start_cluster: StartCluster) -> None:
    """testAssignToQueue: 13 GB used of a limit of 13, 5 of them reserved."""
    cluster = start_reducers(start_cluster)
    cluster.heartbeat("n0")
    leaf, none = cluster.leaf(), Resource(0, 0)
    limits = ResourceLimits(Resource(13 * GB, 13), none)
    assert can_assign(leaf, "", limits, Resource(3 * GB, 3), RESPECT)
    assert limits.headroom.memory_mb == 0
    assert not can_assign(leaf, "", ResourceLimits(Resource(13 * GB, 13), none), none, RESPECT)


def test_a_user_above_its_limit_by_reservations_must_release_some(start_cluster: StartCluster) -> None:
    """testAssignToUser: 13 GB used, 5 of them reserved, against limits of 14, 12 and 7 GB."""
    cluster = start_reducers(start_cluster)
    cluster.heartbeat("n0")
    leaf, attempt = cluster.leaf(), cluster.attempt("app1")
    limits = ResourceLimits(Resource(24 * GB, 24), Resource(0, 0))
    assert can_assign_to_user(leaf, attempt, Resource(14 * GB, 1), "", limits)
    assert limits.amount_needed_unreserve.memory_mb == 0
    assert can_assign_to_user(leaf, attempt, Resource(12 * GB, 1), "", limits)
    assert limits.amount_needed_unreserve.memory_mb == 1 * GB
    assert not can_assign_to_user(leaf, attempt, Resource(7 * GB, 1), "", limits)


def test_only_a_large_enough_reservation_of_the_same_key_is_released(start_cluster: StartCluster) -> None:
    """testFindNodeToUnreserve."""
    cluster = start_reducers(start_cluster)
    cluster.heartbeat("n0")
    attempt = cluster.attempt("app1")
    key, other = SchedulerKey(False, 10, -1), SchedulerKey(False, 5, -1)
    found = attempt.reservation_to_give_up(key, Resource(5 * GB, 1))
    assert found is not None
    assert found.id.number == 4
    assert attempt.reservation_to_give_up(key, Resource(5 * GB + 1, 1)) is None
    assert attempt.reservation_to_give_up(other, Resource(GB, 1)) is None


def test_a_request_that_missed_often_may_reserve_one_more(start_cluster: StartCluster) -> None:
    """shouldAllocOrReserveNewContainer: misses add up; 2 misses / 1 reservation x (1 - 4 of 16 GB) = 1 more."""
    cluster = start_cluster({"yarn.scheduler.maximum-allocation-mb": str(16 * GB)})
    for name in ("n0", "n1", "n2"):
        cluster.node(name, 8 * GB)
    cluster.run("app1", "n0", "user0")
    cluster.request("app1", 2, 6 * GB)
    cluster.heartbeat("n1")
    cluster.heartbeat("n2")
    cluster.run("app2", "n0", "user1")
    cluster.request("app2", 1, 4 * GB)
    assert cluster.heartbeat("n1") == ["app2/2 reserved on n1 4096"]
    assert cluster.heartbeat("n2") == [], "one container requested, one node reserved"
    cluster.heartbeat("n1", 2)
    assert cluster.attempt("app2").re_reservations[SchedulerKey(False, 1, -1)] == 2
    assert cluster.heartbeat("n2") == ["app2/3 reserved on n2 4096"]


def test_a_reservation_counts_for_queue_and_user_but_not_for_application_and_node(start_cluster: StartCluster) -> None:
    """LeafQueue.apply charges queue and user, SchedulerApplicationAttempt.reserve only records."""
    cluster = start_reducers(start_cluster)
    cluster.heartbeat("n0")
    assert cluster.used() == 13 * GB
    assert cluster.leaf().users.users["user"].usage.used("").memory_mb == 13 * GB
    assert cluster.held("app1") == 8 * GB
    assert cluster.node_of("n0").allocated.memory_mb == 5 * GB
    assert cluster.leaf().reserved_metric.memory_mb == 5 * GB


def test_fulfilling_a_reservation_changes_no_queue(start_cluster: StartCluster) -> None:
    """LeafQueue.apply: it was charged when it was reserved; the container has the reservation's number."""
    cluster = start_reducers(start_cluster)
    cluster.heartbeat("n0")
    cluster.poll("app1")
    cluster.heartbeat("n0")
    cluster.finish("app1", 2)
    assert cluster.heartbeat("n0") == ["app1/2 ended 0", "app1/4 not reserved on n0 any more", "app1/4 on n0 5120"]
    assert cluster.used() == 10 * GB
    assert cluster.leaf().usage.reserved("").is_none()


def test_at_the_maximum_a_reservation_is_exchanged_too(start_cluster: StartCluster) -> None:
    """testContinuousReservationLookingWhenUsedEqualsMax: of at most 10 GB, 2 + 4 are used and 4 reserved."""
    cluster = start_cluster(
        {
            "root.queues": "a,b",
            "root.a.capacity": "50",
            "root.b.capacity": "50",
            "root.a.maximum-capacity": "10",
            "maximum-am-resource-percent": "1",
        },
        alone=True,
    )
    cluster.node("n1", 10 * GB)
    cluster.node("n2", 90 * GB)
    cluster.run("app1", "n1", am_mb=2 * GB)
    cluster.run("app2", "n1", queue="b")
    cluster.request("app1", 2, 4 * GB)
    assert cluster.heartbeat("n1", 2) == ["app1/2 on n1 4096", "app1/3 reserved on n1 4096"]
    assert cluster.used() == 10 * GB
    assert cluster.heartbeat("n2") == ["app1/4 on n2 4096", "app1/3 not reserved on n1 any more"]
    assert cluster.used() == 10 * GB


def test_a_request_that_no_node_can_ever_fit_is_not_reserved(start_cluster: StartCluster) -> None:
    """RegularContainerAllocator.assignContainer: a request above the node's total is passed on to the next level."""
    cluster = start_cluster()
    cluster.node("n1", 2 * GB)
    cluster.node("n2", 8 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 1, 4 * GB)
    assert cluster.heartbeat("n1") == []
    assert cluster.heartbeat("n2") == ["app1/2 on n2 4096"]


def test_a_change_of_the_nodes_total_removes_its_reservation(start_cluster: StartCluster) -> None:
    """The same total again keeps it."""
    cluster = start_reducers(start_cluster)
    cluster.heartbeat("n0")
    assert cluster.resize("n0", 8 * GB) == []
    assert cluster.resize("n0", 9 * GB, 8) == ["app1/4 not reserved on n0 any more"]
    assert cluster.used() == 8 * GB


def test_losing_a_node_removes_its_reservation(start_cluster: StartCluster) -> None:
    cluster = start_reducers(start_cluster)
    cluster.heartbeat("n1")
    cluster.heartbeat("n0")
    story = cluster.lose("n0")
    assert "app1/5 not reserved on n0 any more" in story
    assert cluster.leaf().usage.reserved("").is_none()


def test_an_attempts_end_releases_its_reservations(start_cluster: StartCluster) -> None:
    cluster = start_reducers(start_cluster)
    cluster.heartbeat("n0")
    cluster.end("app1")
    assert cluster.node_of("n0").reserved_container is None
    assert cluster.used() == 0


def test_without_continue_looking_no_second_reservation_is_tried(start_cluster: StartCluster) -> None:
    """preCheckForNodeCandidateSet: a request that has reserved all it wants passes to the next key."""
    cluster = start_cluster({"reservations-continue-look-all-nodes": "false"})
    for name in ("n0", "n1"):
        cluster.node(name, 4 * GB)
    cluster.run("app1", "n0")
    cluster.run("app2", "n1")
    cluster.send("app1", [row(1, 4 * GB, priority=1), row(1, GB, priority=2)])
    assert cluster.heartbeat("n0") == ["app1/2 reserved on n0 4096"]
    assert cluster.heartbeat("n1") == ["app1/3 on n1 1024"]
