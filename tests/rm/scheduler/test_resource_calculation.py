"""Amounts from vectors, without legacy queue mode: ResourceCalculationDriver. Numbers from Hadoop are marked."""

from __future__ import annotations

import math

import pytest

from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from rm.scheduler.model.queue import ParentQueue
from tests.rm.scheduler.cluster import GB, Cluster, configuration
from tests.rm.scheduler.conftest import StartCluster
from tests.rm.scheduler.test_effective_capacity import DOMINANT, maximum, minimum, queues
from yarn.faults import ConfigurationException
from yarn.java.binary32 import f32
from yarn.resource import Resource

VECTORS = {**DOMINANT, "legacy-queue-mode.enabled": "false"}


def below(parent: str, **capacities: str) -> dict[str, str]:
    """Queues below `parent` with these capacities."""
    conf = {f"{parent}.queues": ",".join(capacities)}
    return conf | {f"{parent}.{name}.capacity": text for name, text in capacities.items()}


def warnings(cluster: Cluster, parent: str = "root") -> list[str]:
    found = cluster.scheduler.queue(parent)
    assert isinstance(found, ParentQueue)
    return [str(warning) for warning in found.warnings]


def problems_of(conf: dict[str, str]) -> list[str]:
    with pytest.raises(ConfigurationException) as refusal:
        CapacitySchedulerConfiguration.read(configuration(conf))
    return [fault.problem for fault in refusal.value.faults]


def test_units_under_one_parent_are_distributed_in_rounds(start_cluster: StartCluster) -> None:
    """As Hadoop computed it: amounts, then percentages of the rest, then weights of what is left."""
    capacities = queues(a="[memory=4096,vcores=50%]", b="[memory=50%,vcores=3]", c="1w", d="[memory=2w,vcores=2w]")
    cluster = start_cluster({**VECTORS, **capacities}, alone=True)
    cluster.node("n1", 16385, 17)
    assert [minimum(cluster, name).values() for name in "abcd"] == [(4096, 7), (6144, 3), (2048, 2), (4097, 5)]
    assert [maximum(cluster, name).values() for name in "abcd"] == [(16385, 17)] * 4


def test_shares_are_derived_from_the_amounts(start_cluster: StartCluster) -> None:
    capacities = queues(a="[memory=4096,vcores=1]", a_max="50", b="[memory=2w,vcores=1w]")
    cluster = start_cluster({**VECTORS, **capacities, **below("root.a", x="50", y="1w")}, alone=True)
    cluster.node("n1", 16 * GB, 16)
    own = cluster.scheduler.queue("a")
    assert own is not None
    shares = own.capacities.default
    assert (shares.capacity, shares.maximum_capacity) == (0.25, 0.5)
    below_it = cluster.leaf("x").capacities.default
    assert (below_it.capacity, below_it.absolute_capacity, below_it.absolute_maximum_capacity) == (0.5, 0.125, 0.5)


def test_shares_equal_those_of_legacy_mode_if_it_can_express_them(start_cluster: StartCluster) -> None:
    cluster = start_cluster({**VECTORS, **queues(a="75", b="25"), **below("root.a", x="1w", y="3w")}, alone=True)
    cluster.node("n1", 16 * GB, 16)
    assert [minimum(cluster, name).values() for name in "abxy"] == [(12288, 12), (4096, 4), (3072, 3), (9216, 9)]
    cluster.resize("n1", 32 * GB, 32)
    assert [minimum(cluster, name).values() for name in "abxy"] == [(24576, 24), (8192, 8), (6144, 6), (18432, 18)]


def test_percentages_are_truncated_and_weights_rounded(start_cluster: StartCluster) -> None:
    cluster = start_cluster({**VECTORS, **queues(a="50", b="1w", c="3w")}, alone=True)
    cluster.node("n1", 1027, 7)
    assert [minimum(cluster, name).values() for name in "abc"] == [(513, 3), (129, 1), (385, 3)], "128.5 is 129"


def test_a_single_weight_gets_all_that_is_left(start_cluster: StartCluster) -> None:
    cluster = start_cluster({**VECTORS, **queues(a="33.3", b="0.7w")}, alone=True)
    cluster.node("n1", 10_001, 11)
    assert [minimum(cluster, name).values() for name in "ab"] == [(3330, 3), (6671, 8)]


def test_amounts_are_scaled_down_by_resource_type(start_cluster: StartCluster) -> None:
    """Unlike in legacy mode, a type without shortage is not scaled."""
    amounts = "[memory=20480,vcores=20]"
    cluster = start_cluster({**VECTORS, **queues(a=amounts, b=amounts)}, alone=True)
    cluster.node("n1", 102400, 10)
    assert minimum(cluster, "a") == Resource(20480, 5)
    assert warnings(cluster) == [
        "Remaining resource found in branch under parent queue 'root'. (memory-mb)",
        "Child queues with absolute configured capacity under parent queue 'root' are downscaled due to insufficient "
        "cluster resource. (vcores)",
    ]


def test_later_queues_get_what_is_left(start_cluster: StartCluster) -> None:
    cluster = start_cluster({**VECTORS, **queues(a="80", b="80", c="10")}, alone=True)
    cluster.node("n1", 10 * GB, 10)
    assert [minimum(cluster, name).values() for name in "abc"] == [(8192, 8), (2048, 2), (0, 0)]
    too_much = "is configured to use more resources than what is available under its parent."
    assert warnings(cluster) == [
        f"Queue 'root.b' {too_much} (memory-mb)",
        f"Queue 'root.c' {too_much} (memory-mb)",
        "Queue 'root.c' is assigned zero resource. (memory-mb)",
        f"Queue 'root.b' {too_much} (vcores)",
        "Queue 'root.c' is assigned zero resource. (vcores)",
    ]


def test_a_queue_without_memory_has_no_capacity(start_cluster: StartCluster) -> None:
    cluster = start_cluster({**VECTORS, **queues(a="[memory=0.001%,vcores=5]", b="100")}, alone=True)
    cluster.node("n1", 10 * GB, 10)
    assert [minimum(cluster, name).values() for name in "ab"] == [(0, 0), (10240, 10)]


def test_a_maximum_limits_the_guarantee(start_cluster: StartCluster) -> None:
    """The parent's maximum limits it too; a maximum of 0 means none."""
    conf = queues(a="50", a_max="[memory=25%,vcores=100]", b="50", b_max="[memory=0%,vcores=3]")
    cluster = start_cluster({**VECTORS, **conf, **below("root.a", x="100")}, alone=True)
    cluster.node("n1", 8 * GB, 8)
    assert (minimum(cluster, "a"), maximum(cluster, "a")) == (Resource(2048, 4), Resource(2048, 8))
    assert (minimum(cluster, "x"), maximum(cluster, "x")) == (Resource(2048, 4), Resource(2048, 8))
    assert (minimum(cluster, "b"), maximum(cluster, "b")) == (Resource(4096, 4), Resource(8192, 8)), (
        "its vector has no memory"
    )
    assert warnings(cluster) == [
        "Queue 'root.a' exceeds its maximum available resources. (memory-mb)",
        "Remaining resource found in branch under parent queue 'root'. (memory-mb)",
        "Maximum resources of queue 'root.a' are greater than its parent's. (vcores)",
    ]


def test_a_share_of_zero_is_zero(start_cluster: StartCluster) -> None:
    """Unlike in legacy mode, the earlier share is not kept."""
    cluster = start_cluster({**VECTORS, **queues(a="1", b="99")}, alone=True)
    cluster.node("n1", 10 * GB, 10)
    assert cluster.leaf("a").capacities.default.absolute_capacity > 0
    cluster.resize("n1", 99, 1)
    assert cluster.leaf("a").capacities.default.absolute_capacity == 0


def test_a_weight_of_the_root_is_ignored(start_cluster: StartCluster) -> None:
    """That weight becomes 1 (RootQueueCapacityCalculator): the root has the whole cluster whatever is configured."""
    cluster = start_cluster({**VECTORS, **queues(a="100"), "root.capacity": "1w"}, alone=True)
    cluster.node("n1", 10 * GB, 10)
    root = cluster.scheduler.queue("root")
    assert root is not None
    assert (root.capacities.default.normalized_weight, minimum(cluster, "a")) == (1.0, Resource(10 * GB, 10))


def test_each_partition_is_distributed_separately(start_cluster: StartCluster) -> None:
    """By the queues' vectors for its label; a queue gets nothing if its parent has no vector for the label."""
    x = "accessible-node-labels.x.capacity"
    labels = {
        f"root.{x}": "100",
        f"root.a.{x}": "[memory=2048,vcores=50%]",
        f"root.b.{x}": "1w",
        f"root.c.d.{x}": "100",
    }
    conf = {**queues(a="50", b="[memory=1w,vcores=1]", c="2w"), **below("root.c", d="100"), **labels}
    cluster = start_cluster({**VECTORS, **conf, "yarn.node-labels.enabled": "true"}, alone=True)
    cluster.node("n1", 16 * GB, 16)
    cluster.node("n2", 8 * GB, 8)
    cluster.label("n2", "x")
    assert [minimum(cluster, name).values() for name in "abc"] == [(8192, 7), (2731, 1), (5461, 8)]
    leaves = [cluster.leaf(name) for name in "abd"]
    assert [leaf.effective_minimum("x").values() for leaf in leaves] == [(2048, 4), (6144, 4), (0, 0)]
    assert [leaf.capacities.at("x").absolute_capacity for leaf in leaves[:2]] == [0.5, 0.75]
    assert math.isnan(leaves[2].capacities.at("x").absolute_capacity), "of an empty partition"


def test_an_empty_cluster_gives_nothing(start_cluster: StartCluster) -> None:
    """With dominant shares, shares of an empty cluster are NaN (recording `vectors-of-nothing`)."""
    cluster = start_cluster({**VECTORS, **queues(a="50", b="1w", c="[memory=1024,vcores=1]")}, alone=True)
    assert [minimum(cluster, name).values() for name in "abc"] == [(0, 0)] * 3
    assert all(math.isnan(cluster.leaf(name).capacities.default.capacity) for name in "abc")


def test_a_queue_without_a_capacity_keeps_its_amounts(start_cluster: StartCluster) -> None:
    cluster = start_cluster({**VECTORS, **queues(a="50", b="50")}, alone=True)
    cluster.node("n1", 8 * GB, 8)
    cluster.refresh({**VECTORS, **queues(a="50", b="[vcores=1]")})
    assert minimum(cluster, "b") == Resource(4096, 4)


def test_amounts_below_a_parent_without_a_capacity_are_not_scaled(start_cluster: StartCluster) -> None:
    """The first child gets its amounts of what the parent kept: only types in the parent's vector are scaled."""
    amounts = below("root.b", x="[memory=3000,vcores=3]", y="[memory=3000,vcores=3]")
    cluster = start_cluster({**VECTORS, **queues(a="50", b="50"), **amounts}, alone=True)
    cluster.node("n1", 8 * GB, 8)
    assert [minimum(cluster, name).values() for name in "xy"] == [(2047, 2), (2047, 2)], "of 4096 by a 32-bit ratio"
    cluster.refresh({**VECTORS, **queues(a="50", b="[vcores=1]"), **amounts})
    assert [minimum(cluster, name).values() for name in "xy"] == [(3000, 3), (1096, 1)]


def test_a_refresh_out_of_legacy_mode_computes_shares_in_legacy_mode(start_cluster: StartCluster) -> None:
    """Shares of mixed vectors stay zero until a restart.

    CapacitySchedulerQueueCapacityHandler keeps the mode of the start.
    """
    cluster = start_cluster({**DOMINANT, **queues(a="60", b="40")}, alone=True)
    cluster.node("n1", 8 * GB, 8)
    mixed = {**VECTORS, **queues(a="[memory=50%,vcores=1w]", b="[memory=1w,vcores=20%]", c="[memory=1024,vcores=1]")}
    cluster.refresh(mixed)
    assert [minimum(cluster, name).values() for name in "abc"] == [(3584, 6), (3584, 1), (1024, 1)]
    assert [cluster.leaf(name).capacities.default.absolute_capacity for name in "abc"] == [0.0, 0.0, 0.125]
    assert [cluster.leaf(name).capacities.default.normalized_weight for name in "abc"] == [1.0, 1.0, 0.0]
    restarted = start_cluster(mixed, alone=True)
    restarted.node("n1", 8 * GB, 8)
    assert [restarted.leaf(name).capacities.default.absolute_capacity for name in "abc"] == [0.75, 0.4375, 0.125]


def test_percentages_are_shares_after_a_refresh_out_of_legacy_mode(start_cluster: StartCluster) -> None:
    """Percentages are shares as configured, whatever the weights were before, and follow their parent's."""
    cluster = start_cluster({**DOMINANT, **queues(a="3w", b="1w"), **below("root.a", x="100")}, alone=True)
    cluster.node("n1", 8 * GB, 8)
    cluster.refresh({**VECTORS, **queues(a="[memory=2048,vcores=2]", b="50"), **below("root.a", x="50")})
    assert cluster.leaf("b").capacities.default.absolute_capacity == 0.5, "although it has three quarters of 8 GB"
    assert cluster.leaf("x").capacities.default.absolute_capacity == 0.125
    assert [minimum(cluster, name).memory_mb for name in "abx"] == [2048, 3072, 1024]


def test_siblings_need_not_sum_to_100_percent(start_cluster: StartCluster) -> None:
    """None of the checks of siblings applies; in legacy mode all of these would be refused."""
    conf = {**queues(a="10", b="3w", c="[memory=1024,vcores=1]"), **below("root.c", x="50")}
    cluster = start_cluster({**VECTORS, **conf}, alone=True)
    cluster.node("n1", 8 * GB, 8)
    assert minimum(cluster, "x") == Resource(512, 0)
    cluster.refresh({**VECTORS, **conf, "root.a.capacity": "95"})
    assert minimum(cluster, "a").memory_mb == 6809


def test_three_types_are_distributed(start_cluster: StartCluster) -> None:
    conf = {**VECTORS, "yarn.resource-types": "gpu", **queues(a="[memory=50%,vcores=1w,gpu=3]", b="50")}
    settings = CapacitySchedulerConfiguration.read(configuration(conf))
    assert str(settings.queues["root.a"].capacities[""].vector) == "[memory-mb=50.0%,vcores=1.0w,gpu=3.0]"


def test_a_weight_is_not_a_valid_maximum() -> None:
    """WeightQueueCapacityCalculator.calculateMaximumResource stops the start (recording `vectors-weight-as-maximum`).

    `5w` without brackets is not a number in the first place.
    """
    (problem,) = problems_of({**VECTORS, **queues(a="100", a_max="[memory=5w,vcores=5w]")})
    assert problem == "Resource memory-mb has WEIGHT maximum capacity type, which is not supported"
    assert problems_of({**VECTORS, **queues(a="100", a_max="5w")}) == ["not a number"]
    legacy = {**DOMINANT, **queues(a="100", a_max="[memory=5w,vcores=5w]")}
    assert CapacitySchedulerConfiguration.read(configuration(legacy)).legacy_queue_mode


def test_a_parent_may_only_configure_known_resource_types() -> None:
    """Its amounts are compared with its children's for each type; a leaf may name unknown types."""
    conf = {**VECTORS, **queues(a="[memory=100%,disks=3]")}
    assert CapacitySchedulerConfiguration.read(configuration(conf))
    (problem,) = problems_of({**conf, **below("root.a", x="100")})
    assert problem == "Unknown resource 'disks'. Known resources are memory-mb, vcores"


def test_a_minimum_does_not_exceed_its_maximum_if_both_are_amounts() -> None:
    (problem,) = problems_of({**VECTORS, **queues(a="[memory=2048,vcores=1]", a_max="[memory=1024,vcores=1]")})
    assert problem.startswith("Min resource configuration <memory:2048, vCores:1> is greater than its max value")


def test_any_number_of_applications_is_accepted_before_shares_are_known(start_cluster: StartCluster) -> None:
    conf = {**VECTORS, **queues(a="50", b="50"), "maximum-applications": "100"}
    cluster = start_cluster(conf, alone=True)
    assert cluster.leaf("a").maximum_applications == 100
    cluster.node("n1", 8 * GB, 8)
    assert cluster.leaf("a").maximum_applications == 50


def test_queues_of_amounts_are_recognised_by_their_vectors(start_cluster: StartCluster) -> None:
    """global-queue-max-application limits queues whose vector is not all amounts."""
    conf = {"maximum-applications": "100", "global-queue-max-application": "40"}
    capacities = queues(a="[memory=4096,vcores=4]", b="[memory=4096,vcores=4w]")
    cluster = start_cluster({**VECTORS, **conf, **capacities}, alone=True)
    cluster.node("n1", 8 * GB, 8)
    assert [cluster.leaf(name).maximum_applications for name in "ab"] == [20, 40]


def test_equal_weights_in_brackets_are_a_weight_in_legacy_mode_too(start_cluster: StartCluster) -> None:
    """But there the brackets make it a queue of amounts with none given: its guarantee is zero.

    The recording `vectors-of-equal-weights` has the same two queues.
    """
    conf = {**DOMINANT, **queues(a="[memory=5w,vcores=5w]", b="5w")}
    cluster = start_cluster(conf, alone=True)
    cluster.node("n1", 8 * GB, 8)
    assert cluster.leaf("a").capacities.default.weight == 5
    assert cluster.leaf("a").capacities.default.normalized_weight == f32(0.5)
    assert [minimum(cluster, name).values() for name in "ab"] == [(0, 0), (4096, 4)]
