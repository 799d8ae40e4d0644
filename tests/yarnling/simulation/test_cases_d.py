"""Mission cases D1, D2, D4 and D5 on a whole simulated cluster: ordering policies, vcores, churn, kinds of queues."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.yarnling.simulation.case_cluster import ALL_AT_ONCE, GB, MONITORED, CaseCluster
from wire.files.hadoop_xml import read_configuration
from yarn.resource import Resource

ARCHETYPES = Path(__file__).resolve().parents[3] / "examples" / "archetypes"
ONE_QUEUE = {"root.queues": "a", "root.a.capacity": "100"}
HALVES = {
    **ALL_AT_ONCE,
    "root.queues": "a,b",
    "root.a.capacity": "50",
    "root.b.capacity": "50",
    "root.a.user-limit-factor": "2",
}


def early_and_late(policy: str, conf: dict[str, str] | None = None) -> CaseCluster:
    """A queue of 10 GB that the early application fills, and would fill twice; the late one wants as much."""
    conf = {**ONE_QUEUE, "root.a.ordering-policy": policy, **(conf or {})}
    cluster = CaseCluster(conf, nodes=(10 * GB,))
    cluster.launch("early", priority=1)
    cluster.launch("late", priority=3)
    cluster.ask("early", 20)
    cluster.until(lambda: cluster.count("early", "late") == (9, 1), "the queue is full")
    cluster.ask("late", 20)
    return cluster


@pytest.mark.case("D1")
def test_with_fifo_a_large_early_application_shuts_out_the_later_one() -> None:
    cluster = early_and_late("fifo", {"yarn.cluster.max-application-priority": "0"})
    for number in (2, 3, 4, 5):
        cluster.end(f"early/{number}")
        cluster.run(3)
    assert cluster.count("early", "late") == (9, 1)
    assert cluster.app("early").received[-4:] == ["early/10", "early/11", "early/12", "early/13"]


@pytest.mark.case("D1")
def test_with_fair_the_later_application_gets_what_becomes_free_and_nothing_more() -> None:
    cluster = early_and_late("fair")
    cluster.run(20)
    assert cluster.count("early", "late") == (9, 1), "nothing is taken"
    counts = []
    for number in (2, 3, 4, 5):
        cluster.end(f"early/{number}")
        cluster.run(3)
        counts.append(cluster.count("early", "late"))
    assert counts == [(8, 2), (7, 3), (6, 4), (5, 5)]


@pytest.mark.case("D1")
def test_with_intra_queue_preemption_fifo_takes_from_the_application_of_lower_priority() -> None:
    inside = "preemption.intra-queue-preemption."
    conf = {
        **ALL_AT_ONCE,
        **MONITORED,
        "root.a.user-limit-factor": "2",
        "yarn.cluster.max-application-priority": "5",
        inside + "enabled": "true",
        inside + "max-allowable-limit": "1.0",
        inside + "preemption-order-policy": "priority_first",
    }
    cluster = early_and_late("fifo", conf)
    cluster.run(30)
    assert cluster.count("early", "late") == (1, 9), "all but the AM"
    assert sorted(cluster.steps("killed")) == [f"early/{number}" for number in range(2, 10)]
    assert {each.reason for each in cluster.preemptions} == {"INTRA_QUEUE"}


@pytest.mark.case("D2")
def test_where_memory_alone_counts_vcores_are_oversubscribed() -> None:
    cluster = CaseCluster({**ONE_QUEUE, **ALL_AT_ONCE}, nodes=(Resource(17 * GB, 16),))
    cluster.launch("app")
    cluster.ask("app", 20, GB, 8)
    cluster.run(3)
    assert cluster.count("app") == (17,)
    cluster.assert_settled("app")
    assert cluster.node("n1").allocated == Resource(17 * GB, 17), "16 containers that asked for 8 vcores each"


@pytest.mark.case("D2")
def test_with_dominant_resources_the_same_requests_stop_at_the_nodes_vcores() -> None:
    """cpu asks 8 vcores with 1 GB, mem 4 GB with 1 vcore: queues are compared by their dominant share."""
    dominant = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
    conf = {**HALVES, "resource-calculator": dominant, "per-node-heartbeat.maximum-offswitch-assignments": "1"}
    cluster = CaseCluster(conf, nodes=(Resource(18 * GB, 18), Resource(18 * GB, 18)))
    cluster.launch("cpu", user="u", queue="root.a")
    cluster.launch("mem", user="v", queue="root.b")
    cluster.ask("cpu", 20, GB, 8)
    cluster.ask("mem", 20, 4 * GB, 1)
    cluster.run(20)
    assert cluster.count("cpu", "mem") == (3, 6), "17 of 36 vcores, and 21 of 36 GB"
    nodes = [cluster.node(host) for host in ("n1", "n2")]
    assert all(node.allocated.fits_in(node.total) for node in nodes)
    assert all(node.unallocated.memory_mb >= 4 * GB for node in nodes), "it is the vcores that are missing"
    assert all("requested <memory:1024, vCores:8>" in obstacle for obstacle in cluster.obstacles("cpu"))
    assert len(cluster.obstacles("cpu")) == 2
    cluster.assert_settled("cpu", "mem")


def hog_and_late(lasts_s: float | None) -> CaseCluster:
    """Two queues of 6 of 12 GB. hog holds 11; its containers run forever, or for so many seconds, and it wants more."""
    cluster = CaseCluster(HALVES, nodes=(12 * GB,))
    cluster.launch("late", user="v", queue="root.b")
    cluster.launch("hog", user="u", queue="root.a")
    for priority in range(1, 11):
        cluster.ask("hog", 1, priority=priority, seconds=None if lasts_s is None else lasts_s + priority)
    cluster.until(lambda: cluster.count("hog") == (11,), "hog has all that is free")
    cluster.ask("hog", 20, priority=20)
    cluster.run(1.1)
    cluster.ask("late", 20)
    return cluster


@pytest.mark.case("D4")
def test_long_lived_containers_never_return_elastic_space() -> None:
    cluster = hog_and_late(None)
    cluster.run(60)
    assert cluster.count("hog", "late") == (11, 1)


@pytest.mark.case("D4")
def test_with_churn_the_shares_converge_in_the_time_in_which_the_surplus_ends() -> None:
    """A container of hog ends each second: after five of them both have their half."""
    cluster = hog_and_late(10)
    cluster.until(lambda: cluster.count("hog", "late") != (11, 1), "the first has ended")
    first_s = cluster.now_s
    seen = [cluster.count("hog", "late")]
    while cluster.now_s < first_s + 8:
        if (counts := cluster.count("hog", "late")) != seen[-1]:
            seen.append(counts)
        if counts == (6, 6):
            break
        cluster.run(0.1)
    assert seen == [(10, 2), (9, 3), (8, 4), (7, 5), (6, 6)]
    assert cluster.now_s - first_s <= 5, "five containers, one a second"
    cluster.run(5)
    assert cluster.count("hog", "late") == (6, 6), "from then on each gets what it gives back itself"


@pytest.mark.slow
@pytest.mark.case("D5")
def test_seven_kinds_of_work_side_by_side_each_in_its_queue() -> None:
    """The configuration of examples/archetypes: 16 GB, containers of 512 MB."""
    read = read_configuration(ARCHETYPES, {})
    conf = {key: read.get(key) or "" for key in read} | {"preemption.max_wait_before_kill": "3000"}
    cluster = CaseCluster(conf, nodes=(Resource(4 * GB, 32),) * 4)
    unit = 512

    def start(app: str, user: str, queue: str, count: int, seconds: float | None = None, **context: int) -> None:
        cluster.launch(app, user=user, queue=queue, am_mb=unit, **context)
        cluster.ask(app, count, unit, seconds=seconds)

    def share(queue: str) -> float:
        return cluster.used_mb(f"root.{queue}")[0] / (16 * GB)

    start("web", "web", "always-on", 2)
    start("eve", "eve", "exploration", 8)
    cluster.until(lambda: len(cluster.app("eve").received) == 8, "exploration grows")
    cluster.run(1)
    assert share("exploration") > 0.1
    cluster.release(*[f"eve/{number}" for number in range(3, 10)])
    cluster.until(lambda: cluster.count("eve") == (2,), "and gives back")
    start("gang", "mia", "machine-learning", 10)
    cluster.until(lambda: cluster.count("gang") == (11,), "all members run")
    start("night", "night", "batch", 60)
    cluster.until(lambda: share("batch") > 0.4, "batch takes what is free")
    alone = share("batch")
    for number in range(2):
        app = f"query{number}"
        start(app, "dora", "dashboards", 2, seconds=1)
        cluster.until(lambda app=app: list(cluster.app(app).exits.values()) == [0, 0], "a query is answered")
        cluster.finish(app)
    for user in ("ann", "bob"):
        start(user, user, "ad-hoc", 30)
    cluster.run(20)
    assert all(count * unit <= 16 * GB * 0.1 + unit for count in cluster.count("ann", "bob")), "half of the queue each"
    assert share("ad-hoc") <= 0.25
    start("early", "carl", "preferred", 30, seconds=1)
    start("late", "carl", "preferred", 6, seconds=1, priority=10)
    cluster.until(lambda: len(cluster.app("late").exits) == 6, "urgent work is done")
    assert len(cluster.app("early").exits) < 6
    assert alone > share("batch") > 0.1, "preempted to about its guarantee of 15 %"
    assert cluster.count("gang", "web") == (11, 3), "what must not be preempted is not"
    assert cluster.app("gang").exits == cluster.app("web").exits == {}
