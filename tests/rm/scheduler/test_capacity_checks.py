"""Checks of the capacities of siblings: AbstractParentQueue.setChildQueues."""

from __future__ import annotations

import pytest

from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from tests.rm.scheduler.cluster import check_scheduler, configuration
from yarn.faults import ConfigurationException, Severity
from yarn.resource import Resource

DOMINANT = {"resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"}
ZERO = {"root.allow-zero-capacity-sum": "true"}


def tree(a: str, b: str, **more: str) -> dict[str, str]:
    """Queues a and b with these capacities, a with x below it if `x` is given."""
    conf = {"root.queues": "a,b", "root.a.capacity": a, "root.b.capacity": b}
    if "x" in more:
        conf |= {"root.a.queues": "x", "root.a.x.capacity": more["x"]}
    return conf


def problems_of(conf: dict[str, str]) -> list[str]:
    try:
        CapacitySchedulerConfiguration.read(configuration(conf))
    except ConfigurationException as refusal:
        return [fault.problem for fault in refusal.faults]
    return []


def minimum_of(text: str, conf: dict[str, str] | None = None) -> Resource:
    settings = CapacitySchedulerConfiguration.read(configuration({**tree(text, text), **ZERO, **(conf or {})}))
    return settings.queues["root.a"].capacities[""].minimum


@pytest.mark.parametrize(
    ("text", "minimum"),
    [
        ("[memory=8192,vcores=8]", Resource(8192, 8)),
        ("[ memory = 8192 , vcores=8 ]", None),
        ("[memory=8Gi,vcores=8]", Resource(8192, 8)),
        ("[memory=1G,vcores=8]", Resource(953, 8)),
        ("[memory=2048,disks=3]", Resource(2048, 0)),
        ("[memory=2048,vcores=]", Resource(2048, 0)),
        ("[memory=2048=5,vcores=1]", Resource(2048, 1)),
        ("[vcores=8]", Resource(0, 0)),
        ("[memory=5q,vcores=8]", Resource(0, 0)),
    ],
)
def test_amounts_are_read_as_in_3_4_1(text: str, minimum: Resource | None) -> None:
    """Units are converted to Mi; unknown names and units are ignored; without memory no capacity is configured."""
    if minimum is None:
        assert any("not a whole number" in problem for problem in problems_of(tree(text, text)))
    else:
        assert minimum_of(text) == minimum


def test_any_resource_type_may_have_an_amount() -> None:
    conf = {**DOMINANT, "yarn.resource-types": "gpu"}
    assert minimum_of("[memory=1024,vcores=1,gpu=4]", conf) == Resource(1024, 1, (("gpu", 4),))


def test_siblings_use_one_notation() -> None:
    (problem,) = problems_of(tree("3w", "40"))
    assert problem == (
        "Parent queue 'root' have children queue used mixed of  weight mode, percentage and absolute mode, it is not "
        "allowed, please double check, details:{Queue=root.a, label= uses weight mode}. "
        "{Queue=root.b, label= uses percentage mode}. "
    )
    (problem,) = problems_of({**tree("40", "3w"), "root.queues": "a,b,c", "root.c.capacity": "3w"})
    assert problem.partition("details:")[2] == (
        "{Queue=root.a, label= uses percentage mode}. {Queue=root.b, label= uses weight mode}. "
        "{Queue=root.c, label= uses weight mode}. "
    ), "once for each queue, and only what it uses"
    assert problems_of(tree("[memory=1024,vcores=1]", "3w"))
    assert problems_of(tree("[memory=1024,vcores=1]", "40"))


def test_a_percentage_before_amounts_is_ignored() -> None:
    """This depends on the order of the list: later amounts reset the flag of percentages."""
    assert problems_of(tree("40", "[memory=1024,vcores=1]")) == []


def test_levels_may_use_different_notations_but_not_below_amounts() -> None:
    assert problems_of(tree("3w", "1w", x="100")) == []
    assert problems_of(tree("60", "40", x="2w")) == []
    (problem,) = problems_of(tree("[memory=1024,vcores=1]", "[memory=1024,vcores=1]", x="100"))
    assert problem == (
        "Parent=root.a: When absolute minResource is used, we must make sure both parent and child all use absolute "
        "minResource"
    )


def test_amounts_of_children_must_not_exceed_the_parents() -> None:
    a, more = "[memory=1024,vcores=1]", "[memory=2048,vcores=1]"
    assert problems_of(tree(a, a, x=more)) == [
        "Parent Queues capacity: <memory:1024, vCores:1> is less than to its children:<memory:2048, vCores:1> "
        "for queue:a"
    ]


def test_amounts_must_not_exceed_their_maximum_nor_maximums_the_parents() -> None:
    conf = {
        **tree("[memory=4096,vcores=4]", "[memory=1024,vcores=1]", x="[memory=1024,vcores=1]"),
        "root.a.maximum-capacity": "[memory=2048,vcores=2]",
        "root.a.x.maximum-capacity": "[memory=3072,vcores=2]",
    }
    assert problems_of(conf) == [
        "Min resource configuration <memory:4096, vCores:4> is greater than its max value:<memory:2048, vCores:2> "
        "in queue:root.a",
        "Max resource configuration <memory:3072, vCores:2> is greater than parents max value:<memory:2048, vCores:2> "
        "in queue:root.a.x",
    ]


def test_a_sum_of_zero_matters_only_below_a_percentage() -> None:
    """With a parent in weights the two checks of an empty sum are not made."""
    assert problems_of(tree("3w", "1w", x="0")) == []
    assert problems_of(tree("0w", "1w", x="100")) == []
    assert len(problems_of(tree("60", "40", x="0"))) == 1


def warnings_of(conf: dict[str, str]) -> list[str]:
    return [str(fault) for fault in check_scheduler(configuration(conf)) if fault.severity is Severity.WARNING]


def test_a_guarantee_above_the_maximum_is_a_warning() -> None:
    """Hadoop 3.4.1 accepts it and limits it to the maximum."""
    conf = {**tree("60", "40"), "root.a.maximum-capacity": "50"}
    assert problems_of(conf) == []
    (warning,) = warnings_of(conf)
    assert (
        "root.a.maximum-capacity = '50': the maximum is 50.0% of the cluster, below the queue's capacity of 60.0%"
        in warning
    )


def test_a_maximum_of_zero_means_no_maximum_without_legacy_mode() -> None:
    conf = {**tree("60", "40"), "root.a.maximum-capacity": "0"}
    assert len(warnings_of(conf)) == 1
    assert warnings_of({**conf, "legacy-queue-mode.enabled": "false"}) == []


def test_a_maximum_is_a_share_of_the_parents_maximum() -> None:
    """40 % of the cluster is more than 50 % of half of it."""
    conf = {**tree("50", "50", x="50"), "root.a.queues": "x,y", "root.a.y.capacity": "50"}
    assert warnings_of({**conf, "root.a.x.maximum-capacity": "40"}) == []
    assert len(warnings_of({**conf, "root.a.x.maximum-capacity": "20"})) == 1
    assert len(warnings_of({**conf, "root.a.maximum-capacity": "50", "root.a.x.maximum-capacity": "40"})) == 1


@pytest.mark.parametrize(
    "conf",
    [
        {**tree("3w", "1w"), "root.a.maximum-capacity": "10"},
        {**tree("[memory=1024,vcores=1]", "[memory=1024,vcores=1]"), "root.a.maximum-capacity": "1"},
        {**tree("60", "40"), "root.a.maximum-capacity": "[memory=1,vcores=1]"},
        {**tree("3w", "1w", x="100"), "root.a.x.maximum-capacity": "10"},
    ],
    ids=["weights", "amounts", "an amount as maximum", "below weights"],
)
def test_maximums_are_compared_only_for_percentages(conf: dict[str, str]) -> None:
    """The shares of other notations depend on the cluster."""
    assert warnings_of(conf) == []
