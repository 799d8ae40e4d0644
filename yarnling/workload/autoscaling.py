"""Autoscaling of a group of nodes: its settings, and what it decides from the metrics of the ResourceManager. Pure.

Two families of rules that clouds use are here. Dataproc's autoscaler compares pending with available memory, averaged
over the cool-down period, and adds or removes as many workers as the difference fills. EMR's automatic scaling with a
custom policy has rules such as "add a node if less than 15 % of the memory was available for five minutes"; so has
Alibaba's E-MapReduce. EMR's managed scaling does not publish its rule. docs/autoscaling.md has the sources.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

SAMPLE_MS = 60_000
"""The metrics are read once a minute."""


class ScalingMetrics(Struct, frozen=True):
    """The metrics of the ResourceManager at one moment. Reserved memory is not available. `nodes`: all nodes, also
    those that do not scale.
    """

    total_mb: int
    available_mb: int
    pending_mb: int
    allocated_containers: int
    pending_containers: int
    nodes: int


class MemoryPolicy(Struct, frozen=True):
    """Dataproc's policy. The factors are the share of the missing, or of the unneeded, nodes that is added or removed
    at once. No change is made that is less than these fractions of all nodes.
    """

    scale_up_factor: float
    scale_down_factor: float
    scale_up_min_fraction: float = 0.0
    scale_down_min_fraction: float = 0.0


class ScalingMetric(Enum):
    """The metrics of rules.

    AVAILABLE_MEMORY: the available part of all memory, 0..1 (EMR's YARNMemoryAvailablePercentage). PENDING_RATIO:
    pending containers for each allocated one; if none is allocated, their number (ContainerPendingRatio).
    PENDING_CONTAINERS: their number (ContainerPending).
    """

    AVAILABLE_MEMORY = "available_memory"
    PENDING_RATIO = "pending_ratio"
    PENDING_CONTAINERS = "pending_containers"

    def of(self, metrics: ScalingMetrics) -> float:
        """The value of the metric."""
        match self:
            case ScalingMetric.AVAILABLE_MEMORY:
                return metrics.available_mb / metrics.total_mb if metrics.total_mb else 0.0
            case ScalingMetric.PENDING_RATIO:
                return metrics.pending_containers / max(metrics.allocated_containers, 1)
            case ScalingMetric.PENDING_CONTAINERS:
                return metrics.pending_containers


class ScalingRule(Struct, frozen=True):
    """A rule: if the mean of a metric was below or above a value in each of the last `periods`, the group changes by
    `nodes`, or by that `fraction` of it, negative to remove nodes. After that change is complete, nothing else changes
    for `cooldown_ms`.
    """

    metric: ScalingMetric
    is_above: bool
    value: float
    nodes: int = 0
    fraction: float = 0.0
    periods: int = 1
    cooldown_ms: int = 300_000

    @property
    def adds(self) -> bool:
        return self.nodes > 0 or self.fraction > 0

    def holds(self, means: Sequence[float]) -> bool:
        """True if it held in each of the last periods."""
        last = means[-self.periods :]
        return len(last) == self.periods and all(
            mean > self.value if self.is_above else mean < self.value for mean in last
        )

    def change(self, active: int) -> int:
        """The change of a group of so many nodes; a fraction changes at least one node, and is rounded down."""
        if self.nodes:
            return self.nodes
        size = max(math.floor(abs(self.fraction) * active), 1)
        return size if self.adds else -size


class RulePolicy(Struct, frozen=True):
    """Rules, of which the first that holds decides, those that add nodes first. Means are over `period_ms`."""

    rules: tuple[ScalingRule, ...]
    period_ms: int = 300_000


class NodeScaling(Struct, frozen=True):
    """Autoscaling of a group of equal nodes of `node_mb`.

    `hosts`: as many as there may be, in the order in which they are added. `least`: as many are always wanted.
    `initial`: as many are there at the start. `start_ms`: from the decision to the start of the NodeManager.
    `drain_timeout_s`: of the graceful decommissioning; negative: without limit. `cooldown_ms`: of the policy by memory.
    """

    hosts: tuple[str, ...]
    node_mb: int
    policy: MemoryPolicy | RulePolicy
    least: int = 0
    initial: int = 0
    start_ms: int = 120_000
    drain_timeout_s: int = 3600
    cooldown_ms: int = 120_000


class Autoscaler:
    """Decides for one group of nodes. `take` it the metrics once each SAMPLE_MS."""

    def __init__(self, scaling: NodeScaling) -> None:
        self._scaling = scaling
        self._samples: list[ScalingMetrics] = []
        self._since_ms = 0
        self._quiet_until_ms = self._rule_cooldown_ms = 0
        self._means: dict[ScalingMetric, deque[float]] = {}

    def take(self, now_ms: int, metrics: ScalingMetrics, active: int, *, is_busy: bool) -> int:
        """Take over the metrics; returns the number of nodes to add now, negative to remove nodes.

        `active`: nodes of the group that are there, or were ordered, and are not leaving. `is_busy`: an earlier change
        is not complete.
        """
        self._samples.append(metrics)
        policy = self._scaling.policy
        if isinstance(policy, MemoryPolicy):
            wanted = self._by_memory(policy, now_ms, is_busy=is_busy)
        else:
            wanted = self._by_rules(policy, now_ms, active, is_busy=is_busy)
        if is_busy:
            return 0
        return min(max(active + wanted, self._scaling.least), len(self._scaling.hosts)) - active

    def _by_memory(self, policy: MemoryPolicy, now_ms: int, *, is_busy: bool) -> int:
        """The change at the end of a cool-down period, which begins when the change before it is complete."""
        if is_busy:
            self._samples.clear()
            self._since_ms = now_ms
            return 0
        if now_ms - self._since_ms < self._scaling.cooldown_ms:
            return 0
        samples, self._samples, self._since_ms = self._samples, [], now_ms
        missing_mb = sum(each.pending_mb - each.available_mb for each in samples) / len(samples)
        return change_by_memory(policy, missing_mb / self._scaling.node_mb, samples[-1].nodes)

    def _by_rules(self, policy: RulePolicy, now_ms: int, active: int, *, is_busy: bool) -> int:
        """The change at the end of a period, outside the cool-down of the last rule."""
        if is_busy:
            self._quiet_until_ms = now_ms + self._rule_cooldown_ms
        if now_ms - self._since_ms < policy.period_ms:
            return 0
        samples, self._samples, self._since_ms = self._samples, [], now_ms
        longest = max(rule.periods for rule in policy.rules)
        for metric in ScalingMetric:
            means = self._means.setdefault(metric, deque(maxlen=longest))
            means.append(sum(map(metric.of, samples)) / len(samples))
        if is_busy or now_ms < self._quiet_until_ms:
            return 0
        for rule in sorted(policy.rules, key=lambda rule: not rule.adds):
            if rule.holds(tuple(self._means[rule.metric])):
                self._rule_cooldown_ms = rule.cooldown_ms
                self._quiet_until_ms = now_ms + rule.cooldown_ms
                return rule.change(active)
        return 0


def change_by_memory(policy: MemoryPolicy, exact: float, nodes: int) -> int:
    """The change for `exact` missing nodes, negative if too many are there, in a cluster of `nodes`.

    5 missing nodes with a factor of 0.5 are 3 (rounded up), -5 are -2 (towards 0).
    """
    if exact > 0:
        change, least = math.ceil(exact * policy.scale_up_factor), policy.scale_up_min_fraction
    else:
        change, least = math.ceil(exact * policy.scale_down_factor), policy.scale_down_min_fraction
    return change if abs(change) >= least * nodes else 0
