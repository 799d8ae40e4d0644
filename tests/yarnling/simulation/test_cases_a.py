"""Mission cases A1, A2, A4, A6, A7 and A8 on a whole simulated cluster: sharing between queues."""

from __future__ import annotations

import pytest

from tests.yarnling.simulation.case_cluster import ALL_AT_ONCE, GB, CaseCluster
from yarn.errors import YarnException
from yarn.faults import ConfigurationException
from yarn.resource import Resource


@pytest.mark.case("A1")
def test_the_most_under_served_queue_is_served_first_at_each_level() -> None:
    """Two parents of 10 GB with leaves of 4 and 6, 5 and 5 GB: everything that is free goes by used/guaranteed."""
    conf = {
        "root.queues": "a,b",
        "root.a.capacity": "50",
        "root.b.capacity": "50",
        "root.a.queues": "a1,a2",
        "root.a.a1.capacity": "40",
        "root.a.a2.capacity": "60",
        "root.b.queues": "b1,b2",
        "root.b.b1.capacity": "50",
        "root.b.b2.capacity": "50",
    }
    cluster = CaseCluster(conf, nodes=(20 * GB,))
    leaves = ("root.a.a1", "root.a.a2", "root.b.b1", "root.b.b2")
    for leaf in leaves:
        cluster.launch(leaf[-2:], user=f"user-of-{leaf[-2:]}", queue=leaf)
    node = cluster.cluster.machine(1).nm
    node.pause()
    for leaf in leaves:
        cluster.ask(leaf[-2:], 40)
    cluster.run(1.5)
    node.resume()
    shares = {leaf: cluster.queue(leaf).effective_minimum("").memory_mb for leaf in ("root.a", "root.b", *leaves)}
    while cluster.free_mb("n1") != (0,):
        before = dict(zip(shares, cluster.used_mb(*shares), strict=True))
        cluster.until(lambda before=before: cluster.used_mb(*shares) != tuple(before.values()), "one more")
        after = dict(zip(shares, cluster.used_mb(*shares), strict=True))
        (parent,) = (queue for queue in ("root.a", "root.b") if after[queue] != before[queue])
        (leaf,) = (queue for queue in leaves if after[queue] != before[queue])
        use = {queue: before[queue] / share for queue, share in shares.items()}
        assert use[parent] == min(use["root.a"], use["root.b"])
        assert use[leaf] == min(use[each] for each in leaves if each.startswith(parent))
        assert after[parent] == sum(after[each] for each in leaves if each.startswith(parent))
    assert cluster.used_mb(*shares) == (10 * GB, 10 * GB, 4 * GB, 6 * GB, 5 * GB, 5 * GB)
    cluster.run(2)
    cluster.assert_settled("a1", "a2", "b1", "b2")


ONE_QUEUE = {"root.queues": "a", "root.a.capacity": "100"}


@pytest.mark.case("A2")
def test_in_a_leaf_the_oldest_application_is_served_first_and_in_it_the_lower_priority_number() -> None:
    cluster = CaseCluster(ONE_QUEUE, nodes=(20 * GB,))
    for app in ("app1", "app2", "app3"):
        cluster.launch(app)
    node = cluster.cluster.machine(1).nm
    node.pause()
    cluster.ask("app3", 20)
    cluster.ask("app2", 6)
    cluster.ask("app1", 3, priority=5)
    cluster.ask("app1", 2, 2 * GB, priority=1)
    cluster.run(1.5)
    node.resume()
    cluster.until(lambda: cluster.count("app1") == (6,), "the oldest has everything")
    assert cluster.count("app2", "app3") == (1, 1)
    sizes = [each.resource.memory_mb // GB for each in cluster.attempt("app1").live_containers.values()]
    assert sizes == [1, 2, 2, 1, 1, 1], "the AM, then priority 1, then priority 5"
    cluster.until(lambda: cluster.count("app2") == (7,), "then the second")
    assert cluster.count("app3") == (1,)
    cluster.run(8)
    assert cluster.count("app1", "app2", "app3") == (6, 7, 5)


@pytest.mark.case("A2")
def test_the_oldest_application_of_a_user_at_its_limit_is_passed_over() -> None:
    cluster = CaseCluster({**ONE_QUEUE, "root.a.minimum-user-limit-percent": "50"}, nodes=(20 * GB,))
    for app, user in (("app1", "u1"), ("app2", "u1"), ("app3", "u2")):
        cluster.launch(app, user=user)
    node = cluster.cluster.machine(1).nm
    node.pause()
    for app in ("app1", "app2", "app3"):
        cluster.ask(app, 20)
    cluster.run(1.5)
    node.resume()
    cluster.run(20)
    assert cluster.count("app1", "app2", "app3") == (10, 1, 9)
    assert "Queue hits user max-capacity limit" in cluster.obstacles("app2")[0]


ENGINEERING = {
    "root.queues": "engineering,support,marketing",
    "root.engineering.capacity": "60",
    "root.support.capacity": "10",
    "root.marketing.capacity": "30",
    "root.engineering.queues": "development,qa",
    "root.engineering.development.capacity": "20",
    "root.engineering.qa.capacity": "80",
    "root.engineering.development.user-limit-factor": "10",
    "root.engineering.development.maximum-capacity": "40",
}


@pytest.mark.case("A4")
@pytest.mark.parametrize(("maximum", "holds_gb"), [("60", 24), ("100", 40)])
def test_development_never_grows_above_its_maximum(maximum: str, holds_gb: int) -> None:
    """40 % of the parent's absolute maximum: 24 of 100 GB need a maximum of 60 on engineering too."""
    conf = {**ENGINEERING, **ALL_AT_ONCE, "root.engineering.maximum-capacity": maximum}
    cluster = CaseCluster(conf, nodes=(50 * GB, 50 * GB))
    for user in ("sid", "hitesh"):
        cluster.launch(user, user=user, queue="root.engineering.development")
    for user in ("sid", "hitesh"):
        cluster.ask(user, 50)
    most_gb = 0
    for _ in range(10):
        cluster.run(0.5)
        most_gb = max(most_gb, cluster.used_mb("root.engineering.development")[0] // GB)
    assert most_gb == holds_gb
    assert sum(cluster.count("sid", "hitesh")) == holds_gb
    assert "Queue hits max-capacity limit" in cluster.obstacles("sid")[0]
    cluster.assert_settled("sid", "hitesh")


@pytest.mark.case("A6")
@pytest.mark.parametrize(("priority", "order"), [(0, "bbbbsbbbb"), (1, "sssbbbbbb")])
def test_a_queue_of_higher_priority_is_served_first_up_to_its_guarantee(priority: int, order: str) -> None:
    """small has 4 of 20 GB, big 16. Equal priorities: lower relative use first. Higher: small first, to its 4 GB."""
    conf = {
        "root.queues": "small,big",
        "root.small.capacity": "20",
        "root.big.capacity": "80",
        "root.ordering-policy": "priority-utilization",
        "root.small.user-limit-factor": "5",
        "root.small.priority": str(priority),
    }
    cluster = CaseCluster(conf, nodes=(20 * GB,))
    cluster.launch("b", user="v", queue="big")
    cluster.launch("s", user="u", queue="small")
    node = cluster.cluster.machine(1).nm
    node.pause()
    cluster.ask("s", 20)
    cluster.ask("b", 20)
    cluster.run(1.5)
    node.resume()
    seen = ""
    for _ in order:
        before = cluster.count("s", "b")
        cluster.until(lambda before=before: cluster.count("s", "b") != before, "one more")
        seen += "s" if cluster.count("s", "b")[0] > before[0] else "b"
    assert seen == order


@pytest.mark.case("A7")
def test_capacities_that_sum_to_110_are_refused_and_the_running_ones_stay() -> None:
    conf = {"root.queues": "a,b", "root.a.capacity": "60", "root.b.capacity": "40"}
    with pytest.raises(ConfigurationException, match=r"Illegal capacity sum of 1\.1 for children of queue root"):
        CaseCluster({**conf, "root.b.capacity": "50"}, nodes=(10 * GB,))
    cluster = CaseCluster(conf, nodes=(10 * GB,))
    cluster.launch("app", queue="b")
    refused = cluster.refresh({"root.b.capacity": "50"})
    assert isinstance(refused, YarnException)
    assert "Illegal capacity sum of 1.1 for children of queue root" in refused.message
    cluster.ask("app", 3)
    cluster.run(5)
    assert cluster.count("app") == (4,)
    assert cluster.queue("root.a").effective_minimum("") == Resource(6 * GB, 6)
    assert not isinstance(cluster.refresh({"root.a.capacity": "50", "root.b.capacity": "50"}), YarnException)
    assert cluster.queue("root.a").effective_minimum("") == Resource(5 * GB, 5)


@pytest.mark.case("A8")
@pytest.mark.parametrize(
    ("a", "b", "x", "y"),
    [
        ("25", "75", "50", "50"),
        ("[memory=4096,vcores=4]", "[memory=12288,vcores=12]", "[memory=2048,vcores=2]", "[memory=2048,vcores=2]"),
        ("1w", "3w", "2w", "2w"),
    ],
    ids=["percent", "amounts", "weights"],
)
def test_one_tree_in_three_notations_has_the_same_capacities(a: str, b: str, x: str, y: str) -> None:
    conf = {
        **ALL_AT_ONCE,
        "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        "root.queues": "a,b",
        "root.a.capacity": a,
        "root.b.capacity": b,
        "root.a.queues": "x,y",
        "root.a.x.capacity": x,
        "root.a.y.capacity": y,
    }
    cluster = CaseCluster(conf, nodes=(8 * GB, 8 * GB))
    found = {path: cluster.queue(path).effective_minimum("") for path in ("root.a", "root.a.x", "root.a.y", "root.b")}
    assert found == {
        "root.a": Resource(4 * GB, 4),
        "root.a.x": Resource(2 * GB, 2),
        "root.a.y": Resource(2 * GB, 2),
        "root.b": Resource(12 * GB, 12),
    }
    for app, queue in (("x", "root.a.x"), ("b", "root.b")):
        cluster.launch(app, queue=queue)
        cluster.ask(app, 20)
    cluster.run(5)
    assert cluster.count("x", "b") == (3, 13), "each queue's user ends one container above it"
