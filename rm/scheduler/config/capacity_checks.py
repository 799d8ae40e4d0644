"""What siblings may be given together: one notation for all of them, and no more than their parent has.

Hadoop checks this whenever a parent gets its children (AbstractParentQueue.setChildQueues): at the start and at a
refresh, there against the queues that exist as well. Amounts are compared by the calculator of the running cluster,
which at the start is one of no nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct

from rm.scheduler.config.configured_capacity import CapacityUnit, ConfiguredCapacity
from rm.scheduler.config.queue_configuration import QueueConfiguration
from rm.scheduler.config.queue_keys import PREFIX, ROOT, queue_key
from rm.scheduler.config.reading import Reader
from rm.scheduler.model.resource_calculator import ResourceCalculator
from yarn.java.binary32 import f32, shortest
from yarn.resource import Resource

CAPACITY_SUM_PRECISION = f32(0.0005)
"""How far the capacities of siblings may be from 100 % (AbstractParentQueue.PRECISION)."""


class Yardstick(Struct, frozen=True):
    """How amounts are compared: the calculator and the cluster now. `partitions` {label: its resource}."""

    calculator: ResourceCalculator
    cluster: Resource
    partitions: Mapping[str, Resource]


class CapacityType(Enum):
    """What siblings are given their capacity in (AbstractParentQueue.QueueCapacityType)."""

    WEIGHT = "weight"
    ABSOLUTE_RESOURCE = "absolute"
    PERCENT = "percentage"


def check_queue(
    reader: Reader,
    queue: QueueConfiguration,
    parent: QueueConfiguration | None,
    yardstick: Yardstick,
    *,
    legacy: bool,
) -> None:
    """What one queue is given, by itself and against its parent's maximum."""
    _check_amounts(reader, queue, parent, yardstick)
    if legacy:
        _check_notation(reader, queue)
    else:
        _check_vectors(reader, queue)


def _check_vectors(reader: Reader, queue: QueueConfiguration) -> None:
    """What Hadoop would only find when it calculates the amounts, and stop there (ResourceCalculationDriver)."""
    for partition, own in queue.capacities.items():
        if own.vector.unknown and queue.children:
            problem = (
                f"Unknown resource '{own.vector.unknown[0]}'. Known resources are {', '.join(own.minimum.amounts())}"
            )
            remedy = "take it out, or name it in yarn.resource-types"
            reader.fault(capacity_key(queue.path, partition), problem, remedy)
        weights = [name for name, entry in own.maximum_vector.entries.items() if entry.unit is CapacityUnit.WEIGHT]
        key = capacity_key(queue.path, partition, "maximum-")
        if weights and own.vector.entries and key not in {fault.key for fault in reader.faults}:
            problem = f"Resource {weights[0]} has WEIGHT maximum capacity type, which is not supported"
            reader.fault(key, problem, "write a percentage or an amount")


def _check_amounts(
    reader: Reader, queue: QueueConfiguration, parent: QueueConfiguration | None, yardstick: Yardstick
) -> None:
    """A queue's amounts against its maximum, and that against the parent's (updateConfigurableResourceLimits)."""
    calculator, cluster = yardstick.calculator, yardstick.cluster
    for partition, own in queue.capacities.items():
        above = parent.capacities.get(partition) if parent is not None else None
        ceiling = above.maximum if above is not None else calculator.none
        if not ceiling.is_none() and calculator.greater(cluster, own.maximum, ceiling):
            problem = f"Max resource configuration {own.maximum} is greater than parents max value:{ceiling} "
            key = capacity_key(queue.path, partition, "maximum-")
            reader.fault(key, f"{problem}in queue:{queue.path}", "lower it, or raise the parent's")
        if not own.maximum.is_none() and calculator.greater(cluster, own.minimum, own.maximum):
            problem = f"Min resource configuration {own.minimum} is greater than its max value:{own.maximum} "
            key = capacity_key(queue.path, partition)
            reader.fault(key, f"{problem}in queue:{queue.path}", "lower it, or raise the maximum")


def _check_notation(reader: Reader, queue: QueueConfiguration) -> None:
    if queue.path != ROOT and len({own.is_absolute for own in queue.capacities.values()}) > 1:
        problem = (
            f"Queue '{queue.path}' should use either percentage based capacity configuration or absolute resource."
        )
        reader.fault(queue_key(queue.path, "capacity"), problem, "write all capacities of the queue in one notation")


def check_children(
    reader: Reader,
    parent: QueueConfiguration,
    children: Sequence[QueueConfiguration],
    yardstick: Yardstick,
    *,
    allow_zero_capacity_sum: bool,
) -> None:
    """All that setChildQueues refuses; `children` in the order of the parent's list, on which a leniency depends."""
    partitions = tuple(parent.capacities)
    kind = _type_of(reader, parent, children, partitions)
    own = _type_of(reader, parent, [parent], partitions)
    if kind is None or own is None:
        return
    if CapacityType.ABSOLUTE_RESOURCE in (kind, own):
        _check_amounts_below(reader, parent, children, yardstick, differ=kind is not own)
    if kind is CapacityType.PERCENT:
        parent_counts = own is CapacityType.PERCENT
        for partition in partitions:
            _check_sum(reader, parent, children, partition, parent_counts and not allow_zero_capacity_sum)


def warn_of_maximums(reader: Reader, queues: Mapping[str, QueueConfiguration], *, legacy: bool) -> None:
    """A queue that can never have its guarantee; Hadoop takes it, and so do we.

    A capacity is a part of the parent's guarantee, a maximum one of the parent's maximum: so shares of the whole are
    compared, and only where all of them from the root down are percentages. Without legacy queue mode 0 is no maximum.
    """
    shares: dict[tuple[str, str], tuple[float, float]] = {}
    for path, queue in queues.items():
        for partition, own in queue.capacities.items():
            above = shares.get((queue.parent_path, partition)) if path != ROOT else (1.0, 1.0)
            if above is None or own.vector.units != {CapacityUnit.PERCENTAGE} or not own.maximum.is_none():
                continue
            capacity, maximum = own.capacity * above[0], own.maximum_capacity * above[1]
            shares[path, partition] = capacity, maximum
            if (maximum > 0 or legacy) and maximum < capacity - CAPACITY_SUM_PRECISION:
                problem = f"at most {maximum:.1%} of the cluster, though the queue's capacity is {capacity:.1%} of it"
                reader.warn(capacity_key(path, partition, "maximum-"), problem, "raise it, or lower the capacity")


def capacity_key(path: str, partition: str, prefix: str = "") -> str:
    """The key of a queue's capacity on a partition; `prefix` is `maximum-` or nothing."""
    name = f"{prefix}capacity"
    return queue_key(path, f"accessible-node-labels.{partition}.{name}" if partition else name)


def _type_of(
    reader: Reader, parent: QueueConfiguration, queues: Sequence[QueueConfiguration], partitions: tuple[str, ...]
) -> CapacityType | None:
    """What the queues are given their capacity in; None and a fault if it is not one thing.

    A percentage seen before amounts is forgotten, as in Hadoop, where amounts are turned into percentages later on.
    """
    percent = weight = absolute = False
    details: list[str] = []
    for queue in queues:
        for partition in partitions:
            own = queue.capacities.get(partition)
            if own is None:
                continue
            used = _notation_of(own)
            if used is not None:
                details.append(f"{{Queue={queue.path}, label={partition} uses {used.value} mode}}. ")
            percent = percent or own.capacity > 0
            weight = weight or own.weight >= 0
            if not own.minimum.is_none():
                absolute, percent = True, False
    if queues and queues[0].path != ROOT and percent + weight + absolute > 1:
        problem = (
            f"Parent queue '{parent.path}' have children queue used mixed of  weight mode, percentage and absolute "
            f"mode, it is not allowed, please double check, details:{''.join(details)}"
        )
        reader.fault(queue_key(parent.path, "queues"), problem, "write all their capacities in one notation")
        return None
    if weight or not queues:
        return CapacityType.WEIGHT
    return CapacityType.ABSOLUTE_RESOURCE if absolute else CapacityType.PERCENT


def _notation_of(own: ConfiguredCapacity) -> CapacityType | None:
    """What one capacity is written in; None for a capacity of zero."""
    if own.weight >= 0:
        return CapacityType.WEIGHT
    if not own.minimum.is_none():
        return CapacityType.ABSOLUTE_RESOURCE
    return CapacityType.PERCENT if own.capacity > 0 else None


def _check_amounts_below(
    reader: Reader,
    parent: QueueConfiguration,
    children: Sequence[QueueConfiguration],
    yardstick: Yardstick,
    *,
    differ: bool,
) -> None:
    key = queue_key(parent.path, "queues")
    if differ and parent.path != ROOT:
        problem = (
            f"Parent={parent.path}: When absolute minResource is used, we must make sure both parent and child all use "
            "absolute minResource"
        )
        reader.fault(key, problem, "write the capacities of both in brackets, or of neither")
        return
    for partition, own in parent.capacities.items():
        given = [child.capacities[partition].minimum for child in children if partition in child.capacities]
        total = sum(given, start=yardstick.calculator.none)
        whole = yardstick.partitions.get(partition, yardstick.calculator.none)
        if not own.minimum.is_none() and yardstick.calculator.less(whole, own.minimum, total):
            problem = (
                f"Parent Queues capacity: {own.minimum} is less than to its children:{total} for queue:{parent.name}"
            )
            reader.fault(key, problem, "raise the parent's capacity, or lower the children's")


def _check_sum(
    reader: Reader,
    parent: QueueConfiguration,
    children: Sequence[QueueConfiguration],
    partition: str,
    must_match: bool,
) -> None:
    """Percentages add up to 100 or 0; with `must_match` to 0 just where the parent has nothing itself."""
    total = 0.0
    for child in children:
        if partition in child.capacities:
            total = f32(total + child.capacities[partition].capacity)
    problem = _sum_problem(parent, parent.capacities[partition].capacity, total, must_match=must_match)
    faulty = {fault.key for fault in reader.faults}
    keys = {child.name: capacity_key(child.path, partition) for child in children}
    if problem is None or faulty & set(keys.values()):
        return
    parts = " + ".join(f"{name} {reader.text(key, '0')}" for name, key in keys.items())
    label = f" of the label {partition}" if partition else ""
    start = f"Illegal capacity sum of {shortest(total)} for children of queue {parent.name} for label={partition}"
    reader.fault(
        queue_key(parent.path, "queues"),
        f"{start}. {problem}",
        f"make {PREFIX}{parent.path}.*.capacity{label} add up to 100: {parts} = {shortest(f32(total * 100))}",
    )


def _sum_problem(parent: QueueConfiguration, capacity: float, total: float, *, must_match: bool) -> str | None:
    if abs(f32(1 - total)) > CAPACITY_SUM_PRECISION:
        if abs(total) > CAPACITY_SUM_PRECISION:
            return "It should be either 0 or 1.0"
        if must_match and abs(capacity) > CAPACITY_SUM_PRECISION:
            return "It is set to 0, but parent percent != 0, and doesn't allow children capacity to set to 0"
        return None
    if must_match and abs(capacity) <= 0:
        return f"queue={parent.name} has zero capacity, but childqueues have positive capacities"
    return None
