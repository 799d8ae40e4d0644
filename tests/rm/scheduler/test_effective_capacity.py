"""Shares and amounts that follow from the configuration and the cluster."""

from __future__ import annotations

import math

import pytest

from tests.rm.scheduler.cluster import GB, Cluster
from tests.rm.scheduler.conftest import StartCluster
from yarn.java.binary32 import f32
from yarn.resource import Resource

DOMINANT = {"resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"}


def queues(**capacities: str) -> dict[str, str]:
    """Queues below root with these capacities; a key that ends in `_max` is a maximum."""
    conf = {"root.queues": ",".join(name for name in capacities if not name.endswith("_max"))}
    for name, text in capacities.items():
        path, _, maximum = name.partition("_")
        conf[f"root.{path}.{'maximum-' if maximum else ''}capacity"] = text
    return conf


def minimum(cluster: Cluster, queue: str) -> Resource:
    found = cluster.scheduler.queue(queue)
    assert found is not None
    return found.effective_minimum("")


def maximum(cluster: Cluster, queue: str) -> Resource:
    found = cluster.scheduler.queue(queue)
    assert found is not None
    return found.effective_maximum("")


@pytest.mark.case("A8")
def test_weights_are_divided_by_their_sum(start_cluster: StartCluster) -> None:
    conf = {**queues(a="3w", b="1w"), "root.a.queues": "x,y", "root.a.x.capacity": "2w", "root.a.y.capacity": "1w"}
    cluster = start_cluster(conf, alone=True)
    cluster.node("n1", 12 * GB)
    assert [minimum(cluster, name).memory_mb for name in ("a", "x", "y", "b")] == [9 * GB, 6 * GB, 3 * GB, 3 * GB]


@pytest.mark.case("A8")
@pytest.mark.parametrize(
    ("a", "b", "x", "y"),
    [
        ("75", "25", "50", "50"),
        ("3w", "1w", "1w", "1w"),
        ("[memory=12288,vcores=12]", "[memory=4096,vcores=4]", "[memory=6144,vcores=6]", "[memory=6144,vcores=6]"),
        ("75", "25", "2w", "2w"),
    ],
    ids=["percent", "weight", "absolute", "mixed levels"],
)
def test_one_tree_has_the_same_amounts_in_all_notations(
    start_cluster: StartCluster, a: str, b: str, x: str, y: str
) -> None:
    """The shares of the cluster are the same too."""
    conf = {**DOMINANT, **queues(a=a, b=b), "root.a.queues": "x,y", "root.a.x.capacity": x, "root.a.y.capacity": y}
    cluster = start_cluster(conf, alone=True)
    cluster.node("n1", 10 * GB)
    cluster.node("n2", 6 * GB)
    sizes = [minimum(cluster, name) for name in "abxy"]
    assert sizes == [Resource(12288, 12), Resource(4096, 4), Resource(6144, 6), Resource(6144, 6)]
    shares = [cluster.leaf(name).capacities.default.absolute_capacity for name in "bxy"]
    assert shares == [0.25, 0.375, 0.375]


def test_a_weight_of_zero_gives_no_capacity(start_cluster: StartCluster) -> None:
    """A sum of at most 0.000001 is not used as a divisor."""
    cluster = start_cluster(queues(a="0w", b="0w"), alone=True)
    cluster.node("n1", 12 * GB)
    assert minimum(cluster, "a") == Resource(0, 0)


def test_weights_are_normalised_again_when_siblings_change(start_cluster: StartCluster) -> None:
    cluster = start_cluster(queues(a="1w", b="1w"), alone=True)
    cluster.node("n1", 12 * GB)
    cluster.refresh(queues(a="1w", b="1w", c="2w"))
    assert [minimum(cluster, name).memory_mb for name in "abc"] == [3 * GB, 3 * GB, 6 * GB]


def test_weights_refreshed_to_percentages_keep_the_larger(start_cluster: StartCluster) -> None:
    """A refresh does not clear the normalised weight."""
    cluster = start_cluster(queues(a="2w", b="1w"), alone=True)
    cluster.node("n1", 12 * GB)
    cluster.refresh(queues(a="50", b="50"))
    shares = [cluster.leaf(name).capacities.default.absolute_capacity for name in "ab"]
    assert shares == [f32(2 / 3), 0.5]


def test_a_capacity_refreshed_to_zero_is_zero(start_cluster: StartCluster) -> None:
    cluster = start_cluster(queues(a="40", b="60"), alone=True)
    cluster.node("n1", 10 * GB)
    cluster.refresh(queues(a="0", b="100"))
    assert minimum(cluster, "a") == Resource(0, 0)


@pytest.mark.case("A8")
def test_amounts_are_guaranteed_while_the_cluster_has_them(start_cluster: StartCluster) -> None:
    """Otherwise they are scaled down, each resource type separately."""
    cluster = start_cluster({**DOMINANT, **queues(a="[memory=6144,vcores=6]", b="[memory=2048,vcores=2]")}, alone=True)
    assert minimum(cluster, "a") == Resource(6144, 6), "an empty cluster scales nothing"
    cluster.node("n1", 16 * GB)
    assert minimum(cluster, "a") == Resource(6144, 6)
    assert maximum(cluster, "a") == Resource(16 * GB, 16)
    assert cluster.leaf("a").capacities.default.absolute_capacity == f32(6144 / 16384)
    cluster.resize("n1", 4 * GB)
    assert (minimum(cluster, "a"), minimum(cluster, "b")) == (Resource(3072, 3), Resource(1024, 1))


def test_a_shortage_of_one_type_scales_the_others_up(start_cluster: StartCluster) -> None:
    """The ratio is not capped at 1."""
    amounts = "[memory=20480,vcores=20]"
    cluster = start_cluster({**DOMINANT, **queues(a=amounts, b=amounts)}, alone=True)
    cluster.node("n1", 102400, 10)
    assert minimum(cluster, "a") == Resource(51200, 5)


def test_children_of_a_scaled_parent_are_scaled_with_it(start_cluster: StartCluster) -> None:
    conf = {
        **queues(a="[memory=8192,vcores=8]", b="[memory=8192,vcores=8]"),
        "root.a.queues": "x,y",
        "root.a.x.capacity": "[memory=6144,vcores=6]",
        "root.a.y.capacity": "[memory=2048,vcores=2]",
    }
    cluster = start_cluster(conf, alone=True)
    cluster.node("n1", 8 * GB)
    assert [minimum(cluster, name).memory_mb for name in "axy"] == [4096, 3072, 1024]


def test_a_maximum_in_amounts_is_inherited_and_bounded(start_cluster: StartCluster) -> None:
    """getOrInheritMaxResource: the queue's own, else the configured one of an ancestor, else its effective maximum."""
    conf = {
        **queues(a="[memory=4096,vcores=4]", a_max="[memory=8192,vcores=8]", b="[memory=4096,vcores=4]"),
        "root.a.queues": "x,y",
        "root.a.x.capacity": "[memory=1024,vcores=1]",
        "root.a.x.maximum-capacity": "[memory=2048,vcores=2]",
        "root.a.y.capacity": "[memory=1024,vcores=1]",
    }
    cluster = start_cluster(conf, alone=True)
    cluster.node("n1", 16 * GB)
    sizes = [maximum(cluster, name).memory_mb for name in ("a", "x", "y", "b")]
    assert sizes == [8 * GB, 2 * GB, 8 * GB, 16 * GB]


def test_a_capacity_above_its_maximum_is_bounded_by_the_maximum(start_cluster: StartCluster) -> None:
    """The configuration loads; the guarantee is above what the queue may use."""
    cluster = start_cluster({**queues(a="50", a_max="40", b="50"), "maximum-am-resource-percent": "1"}, alone=True)
    cluster.node("n1", 10 * GB)
    assert (minimum(cluster, "a").memory_mb, maximum(cluster, "a").memory_mb) == (5 * GB, 4 * GB)
    cluster.run("app1", "n1")
    cluster.request("app1", 9)
    cluster.heartbeat("n1", 9)
    assert cluster.used("a") == 4 * GB


def test_a_queue_of_amounts_accepts_no_application_before_the_first_node(start_cluster: StartCluster) -> None:
    """Its share of the maximum number of applications is still zero."""
    cluster = start_cluster(queues(a="[memory=4096,vcores=4]", b="[memory=4096,vcores=4]"), alone=True)
    (refusal,) = cluster.submit("app1")
    assert "Queue root.a already has 0 applications, cannot accept submission of application" in refusal
    cluster.node("n1", 8 * GB)
    assert cluster.submit("app2") == []


def test_a_global_maximum_of_applications_does_not_apply_to_queues_of_amounts(start_cluster: StartCluster) -> None:
    conf = {"global-queue-max-application": "100"}
    cluster = start_cluster({**conf, **queues(a="[memory=4096,vcores=4]", b="[memory=4096,vcores=4]")}, alone=True)
    cluster.node("n1", 16 * GB)
    assert cluster.leaf("a").maximum_applications == 25
    cluster = start_cluster({**conf, **queues(a="50", b="50")}, alone=True)
    assert cluster.leaf("a").maximum_applications == 100


def test_shares_of_an_empty_cluster_are_nan_with_dominant_shares(start_cluster: StartCluster) -> None:
    """Infinity becomes 0, NaN stays (deriveCapacityFromAbsoluteConfigurations)."""
    amounts = queues(a="[memory=4096,vcores=4]", b="[memory=4096,vcores=4]")
    cluster = start_cluster({**DOMINANT, **amounts}, alone=True)
    assert math.isnan(cluster.leaf("a").capacities.default.absolute_capacity)
    cluster = start_cluster(amounts, alone=True)
    assert cluster.leaf("a").capacities.default.absolute_capacity == 0.0
