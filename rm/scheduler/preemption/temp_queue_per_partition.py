"""Working copies of queues, applications and users on one partition, for one round of preemption.

The queues of a partition form a tree of their own. Nothing here changes the scheduler, except that computing a user's
limit stores it, as in Hadoop.
"""

from __future__ import annotations

from rm.scheduler.capacity.limits import limit_of
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.context import RESPECT, SchedulerContext
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue, ParentQueue
from yarn.protocols.inspection import QueueInRound
from yarn.resource import Resource, componentwise_max, componentwise_min
from yarn.resource_calculator import ResourceCalculator, multiplied


class TempUserPerPartition:
    """A user in a leaf.

    `limit`: what the user may use besides AM containers. `ideal`: how much of the limit was distributed. `selected`:
    what earlier selectors chose. `has_paid`: what the user has above the limit has been claimed.
    """

    __slots__ = ("am_used", "has_paid", "ideal", "limit", "selected", "used")

    def __init__(self, used: Resource, am_used: Resource, user_limit: Resource, none: Resource) -> None:
        self.used = used
        self.am_used = am_used
        self.limit = user_limit - am_used
        self.ideal = self.selected = none
        self.has_paid = False

    @property
    def used_without_ams(self) -> Resource:
        return self.used - self.am_used


class TempAppPerPartition:
    """An application on one partition.

    `ideal`: what it should have. `wanted_of_others`: how much it has less than that. `to_be_preempted`: what it could
    lose. `to_obtain`: what it is to lose (actuallyToBePreempted).
    """

    __slots__ = (
        "am_used",
        "application",
        "ideal",
        "pending",
        "selected",
        "to_be_preempted",
        "to_obtain",
        "used",
        "user",
        "wanted_of_others",
    )

    def __init__(
        self, application: FiCaSchedulerApp, partition: str, user: TempUserPerPartition, none: Resource
    ) -> None:
        has_am = not application.is_waiting_for_master and application.am_partition == partition
        self.application = application
        self.user = user
        self.used = application.usage.used(partition)
        self.am_used = application.am_resource if has_am else none
        self.pending = application.requests.pending_on(partition, none)
        self.ideal = self.selected = self.to_be_preempted = self.to_obtain = self.wanted_of_others = none

    @property
    def used_without_am(self) -> Resource:
        return self.used - self.am_used

    def deduct(self, calculator: ResourceCalculator, whole: Resource, amount: Resource) -> None:
        """Subtract `amount`, which an earlier selector took from some application of the leaf."""
        if calculator.greater(whole, self.to_obtain, amount):
            self.to_obtain = self.to_obtain - amount


class TempQueuePerPartition:
    """A queue on one partition.

    `whole`: the partition's resources. `used`, `reserved`: at the start of the round. `killable`: the part of `used`
    that is killed as soon as it is needed. `pending`: requested and within user limits. `pending_without_reserved`: the
    same without what is reserved for the queue. `ideal`: what the queue should have. `preemptable_extra`,
    `untouchable_extra`: what it has above its guarantee and may, or may not, lose. `to_be_preempted`: what it has above
    `ideal`. `to_obtain`: how much of `to_be_preempted` this round takes (actuallyToBePreempted). `share`: for each
    resource type, the queue's fraction of what is left to distribute.
    """

    __slots__ = (
        "absolute_capacity",
        "apps",
        "children",
        "guaranteed",
        "ideal",
        "killable",
        "maximum",
        "none",
        "parent",
        "partition",
        "path",
        "pending",
        "pending_without_reserved",
        "preemptable_extra",
        "priority",
        "queue",
        "reserved",
        "share",
        "to_be_preempted",
        "to_obtain",
        "untouchable_extra",
        "used",
        "users",
        "whole",
    )

    def __init__(self, queue: CSQueue, partition: str, context: SchedulerContext, killable: Resource) -> None:
        none = context.none
        whole = context.partition_resource(partition)
        shares = queue.capacities.at(partition)
        # Idle resources of a non-exclusive partition may all be used, whatever the maximum.
        absolute_maximum = 1.0 if context.labels.is_shared(partition) else shares.absolute_maximum_capacity
        self.queue = queue
        self.none = none
        self.path = queue.path
        self.partition = partition
        self.whole = whole
        self.used = queue.usage.used(partition)
        self.reserved = queue.usage.reserved(partition)
        self.killable = killable
        self.absolute_capacity = shares.absolute_capacity
        self.guaranteed = _amount(shares.effective_minimum, whole, shares.absolute_capacity)
        self.maximum = _amount(shares.effective_maximum, whole, absolute_maximum)
        self.pending = self.pending_without_reserved = none
        self.priority = 0
        self.parent: TempQueuePerPartition | None = None
        self.children: list[TempQueuePerPartition] = []
        self.ideal = self.preemptable_extra = self.untouchable_extra = none
        self.to_be_preempted = self.to_obtain = none
        self.share: list[float] = [0.0] * len(none.values())
        self.apps: list[TempAppPerPartition] = []
        self.users: dict[str, TempUserPerPartition] = {}
        if isinstance(queue, LeafQueue) and len(queue.active):
            self.pending = pending_within_user_limits(queue, partition, none, without_reserved=False)
            self.pending_without_reserved = pending_within_user_limits(queue, partition, none, without_reserved=True)

    def __str__(self) -> str:
        return f"{self.path}@{self.partition}"

    def figures(self) -> QueueInRound:
        """The present amounts, for explanations."""
        return QueueInRound(
            self.path,
            self.partition,
            self.guaranteed,
            self.used,
            self.pending,
            self.ideal,
            self.to_be_preempted,
            self.to_obtain,
        )

    @property
    def is_protected(self) -> bool:
        """True if nothing may be preempted from the queue (disable_preemption)."""
        return self.queue.configuration.preemption_disabled

    def is_unused(self) -> bool:
        """True if the queue and all queues below it use and want nothing.

        Then none of them is offered or loses anything, and their amounts stay as they are at first.
        """
        return self.used.is_none() and self.pending.is_none() and self.killable.is_none()

    @property
    def leaf(self) -> LeafQueue | None:
        """The queue as a LeafQueue; only for leaves."""
        return self.queue if isinstance(self.queue, LeafQueue) else None

    def add_child(self, child: TempQueuePerPartition) -> None:
        """Add a child; its demand counts in this queue, too."""
        child.parent = self
        self.children.append(child)
        self.pending = self.pending + child.pending
        self.pending_without_reserved = self.pending_without_reserved + child.pending_without_reserved

    def update_extras(self, calculator: ResourceCalculator) -> None:
        """Compute what the queue has above its guarantee, and how much of that may be preempted
        (updatePreemptableExtras).
        """
        none = self.none
        extra = self.used - self.guaranteed
        if calculator.less(self.whole, extra, none):
            extra = none
        if not self.children:
            self.untouchable_extra, self.preemptable_extra = (extra, none) if self.is_protected else (none, extra)
            return
        below = sum((child.preemptable_extra for child in self.children), start=none)
        covered = calculator.greater_or_equal(self.whole, below, extra)
        self.untouchable_extra = none if covered else extra - below
        self.preemptable_extra = calculator.min_of(self.whole, below, extra)

    def offer(
        self,
        available: Resource,
        calculator: ResourceCalculator,
        total: Resource,
        *,
        counts_reserved: bool,
        balances: bool,
    ) -> Resource:
        """Accept what the queue can use of `available`; returns what it accepted.

        Unless queues above their guarantees are balanced, a leaf accepts no more than it uses or is guaranteed, so that
        nothing is preempted among queues that all have their guarantees.
        """
        none = self.none
        wanted = self.used + (self.pending if counts_reserved else self.pending_without_reserved) - self.ideal
        room = componentwise_max(self.maximum - self.ideal, none)
        accepted = componentwise_min(room, calculator.min_of(total, available, wanted))
        if not balances and not self.children:
            due = calculator.max_of(total, self.used, self.guaranteed) - self.ideal
            accepted = calculator.min_of(total, accepted, calculator.max_of(total, due, none))
        accepted = componentwise_min(componentwise_max(accepted, none), available)
        self.ideal = self.ideal + accepted
        return accepted

    def assign_preemption(self, scale: float, calculator: ResourceCalculator, total: Resource) -> None:
        """Set `to_be_preempted` to what runs above max(ideal, min(used + pending, guaranteed)), times `scale`.

        Killable containers do not count as running.
        """
        running = self.used - self.killable
        wanted = calculator.min_of(total, self.used + self.pending, self.guaranteed)
        kept = calculator.max_of(total, wanted, self.ideal)
        if calculator.greater(total, running, kept):
            self.to_be_preempted = multiplied(running - kept, scale)
        else:
            self.to_be_preempted = self.none

    def deduct(self, calculator: ResourceCalculator, amount: Resource) -> None:
        """Subtract `amount`, which an earlier selector took; ignored unless less than what is left, as in Hadoop."""
        if calculator.greater(self.whole, self.to_obtain, amount):
            self.to_obtain = self.to_obtain - amount
        self.to_obtain = calculator.max_of(self.whole, self.to_obtain, self.none)


def clone_tree(
    queue: CSQueue, partition: str, context: SchedulerContext, killable: dict[str, dict[str, Resource]]
) -> TempQueuePerPartition:
    """A copy of the queue and all below it. `killable` {queue: {partition: resource}}."""
    killable_here = killable.get(queue.path, {}).get(partition, context.none)
    copy = TempQueuePerPartition(queue, partition, context, killable_here)
    if isinstance(queue, ParentQueue):
        for child in queue.children:
            below = clone_tree(child, partition, context, killable)
            if queue.orders_by_priority:
                below.priority = child.configuration.priority
            copy.add_child(below)
    return copy


def pending_within_user_limits(leaf: LeafQueue, partition: str, none: Resource, *, without_reserved: bool) -> Resource:
    """The requests of the leaf's active applications, for each user at most what is left below the user's limit."""
    total, headrooms = none, dict[str, Resource]()
    for application in leaf.active:
        name = application.user
        headroom = headrooms.get(name)
        if headroom is None:
            user = leaf.users.get_or_add(name)
            limit = limit_of(leaf.users, name, partition, RESPECT)
            headroom = componentwise_max(limit - user.usage.used(partition), none)
        pending = application.usage.pending(partition)
        if without_reserved:
            pending = pending - application.usage.reserved(partition)
        part = componentwise_min(headroom, componentwise_max(pending, none))
        total = total + part
        headrooms[name] = headroom - part
    return total


def _amount(effective: Resource, whole: Resource, share: float) -> Resource:
    return multiplied(whole, share) if effective.is_none() else effective
