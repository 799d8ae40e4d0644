"""The queues of the tree as data: position, shares, amounts, usage (AbstractCSQueue, AbstractParentQueue).

Shares and amounts are computed in rm.scheduler.capacity; rm.scheduler.placement decides which queue is offered a node.
LeafQueue is in leaf_queue.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from rm.scheduler.config.queue_configuration import QueueConfiguration
from rm.scheduler.model.capacity_warning import CapacityWarning
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.last_refusals import Refusals
from rm.scheduler.model.usage import Losses, QueueCapacities, ResourceUsage
from yarn.nodes import NO_LABEL
from yarn.resource import Resource
from yarn.settings.scheduler import ROOT
from yarn.states import QueueState


class AbsoluteCapacity:
    """The guarantee of a queue configured in amounts, as the last part of its sort key: the larger one sorts first.

    Two such guarantees are compared by their amounts, memory before vcores. A comparison with the `-share` of a queue
    that is configured in shares uses the share of this queue.
    """

    __slots__ = ("_amounts", "_minus_share")

    def __init__(self, share: float, amounts: tuple[int, ...]) -> None:
        self._minus_share = -share
        self._amounts = amounts

    def __eq__(self, other: object) -> bool:
        if isinstance(other, AbsoluteCapacity):
            return self._amounts == other._amounts
        return self._minus_share == other

    def __hash__(self) -> int:
        return hash(self._amounts)

    def __lt__(self, other: AbsoluteCapacity | float) -> bool:
        if isinstance(other, AbsoluteCapacity):
            return self._amounts > other._amounts
        return self._minus_share < other

    def __gt__(self, other: AbsoluteCapacity | float) -> bool:
        if isinstance(other, AbsoluteCapacity):
            return self._amounts < other._amounts
        return self._minus_share > other


class AmountsOrShare:
    """The guarantee of any queue as the last part of its sort key, since Hadoop 3.4.2: the larger one sorts first.

    Guarantees are compared by the configured amounts, memory before vcores, if one of the queues has amounts; a queue
    that is configured in shares has zero. Otherwise they are compared by their shares.
    """

    __slots__ = ("_amounts", "_has_amounts", "_share")

    def __init__(self, share: float, amounts: tuple[int, ...]) -> None:
        self._share = share
        self._amounts = amounts
        self._has_amounts = any(amounts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AmountsOrShare):
            return NotImplemented
        if self._has_amounts or other._has_amounts:
            return self._amounts == other._amounts
        return self._share == other._share

    def __hash__(self) -> int:
        return hash(self._amounts)

    def __lt__(self, other: AmountsOrShare) -> bool:
        if self._has_amounts or other._has_amounts:
            return self._amounts > other._amounts
        return self._share > other._share


LastOfKey: TypeAlias = float | AbsoluteCapacity | AmountsOrShare
OrderKey: TypeAlias = tuple[bool, float, LastOfKey] | tuple[bool, bool, int, float, LastOfKey]


class CSQueue:
    """A queue. rm.scheduler.capacity.queue_update sets its shares and amounts once it is in the tree.

    `reserved_metric` counts only reservations on nodes without a label (QueueMetrics.reservedMB). `losses`: what was
    preempted from the queue. `own_change_count`: how often `note_change` was called. `last_submitted_ms`: when an
    application was last accepted, or a child created; None = never; used only for queues created on demand.
    `remembered_as`: the queue name in new containers: the path if the
    short name is unambiguous, else the short name (FiCaSchedulerApp.allocate, normalizeQueueName).
    """

    __slots__ = (
        "capacities",
        "configuration",
        "container_count",
        "context",
        "last_submitted_ms",
        "losses",
        "name",
        "own_change_count",
        "parent",
        "path",
        "refusals",
        "remembered_as",
        "reserved_metric",
        "sort_key",
        "state",
        "usage",
    )

    def __init__(
        self, configuration: QueueConfiguration, parent: ParentQueue | None, context: SchedulerContext
    ) -> None:
        self.context = context
        self.parent = parent
        self.path = configuration.path
        self.name = configuration.name
        self.remembered_as = configuration.path
        self.state: QueueState = configuration.initial_state
        self.usage = context.root_usage if parent is None else ResourceUsage(context.none)
        self.capacities = QueueCapacities(context.none)
        self.container_count = 0
        self.own_change_count = 0
        self.losses = Losses(context.none)
        self.last_submitted_ms: int | None = None
        self.reserved_metric = context.none
        self.refusals = Refusals()
        self.sort_key: OrderKey = (True, 0.0, 0.0)
        self.configuration = configuration

    def __str__(self) -> str:
        return self.path

    @property
    def is_root(self) -> bool:
        return self.path == ROOT

    @property
    def is_dynamic(self) -> bool:
        """True if the queue was created on demand."""
        return self.configuration.is_dynamic

    def application_total(self) -> int:
        """Applications that keep the queue from being stopped or removed."""
        raise NotImplementedError

    def runnable_total(self) -> int:
        """The number of attempts that count towards max-parallel-apps."""
        raise NotImplementedError

    def and_above(self) -> Iterator[CSQueue]:
        """This queue, its parent, and so on up to the root."""
        queue: CSQueue | None = self
        while queue is not None:
            yield queue
            queue = queue.parent

    def parents(self) -> Iterator[ParentQueue]:
        """The queues above: the parent first, the root last."""
        queue = self.parent
        while queue is not None:
            yield queue
            queue = queue.parent

    def note_change(self) -> None:
        """Count a change that could affect offers of nodes to this leaf, and to no other leaf.

        All other changes are noted in the context (SchedulerContext.note_change) and count for every leaf.
        """
        self.own_change_count += 1
        self.context.confined_count += 1
        self.context.change_count += 1

    @property
    def change_count(self) -> int:
        """The number of changes that could affect an offer to this leaf: its own, and those that count for all."""
        return self.own_change_count + self.context.shared_change_count

    def effective_minimum(self, partition: str) -> Resource:
        """The queue's guarantee on the partition."""
        return self.capacities.at(partition).effective_minimum

    def effective_maximum(self, partition: str) -> Resource:
        """The most that the queue may use of the partition."""
        return self.capacities.at(partition).effective_maximum

    @property
    def configured_partitions(self) -> Iterable[str]:
        """The partitions with a configured capacity, NO_LABEL among them."""
        return self.configuration.capacities

    @property
    def is_absolute(self) -> bool:
        """True if the capacity is configured in amounts, not shares."""
        return self.configuration.capacities[NO_LABEL].is_absolute

    def configured_minimum(self, partition: str) -> Resource:
        """The configured minimum in amounts; zero if a share is configured."""
        configured = self.configuration.capacities.get(partition)
        return configured.minimum if configured is not None else self.context.none

    def configured_maximum(self, partition: str) -> Resource:
        """The configured maximum in amounts; zero if a share is configured."""
        configured = self.configuration.capacities.get(partition)
        return configured.maximum if configured is not None else self.context.none

    def set_effective_resources(self, partition: str, minimum: Resource, maximum: Resource) -> None:
        """Set the queue's amounts on the partition; computes the maximum in whole containers from them."""
        calculator, smallest = self.context.calculator, self.context.minimum_allocation
        own = self.capacities.booked(partition)
        own.effective_minimum, own.effective_maximum = minimum, maximum
        own.effective_maximum_down = calculator.round_down(maximum, smallest)

    def update_used_capacities(self) -> None:
        """Recompute the used capacities of all partitions, after a change of the cluster or the shares."""
        for partition in self.known_partitions():
            self.update_guarantee_floor(partition)
            self.update_used_capacity(partition)

    def known_partitions(self) -> list[str]:
        """All partitions that were ever configured, requested or used."""
        return list({**dict.fromkeys(self.capacities.partitions()), **dict.fromkeys(self.usage.partitions())})

    def update_guarantee_floor(self, partition: str) -> None:
        """Recompute the divisor of the used capacity: the guarantee, but at least one container."""
        whole, own = self.context.partition_resource(partition), self.capacities.booked(partition)
        guarantee = self.guarantee(partition)
        own.guarantee_floor = self.context.calculator.max_of(whole, guarantee, self.context.minimum_allocation)

    def guarantee(self, partition: str) -> Resource:
        """The guarantee by which the queue's usage is divided."""
        return self.effective_minimum(partition)

    def update_used_capacity(self, partition: str) -> None:
        """Recompute the used capacity (used / guarantee), by which queues are ordered."""
        context = self.context
        if partition and not self.capacities.has(partition):
            self.update_guarantee_floor(partition)
        whole = context.partition_resource(partition)
        own = self.capacities.at(partition)
        if context.calculator.is_some(whole, whole):
            used = self.usage.used(partition)
            own.absolute_used_capacity = context.calculator.divide(whole, used, whole)
            own.used_capacity = context.calculator.divide(whole, used, own.guarantee_floor)
        else:
            own.absolute_used_capacity = own.used_capacity = 0.0
        if not partition:
            self.sort_key = self.key_for_order(partition)

    def key_for_order(self, partition: str) -> OrderKey:
        """The queue's sort key among its siblings (PriorityUtilizationQueueOrderingPolicy).

        Queues with a guarantee come before those without, then the less used one, then the one with the larger
        guarantee. If priorities count, the higher priority comes first, before usage is compared, among queues that are
        all below, or all above, their guarantees.
        """
        own = self.capacities.at(partition)
        without = own.absolute_capacity <= 0
        used = own.absolute_used_capacity if without else own.used_capacity
        guarantee: LastOfKey = -own.absolute_capacity
        minimum = self.configured_minimum(partition)
        if self.context.settings.release.compares_any_amounts:
            guarantee = AmountsOrShare(own.absolute_capacity, minimum.values())
        elif not minimum.is_none():
            guarantee = AbsoluteCapacity(own.absolute_capacity, minimum.values())
        if self.parent is not None and self.parent.orders_by_priority:
            return (without, used >= 1, -self.configuration.priority, used, guarantee)
        return (without, used, guarantee)

    def change_pending(self, partition: str, amount: Resource) -> None:
        """Change the pending amount of this queue and all queues above."""
        queue: CSQueue | None = self
        while queue is not None:
            if queue.usage.booked(partition).change_pending(amount):
                self.context.pending_miscounted = True
            queue = queue.parent

    def change_reserved(self, partition: str, amount: Resource) -> None:
        """Change the reserved amount of this queue and all queues above."""
        queue: CSQueue | None = self
        while queue is not None:
            part = queue.usage.booked(partition)
            part.reserved = part.reserved + amount
            queue = queue.parent

    def change_reserved_metric(self, partition: str, amount: Resource) -> None:
        """Change the metric of reservations, which counts memory and vcores on nodes without a label only."""
        if partition:
            return
        queue: CSQueue | None = self
        while queue is not None:
            queue.reserved_metric = queue.reserved_metric + Resource(amount.memory_mb, amount.vcores)
            queue = queue.parent

    def book_container(self, partition: str, amount: Resource) -> None:
        """Book a container or reservation, in this queue alone (allocateResource)."""
        part = self.usage.booked(partition)
        part.used = part.used + amount
        self.container_count += 1
        self.update_used_capacity(partition)

    def change_used(self, partition: str, amount: Resource) -> None:
        """Change the usage of this queue and all queues above (incUsedResource, decUsedResource).

        The containers must be counted already.
        """
        queue: CSQueue | None = self
        while queue is not None:
            part = queue.usage.booked(partition)
            part.used = part.used + amount
            queue.update_used_capacity(partition)
            queue = queue.parent

    def unbook_container(self, partition: str, amount: Resource) -> None:
        """Subtract a container or reservation, in this queue alone (releaseResource)."""
        part = self.usage.booked(partition)
        part.used = part.used - amount
        self.container_count -= 1
        self.update_used_capacity(partition)

    def is_accessible(self, partition: str) -> bool:
        """True if the queue may use the partition; every queue may use NO_LABEL."""
        return not partition or self.configuration.may_use(partition)

    def application_finished(self) -> None:
        """Stop a draining queue once its last application has finished."""
        if self.state is QueueState.DRAINING and self.application_total() == 0:
            self.state = QueueState.STOPPED

    def recover_draining(self) -> None:
        """Drain a queue that was stopped before or during an RM restart, so that a recovered application can finish."""
        self.state = QueueState.DRAINING
        if self.parent is not None and self.parent.state is QueueState.STOPPED:
            self.parent.recover_draining()

    def stop(self) -> None:
        """Accept no more applications; running ones may finish."""
        self.state = QueueState.DRAINING if self.application_total() > 0 else QueueState.STOPPED


Ratios: TypeAlias = tuple[float | None, ...]
"""Scaling factors of configured amounts, one for each resource type; None = as configured."""


class ParentQueue(CSQueue):
    """A queue with children. `children` are in the order that decides ties: the order of the file at the start, Java's
    hash order after a refresh.

    `allow_zero_capacity_sum` is that of the first configuration: as in Hadoop a refresh does not change it.
    `orders_by_priority`: the ordering policy is priority-utilization. `ratios` {partition: scaling factors of the
    children's amounts}. `runnable_count`: attempts below that max-parallel-apps does not hold back. `warnings`:
    capacities of children that could not be granted as configured, without legacy queue mode.
    """

    __slots__ = (
        "allow_zero_capacity_sum",
        "application_count",
        "children",
        "orders_by_priority",
        "ratios",
        "runnable_count",
        "warnings",
    )

    def __init__(
        self, configuration: QueueConfiguration, parent: ParentQueue | None, context: SchedulerContext
    ) -> None:
        super().__init__(configuration, parent, context)
        self.children: list[CSQueue] = []
        self.allow_zero_capacity_sum = configuration.allow_zero_capacity_sum
        self.orders_by_priority = False
        self.application_count = 0
        self.runnable_count = 0
        self.ratios: dict[str, Ratios] = {}
        self.warnings: list[CapacityWarning] = []

    def application_total(self) -> int:
        """Applications below; one without an attempt counts too."""
        return self.application_count

    def runnable_total(self) -> int:
        return self.runnable_count

    def stop(self) -> None:
        """Stop all queues below as well."""
        super().stop()
        for child in self.children:
            child.stop()
