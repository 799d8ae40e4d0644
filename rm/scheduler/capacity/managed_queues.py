"""Parents that create leaves in Hadoop's older mode and decide which leaves have a guarantee (ManagedParentQueue).

A new leaf gets the template's share if the parent has that much left, else nothing. Later, rounds of the policy
(GuaranteedOrZeroCapacityOverTimePolicy) take the shares of leaves without applications and give them to others, in the
order in which their applications were submitted. Leaves are never removed.

A round changes only a leaf's shares and amounts, nothing above it: a leaf whose share was taken has a maximum of zero
until the cluster changes. With capacities in amounts, a leaf that was once without a guarantee counts from then on as
configured with zero, even if it gets a guarantee later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rm.scheduler.capacity.queue_update import configure
from rm.scheduler.config.queue_configuration import ManagedCreation, QueueConfiguration
from rm.scheduler.config.queue_templates import MANAGED_CREATION
from rm.scheduler.model.application import ApplicationTable
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.usage import QueueCapacities
from yarn.configuration import Configuration
from yarn.faults import Fault
from yarn.java.binary32 import f32, shortest
from yarn.java.hash_order import hash_order, string_hash
from yarn.nodes import NO_LABEL
from yarn.resource import Resource
from yarn.resource_calculator import multiplied
from yarn.settings.scheduler import queue_key

_EPSILON = f32(0.001)
"""Tolerance when shares are compared (CSQueueUtils.EPSILON)."""


class Entitlement(NamedTuple):
    """A leaf's shares of its parent and of the whole partition."""

    capacity: float
    maximum_capacity: float
    absolute_capacity: float
    absolute_maximum_capacity: float


class AutoCreatedLeafQueue(LeafQueue):
    """A leaf of a managed parent. `_minimum`: amounts that override the configured minimum."""

    __slots__ = ("_minimum",)

    def __init__(
        self, configuration: QueueConfiguration, parent: ManagedParentQueue, context: SchedulerContext
    ) -> None:
        super().__init__(configuration, parent, context)
        self._minimum: dict[str, Resource] = {}

    @property
    def maker(self) -> ManagedParentQueue:
        """The leaf's managed parent."""
        assert isinstance(self.parent, ManagedParentQueue)
        return self.parent

    def configured_minimum(self, partition: str) -> Resource:
        """The leaf's configured minimum; zero once the leaf has lost its guarantee."""
        own = self._minimum.get(partition)
        return super().configured_minimum(partition) if own is None else own

    def take(self, entitlement: Entitlement) -> None:
        """Set the leaf's shares, and the amounts computed from them (mergeCapacities).

        The used capacity is not recomputed. The leaf's place among its siblings changes at once, because it depends on
        whether the leaf has a guarantee.
        """
        own, whole = self.capacities.default, self.context.partition_resource(NO_LABEL)
        own.capacity, own.maximum_capacity = entitlement.capacity, entitlement.maximum_capacity
        own.absolute_capacity = entitlement.absolute_capacity
        own.absolute_maximum_capacity = entitlement.absolute_maximum_capacity
        if self.is_absolute and own.absolute_capacity > 0:
            minimum = self.maker.managed.capacity.minimum
        else:
            minimum = multiplied(whole, own.absolute_capacity)
        self.set_effective_resources(NO_LABEL, minimum, multiplied(whole, own.absolute_maximum_capacity))
        self.update_guarantee_floor(NO_LABEL)
        self.sort_key = self.key_for_order(NO_LABEL)

    def forget_entitlement(self) -> None:
        """Set the leaf's share to zero until it is entitled again, after a configuration change
        (updateCapacitiesToZero).
        """
        above, own = self.maker.capacities, self.capacities.default
        for partition in list(above.partitions()):
            share = self.capacities.booked(partition)
            share.capacity = share.absolute_capacity = 0.0
            own.maximum_capacity = self.maker.template.at(partition).maximum_capacity
            own.absolute_maximum_capacity = f32(above.default.absolute_maximum_capacity * own.maximum_capacity)
            self.update_guarantee_floor(partition)
            self.update_used_capacity(partition)

    def configured_in_full(self) -> None:
        """Use the configured minimum again, as before `forget_minimum`."""
        self._minimum = {}

    def forget_minimum(self) -> None:
        """Treat the leaf as configured with a minimum of zero."""
        self._minimum[NO_LABEL] = self.context.none

    def guarantee(self, partition: str) -> Resource:
        """The leaf's guarantee; without a share, the template's guarantee (CSQueueUtils.updateUsedCapacity)."""
        if self.capacities.at(partition).absolute_capacity != 0:
            return super().guarantee(partition)
        whole = self.context.partition_resource(partition)
        return multiplied(whole, self.maker.template.at(partition).absolute_capacity)


class ManagedParentQueue(ParentQueue):
    """A parent that creates leaves and assigns their guarantees.

    `template`: the shares of a leaf with a guarantee, computed from `managed`. `_active`: the paths of leaves with a
    guarantee. `_activated`: the sum of their absolute shares at the time they got them. Configured children are not
    changed.
    """

    __slots__ = ("_activated", "_active", "managed", "template")

    def __init__(
        self, configuration: QueueConfiguration, parent: ParentQueue | None, context: SchedulerContext
    ) -> None:
        super().__init__(configuration, parent, context)
        assert configuration.managed is not None
        self.managed: ManagedCreation = configuration.managed
        self.template = QueueCapacities(context.none)
        self._active: set[str] = set()
        self._activated = 0.0

    def load_template(self, configuration: QueueConfiguration) -> None:
        """Apply the leaf template of `configuration`.

        A refresh does this before it reconfigures the queue, so the template's amounts are divided by the queue's old
        ones.
        """
        assert configuration.managed is not None
        self.managed = configuration.managed
        self.template = QueueCapacities(self.context.none)
        self.template.configure({NO_LABEL: self.managed.capacity})
        if self.is_absolute:
            self._derive_template()

    def entitle(self, leaf: AutoCreatedLeafQueue) -> None:
        """Give a new leaf the template's share or nothing (getInitialLeafQueueConfiguration)."""
        self._update_template()
        if self.is_absolute:
            self._derive_template()
        share = self.template.default.absolute_capacity
        if f32(self._left() + _EPSILON) >= share:
            self._activate(leaf)
            leaf.take(self._full())
        else:
            leaf.forget_minimum()
            leaf.take(self._nothing())

    def is_full(self) -> bool:
        """True if the parent's guarantee is too small for the guarantees of all children plus one more leaf."""
        total = 0.0
        for child in self.children:
            total = f32(total + child.capacities.default.absolute_capacity)
        own = self.capacities.default.absolute_capacity
        return f32(self.template.default.absolute_capacity + total) > own

    def restart(self, applications: ApplicationTable) -> None:
        """Give guarantees to the leaves that have applications, after a refresh has taken all guarantees away."""
        self._active.clear()
        self._activated = 0.0
        self.run_round(applications)

    def run_round(self, applications: ApplicationTable) -> None:
        """Run one round of the policy: compute and apply the changes (computeQueueManagementChanges)."""
        self._update_template()
        leaves = {child.path: child for child in self.children if isinstance(child, AutoCreatedLeafQueue)}
        idle = [path for path, leaf in leaves.items() if path in self._active and leaf.application_total() == 0]
        for path in idle:
            leaves[path].forget_minimum()
        chosen = self._to_activate(len(idle), applications)
        changes = {path: self._nothing() for path in idle} | {path: self._full() for path in chosen}
        order = hash_order(changes, string_hash)
        for path in order:
            leaves[path].take(changes[path])
        for path in order:
            self._commit(leaves[path], changes[path])

    def _to_activate(self, idle: int, applications: ApplicationTable) -> list[str]:
        """The leaves with the earliest applications, as many as the guarantee suffices for (getSortedLeafQueues)."""
        share, returned = self.template.default.absolute_capacity, 0.0
        for _ in range(idle):
            returned = f32(returned + share)
        left = f32(f32(self._left() + returned) + _EPSILON)
        if left < share or share <= 0:
            return []
        waiting = list(self._submitted(applications))
        most = min(math.floor(f32(left / share)), len(waiting))
        chosen = dict.fromkeys(leaf.path for leaf in waiting if leaf.path not in self._active)
        return list(chosen)[:most]

    def _submitted(self, applications: ApplicationTable) -> Iterator[AutoCreatedLeafQueue]:
        """The leaf of each runnable attempt, in the order of submission."""
        for application in applications.by_id.values():
            attempt = application.current_attempt
            leaf = attempt.leaf if attempt is not None else None
            if (
                attempt is not None
                and isinstance(leaf, AutoCreatedLeafQueue)
                and leaf.parent is self
                and attempt.attempt_id in leaf.runnable
            ):
                yield leaf

    def _commit(self, leaf: AutoCreatedLeafQueue, entitlement: Entitlement) -> None:
        if entitlement.capacity > 0:
            if leaf.path not in self._active:
                self._activate(leaf)
        elif leaf.path in self._active:
            self._active.discard(leaf.path)
            self._activated = f32(self._activated - self.template.default.absolute_capacity)

    def _activate(self, leaf: AutoCreatedLeafQueue) -> None:
        self._active.add(leaf.path)
        self._activated = f32(self._activated + self.template.default.absolute_capacity)

    def _left(self) -> float:
        return f32(self.capacities.default.absolute_capacity - self._activated)

    def _full(self) -> Entitlement:
        own = self.template.default
        return Entitlement(own.capacity, own.maximum_capacity, own.absolute_capacity, own.absolute_maximum_capacity)

    def _nothing(self) -> Entitlement:
        return Entitlement(0.0, self.template.default.maximum_capacity, 0.0, 0.0)

    def _update_template(self) -> None:
        """Compute the template's absolute shares from the queue's present absolute shares.

        Where the template's share of the queue is 0, its absolute share keeps its old value.
        """
        share, own = self.template.default, self.capacities.default
        if share.capacity > 0:
            share.absolute_capacity = f32(share.capacity * own.absolute_capacity)
        if share.maximum_capacity > 0:
            share.absolute_maximum_capacity = f32(share.maximum_capacity * own.absolute_maximum_capacity)
        for leaf in self.children:
            if isinstance(leaf, AutoCreatedLeafQueue):
                leaf.update_guarantee_floor(NO_LABEL)

    def _derive_template(self) -> None:
        """Compute the template's shares from the template's amounts (ManagedParentQueue.updateQueueCapacities)."""
        context, share, own = self.context, self.template.default, self.capacities.default
        cluster, calculator, wanted = context.cluster_resource, context.calculator, self.managed.capacity
        above = self.configured_maximum(NO_LABEL)
        maximum = calculator.min_of(cluster, above if wanted.maximum.is_none() else wanted.maximum, above)
        share.capacity = calculator.divide(cluster, wanted.minimum, self.configured_minimum(NO_LABEL))
        share.maximum_capacity = calculator.divide(cluster, maximum, above)
        share.absolute_capacity = f32(share.capacity * own.absolute_capacity)
        share.absolute_maximum_capacity = f32(share.maximum_capacity * own.absolute_maximum_capacity)


def new_queue(
    configuration: QueueConfiguration, parent: ParentQueue | None, context: SchedulerContext
) -> ParentQueue | LeafQueue:
    """Create the queue of the class that its configuration requires, without children."""
    queue: ParentQueue | LeafQueue
    if configuration.is_auto_created:
        assert isinstance(parent, ManagedParentQueue), (
            "the leaf's configuration was read from a managed parent's template"
        )
        queue = AutoCreatedLeafQueue(configuration, parent, context)
    elif configuration.is_leaf:
        assert parent is not None, "root is not a leaf: checked with the configuration"
        queue = LeafQueue(configuration, parent, context)
    elif configuration.managed is not None:
        queue = ManagedParentQueue(configuration, parent, context)
    else:
        queue = ParentQueue(configuration, parent, context)
    reconfigure(queue, configuration)
    if isinstance(queue, ManagedParentQueue):
        queue.load_template(configuration)
    return queue


def reconfigure(queue: CSQueue, configuration: QueueConfiguration) -> None:
    """Apply a configuration; an auto-created leaf then has no guarantee until its parent gives it one."""
    if isinstance(queue, AutoCreatedLeafQueue):
        queue.configured_in_full()
    configure(queue, configuration)
    if isinstance(queue, AutoCreatedLeafQueue):
        queue.forget_entitlement()


def check_managed(queue: CSQueue, new: QueueConfiguration, configuration: Configuration, faults: list[Fault]) -> None:
    """Add faults for changes that a managed parent or its leaves do not allow (ManagedParentQueue.reinitialize)."""
    key = queue_key(queue.path, MANAGED_CREATION + "enabled")

    def fault(problem: str, remedy: str) -> None:
        faults.append(Fault(key, configuration.get(key), configuration.origin(key), problem, remedy))

    if isinstance(queue, AutoCreatedLeafQueue) and not new.is_auto_created:
        fault(f"{queue.path} was created by its parent and cannot be configured as well", "use another name")
    if not isinstance(queue, ManagedParentQueue):
        if isinstance(queue, ParentQueue) and new.managed is not None:
            fault(
                f"Can not convert parent queue: {queue.path} to auto create enabled parent queue since it could have "
                "other pre-configured queues which is not supported",
                "configure it under a new name",
            )
        return
    if new.managed is None:
        fault(
            f"Cannot convert auto create enabled parent queue: {queue.path} to leaf queue. Please check  parent "
            f"queue's configuration {MANAGED_CREATION}enabled is set to true",
            "keep it true",
        )
        return
    configured = [child.name for child in queue.children if not isinstance(child, AutoCreatedLeafQueue)]
    if configured != list(new.children):
        fault(
            f"{queue.path} is a managed parent: its configured queues cannot change",
            "leave the list of queues unchanged",
        )
    _check_sum(queue, new, fault)


def _check_sum(queue: ManagedParentQueue, new: QueueConfiguration, fault: Callable[[str, str], None]) -> None:
    """Check the guarantees of the leaves against the parent's own share before the refresh."""
    assert new.managed is not None
    total, own = 0.0, queue.capacities.default.capacity
    for child in queue.children:
        total = f32(total + child.capacities.default.capacity)
    if new.managed.fails_when_full and own < total:
        fault(
            f"Total of Auto Created leaf queues guaranteed capacity : {shortest(total)} exceeds Parent queue's "
            f"{queue.path} guaranteed capacity {shortest(own)}.Cannot enforce policy to auto create queues beyond "
            "parent queue's capacity",
            "set fail-on-exceeding-parent-capacity to false",
        )
