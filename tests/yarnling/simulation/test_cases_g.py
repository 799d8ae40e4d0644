"""Mission cases G1 to G3 on a whole simulated cluster: node labels and locality."""

from __future__ import annotations

import pytest

from tests.yarnling.simulation.case_cluster import ALL_AT_ONCE, GB, CaseCluster
from yarn.resource import NONE

LABEL = "accessible-node-labels"
LABELLED = {
    **ALL_AT_ONCE,
    "yarn.node-labels.enabled": "true",
    "root.queues": "a,b,c",
    "root.a.capacity": "50",
    "root.b.capacity": "30",
    "root.c.capacity": "20",
    "user-limit-factor": "10",
    f"root.{LABEL}.x.capacity": "100",
    f"root.a.{LABEL}": "x",
    f"root.a.{LABEL}.x.capacity": "70",
    f"root.b.{LABEL}": "x",
    f"root.b.{LABEL}.x.capacity": "30",
    f"root.b.{LABEL}.x.maximum-capacity": "50",
    f"root.c.{LABEL}": "",
}


@pytest.mark.case("G1")
def test_on_an_exclusive_label_only_those_run_that_name_it_and_may() -> None:
    """Label x is n2's; of it a is guaranteed 70 %, b 30 % with 50 % at most, c nothing."""
    cluster = CaseCluster(LABELLED, nodes=(10 * GB, 10 * GB), labels={"n2": "x"})
    for app in ("a", "b", "c"):
        cluster.launch(app, user=f"u{app}", queue=f"root.{app}")
    cluster.ask("c", 20)
    cluster.run(5)
    assert cluster.free_mb("n1", "n2") == (0, 10 * GB), "what does not name the label stays away"
    cluster.ask("b", 20, label="x", priority=2)
    cluster.run(5)
    assert cluster.used_mb("root.b", label="x") == (5 * GB,), "its maximum on the label"
    cluster.ask("a", 20, label="x", priority=2)
    cluster.run(5)
    assert cluster.used_mb("root.a", "root.b", "root.c", label="x") == (5 * GB, 5 * GB, 0)
    assert cluster.queue("root.a").effective_minimum("x").memory_mb == 7167
    assert cluster.queue("root.b").effective_maximum("x").memory_mb == 5 * GB
    for app in ("a", "b"):
        assert list(cluster.held(app).values()) == ["n1", "n2", "n2", "n2", "n2", "n2"]
    cluster.assert_settled("a", "b", "c")


@pytest.mark.case("G1")
def test_a_submission_with_a_label_that_its_queue_may_not_use_is_refused() -> None:
    cluster = CaseCluster(LABELLED, nodes=(10 * GB, 10 * GB), labels={"n2": "x"})
    cluster.submit("c", user="uc", queue="root.c", node_label_expression="x")
    assert "queue=c doesn't have permission to access all labels in resource request" in cluster.app("c").refusal


@pytest.mark.case("G2")
def test_idle_nodes_of_a_shared_label_are_lent_and_its_own_requests_come_first() -> None:
    conf = {
        "yarn.node-labels.enabled": "true",
        "root.queues": "a,c",
        "root.a.capacity": "50",
        "root.c.capacity": "50",
        "user-limit-factor": "10",
        f"root.{LABEL}.x.capacity": "100",
        f"root.a.{LABEL}": "x",
        f"root.a.{LABEL}.x.capacity": "100",
        f"root.c.{LABEL}": "",
    }
    cluster = CaseCluster(conf, nodes=(3 * GB, 8 * GB), labels={"n2": "x"}, shared=["x"])
    cluster.launch("app1", user="u1", queue="root.a")
    cluster.launch("app3", user="u3", queue="root.c")
    assert {*cluster.held("app1").values(), *cluster.held("app3").values()} == {"n1"}
    cluster.ask("app3", 20)
    cluster.until(lambda: cluster.used_mb("root.c", label="x") == (3 * GB,), "three are lent")
    assert cluster.queue("root.c").effective_minimum("x").memory_mb == 0
    cluster.ask("app1", 2, label="x", priority=2)
    cluster.until(lambda: cluster.count("app1") == (3,), "the label's own application is served")
    assert list(cluster.held("app1").values()) == ["n1", "n2", "n2"]
    cluster.run(10)
    assert cluster.used_mb("root.a", "root.c", label="x") == (2 * GB, 6 * GB)
    cluster.assert_settled("app1", "app3")


RACKS = ("/r1", "/r1", "/r2")
ONE_QUEUE = {"root.queues": "a", "root.a.capacity": "100"}


def only(cluster: CaseCluster, app: str) -> list[str]:
    """The nodes of an application's tasks."""
    return list(cluster.held(app).values())[1:]


@pytest.mark.case("G3")
def test_a_wanted_host_is_waited_for_then_its_rack_then_any() -> None:
    """Nodes report once a second. A request for n1 goes to its rack after two missed chances, elsewhere after four."""
    delays = {"node-locality-delay": "2", "rack-locality-additional-delay": "2"}
    cluster = CaseCluster({**ONE_QUEUE, **delays}, nodes=(4 * GB, 4 * GB, 4 * GB), racks=RACKS)
    cluster.launch("app")
    managers = [machine.nm for machine in cluster.cluster.machines]

    def chances(*reporting: str, priority: int) -> int:
        """The number of heartbeats of these nodes that it takes until a request for n1 is served."""
        for manager in managers:
            (manager.resume if manager.node_id.host in reporting else manager.pause)()
        before = cluster.count("app")[0]
        cluster.ask("app", 1, nodes=("n1",), priority=priority)
        cluster.until(lambda: cluster.queue("root.a").usage.pending("") != NONE, "the request is known")
        asked_s = cluster.now_s
        cluster.until(lambda: cluster.count("app") == (before + 1,), "it is served")
        return round(cluster.now_s - asked_s + 0.5)

    found = [chances("n1", "n2", "n3", priority=2), chances("n2", priority=3), chances("n3", priority=4)]
    assert only(cluster, "app") == ["n1", "n2", "n3"]
    assert found == [1, 3, 4], "at once, at the third visit, at the fourth: no later than all nodes' number"


@pytest.mark.case("G3")
def test_without_relaxed_locality_a_request_waits_for_its_host() -> None:
    cluster = CaseCluster(ONE_QUEUE, nodes=(4 * GB, 4 * GB, 4 * GB), racks=RACKS)
    cluster.launch("app")
    cluster.cluster.machine(3).nm.pause()
    cluster.ask("app", 1, nodes=("n3",), relax_locality=False)
    cluster.run(30)
    assert only(cluster, "app") == []
    cluster.cluster.machine(3).nm.resume()
    cluster.run(3)
    assert only(cluster, "app") == ["n3"]


@pytest.mark.case("G3")
def test_a_blacklisted_host_gets_no_containers_until_it_is_readmitted() -> None:
    cluster = CaseCluster(ONE_QUEUE, nodes=(4 * GB, 4 * GB, 4 * GB), racks=RACKS)
    cluster.launch("app")
    cluster.avoid("app", "n2", "n3")
    cluster.run(2)
    cluster.ask("app", 11)
    cluster.run(15)
    assert set(cluster.held("app").values()) == {"n1"}
    assert cluster.free_mb("n2", "n3") != (0, 0)
    cluster.readmit("app", "n2")
    cluster.run(8)
    assert set(only(cluster, "app")) == {"n1", "n2"}
    assert any("blacklisted" in obstacle for obstacle in cluster.obstacles("app"))
