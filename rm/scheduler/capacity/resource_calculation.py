"""Computes amounts from capacity vectors (ResourceCalculationDriver), for configurations without legacy queue mode.

A parent's amount of each resource type is divided in three rounds: first the configured amounts (scaled down if the
parent has less than their sum), then percentages of what is left, then weights divide the rest. A queue that would get
more than is left gets less, with a warning; the configuration is not refused. Shares are computed from the amounts
afterwards; legacy mode does the reverse.

Like Hadoop, this computes in doubles from the cluster's size down: 100 * (50 / 100) * (33 / 50) is not always 33, and
truncation may then lose a whole unit.
"""

from __future__ import annotations

import math

from rm.scheduler.capacity.effective_capacity import update_absolute_capacities
from rm.scheduler.config.configured_capacity import NO_VECTOR, CapacityEntry, CapacityUnit, CapacityVector
from rm.scheduler.model.capacity_warning import CapacityWarning, QueueUpdateWarning
from rm.scheduler.model.queue import CSQueue, ParentQueue
from yarn.java.binary32 import f32, java_quotient, truncated
from yarn.java.hash_order import hash_order, string_hash
from yarn.resource import MEMORY_MB


def calculate_root(root: ParentQueue) -> None:
    """Give the root all of each partition (RootCalculationDriver)."""
    for partition in root.configured_partitions:
        whole, own = root.context.partition_resource(partition), root.capacities.booked(partition)
        root.set_effective_resources(partition, whole, whole)
        own.absolute_capacity = 1.0
        if own.weight == 1:
            own.normalized_weight = 1.0


def calculate_children(parent: ParentQueue) -> list[CapacityWarning]:
    """Set amounts and shares of the children from their parent's amounts; returns warnings about what was cut."""
    warnings: list[CapacityWarning] = []
    for partition in parent.configured_partitions:
        children = [child for child in parent.children if partition in child.configuration.capacities]
        found = {child: _Amounts(child, partition) for child in children}
        for index, name in enumerate(parent.context.none.amounts()):
            _Division(parent, partition, name, index, found, warnings).run()
        for child, amounts in found.items():
            none = child.context.none
            child.set_effective_resources(partition, none.with_values(amounts.low), none.with_values(amounts.high))
        if parent.context.started_in_legacy_mode:
            _normalize_weights(found, partition)
    for child in parent.children:
        _update_shares(child, parent)
    return warnings


def _update_shares(queue: CSQueue, parent: ParentQueue) -> None:
    """Compute the queue's shares of each partition for which it has a configured capacity; its parent may have none."""
    for partition, configured in queue.configuration.capacities.items():
        if not queue.context.started_in_legacy_mode or CapacityUnit.ABSOLUTE in configured.vector.units:
            _derive_shares(queue, parent, partition)
        elif configured.vector.entries:
            update_absolute_capacities(queue)


class _Amounts:
    """The amounts of a child for each resource type. A child without a capacity vector keeps its old amounts."""

    __slots__ = ("high", "low", "maximum_vector", "vector")

    def __init__(self, child: CSQueue, partition: str) -> None:
        configured = child.configuration.capacities[partition]
        self.vector = configured.vector
        self.maximum_vector = configured.maximum_vector
        self.low = list(child.effective_minimum(partition).values())
        self.high = list(child.effective_maximum(partition).values())


class _Division:
    """Divides one resource type of a parent among its children.

    `_whole` is the partition's amount of the type, `_own` and `_own_maximum` are the parent's guarantee and maximum.
    `_left` is what is left of `_own` now, `_batch` what was left when the current round began; percentages and weights
    are fractions of `_batch`.
    """

    __slots__ = (
        "_batch",
        "_children",
        "_index",
        "_left",
        "_name",
        "_own",
        "_own_maximum",
        "_parent",
        "_partition",
        "_ratio",
        "_warnings",
        "_weights",
        "_whole",
    )

    def __init__(
        self,
        parent: ParentQueue,
        partition: str,
        name: str,
        index: int,
        children: dict[CSQueue, _Amounts],
        warnings: list[CapacityWarning],
    ) -> None:
        self._parent = parent
        self._partition = partition
        self._name = name
        self._index = index
        self._children = children
        self._warnings = warnings
        self._whole = parent.context.partition_resource(partition).values()[index]
        self._own = parent.effective_minimum(partition).values()[index]
        self._own_maximum = parent.effective_maximum(partition).values()[index]
        self._left = self._batch = float(self._own)
        self._ratio = self._ratio_of_amounts()
        self._weights = self._sum_of_weights()

    def run(self) -> None:
        for unit in CapacityUnit:
            used = 0.0
            for child, amounts in self._children.items():
                entry = amounts.vector.entries.get(self._name)
                if entry is not None and entry.unit is unit:
                    low = self._give(child, amounts, entry)
                    self._left -= low
                    used += low
            self._batch -= used
        if self._batch != 0:
            self._warn(QueueUpdateWarning.BRANCH_UNDERUTILIZED, self._parent)

    def _give(self, child: CSQueue, amounts: _Amounts, entry: CapacityEntry) -> float:
        """Set the child's amounts; returns its guarantee."""
        most = amounts.maximum_vector.entries[self._name]
        low = _rounded(self._minimum(entry), entry.unit)
        high = _rounded(self._maximum(most), most.unit)
        low, high = self._within_bounds(child, amounts, low, high)
        amounts.low[self._index] = truncated(low)
        amounts.high[self._index] = truncated(high)
        return low

    def _minimum(self, entry: CapacityEntry) -> float:
        """The minimum of a resource type, by the calculator of its unit (calculateMinimumResource)."""
        rest = java_quotient(self._batch, self._own)
        if entry.unit is CapacityUnit.ABSOLUTE:
            return self._ratio * rest * entry.amount
        part = java_quotient(self._own, self._whole) * rest
        if entry.unit is CapacityUnit.PERCENTAGE:
            return self._whole * (part * entry.amount / 100)
        # For a single weight Hadoop uses what is left directly; rounding to the nearest gives the same.
        return self._whole * (part * java_quotient(entry.amount, self._weights))

    def _maximum(self, entry: CapacityEntry) -> float:
        """The maximum of a resource type: amounts as configured, or a percentage of the parent's maximum.

        Source: calculateMaximumResource.
        """
        if entry.unit is CapacityUnit.ABSOLUTE:
            return entry.amount
        return self._whole * (java_quotient(self._own_maximum, self._whole) * entry.amount / 100)

    def _within_bounds(self, child: CSQueue, amounts: _Amounts, low: float, high: float) -> tuple[float, float]:
        """Limit a child's guarantee `low` and maximum `high`; returns both.

        The guarantee is zero if the child has no memory; it is at most the child's maximum, and at most what is left.
        The maximum is at most the parent's. Source: validateCalculatedResources.
        """
        bound = float(self._own_maximum)
        if self._name != MEMORY_MB and amounts.low[0] == 0:
            low = 0.0
        if high != 0 and high > bound:
            self._warn(QueueUpdateWarning.QUEUE_MAX_RESOURCE_EXCEEDS_PARENT, child)
        if high == 0 or high > bound:
            high = bound
        if high < low:
            self._warn(QueueUpdateWarning.QUEUE_EXCEEDS_MAX_RESOURCE, child)
            low = high
        if low > self._left:
            self._warn(QueueUpdateWarning.QUEUE_OVERUTILIZED, child)
            low = self._left
        if low == 0:
            self._warn(QueueUpdateWarning.QUEUE_ZERO_RESOURCE, child)
        return low, high

    def _ratio_of_amounts(self) -> float:
        """The factor that scales the children's configured amounts down, a 32-bit float; 1 if the parent has enough."""
        total = 0
        for amounts in self._children.values():
            entry = amounts.vector.entries.get(self._name)
            if entry is not None and entry.unit is CapacityUnit.ABSOLUTE:
                total = truncated(total + entry.amount)
        if total == 0 or self._own >= total or self._name not in self._vector_of_parent().entries:
            return 1.0
        self._warn(QueueUpdateWarning.BRANCH_DOWNSCALED, self._parent)
        return f32(f32(self._own) / f32(total))

    def _sum_of_weights(self) -> float:
        total = 0.0
        for amounts in self._children.values():
            entry = amounts.vector.entries.get(self._name)
            if entry is not None and entry.unit is CapacityUnit.WEIGHT:
                total += entry.amount
        return total

    def _vector_of_parent(self) -> CapacityVector:
        configured = self._parent.configuration.capacities.get(self._partition)
        return configured.vector if configured is not None else NO_VECTOR

    def _warn(self, kind: QueueUpdateWarning, queue: CSQueue) -> None:
        self._warnings.append(CapacityWarning(kind, queue.path, self._partition, self._name))


def _rounded(amount: float, unit: CapacityUnit) -> float:
    """Round an amount down; for a weight, to the nearest integer (DefaultQueueResourceRoundingStrategy)."""
    if not math.isfinite(amount):
        # Java's Math.round turns NaN into 0.
        return 0.0 if unit is CapacityUnit.WEIGHT and amount != amount else amount
    whole = math.floor(amount)
    return float(whole + 1 if unit is CapacityUnit.WEIGHT and amount - whole >= 0.5 else whole)


def _normalize_weights(children: dict[CSQueue, _Amounts], partition: str) -> None:
    """Set each child's normalised weight (WeightQueueCapacityCalculator).

    It is the mean, over the resource types, of the child's share of all children's weights.

    Runs only after a refresh out of legacy queue mode, and has an effect only after a refresh back to it.
    """
    totals: dict[str, float] = {}
    weights: dict[CSQueue, dict[str, float]] = {}
    for child, amounts in children.items():
        entries = amounts.vector.entries.items()
        weights[child] = {name: entry.amount for name, entry in entries if entry.unit is CapacityUnit.WEIGHT}
        for name, weight in weights[child].items():
            totals[name] = totals.get(name, 0.0) + weight
    for child, own in weights.items():
        if own:
            parts = [java_quotient(own[name], totals[name]) for name in hash_order(own, string_hash)]
            child.capacities.at(partition).normalized_weight = f32(sum(parts) / len(parts))


def _derive_shares(queue: CSQueue, parent: ParentQueue, partition: str) -> None:
    """Compute shares from amounts (CapacitySchedulerQueueCapacityHandler.setQueueCapacities).

    A plan queue and the queues below it keep their shares while the cluster is empty.
    """
    context, own = queue.context, queue.capacities.at(partition)
    whole = context.partition_resource(partition)
    of_plan = queue.configuration.is_plan or parent.configuration.is_plan
    if of_plan and not any(value > 0 for value in whole.values()):
        return
    share = context.calculator.divide(whole, queue.effective_minimum(partition), parent.effective_minimum(partition))
    own.capacity = 0.0 if math.isinf(share) else share
    share = context.calculator.divide(whole, queue.effective_maximum(partition), parent.effective_maximum(partition))
    own.maximum_capacity = 0.0 if math.isinf(share) else share
    update_absolute_capacities(queue)
