"""A leaf serving its applications: Hadoop's TestLeafQueue, with its numbers."""

from __future__ import annotations

from rm.scheduler.capacity.limits import headroom
from tests.rm.scheduler.cluster import GB, Cluster
from tests.rm.scheduler.conftest import StartCluster
from yarn.resource import Resource


def start_ten_percent_queue(start_cluster: StartCluster, **conf: str) -> Cluster:
    """Queue a has 10 % of 100 GB on one node; users may take all of it. b, with the rest, is idle."""
    settings = {
        "root.queues": "a,b",
        "root.a.capacity": "10",
        "root.b.capacity": "90",
        "maximum-am-resource-percent": "1",
        "root.a.user-limit-factor": "1",
        **{f"root.a.{key.replace('_', '-')}": value for key, value in conf.items()},
    }
    cluster = start_cluster(settings, alone=True)
    cluster.node("n1", 100 * GB)
    return cluster


def test_a_single_user_is_stopped_one_container_above_its_limit(start_cluster: StartCluster) -> None:
    """testSingleQueueWithOneUser: used > limit is tested before a container is allocated."""
    cluster = start_ten_percent_queue(start_cluster)
    cluster.run("app1", "n1", "user0")
    cluster.run("app2", "n1", "user0")
    cluster.request("app1", 20)
    cluster.request("app2", 20)
    cluster.heartbeat("n1", 20)
    assert cluster.used() == 11 * GB
    assert cluster.held("app2") == GB


def test_a_larger_factor_allows_a_user_the_queues_maximum(start_cluster: StartCluster) -> None:
    """testSingleQueueWithOneUser, second half: user-limit-factor 10, then the queue's maximum stops it exactly."""
    cluster = start_ten_percent_queue(start_cluster, user_limit_factor="10", maximum_capacity="20")
    cluster.run("app1", "n1", "user0")
    cluster.request("app1", 30)
    cluster.heartbeat("n1", 30)
    assert cluster.used() == 20 * GB


def test_two_users_share_what_active_users_hold(start_cluster: StartCluster) -> None:
    """testUserLimits: user limit 50 %, two users with containers of 3 and 1 GB; the limit grows with their usage."""
    cluster = start_cluster({"root.a.minimum-user-limit-percent": "50", "root.a.user-limit-factor": "2"})
    cluster.node("n1", 8 * GB)
    cluster.node("n2", 8 * GB)
    cluster.run("app1", "n1", "user0")
    cluster.run("app2", "n1", "user1")
    cluster.request("app1", 2, 3 * GB)
    cluster.request("app2", 2, 1 * GB)
    assert cluster.heartbeat("n1") == ["app1/2 on n1 3072"]
    assert cluster.heartbeat("n2") == ["app1/3 on n2 3072"]
    assert cluster.heartbeat("n2") == ["app2/2 on n2 1024"]
    assert not cluster.leaf().users.is_active("user0")
    assert cluster.leaf().users.is_active("user1")


def test_users_below_their_limit_are_served_before_those_at_it(start_cluster: StartCluster) -> None:
    """testSingleQueueWithMultipleUsers, user limit 25 %: the first user waits while others are below the limit."""
    cluster = start_cluster({"root.a.minimum-user-limit-percent": "25"})
    cluster.node("n1", 8 * GB)
    cluster.run("app1", "n1", "user0")
    cluster.run("app2", "n1", "user1")
    cluster.run("app3", "n1", "user2")
    cluster.request("app1", 10)
    cluster.heartbeat("n1", 2)
    assert cluster.held("app1") == 3 * GB
    cluster.request("app2", 2)
    cluster.request("app3", 2)
    # The limit is (5 + 1) / 3 = 2 GB, so app1 with 3 is above it; then (6 + 1) / 3, rounded up to 3, which app1 is at
    # but not above; then (7 + 1) / 3, again 3.
    story = cluster.heartbeat("n1", 3)
    assert story == ["app2/2 on n1 1024", "app1/4 on n1 1024", "app2/3 on n1 1024"]


def test_headroom_is_the_limit_minus_usage(start_cluster: StartCluster) -> None:
    """testHeadroomWithMaxCap: both applications of a user get the same headroom; 0 at the queue's maximum."""
    cluster = start_cluster({"root.a.minimum-user-limit-percent": "50", "root.a.user-limit-factor": "2"})
    cluster.node("n1", 8 * GB)
    cluster.run("app1", "n1", "user0")
    cluster.run("app2", "n1", "user0")
    cluster.request("app1", 2, 2 * GB)
    cluster.request("app2", 2, 1 * GB)
    cluster.heartbeat("n1", 2)
    # The user holds 6 GB; its limit is 6 + 1 = 7 GB.
    assert cluster.poll("app1").headroom == Resource(1024, 1)
    assert cluster.poll("app2").headroom == Resource(1024, 1)
    cluster.heartbeat("n1", 2)
    assert cluster.used() == 8 * GB
    assert cluster.poll("app1").headroom.memory_mb == 0


def test_headroom_is_zero_before_the_first_visit(start_cluster: StartCluster) -> None:
    """CapacityHeadroomProvider: a provider is created when a visit looks at the application."""
    cluster = start_cluster()
    cluster.node("n1", 8 * GB)
    cluster.submit("app1")
    assert headroom(cluster.attempt("app1")) == Resource(0, 0)


def test_without_a_user_limit_one_user_may_use_the_maximum(start_cluster: StartCluster) -> None:
    """testDisabledUserLimitFactor: -1 disables it."""
    cluster = start_ten_percent_queue(start_cluster, user_limit_factor="-1", maximum_capacity="30")
    cluster.run("app1", "n1", "user0")
    cluster.request("app1", 40)
    cluster.heartbeat("n1", 40)
    assert cluster.used() == 30 * GB


def test_weights_scale_a_users_limit(start_cluster: StartCluster) -> None:
    """testUserSpecificUserLimits: a user of weight 1.5 may hold one and a half times as much."""
    cluster = start_cluster(
        {
            "root.a.minimum-user-limit-percent": "50",
            "root.a.user-settings.heavy.weight": "1.5",
            "per-node-heartbeat.maximum-offswitch-assignments": "100",
        }
    )
    cluster.node("n1", 40 * GB)
    cluster.run("app1", "n1", "heavy")
    cluster.run("app2", "n1", "light")
    cluster.request("app1", 60)
    cluster.request("app2", 60)
    cluster.heartbeat("n1")
    users = cluster.leaf().users.users
    assert users["heavy"].limit.memory_mb == users["light"].limit.memory_mb * 1.5
    assert cluster.held("app1") > cluster.held("app2")


def test_a_decimal_minimum_user_limit_is_not_rounded(start_cluster: StartCluster) -> None:
    """testDecimalUserLimits: 50.1 % of 100 GB is 51302 MB, rounded up to whole containers."""
    cluster = start_cluster({"root.a.minimum-user-limit-percent": "50.1"})
    cluster.node("n1", 100 * GB)
    cluster.run("app1", "n1", "user0")
    cluster.request("app1", 1)
    cluster.heartbeat("n1")
    assert cluster.leaf().users.users["user0"].limit.memory_mb == 51 * GB


def test_an_application_without_headroom_stops_the_queue(start_cluster: StartCluster) -> None:
    """A request above the queue's headroom stops the whole leaf, including a smaller request after it."""
    cluster = start_ten_percent_queue(start_cluster, user_limit_factor="10", maximum_capacity="10")
    cluster.run("app1", "n1", "user0")
    cluster.run("app2", "n1", "user0")
    cluster.request("app1", 2, 6 * GB)
    cluster.request("app2", 5)
    cluster.heartbeat("n1", 3)
    assert cluster.held("app1") == 7 * GB
    assert cluster.held("app2") == GB


def test_dropping_a_users_entry_loses_its_usage(start_cluster: StartCluster) -> None:
    """With kept containers the entry is dropped with the attempt, and later completions make its usage negative."""
    cluster = start_cluster(exempt=("I-06",))
    cluster.node("n1", 16 * GB)
    cluster.run("app1", "n1", "user0")
    cluster.request("app1", 4)
    cluster.heartbeat("n1", 4)
    cluster.poll("app1")
    cluster.heartbeat("n1")
    assert cluster.leaf().users.users["user0"].usage.used("").memory_mb == 5 * GB
    cluster.finish("app1", 1)
    cluster.heartbeat("n1")
    cluster.retry("app1", keep_containers=True)
    assert cluster.leaf().users.users["user0"].usage.used("").memory_mb == 0
    assert cluster.held("app1") == 4 * GB


def test_priorities_come_before_age(start_cluster: StartCluster) -> None:
    """FifoOrderingPolicy: higher priority first, then the older application."""
    cluster = start_cluster()
    cluster.node("n1", 8 * GB)
    cluster.submit("old")
    cluster.heartbeat("n1")
    cluster.submit("young", priority=5)
    cluster.heartbeat("n1")
    cluster.request("old", 1)
    cluster.request("young", 1)
    assert cluster.heartbeat("n1", 2) == ["young/2 on n1 1024", "old/2 on n1 1024"]
