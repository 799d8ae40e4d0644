"""Hosts, racks and waiting for them: delay scheduling."""

from __future__ import annotations

from rm.scheduler.model.requests import SchedulerKey
from tests.rm.scheduler.cluster import GB, Cluster, row
from tests.rm.scheduler.conftest import StartCluster
from yarn.asks import ResourceRequest


def start_racks(start_cluster: StartCluster, conf: dict[str, str] | None = None) -> Cluster:
    """Three nodes: host0 in rack0, host1 in rack1, other in rack2; the master runs on `other`. One container a beat."""
    cluster = start_cluster({"per-node-heartbeat.multiple-assignments-enabled": "false", **(conf or {})})
    cluster.node("host0", 8 * GB, rack="/rack0")
    cluster.node("host1", 8 * GB, rack="/rack1")
    cluster.node("other", 8 * GB, rack="/rack2")
    cluster.run("app1", "other")
    return cluster


def local_rows(count: int = 3, priority: int = 1) -> list[ResourceRequest]:
    """One on each of host0 and host1, `count` in all."""
    names = ("host0", "/rack0", "host1", "/rack1")
    return [*(row(1, name=name, priority=priority) for name in names), row(count, priority=priority)]


def chances(cluster: Cluster, priority: int = 1) -> int:
    """Missed chances of the key."""
    return cluster.attempt("app1").opportunities.get(SchedulerKey(False, priority, -1), 0)


def test_a_foreign_node_is_taken_after_as_many_misses_as_places_are_named(start_cluster: StartCluster) -> None:
    """testLocalityScheduling: 3 wanted, 4 places on 3 nodes: visits 1 to 3 give nothing, the fourth a container."""
    cluster = start_racks(start_cluster)
    cluster.send("app1", local_rows())
    assert [cluster.beat("other") for _ in range(4)] == [[], [], [], ["app1/2 on other 1024"]]
    assert chances(cluster) == 4, "an off-switch container does not reset the count"
    assert cluster.beat("host0") == ["app1/3 on host0 1024"]
    assert chances(cluster) == 0, "a node-local one does"
    assert cluster.beat("host1") == ["app1/4 on host1 1024"]


def test_a_rack_is_taken_after_the_node_delay(start_cluster: StartCluster) -> None:
    """testRackLocalityDelayScheduling: node delay 2, additional 1: rack at the third visit, elsewhere at the fourth."""
    cluster = start_racks(start_cluster, {"node-locality-delay": "2", "rack-locality-additional-delay": "1"})
    cluster.node("mate0", 8 * GB, rack="/rack0")
    cluster.node("mate1", 8 * GB, rack="/rack1")
    cluster.send("app1", local_rows(2))
    assert [cluster.beat("mate0") for _ in range(2)] == [[], []]
    assert cluster.beat("mate0") == ["app1/2 on mate0 1024"]
    assert chances(cluster) == 0
    assert [cluster.beat("other") for _ in range(4)] == [[], [], [], ["app1/3 on other 1024"]]
    assert chances(cluster) == 4


def test_a_rack_local_container_keeps_the_count_if_so_configured(start_cluster: StartCluster) -> None:
    """rack-locality-full-reset=false: the next rack-local container comes without delay."""
    cluster = start_racks(start_cluster, {"node-locality-delay": "1", "rack-locality-full-reset": "false"})
    cluster.node("mate0", 8 * GB, rack="/rack0")
    cluster.send("app1", [row(5, name="host0"), row(5, name="/rack0"), row(5)])
    assert [len(cluster.beat("mate0")) for _ in range(4)] == [0, 1, 1, 1]


def test_a_delayed_application_lets_the_next_one_through(start_cluster: StartCluster) -> None:
    """testLocalityDelaySkipsApplication: what waits for its host does not hold up the queue."""
    cluster = start_racks(start_cluster)
    cluster.run("app2", "host1")
    cluster.send("app1", local_rows(1))
    cluster.send("app2", [row(1, name="other"), row(1, name="/rack2"), row(1)])
    assert cluster.beat("other") == ["app2/2 on other 1024"]
    assert chances(cluster) == 1


def test_a_delayed_priority_holds_up_the_ones_behind_it(start_cluster: StartCluster) -> None:
    """testApplicationPriorityScheduling: the second priority is not tried while the first waits."""
    cluster = start_racks(start_cluster)
    cluster.node("host2", 8 * GB, rack="/rack2")
    cluster.send("app1", local_rows(2, priority=1))
    cluster.send("app1", [row(1, 2 * GB, name=name, priority=2) for name in ("host2", "/rack2", "*")])
    assert [cluster.beat("host2") for _ in range(2)] == [[], []]
    assert chances(cluster, priority=2) == 0
    assert cluster.beat("host2") == ["app1/2 on host2 1024"]
    assert cluster.beat("host0") == ["app1/3 on host0 1024"]
    assert cluster.beat("host1") == ["app1/4 on host1 2048"], "1 container x 2 places / 4 nodes < 1 chance"


def test_asks_for_anywhere_never_wait(start_cluster: StartCluster) -> None:
    """uniqueLocationAsks == 1."""
    cluster = start_racks(start_cluster)
    cluster.ask("app1", 1)
    assert cluster.beat("host1") == ["app1/2 on host1 1024"]


def test_names_with_count_zero_still_make_an_ask_wait(start_cluster: StartCluster) -> None:
    """Rows that were withdrawn count as places."""
    cluster = start_racks(start_cluster)
    cluster.send("app1", [row(0, name="host0"), row(0, name="/rack0"), row(3)])
    assert [cluster.beat("other") for _ in range(2)] == [[], []]
    assert cluster.beat("other") == ["app1/2 on other 1024"]


def test_a_host_without_its_rack_never_matches(start_cluster: StartCluster) -> None:
    """canAssign NODE_LOCAL needs the rack's row too: the container is an off-switch one, after the delay."""
    cluster = start_racks(start_cluster)
    cluster.send("app1", [row(1, name="host0"), row(1)])
    assert cluster.beat("host0") == ["app1/2 on host0 1024"]
    assert chances(cluster) == 1, "not reset: not a node-local container"


def test_strict_hosts_are_waited_for_for_ever(start_cluster: StartCluster) -> None:
    """testLocalityConstraints: relax off on rack and `*` means this host or none; such visits are no missed chances."""
    cluster = start_racks(start_cluster)
    strict = [row(1, name="host0"), row(1, name="/rack0", relax=False), row(1, relax=False)]
    cluster.send("app1", strict)
    assert cluster.beat("other", 20) == []
    assert chances(cluster) == 0
    assert cluster.beat("host0") == ["app1/2 on host0 1024"]


def test_a_blacklisted_host_or_rack_gives_nothing(start_cluster: StartCluster) -> None:
    """RegularContainerAllocator: and the visit is no missed chance."""
    cluster = start_racks(start_cluster)
    cluster.ask("app1", 3)
    cluster.avoid("app1", "host0", "/rack1")
    assert cluster.beat("host0") == []
    assert cluster.beat("host1") == []
    assert cluster.beat("other") == ["app1/2 on other 1024"]
    assert chances(cluster) == 1


def test_a_node_local_container_takes_one_off_all_three_rows(start_cluster: StartCluster) -> None:
    cluster = start_racks(start_cluster)
    cluster.send("app1", local_rows())
    cluster.beat("host0")
    asks, key = cluster.attempt("app1").requests, SchedulerKey(False, 1, -1)
    assert [asks.count(key, name) for name in ("host0", "/rack0", "host1", "/rack1", "*")] == [0, 0, 1, 1, 2]


def test_an_off_switch_container_leaves_the_other_rows(start_cluster: StartCluster) -> None:
    """The AM is expected to send its rows anew."""
    cluster = start_racks(start_cluster)
    cluster.send("app1", local_rows())
    cluster.beat("other", 4)
    asks, key = cluster.attempt("app1").requests, SchedulerKey(False, 1, -1)
    assert [asks.count(key, name) for name in ("host0", "/rack0", "*")] == [1, 1, 2]
