"""What every queue has: its place in the tree, its shares of the cluster, what is used of it (AbstractCSQueue)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from rm.scheduler.capacity.effective_capacity import derive_capacities, effective_amounts, update_absolute_capacities
from rm.scheduler.config.queue_configuration import QueueConfiguration
from rm.scheduler.context import RESPECT, SchedulerContext, SchedulingMode
from rm.scheduler.model.assignment import Assignment
from rm.scheduler.model.limits import ResourceLimits
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.usage import NO_LABEL, QueueCapacities, ResourceUsage
from rm.scheduler.preemption.losses import Losses
from rm.scheduler.view.reasons import Refusals
from yarn.resource import Resource
from yarn.settings.scheduler import ROOT
from yarn.states import QueueState

if TYPE_CHECKING:
    from rm.scheduler.model.parent_queue import ParentQueue


class GuaranteeInAmounts:
    """What a queue is given in amounts, as the end of its key for the order: the larger one sorts first.

    Of two such it is the amounts that count, memory before vcores; against one in shares, which is `-share`, the share.
    """

    __slots__ = ("_amounts", "_minus_share")

    def __init__(self, share: float, amounts: tuple[int, ...]) -> None:
        self._minus_share = -share
        self._amounts = amounts

    def __eq__(self, other: object) -> bool:
        if isinstance(other, GuaranteeInAmounts):
            return self._amounts == other._amounts
        return self._minus_share == other

    def __hash__(self) -> int:
        return hash(self._amounts)

    def __lt__(self, other: GuaranteeInAmounts | float) -> bool:
        if isinstance(other, GuaranteeInAmounts):
            return self._amounts > other._amounts
        return self._minus_share < other

    def __gt__(self, other: GuaranteeInAmounts | float) -> bool:
        if isinstance(other, GuaranteeInAmounts):
            return self._amounts < other._amounts
        return self._minus_share > other


LastOfKey: TypeAlias = float | GuaranteeInAmounts
OrderKey: TypeAlias = tuple[bool, float, LastOfKey] | tuple[bool, bool, int, float, LastOfKey]


class CSQueue(ABC):
    """A queue; a subclass calls `reconfigure` at the end of its making.

    `reserved_metric` counts reservations on nodes without label only (QueueMetrics.reservedMB). `losses`: what was
    preempted of it. `last_submitted_ms`: when an application was last let in, or a child made; None = never. Only
    queues created on demand care. `remembered_as`: what a container that is placed now keeps as its queue's name, its
    path if its short name says which queue is meant, else only that (FiCaSchedulerApp.allocate, normalizeQueueName).
    """

    __slots__ = (
        "capacities",
        "configuration",
        "container_count",
        "context",
        "last_submitted_ms",
        "losses",
        "name",
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
        """True if it was created on demand."""
        return self.configuration.is_dynamic

    # What leaves and parents do each in their way

    @abstractmethod
    def assign_containers(self, node: SchedulerNode, limits: ResourceLimits, mode: SchedulingMode) -> Assignment:
        """What this queue would place on the node, one container at most."""

    @abstractmethod
    def kept_headroom(self, limits: ResourceLimits) -> Resource | None:
        """After it failed on its limit: the room that queues after it must leave alone."""

    @abstractmethod
    def update_cluster_resource(self, limits: ResourceLimits) -> None:
        """The cluster or the configuration changed: shares and amounts from here down."""

    @abstractmethod
    def refresh_after_calculation(self, limits: ResourceLimits) -> None:
        """Our amounts were calculated anew: what follows from them here (refreshAfterResourceCalculation)."""

    @abstractmethod
    def application_total(self) -> int:
        """Applications that hold the queue open."""

    @abstractmethod
    def runnable_total(self) -> int:
        """Attempts that count for max-parallel-apps."""

    # Shares

    def effective_minimum(self, partition: str) -> Resource:
        """What the queue is guaranteed of the partition."""
        return self.capacities.at(partition).effective_minimum

    def effective_maximum(self, partition: str) -> Resource:
        """What the queue may use of the partition at most."""
        return self.capacities.at(partition).effective_maximum

    @property
    def configured_partitions(self) -> Iterable[str]:
        """The partitions that the configuration gives the queue capacities of, the one without label among them."""
        return self.configuration.capacities

    @property
    def is_absolute(self) -> bool:
        """True if the queue is given amounts, not shares."""
        return self.configuration.capacities[NO_LABEL].is_absolute

    def configured_minimum(self, partition: str) -> Resource:
        """The amounts that the queue is given of the partition; none if it is given a share."""
        configured = self.configuration.capacities.get(partition)
        return configured.minimum if configured is not None else self.context.none

    def configured_maximum(self, partition: str) -> Resource:
        """The amounts that bound the queue on the partition; none if a share does."""
        configured = self.configuration.capacities.get(partition)
        return configured.maximum if configured is not None else self.context.none

    def update_effective_resources(self) -> None:
        """Shares in amounts, cut off, or amounts in shares; the root has the whole partition."""
        for partition in self.configured_partitions:
            self.set_effective_resources(partition, *effective_amounts(self, partition))
            derive_capacities(self, partition)

    def set_effective_resources(self, partition: str, minimum: Resource, maximum: Resource) -> None:
        """What the queue has of the partition, and what is always made of it."""
        calculator, smallest = self.context.calculator, self.context.minimum_allocation
        own = self.capacities.booked(partition)
        own.effective_minimum, own.effective_maximum = minimum, maximum
        own.effective_maximum_down = calculator.round_down(maximum, smallest)

    def update_used_capacities(self) -> None:
        """Used capacities of all partitions, after a change of the cluster."""
        for partition in self.known_partitions():
            self._update_guarantee_floor(partition)
            self.update_used_capacity(partition)

    def known_partitions(self) -> list[str]:
        """All partitions that were ever configured, asked for or used."""
        return list({**dict.fromkeys(self.capacities.partitions()), **dict.fromkeys(self.usage.partitions())})

    def _update_guarantee_floor(self, partition: str) -> None:
        whole, own = self.context.partition_resource(partition), self.capacities.booked(partition)
        guarantee = self._guarantee(partition)
        own.guarantee_floor = self.context.calculator.max_of(whole, guarantee, self.context.minimum_allocation)

    def _guarantee(self, partition: str) -> Resource:
        """What its use is measured against."""
        return self.effective_minimum(partition)

    def update_used_capacity(self, partition: str) -> None:
        """What the order of queues looks at: used of the guarantee, which counts as one container at least."""
        context = self.context
        if partition and not self.capacities.has(partition):
            self._update_guarantee_floor(partition)
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
        """Its place among its siblings, as a key that sorts (PriorityUtilizationQueueOrderingPolicy).

        Queues with a guarantee come before those without; then the less used one, with priorities the higher one of
        those on the same side of their guarantee; then the one with the larger guarantee.
        """
        own = self.capacities.at(partition)
        without = own.absolute_capacity <= 0
        used = own.absolute_used_capacity if without else own.used_capacity
        guarantee: LastOfKey = -own.absolute_capacity
        minimum = self.configured_minimum(partition)
        if not minimum.is_none():
            guarantee = GuaranteeInAmounts(own.absolute_capacity, minimum.values())
        if self.parent is not None and self.parent.orders_by_priority:
            return (without, used >= 1, -self.configuration.priority, used, guarantee)
        return (without, used, guarantee)

    # Booking

    def change_pending(self, partition: str, amount: Resource) -> None:
        """More (or less) is asked for below; here and in all queues above."""
        queue: CSQueue | None = self
        while queue is not None:
            if queue.usage.booked(partition).change_pending(amount):
                self.context.pending_miscounted = True
            queue = queue.parent

    def change_reserved(self, partition: str, amount: Resource) -> None:
        """A reservation came or went; here and in all queues above."""
        queue: CSQueue | None = self
        while queue is not None:
            part = queue.usage.booked(partition)
            part.reserved = part.reserved + amount
            queue = queue.parent

    def change_reserved_metric(self, partition: str, amount: Resource) -> None:
        """The metric of reservations; it knows nodes without label, memory and vcores only."""
        if partition:
            return
        queue: CSQueue | None = self
        while queue is not None:
            queue.reserved_metric = queue.reserved_metric + Resource(amount.memory_mb, amount.vcores)
            queue = queue.parent

    def book_container(self, partition: str, amount: Resource) -> None:
        """A container or reservation is in use (allocateResource)."""
        part = self.usage.booked(partition)
        part.used = part.used + amount
        self.container_count += 1
        self.update_used_capacity(partition)

    def change_used(self, partition: str, amount: Resource) -> None:
        """More (or less) is in use, by containers that were counted before (incUsedResource, decUsedResource)."""
        queue: CSQueue | None = self
        while queue is not None:
            part = queue.usage.booked(partition)
            part.used = part.used + amount
            queue.update_used_capacity(partition)
            queue = queue.parent

    def unbook_container(self, partition: str, amount: Resource) -> None:
        """A container or reservation is over (releaseResource)."""
        part = self.usage.booked(partition)
        part.used = part.used - amount
        self.container_count -= 1
        self.update_used_capacity(partition)

    # Checks

    def can_assign(
        self, partition: str, limits: ResourceLimits, could_be_unreserved: Resource, mode: SchedulingMode
    ) -> bool:
        """canAssignToThisQueue: under the limit, or so without the reservations; sets `limits.headroom` either way.

        It is a check before: the next container may be larger than the room that is left.
        """
        context = self.context
        calculator, cluster = context.calculator, context.cluster_resource
        if mode is RESPECT:
            limit = calculator.min_of(cluster, self.effective_maximum(partition), limits.limit)
        else:
            limit = context.partition_resource(partition)
        used = self.usage.used(partition)
        if context.killables.is_used:
            used = used - self.killable_below(partition)
        limits.headroom = limit - used
        if calculator.less(cluster, used, limit):
            return True
        if not context.settings.reservations_continue_looking:
            return False
        if not calculator.is_some(cluster, could_be_unreserved):
            return False
        return calculator.less(cluster, used - could_be_unreserved, limit)

    def killable_below(self, partition: str) -> Resource:
        """What of the queues below ends as soon as somebody needs its room."""
        return self.context.none

    def has_pending(self, partition: str, mode: SchedulingMode) -> bool:
        """True if something below asks for what a visit of this node looks at."""
        looked_at = partition if mode is RESPECT else NO_LABEL
        return self.context.calculator.is_some(self.context.cluster_resource, self.usage.pending(looked_at))

    def is_accessible(self, partition: str) -> bool:
        """True if the queue may use the partition; everybody may use the one without label."""
        return not partition or self.configuration.may_use(partition)

    # Configuration and state

    def reconfigure(self, configuration: QueueConfiguration) -> None:
        """Take the settings over (setupQueueConfigs); amounts follow with the next update of the cluster."""
        self.configuration = configuration
        self.capacities.configure(configuration.capacities)
        update_absolute_capacities(self)
        self.update_used_capacities()

    def application_finished(self) -> None:
        """A draining queue is stopped when its last application is over."""
        if self.state is QueueState.DRAINING and self.application_total() == 0:
            self.state = QueueState.STOPPED

    def recover_draining(self) -> None:
        """It was stopped while it drained, or during a restart: an application of before may finish."""
        self.state = QueueState.DRAINING
        if self.parent is not None and self.parent.state is QueueState.STOPPED:
            self.parent.recover_draining()

    def stop(self) -> None:
        """Takes no more applications; those it has may finish."""
        self.state = QueueState.DRAINING if self.application_total() > 0 else QueueState.STOPPED
