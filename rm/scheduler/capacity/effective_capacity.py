"""Computes effective capacities in legacy queue mode: from configured capacities to shares of the whole and amounts.

From the root down, each parent computes its own shares and amounts; then it divides the weights of its children by
their sum. Amounts are used as configured if the parent has enough for all its children; otherwise each resource type is
scaled by the ratio of what the parent has to what is configured. This ratio can be above 1: with dominant shares, a
shortage of one type makes the parent's amounts "less" as a whole, and the plentiful type is then scaled up.
"""

from __future__ import annotations

import math

from rm.scheduler.config.configured_capacity import DYNAMIC_WEIGHT, WEIGHT_NOT_SET
from rm.scheduler.model.queue import CSQueue, ParentQueue, Ratios
from yarn.java.binary32 import f32, truncated
from yarn.resource import Resource
from yarn.resource_calculator import multiplied

_WEIGHT_SUM_MIN = 1e-6
"""A sum of weights up to this counts as zero (AbstractParentQueue.updateClusterResourceLegacyMode)."""


def update_absolute_capacities(queue: CSQueue) -> None:
    """Compute absolute shares from shares of the parent; a share of 0 leaves the old one unchanged (CSQueueUtils).

    The larger of the percentage and the normalised weight counts; the latter is kept after a refresh to percentages.
    Without legacy queue mode there is only one share, and it counts even if it is 0.
    """
    legacy = queue.context.settings.legacy_queue_mode
    for partition in queue.capacities.partitions():
        own = queue.capacities.at(partition)
        above = queue.parent.capacities.at(partition) if queue.parent is not None else None
        capacity = max(own.capacity, own.normalized_weight) if legacy else own.capacity
        if capacity > 0 or not legacy:
            own.absolute_capacity = f32(capacity * (above.absolute_capacity if above is not None else 1.0))
        if own.maximum_capacity > 0:
            share = above.absolute_maximum_capacity if above is not None else 1.0
            own.absolute_maximum_capacity = f32(own.maximum_capacity * share)


def normalize_weights(parent: ParentQueue) -> None:
    """Set the children's normalised weights (shares of their sum), if they have weights."""
    if parent.is_root:
        for partition in parent.capacities.partitions():
            if parent.capacities.at(partition).weight > 0:
                parent.capacities.at(partition).normalized_weight = 1.0
    _weigh_dynamic_queues(parent)
    if not any(
        child.capacities.at(partition).weight >= 0
        for child in parent.children
        for partition in parent.capacities.partitions()
    ):
        return
    for partition in parent.capacities.partitions():
        shares = [child.capacities.at(partition) for child in parent.children if child.capacities.has(partition)]
        total = 0.0
        for share in shares:
            total = f32(total + max(0.0, share.weight))
        if total > _WEIGHT_SUM_MIN:
            for share in shares:
                share.normalized_weight = f32(share.weight / total)


def _weigh_dynamic_queues(parent: ParentQueue) -> None:
    """Give queues created on demand weight 1 on each partition of their parent for which they have none."""
    for child in parent.children:
        for partition in parent.capacities.partitions() if child.is_dynamic else ():
            if child.capacities.at(partition).weight == WEIGHT_NOT_SET:
                child.capacities.booked(partition).weight = DYNAMIC_WEIGHT


def minimum_ratios(parent: ParentQueue, partition: str) -> Ratios:
    """The scaling factors of the children's amounts (recalculateEffectiveMinRatio)."""
    context = parent.context
    total = sum((child.configured_minimum(partition) for child in parent.children), start=context.none)
    there = context.partition_resource(partition) if parent.is_root else parent.effective_minimum(partition)
    nothing_at_all = parent.is_root and there.is_none()
    if nothing_at_all or not context.calculator.less(context.cluster_resource, there, total):
        return tuple(None for _ in total.values())
    return tuple(
        f32(f32(value) / f32(wanted)) if wanted else None
        for value, wanted in zip(there.values(), total.values(), strict=True)
    )


def effective_amounts(queue: CSQueue, partition: str) -> tuple[Resource, Resource]:
    """The queue's (minimum, maximum) on the partition; the root has all of it."""
    whole = queue.context.partition_resource(partition)
    if queue.parent is None:
        return whole, whole
    if queue.is_absolute:
        ratios = queue.parent.ratios.get(partition)
        return _scaled(queue.configured_minimum(partition), ratios), _absolute_maximum(queue, queue.parent, partition)
    own = queue.capacities.at(partition)
    return multiplied(whole, own.absolute_capacity), multiplied(whole, own.absolute_maximum_capacity)


def update_effective_resources(queue: CSQueue) -> None:
    """Compute amounts from shares, rounded down, or shares from amounts; the root has the whole partition."""
    for partition in queue.configured_partitions:
        queue.set_effective_resources(partition, *effective_amounts(queue, partition))
        derive_capacities(queue, partition)


def derive_capacities(queue: CSQueue, partition: str) -> None:
    """Compute the shares of a queue configured in amounts (deriveCapacityFromAbsoluteConfigurations)."""
    parent, own = queue.parent, queue.capacities.at(partition)
    if parent is None or not queue.is_absolute:
        return
    context, above = queue.context, parent.capacities.at(partition)
    share = context.calculator.divide(
        context.cluster_resource, queue.effective_minimum(partition), parent.effective_minimum(partition)
    )
    own.capacity = 0.0 if math.isinf(share) else share
    share = context.calculator.divide(
        context.cluster_resource, queue.effective_maximum(partition), parent.effective_maximum(partition)
    )
    own.maximum_capacity = 0.0 if math.isinf(share) else share
    own.absolute_capacity = f32(own.capacity * above.absolute_capacity)
    own.absolute_maximum_capacity = f32(own.maximum_capacity * above.absolute_maximum_capacity)


def _scaled(configured: Resource, ratios: Ratios | None) -> Resource:
    if ratios is None:
        return configured
    return configured.with_values(
        value if ratio is None else truncated(f32(f32(value) * ratio))
        for value, ratio in zip(configured.values(), ratios, strict=True)
    )


def _absolute_maximum(queue: CSQueue, parent: ParentQueue, partition: str) -> Resource:
    """The configured maximum, at most the parent's (getOrInheritMaxResource)."""
    context = queue.context
    above = parent.configured_maximum(partition)
    if above.is_none():
        above = parent.effective_maximum(partition)
    own = queue.configured_maximum(partition)
    if own.is_none():
        return above
    return context.calculator.min_of(context.partition_resource(partition), own, above)
