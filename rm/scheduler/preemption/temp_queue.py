"""A queue as one round of preemption sees it on one partition: a copy to reckon with (TempQueuePerPartition).

The copies of a partition hang together as a tree of their own. Nothing in here changes the scheduler, but that asking
for a user's limit stores it, as in Hadoop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rm.scheduler.capacity.limits import limit_of
from rm.scheduler.model.context import RESPECT
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import ParentQueue
from rm.scheduler.model.resource_calculator import ResourceCalculator, multiplied
from yarn.resource import Resource, componentwise_max, componentwise_min

if TYPE_CHECKING:
    from rm.scheduler.model.queue import CSQueue
    from rm.scheduler.preemption.temp_app import TempApp, TempUser


class TempQueue:
    """`whole` is the partition's resource. `used` and `reserved` are as of the start of the round, `killable` is what
    of `used` ends as soon as somebody needs the room; `pending` is what its users could still get of what they ask
    for, `pending_without_reserved` the same without what is reserved for it.

    `ideal` is what it should have, `preemptable_extra` and `untouchable_extra` what it has above its guarantee and may
    or may not lose, `to_be_preempted` what is above `ideal`, and `to_obtain` what of it this round goes for
    (actuallyToBePreempted). `share` of each resource type: of what is left over, among those who still want some.
    """

    __slots__ = (
        "absolute_capacity",
        "apps",
        "children",
        "guaranteed",
        "ideal",
        "killable",
        "maximum",
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

    def __init__(self, queue: CSQueue, partition: str, killable: Resource) -> None:
        none = queue.context.none
        whole = queue.context.partition_resource(partition)
        shares = queue.capacities.at(partition)
        # What is idle of a shared partition may all be used, whatever the maximum.
        absolute_maximum = 1.0 if queue.context.labels.is_shared(partition) else shares.absolute_maximum_capacity
        self.queue = queue
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
        self.parent: TempQueue | None = None
        self.children: list[TempQueue] = []
        self.ideal = self.preemptable_extra = self.untouchable_extra = none
        self.to_be_preempted = self.to_obtain = none
        self.share: list[float] = [0.0] * len(none.values())
        self.apps: list[TempApp] = []
        self.users: dict[str, TempUser] = {}
        if isinstance(queue, LeafQueue):
            self.pending = pending_within_user_limits(queue, partition, without_reserved=False)
            self.pending_without_reserved = pending_within_user_limits(queue, partition, without_reserved=True)

    def __str__(self) -> str:
        return f"{self.path}@{self.partition}"

    @property
    def is_protected(self) -> bool:
        """True if nothing may be taken from it (disable_preemption)."""
        return self.queue.configuration.preemption_disabled

    @property
    def leaf(self) -> LeafQueue | None:
        """Its queue, if that has applications."""
        return self.queue if isinstance(self.queue, LeafQueue) else None

    def add_child(self, child: TempQueue) -> None:
        """A queue below: what is wanted there is wanted here."""
        child.parent = self
        self.children.append(child)
        self.pending = self.pending + child.pending
        self.pending_without_reserved = self.pending_without_reserved + child.pending_without_reserved

    def update_extras(self, calculator: ResourceCalculator) -> None:
        """What it has above its guarantee, and how much of that may go (updatePreemptableExtras)."""
        none = self.queue.context.none
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
        """Accept of `available` what it can use; returns what it took.

        Unless queues above their guarantees are balanced, a leaf takes no more than it holds or is guaranteed: so
        nothing is preempted among queues that all have theirs.
        """
        none = self.queue.context.none
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
        """How much is above what it should have, or is guaranteed and wants, times `scale` (a 32-bit float)."""
        running = self.used - self.killable
        wanted = calculator.min_of(total, self.used + self.pending, self.guaranteed)
        kept = calculator.max_of(total, wanted, self.ideal)
        if calculator.greater(total, running, kept):
            self.to_be_preempted = multiplied(running - kept, scale)
        else:
            self.to_be_preempted = self.queue.context.none

    def deduct(self, calculator: ResourceCalculator, amount: Resource) -> None:
        """An earlier selector has taken `amount` of it; what would be all that is left or more counts for nothing."""
        if calculator.greater(self.whole, self.to_obtain, amount):
            self.to_obtain = self.to_obtain - amount
        self.to_obtain = calculator.max_of(self.whole, self.to_obtain, self.queue.context.none)


def clone_tree(queue: CSQueue, partition: str, *, killable: dict[str, dict[str, Resource]]) -> TempQueue:
    """The copy of a queue with all below it. `killable` {queue: {partition: resource}}."""
    none = queue.context.none
    copy = TempQueue(queue, partition, killable.get(queue.path, {}).get(partition, none))
    if isinstance(queue, ParentQueue):
        for child in queue.children:
            below = clone_tree(child, partition, killable=killable)
            if queue.orders_by_priority:
                below.priority = child.configuration.priority
            copy.add_child(below)
    return copy


def pending_within_user_limits(leaf: LeafQueue, partition: str, *, without_reserved: bool) -> Resource:
    """What the leaf's active applications ask for, for each user no more than is below the user's limit."""
    none = leaf.context.none
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
