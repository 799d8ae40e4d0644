"""Checks that concern several queues.

Siblings must write their capacities in one notation and must not get more than their parent has. Hadoop checks this
whenever a parent gets its children (AbstractParentQueue.setChildQueues): at start, and at a refresh also against the
existing queues. Amounts are compared by the calculator of the running cluster, which has no nodes at start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct

from rm.scheduler.config.configured_capacity import CapacityUnit, ConfiguredCapacity
from rm.scheduler.config.queue_configuration import QueueConfiguration
from rm.scheduler.config.reader import Reader
from yarn.faults import Severity
from yarn.java.binary32 import f32, shortest
from yarn.resource import Resource
from yarn.resource_calculator import ResourceCalculator
from yarn.settings import scheduler
from yarn.settings.scheduler import PREFIX, ROOT, queue_key
from yarn.states import QueueState

CAPACITY_SUM_PRECISION = f32(0.0005)
"""The distance from 100 % that the capacities of siblings may have (AbstractParentQueue.PRECISION)."""


class CapacityComparator(Struct, frozen=True):
    """Compares amounts: the calculator, and the present resources of the cluster and of each partition."""

    calculator: ResourceCalculator
    cluster: Resource
    partitions: Mapping[str, Resource]


class CapacityType(Enum):
    """The notation of a capacity (AbstractParentQueue.QueueCapacityType)."""

    WEIGHT = "weight"
    ABSOLUTE_RESOURCE = "absolute"
    PERCENT = "percentage"


def check_tree(reader: Reader, queues: dict[str, QueueConfiguration], comparator: CapacityComparator) -> None:
    """Add the faults that concern more than one value of the queues. `queues` {path: queue}, parents first."""
    legacy = reader.value(scheduler.LEGACY_QUEUE_MODE)
    for path, queue in queues.items():
        parent = queues.get(queue.parent_path)
        _check_amounts(reader, queue, parent, comparator)
        if legacy:
            _check_notation(reader, queue)
        else:
            _check_vectors(reader, queue)
        if not queue.is_on_demand:
            _check_state(reader, queue, parent)
        children = [queues[f"{path}.{name}"] for name in queue.children if f"{path}.{name}" in queues]
        _check_plan(reader, queue)
        if children and legacy and not queue.is_plan:
            allow_zero = queue.allow_zero_capacity_sum
            check_children(reader, queue, children, comparator, allow_zero_capacity_sum=allow_zero)
    _warn_of_maximums(reader, queues, legacy=legacy)
    if queues[ROOT].is_leaf:
        key = queue_key(ROOT, "queues")
        problem = "Queue configuration missing child queue names for root"
        reader.fault(key, problem, f"name the queues below root in {key}")


def _check_vectors(reader: Reader, queue: QueueConfiguration) -> None:
    """Add the faults of capacity vectors that Hadoop finds only when it calculates amounts
    (ResourceCalculationDriver).
    """
    for partition, own in queue.capacities.items():
        if own.vector.unknown and queue.children:
            problem = (
                f"Unknown resource '{own.vector.unknown[0]}'. Known resources are {', '.join(own.minimum.amounts())}"
            )
            remedy = "remove the resource, or add it to yarn.resource-types"
            reader.fault(capacity_key(queue.path, partition), problem, remedy)
        weights = [name for name, entry in own.maximum_vector.entries.items() if entry.unit is CapacityUnit.WEIGHT]
        key = capacity_key(queue.path, partition, "maximum-")
        if weights and own.vector.entries and not reader.has_fault(key):
            problem = f"Resource {weights[0]} has WEIGHT maximum capacity type, which is not supported"
            reader.fault(key, problem, "write a percentage or an amount")


def _check_amounts(
    reader: Reader, queue: QueueConfiguration, parent: QueueConfiguration | None, comparator: CapacityComparator
) -> None:
    """Add a fault for amounts above the queue's maximum, or a maximum above the parent's maximum."""
    calculator, cluster = comparator.calculator, comparator.cluster
    for partition, own in queue.capacities.items():
        above = parent.capacities.get(partition) if parent is not None else None
        ceiling = above.maximum if above is not None else calculator.none
        if not ceiling.is_none() and calculator.greater(cluster, own.maximum, ceiling):
            problem = f"Max resource configuration {own.maximum} is greater than parents max value:{ceiling} "
            key = capacity_key(queue.path, partition, "maximum-")
            reader.fault(key, f"{problem}in queue:{queue.path}", "lower this maximum, or raise the parent's")
        if not own.maximum.is_none() and calculator.greater(cluster, own.minimum, own.maximum):
            problem = f"Min resource configuration {own.minimum} is greater than its max value:{own.maximum} "
            key = capacity_key(queue.path, partition)
            reader.fault(key, f"{problem}in queue:{queue.path}", "lower the capacity, or raise the queue's maximum")


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
    comparator: CapacityComparator,
    *,
    allow_zero_capacity_sum: bool,
) -> None:
    """Add all faults that setChildQueues reports. `children` are in the order of the parent's list: see `_type_of`."""
    partitions = tuple(parent.capacities)
    kind = _type_of(reader, parent, children, partitions)
    own = _type_of(reader, parent, [parent], partitions)
    if kind is None or own is None:
        return
    if CapacityType.ABSOLUTE_RESOURCE in (kind, own):
        _check_amounts_below(reader, parent, children, comparator, differ=kind is not own)
    if kind is CapacityType.PERCENT:
        parent_counts = own is CapacityType.PERCENT
        for partition in partitions:
            _check_sum(reader, parent, children, partition, parent_counts and not allow_zero_capacity_sum)


def _warn_of_maximums(reader: Reader, queues: Mapping[str, QueueConfiguration], *, legacy: bool) -> None:
    """Warn of a queue whose maximum is below its guarantee. Hadoop accepts it.

    A capacity is a share of the parent's guarantee, a maximum is a share of the parent's maximum. So shares of the
    whole cluster are compared, and only if all values from the root down are percentages. Without legacy queue mode a
    maximum of 0 means no maximum.
    """
    shares: dict[tuple[str, str], tuple[float, float]] = {}
    for path, queue in queues.items():
        for partition, own in queue.capacities.items():
            above = shares.get((queue.parent_path, partition)) if path != ROOT else (1.0, 1.0)
            if above is None or own.vector.units != frozenset({CapacityUnit.PERCENTAGE}) or not own.maximum.is_none():
                continue
            capacity, maximum = own.capacity * above[0], own.maximum_capacity * above[1]
            shares[path, partition] = capacity, maximum
            if (maximum > 0 or legacy) and maximum < capacity - CAPACITY_SUM_PRECISION:
                problem = f"the maximum is {maximum:.1%} of the cluster, below the queue's capacity of {capacity:.1%}"
                reader.warn(
                    capacity_key(path, partition, "maximum-"), problem, "raise the maximum, or lower the capacity"
                )


def capacity_key(path: str, partition: str, prefix: str = "") -> str:
    """The key of a queue's capacity on a partition; `prefix` is `maximum-` or empty."""
    name = f"{prefix}capacity"
    return queue_key(path, f"accessible-node-labels.{partition}.{name}" if partition else name)


def _type_of(
    reader: Reader, parent: QueueConfiguration, queues: Sequence[QueueConfiguration], partitions: tuple[str, ...]
) -> CapacityType | None:
    """The notation of the queues' capacities; None, with a fault, if they use several.

    A percentage that comes before amounts in the list is ignored, as in Hadoop, which turns amounts into percentages
    later.
    """
    percent = weight = absolute = False
    details: list[str] = []
    for queue in queues:
        for partition in partitions:
            own = queue.capacities.get(partition)
            if own is None:
                continue
            in_amounts = own.is_absolute if reader.release.knows_amounts_by_notation else not own.minimum.is_none()
            used = _notation_of(own, in_amounts=in_amounts)
            if used is not None:
                details.append(f"{{Queue={queue.path}, label={partition} uses {used.value} mode}}. ")
            percent = percent or own.capacity > 0
            weight = weight or own.weight >= 0
            if in_amounts:
                absolute, percent = True, False
    if queues and queues[0].path != ROOT and percent + weight + absolute > 1:
        problem = (
            f"Parent queue '{parent.path}' have children queue used mixed of  weight mode, percentage and absolute "
            f"mode, it is not allowed, please double check, details:{''.join(details)}"
        )
        reader.fault(queue_key(parent.path, "queues"), problem, "write the capacities of all children in one notation")
        return None
    if weight or not queues:
        return CapacityType.WEIGHT
    return CapacityType.ABSOLUTE_RESOURCE if absolute else CapacityType.PERCENT


def _notation_of(own: ConfiguredCapacity, *, in_amounts: bool) -> CapacityType | None:
    """The notation of one capacity; None for a capacity of zero."""
    if own.weight >= 0:
        return CapacityType.WEIGHT
    if in_amounts:
        return CapacityType.ABSOLUTE_RESOURCE
    return CapacityType.PERCENT if own.capacity > 0 else None


def _check_amounts_below(
    reader: Reader,
    parent: QueueConfiguration,
    children: Sequence[QueueConfiguration],
    comparator: CapacityComparator,
    *,
    differ: bool,
) -> None:
    key = queue_key(parent.path, "queues")
    if differ and parent.path != ROOT:
        problem = (
            f"Parent={parent.path}: When absolute minResource is used, we must make sure both parent and child all use "
            "absolute minResource"
        )
        reader.fault(
            key, problem, "write the capacities of the parent and of its children in brackets, or none of them"
        )
        return
    for partition, own in parent.capacities.items():
        given = [child.capacities[partition].minimum for child in children if partition in child.capacities]
        total = sum(given, start=comparator.calculator.none)
        whole = comparator.partitions.get(partition, comparator.calculator.none)
        if not own.minimum.is_none() and comparator.calculator.less(whole, own.minimum, total):
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
    """Add a fault unless percentages add up to 100 or 0.

    With `must_match` they may add up to 0 only if the parent has 0.
    """
    total = 0.0
    for child in children:
        if partition in child.capacities:
            total = f32(total + child.capacities[partition].capacity)
    problem = _sum_problem(parent, parent.capacities[partition].capacity, total, must_match=must_match)
    faulty = {fault.key for fault in reader.faults if fault.severity is Severity.ERROR}
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


def _check_state(reader: Reader, queue: QueueConfiguration, parent: QueueConfiguration | None) -> None:
    """Add a fault for a RUNNING queue below a STOPPED one in the same file (QueueStateHelper.initializeState)."""
    running, stopped = QueueState.RUNNING, QueueState.STOPPED
    if parent is not None and queue.state is running and parent.initial_state is stopped:
        reader.fault(
            queue_key(queue.path, "state"),
            f"The parent queue:{parent.path} cannot be STOPPED as the child queue:{queue.path} is in RUNNING state.",
            f"set {parent.path} to RUNNING as well",
        )


def _check_plan(reader: Reader, queue: QueueConfiguration) -> None:
    key = queue_key(queue.path, "reservable")
    if not (queue.is_leaf or queue.is_plan) and reader.flag(key, False):
        reader.fault(key, f"Only Leaf Queues can be reservable for {queue.path}", "set it to false")
