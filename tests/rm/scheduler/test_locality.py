"""Hosts, racks and delay scheduling."""

from __future__ import annotations

from rm.scheduler.model.requests import SchedulerKey
from tests.rm.scheduler.cluster import GB, Cluster, row
from tests.rm.scheduler.conftest import StartCluster
from yarn.containers import ResourceRequest


def start_racks(start_cluster: StartCluster, conf: dict[str, str] | None = None) -> Cluster:
    """host0 in rack0, host1 in rack1, other in rack2; the AM runs on `other`. One container per heartbeat."""
    cluster = start_cluster({"per-node-heartbeat.multiple-assignments-enabled": "false", **(conf or {})})
    cluster.node("host0", 8 * GB, rack="/rack0")
    cluster.node("host1", 8 * GB, rack="/rack1")
    cluster.node("other", 8 * GB, rack="/rack2")
    cluster.run("app1", "other")
    return cluster


def local_rows(count: int = 3, priority: int = 1) -> list[ResourceRequest]:
    """A request for `count` containers in all, with one row each for host0 and host1."""
    names = ("host0", "/rack0", "host1", "/rack1")
    return [*(row(1, name=name, priority=priority) for name in names), row(count, priority=priority)]


def missed_opportunities(cluster: Cluster, priority: int = 1) -> int:
    """Missed scheduling opportunities of the key."""
    return cluster.attempt("app1").opportunities.get(SchedulerKey(False, priority, -1), 0)


def test_an_off_switch_node_is_used_after_as_many_misses_as_locations_are_named(start_cluster: StartCluster) -> None:
    """testLocalityScheduling: 3 containers, 4 locations, 3 nodes: the fourth visit is the first to allocate."""
    cluster = start_racks(start_cluster)
    cluster.send("app1", local_rows())
    assert [cluster.heartbeat("other") for _ in range(4)] == [[], [], [], ["app1/2 on other 1024"]]
    assert missed_opportunities(cluster) == 4, "an off-switch container does not reset the count"
    assert cluster.heartbeat("host0") == ["app1/3 on host0 1024"]
    assert missed_opportunities(cluster) == 0, "a node-local container resets the count"
    assert cluster.heartbeat("host1") == ["app1/4 on host1 1024"]


def test_a_rack_is_used_after_the_node_delay(start_cluster: StartCluster) -> None:
    """testRackLocalityDelayScheduling: node delay 2, additional 1: rack at visit 3, off-switch at visit 4."""
    cluster = start_racks(start_cluster, {"node-locality-delay": "2", "rack-locality-additional-delay": "1"})
    cluster.node("mate0", 8 * GB, rack="/rack0")
    cluster.node("mate1", 8 * GB, rack="/rack1")
    cluster.send("app1", local_rows(2))
    assert [cluster.heartbeat("mate0") for _ in range(2)] == [[], []]
    assert cluster.heartbeat("mate0") == ["app1/2 on mate0 1024"]
    assert missed_opportunities(cluster) == 0
    assert [cluster.heartbeat("other") for _ in range(4)] == [[], [], [], ["app1/3 on other 1024"]]
    assert missed_opportunities(cluster) == 4


def test_a_rack_local_container_keeps_the_missed_opportunities_without_full_reset(start_cluster: StartCluster) -> None:
    """rack-locality-full-reset=false: the next rack-local container comes without delay."""
    cluster = start_racks(start_cluster, {"node-locality-delay": "1", "rack-locality-full-reset": "false"})
    cluster.node("mate0", 8 * GB, rack="/rack0")
    cluster.send("app1", [row(5, name="host0"), row(5, name="/rack0"), row(5)])
    assert [len(cluster.heartbeat("mate0")) for _ in range(4)] == [0, 1, 1, 1]


def test_a_delayed_application_does_not_block_the_next_one(start_cluster: StartCluster) -> None:
    """testLocalityDelaySkipsApplication: an application that waits for its host does not block the queue."""
    cluster = start_racks(start_cluster)
    cluster.run("app2", "host1")
    cluster.send("app1", local_rows(1))
    cluster.send("app2", [row(1, name="other"), row(1, name="/rack2"), row(1)])
    assert cluster.heartbeat("other") == ["app2/2 on other 1024"]
    assert missed_opportunities(cluster) == 1


def test_a_delayed_priority_blocks_lower_ones(start_cluster: StartCluster) -> None:
    """testApplicationPriorityScheduling: the second priority is not tried while the first waits."""
    cluster = start_racks(start_cluster)
    cluster.node("host2", 8 * GB, rack="/rack2")
    cluster.send("app1", local_rows(2, priority=1))
    cluster.send("app1", [row(1, 2 * GB, name=name, priority=2) for name in ("host2", "/rack2", "*")])
    assert [cluster.heartbeat("host2") for _ in range(2)] == [[], []]
    assert missed_opportunities(cluster, priority=2) == 0
    assert cluster.heartbeat("host2") == ["app1/2 on host2 1024"]
    assert cluster.heartbeat("host0") == ["app1/3 on host0 1024"]
    assert cluster.heartbeat("host1") == ["app1/4 on host1 2048"], (
        "1 container x 2 locations / 4 nodes < 1 missed opportunity"
    )


def test_requests_for_any_node_never_wait(start_cluster: StartCluster) -> None:
    """uniqueLocationAsks == 1."""
    cluster = start_racks(start_cluster)
    cluster.request("app1", 1)
    assert cluster.heartbeat("host1") == ["app1/2 on host1 1024"]


def test_locations_with_count_zero_still_delay_a_request(start_cluster: StartCluster) -> None:
    """Withdrawn rows count as locations."""
    cluster = start_racks(start_cluster)
    cluster.send("app1", [row(0, name="host0"), row(0, name="/rack0"), row(3)])
    assert [cluster.heartbeat("other") for _ in range(2)] == [[], []]
    assert cluster.heartbeat("other") == ["app1/2 on other 1024"]


def test_a_host_row_without_its_rack_row_never_matches(start_cluster: StartCluster) -> None:
    """canAssign for NODE_LOCAL needs the rack's row too: the container is off-switch, after the delay."""
    cluster = start_racks(start_cluster)
    cluster.send("app1", [row(1, name="host0"), row(1)])
    assert cluster.heartbeat("host0") == ["app1/2 on host0 1024"]
    assert missed_opportunities(cluster) == 1, "not reset: not a node-local container"


def test_a_strict_request_waits_for_its_host_without_limit(start_cluster: StartCluster) -> None:
    """testLocalityConstraints: without relaxed locality other hosts are not used, nor counted as missed."""
    cluster = start_racks(start_cluster)
    strict = [row(1, name="host0"), row(1, name="/rack0", relax=False), row(1, relax=False)]
    cluster.send("app1", strict)
    assert cluster.heartbeat("other", 20) == []
    assert missed_opportunities(cluster) == 0
    assert cluster.heartbeat("host0") == ["app1/2 on host0 1024"]


def test_a_blacklisted_host_or_rack_gets_no_container(start_cluster: StartCluster) -> None:
    """RegularContainerAllocator: and the visit is not a missed opportunity."""
    cluster = start_racks(start_cluster)
    cluster.request("app1", 3)
    cluster.blacklist("app1", "host0", "/rack1")
    assert cluster.heartbeat("host0") == []
    assert cluster.heartbeat("host1") == []
    assert cluster.heartbeat("other") == ["app1/2 on other 1024"]
    assert missed_opportunities(cluster) == 1


def test_a_node_local_container_decrements_all_three_rows(start_cluster: StartCluster) -> None:
    cluster = start_racks(start_cluster)
    cluster.send("app1", local_rows())
    cluster.heartbeat("host0")
    requests, key = cluster.attempt("app1").requests, SchedulerKey(False, 1, -1)
    assert [requests.count(key, name) for name in ("host0", "/rack0", "host1", "/rack1", "*")] == [0, 0, 1, 1, 2]


def test_an_off_switch_container_leaves_the_other_rows(start_cluster: StartCluster) -> None:
    """The AM is expected to send its rows again."""
    cluster = start_racks(start_cluster)
    cluster.send("app1", local_rows())
    cluster.heartbeat("other", 4)
    requests, key = cluster.attempt("app1").requests, SchedulerKey(False, 1, -1)
    assert [requests.count(key, name) for name in ("host0", "/rack0", "*")] == [1, 1, 2]
