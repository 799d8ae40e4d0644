"""Mission cases F1 to F6 on a whole simulated cluster: reservations."""

from __future__ import annotations

import pytest

from tests.yarnling.simulation.case_cluster import GB, CaseCluster

ONE_QUEUE = {"root.queues": "a", "root.a.capacity": "100", "root.a.minimum-user-limit-percent": "50"}


def two_busy_nodes() -> CaseCluster:
    """Two nodes of 8 GB; app1 uses 5 GB of each, so that 4 GB fit on neither."""
    cluster = CaseCluster(ONE_QUEUE, nodes=(8 * GB, 8 * GB))
    cluster.launch("app1", user="u1")
    cluster.ask("app1", 9)
    cluster.until(lambda: cluster.free_mb("n1", "n2") == (3 * GB, 3 * GB), "5 GB are used on each node")
    cluster.run(2)
    return cluster


def reserve(cluster: CaseCluster) -> tuple[str, str]:
    """app1 asks 4 GB, which become a reservation; returns its node, and the other one."""
    cluster.ask("app1", 1, 4 * GB, priority=5)
    cluster.until(lambda: bool(cluster.reserved()), "a node is reserved")
    ((node, container),) = cluster.reserved().items()
    assert container == "app1/11"
    return node, "n2" if node == "n1" else "n1"


def tasks_on(cluster: CaseCluster, node: str) -> list[str]:
    return [name for name, host in cluster.held("app1").items() if host == node and name != "app1/1"]


@pytest.mark.case("F1")
def test_a_container_that_fits_nowhere_reserves_the_first_node_that_reports() -> None:
    cluster = two_busy_nodes()
    node, _ = reserve(cluster)
    assert cluster.used_mb("root.a") == (14 * GB,), "the reservation counts: 10 GB held and 4 reserved"
    assert cluster.count("app1") == (10,)
    cluster.run(10)
    assert cluster.reserved() == {node: "app1/11"}
    cluster.assert_settled("app1")
    assert "(requested <memory:4096, vCores:1>, available <memory:3072, vCores:3>)" in cluster.obstacles("app1")[0]


@pytest.mark.case("F2")
def test_nothing_else_is_placed_on_the_reserved_node() -> None:
    cluster = two_busy_nodes()
    node, other = reserve(cluster)
    cluster.launch("app2", user="u2")
    assert cluster.held("app2") == {"app2/1": other}
    cluster.ask("app2", 5)
    cluster.run(10)
    assert set(cluster.held("app2").values()) == {other}
    assert cluster.free_mb(node) == (3 * GB,), "kept for the reservation"


@pytest.mark.case("F3")
def test_the_reservation_becomes_the_container_when_enough_has_ended_on_its_node() -> None:
    cluster = two_busy_nodes()
    node, _ = reserve(cluster)
    cluster.ask("app1", 3, priority=9)
    first = tasks_on(cluster, node)[0]
    cluster.end(first)
    cluster.until(lambda: not cluster.reserved(), "the reservation is filled")
    assert cluster.held("app1")["app1/11"] == node
    assert cluster.free_mb(node) == (0,)
    assert cluster.used_mb("root.a") == (13 * GB,), "the other requests still wait"
    cluster.run(3)
    assert "app1/11" in cluster.app("app1").received
    assert cluster.app("app1").exits == {first: 0}
    cluster.assert_settled("app1")


@pytest.mark.case("F4")
def test_another_node_serves_first_and_the_reservation_is_dropped() -> None:
    cluster = two_busy_nodes()
    node, other = reserve(cluster)
    cluster.end(tasks_on(cluster, other)[0])
    cluster.until(lambda: "app1/12" in cluster.held("app1"), "the other node serves the request")
    assert cluster.held("app1")["app1/12"] == other
    assert cluster.reserved() == {}
    assert cluster.used_mb("root.a") == (13 * GB,)
    cluster.ask("app1", 1, priority=9)
    cluster.run(3)
    assert cluster.held("app1")["app1/13"] == node, "the space that was kept can be used again"


@pytest.mark.case("F4")
def test_a_withdrawn_request_drops_its_reservation() -> None:
    cluster = two_busy_nodes()
    reserve(cluster)
    cluster.withdraw("app1", 1, 4 * GB, priority=5)
    cluster.run(3)
    assert cluster.reserved() == {}
    assert cluster.used_mb("root.a") == (10 * GB,)


@pytest.mark.case("F5")
def test_a_node_has_one_reservation_at_most() -> None:
    """Three applications want 6 GB on three nodes of which none has it: with two reservations the queue is full."""
    conf = {**ONE_QUEUE, "root.a.minimum-user-limit-percent": "33", "root.a.user-limit-factor": "2"}
    cluster = CaseCluster(conf, nodes=(8 * GB,) * 3)
    for number in (1, 2, 3, 4):
        cluster.launch(f"app{number}", user=f"u{number}")
    cluster.ask("app4", 3, 2 * GB)
    cluster.run(5)
    assert all(free < 6 * GB for free in cluster.free_mb("n1", "n2", "n3")), cluster.free_mb("n1", "n2", "n3")
    for number in (1, 2, 3):
        cluster.ask(f"app{number}", 1, 6 * GB)
    cluster.run(10)
    reserved = cluster.reserved()
    assert len(reserved) == len(set(reserved.values())) == 2
    assert cluster.used_mb("root.a") == ((10 + 12) * GB,)
    (without,) = {"app1", "app2", "app3"} - {name.partition("/")[0] for name in reserved.values()}
    assert "Queue does not have enough headroom" in "\n".join(cluster.obstacles(without))


LIMITED = {
    "root.queues": "a,b",
    "root.a.capacity": "75",
    "root.a.maximum-capacity": "75",
    "root.b.capacity": "25",
    "root.a.user-limit-factor": "10",
}


def full_by_reservation(settings: dict[str, str]) -> CaseCluster:
    """A queue of at most 12 GB holds 8 GB, and 4 GB reserved on n1 while n2 does not report."""
    cluster = CaseCluster({**LIMITED, **settings}, nodes=(8 * GB, 8 * GB))
    n1, n2 = (cluster.cluster.machine(number).nm for number in (1, 2))
    n2.pause()
    cluster.launch("app")
    cluster.ask("app", 1, 5 * GB)
    cluster.until(lambda: cluster.count("app") == (2,), "5 GB on n1")
    n2.resume()
    n1.pause()
    cluster.ask("app", 1, 2 * GB, priority=2)
    cluster.until(lambda: cluster.count("app") == (3,), "2 GB on n2")
    n2.pause()
    n1.resume()
    cluster.ask("app", 1, 4 * GB, priority=3)
    cluster.until(lambda: bool(cluster.reserved()), "n1 is reserved")
    assert cluster.held("app") == {"app/1": "n1", "app/2": "n1", "app/3": "n2"}
    assert cluster.reserved() == {"n1": "app/4"}
    assert cluster.used_mb("root.a") == (12 * GB,)
    n2.resume()
    return cluster


@pytest.mark.case("F6")
def test_a_reservation_elsewhere_is_given_up_to_stay_inside_the_queues_maximum() -> None:
    cluster = full_by_reservation({})
    cluster.run(5)
    assert cluster.reserved() == {}
    assert cluster.held("app")["app/5"] == "n2"
    assert cluster.used_mb("root.a") == (12 * GB,)
    assert cluster.free_mb("n1", "n2") == (2 * GB, 2 * GB)
    cluster.assert_settled("app")


@pytest.mark.case("F6")
def test_without_continue_looking_the_reservation_is_kept() -> None:
    cluster = full_by_reservation({"reservations-continue-look-all-nodes": "false"})
    cluster.run(20)
    assert cluster.reserved() == {"n1": "app/4"}
    assert cluster.count("app") == (3,)
    assert cluster.free_mb("n2") == (6 * GB,)
    refused = "Queue hits max-capacity limit (used <memory:12288, vCores:4>, limit <memory:12288, vCores:12>)"
    assert refused in "\n".join(cluster.obstacles("app"))
