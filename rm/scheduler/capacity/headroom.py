"""How much an application is told that it could still get. It decides nothing here; AMs plan with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rm.scheduler.capacity.users import User
from rm.scheduler.context import RESPECT
from rm.scheduler.model.resource_calculator import subtracted_non_negative
from rm.scheduler.model.usage import NO_LABEL
from yarn.java.hash_order import hash_order, string_hash
from yarn.resource import Resource, componentwise_min

if TYPE_CHECKING:
    from rm.scheduler.model.application import FiCaSchedulerApp
    from rm.scheduler.model.leaf_queue import LeafQueue


class HeadroomProvider:
    """CapacityHeadroomProvider: from which leaf, user entry and attempt a headroom is taken.

    It is captured when a visit looks at the attempt and stays what it was until the next: after a move, or when the
    user's entry was dropped and made anew, the headroom still comes from the old ones.
    """

    __slots__ = ("application", "leaf", "user")

    def __init__(self, user: User, leaf: LeafQueue, application: FiCaSchedulerApp) -> None:
        self.user = user
        self.leaf = leaf
        self.application = application

    def headroom(self) -> Resource:
        """What the attempt could still get, summed over the partitions that it ever asked for.

        Each look at a user's limit stores it, so the order of the partitions shows: it is that of Java's set.
        """
        asked = self.application.asks.requested_partitions
        partitions = hash_order(asked, string_hash) if asked else (NO_LABEL,)
        total: Resource | None = None
        for partition in partitions:
            limit = self.leaf.users.limit_of(self.application.user, partition, RESPECT)
            part = headroom_of(self.leaf, self.user, limit, partition)
            total = part if total is None else total + part
        assert total is not None
        return total if total.memory_mb >= 0 else Resource(0, total.vcores, total.extra)


def headroom_of(leaf: LeafQueue, user: User, user_limit: Resource, partition: str) -> Resource:
    """What the user's limit and the queue's leave, in whole containers, but no more than is free at all.

    Memory can be negative on an over-committed cluster. The queue's limit on nodes without label is the copied one.
    """
    context = leaf.context
    queue_limit = leaf.copied_limit if partition == NO_LABEL else leaf.effective_maximum(partition)
    left = componentwise_min(
        subtracted_non_negative(user_limit, user.usage.used(partition)),
        subtracted_non_negative(queue_limit, leaf.usage.used(partition)),
    )
    left = context.calculator.round_down(left, context.minimum_allocation)
    whole = context.partition_resource(partition)
    free = whole - context.root_usage.used(partition)
    return context.calculator.min_of(whole, free, left)
