"""Decisions of autoscalers from the metrics of a ResourceManager."""

from __future__ import annotations

import pytest

from yarnling.workload.autoscaling import (
    SAMPLE_MS,
    Autoscaler,
    MemoryPolicy,
    NodeScaling,
    RulePolicy,
    ScalingMetric,
    ScalingMetrics,
    ScalingRule,
    change_by_memory,
)

HOSTS = tuple(f"n{number}" for number in range(1, 11))
NODE_MB = 1000
LACKS_MEMORY = ScalingRule(ScalingMetric.AVAILABLE_MEMORY, False, 0.15, 2)
HAS_MEMORY = ScalingRule(ScalingMetric.AVAILABLE_MEMORY, True, 0.75, -1)


def metrics(available_mb: int = 0, pending_mb: int = 0, pending: int = 0, allocated: int = 0) -> ScalingMetrics:
    return ScalingMetrics(10 * NODE_MB, available_mb, pending_mb, allocated, pending, 10)


class Minutes:
    """An autoscaler that is asked once a minute."""

    def __init__(self, scaling: NodeScaling) -> None:
        self.autoscaler, self.minute = Autoscaler(scaling), 0

    def take(self, seen: ScalingMetrics, active: int = 5, *, is_busy: bool = False) -> int:
        self.minute += 1
        return self.autoscaler.take(self.minute * SAMPLE_MS, seen, active, is_busy=is_busy)


def by_memory(**more: int) -> Minutes:
    return Minutes(NodeScaling(HOSTS, NODE_MB, MemoryPolicy(1.0, 1.0), **more))


def by_rules(*rules: ScalingRule, period_minutes: int = 5) -> Minutes:
    return Minutes(NodeScaling(HOSTS, NODE_MB, RulePolicy(rules, period_minutes * SAMPLE_MS)))


@pytest.mark.parametrize(
    ("exact", "change"), [(5, 3), (0.8, 1), (-5, -2), (-0.8, 0), (-1.5, 0), (0, 0)], ids=lambda number: f"{number}"
)
def test_a_change_is_rounded_as_in_dataprocs_examples(exact: float, change: int) -> None:
    assert change_by_memory(MemoryPolicy(0.5, 0.5), exact, nodes=10) == change


def test_a_change_that_is_too_small_for_the_cluster_is_not_made() -> None:
    policy = MemoryPolicy(1.0, 1.0, scale_up_min_fraction=0.1, scale_down_min_fraction=0.5)
    assert [change_by_memory(policy, exact, nodes=20) for exact in (1, 2, -9, -10)] == [0, 2, 0, -10]


def test_memory_is_averaged_over_the_cool_down_period() -> None:
    """Pending less available memory is 0, 1 and 5 nodes in three minutes: two on average."""
    cluster = by_memory(cooldown_ms=3 * SAMPLE_MS)
    assert [cluster.take(metrics(pending_mb=mb)) for mb in (0, 1000, 5000)] == [0, 0, 2]
    assert [cluster.take(metrics(available_mb=mb)) for mb in (3000, 3000, 3000)] == [0, 0, -3]


def test_the_cool_down_begins_when_a_change_is_complete() -> None:
    cluster = by_memory(cooldown_ms=2 * SAMPLE_MS)
    seen = metrics(pending_mb=1000)
    assert [cluster.take(seen) for _ in range(2)] == [0, 1]
    assert [cluster.take(seen, is_busy=True) for _ in range(5)] == [0] * 5
    assert [cluster.take(seen) for _ in range(2)] == [0, 1]


def test_the_group_stays_within_its_bounds() -> None:
    cluster = by_memory(cooldown_ms=SAMPLE_MS, least=3)
    assert cluster.take(metrics(pending_mb=90_000), active=8) == 2
    assert cluster.take(metrics(available_mb=90_000), active=8) == -5
    assert cluster.take(metrics(), active=1) == 2


def test_a_rule_looks_at_the_mean_of_its_periods() -> None:
    cluster = by_rules(LACKS_MEMORY, HAS_MEMORY)
    assert [cluster.take(metrics(mb)) for mb in (0, 0, 0, 0, 9000)] == [0] * 5
    assert [cluster.take(metrics(mb)) for mb in (0, 0, 0, 0, 7000)] == [0, 0, 0, 0, 2]


def test_a_rule_that_needs_several_periods_waits_for_them() -> None:
    rule = ScalingRule(ScalingMetric.AVAILABLE_MEMORY, False, 0.15, 1, periods=2)
    cluster = by_rules(rule, period_minutes=1)
    assert [cluster.take(metrics(mb)) for mb in (0, 9000, 0, 0)] == [0, 0, 0, 1]


def test_nothing_changes_in_the_cool_down_of_a_rule() -> None:
    """The cool-down begins when the change is complete."""
    rule = ScalingRule(ScalingMetric.AVAILABLE_MEMORY, False, 0.15, 1, cooldown_ms=3 * SAMPLE_MS)
    cluster = by_rules(rule, period_minutes=1)
    assert cluster.take(metrics()) == 1
    assert [cluster.take(metrics(), is_busy=True) for _ in range(4)] == [0] * 4
    assert [cluster.take(metrics()) for _ in range(3)] == [0, 0, 1]


def test_rules_that_add_nodes_come_first() -> None:
    pending = ScalingRule(ScalingMetric.PENDING_RATIO, True, 0.75, fraction=0.2)
    cluster = by_rules(HAS_MEMORY, pending, period_minutes=1)
    assert cluster.take(metrics(9000, pending=4, allocated=5), active=5) == 1


@pytest.mark.parametrize(("pending", "allocated", "ratio"), [(6, 4, 1.5), (6, 0, 6), (0, 0, 0)])
def test_the_ratio_of_pending_containers_is_that_of_emr(pending: int, allocated: int, ratio: float) -> None:
    assert ScalingMetric.PENDING_RATIO.of(metrics(pending=pending, allocated=allocated)) == ratio


def test_a_part_of_the_group_is_at_least_one_node() -> None:
    add = ScalingRule(ScalingMetric.PENDING_CONTAINERS, True, 0, fraction=0.2)
    remove = ScalingRule(ScalingMetric.PENDING_CONTAINERS, False, 1, fraction=-0.2)
    assert [(add.change(active), remove.change(active)) for active in (2, 14, 15)] == [(1, -1), (2, -2), (3, -3)]
