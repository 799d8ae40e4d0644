"""The limits of a queue and its users, and the resulting headroom.

A user's limit is the larger of a fair share (what active users hold plus one container, divided among them) and
minimum-user-limit-percent of the queue's current capacity, but at most user-limit-factor times the guarantee. So it
grows with usage. A lookup recomputes it only if the version of the users has changed; otherwise the stored limit is
used. The stored limit is therefore state: it can be older than the numbers it was computed from.

The checks consider only what is already used: the next container may be larger than what is left. The commit of a
proposal (rm.scheduler.placement.commit) checks again, with the container included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from rm.scheduler.model.application import FiCaSchedulerApp, HeadroomProvider
from rm.scheduler.model.context import RESPECT, SchedulingMode
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.usage import ResourceLimits
from rm.scheduler.model.users import User, UsersManager
from yarn.java.hash_order import hash_order, string_hash
from yarn.nodes import NO_LABEL
from yarn.resource import Resource, componentwise_min
from yarn.resource_calculator import multiplied, subtracted_non_negative

_LimitOfUser: TypeAlias = Callable[[UsersManager, str, str, SchedulingMode], Resource]


def has_pending(queue: CSQueue, partition: str, mode: SchedulingMode) -> bool:
    """True if an application below has requests that a visit of this node serves."""
    served = partition if mode is RESPECT else NO_LABEL
    context = queue.context
    return context.calculator.is_some(context.cluster_resource, queue.usage.pending(served))


def can_assign(
    queue: CSQueue, partition: str, limits: ResourceLimits, could_be_unreserved: Resource, mode: SchedulingMode
) -> bool:
    """True if the queue is below its limit, possibly only without reservations (canAssignToThisQueue).

    Always sets `limits.headroom`.
    """
    context = queue.context
    calculator, cluster = context.calculator, context.cluster_resource
    if mode is RESPECT:
        limit = calculator.min_of(cluster, queue.effective_maximum(partition), limits.limit)
    else:
        limit = context.partition_resource(partition)
    used = queue.usage.used(partition)
    if context.killables.is_used and isinstance(queue, ParentQueue):
        # A leaf's own killable containers do not count as available to it.
        used = used - context.killables.resource(queue.path, partition)
    limits.headroom = limit - used
    if calculator.less(cluster, used, limit):
        return True
    if not context.settings.reservations_continue_looking:
        return False
    if not calculator.is_some(cluster, could_be_unreserved):
        return False
    return calculator.less(cluster, used - could_be_unreserved, limit)


def available_to_children(parent: ParentQueue, limits: ResourceLimits, partition: str, *, net: bool) -> Resource:
    """The amount that is left for the queues below. Lowers `limits.limit` to the parent's maximum.

    `net`: minus the headroom that is kept for children that were offered the node earlier.
    """
    context = parent.context
    limits.limit = context.calculator.min_of(
        context.cluster_resource, limits.limit, parent.effective_maximum(partition)
    )
    available = (limits.net_limit() if net else limits.limit) - parent.usage.used(partition)
    if context.killables.is_used:
        available = available + context.killables.resource(parent.path, partition)
    return available


def limits_of_child(child: CSQueue, available: Resource, partition: str) -> ResourceLimits:
    return ResourceLimits(limit_of_child(child, available, partition), child.context.none)


def limit_of_child(child: CSQueue, available: Resource, partition: str) -> Resource:
    """The child's limit: what it uses plus what is available."""
    context = child.context
    return context.calculator.round_down(available + child.usage.used(partition), context.minimum_allocation)


def set_current_limit(leaf: LeafQueue, limit: Resource) -> None:
    """Store the leaf's limit for this visit or update: the given one, at most its maximum in whole containers."""
    context = leaf.context
    down = leaf.capacities.default.effective_maximum_down
    limit = context.calculator.min_of(context.cluster_resource, down, limit)
    if limit != leaf.current_limit:
        leaf.store_current_limit(limit)


def note_user_limit(
    leaf: LeafQueue, application: FiCaSchedulerApp, partition: str, mode: SchedulingMode, known: Resource | None
) -> Resource:
    """The user's limit; also updates the copied limit and the headroom provider (computeUserLimitAndSetHeadroom).

    `known`: the limit, if this visit has already looked it up. For a user without an entry nothing is stored.
    """
    user = leaf.users.users.get(application.user)
    if user is None:
        return leaf.context.none
    limit = known if known is not None else limit_of(leaf.users, application.user, partition, mode)
    if leaf.copied_limit is not leaf.current_limit:
        leaf.store_copied_limit()
    if not is_captured(leaf, application):
        last = application.headroom_provider
        if last is not None and last.leaf is leaf and last.application is application:
            # The user's first application in an iteration is the first to see the new entry.
            leaf.active.listener.user_renewed(application.user)
        application.capture_headroom(user)
    return limit


def can_assign_to_user(
    leaf: LeafQueue, application: FiCaSchedulerApp, limit: Resource, partition: str, limits: ResourceLimits
) -> bool:
    """True unless the user is ABOVE the limit; at the limit one more container is allowed (canAssignToUser).

    With reservations-continue-look-all-nodes, a user above it only because of reservations passes too, and
    `amount_needed_unreserve` is set to how much of them has to be unreserved.
    """
    user = leaf.users.users.get(application.user)
    if user is None:
        return False
    context = leaf.context
    calculator, cluster = context.calculator, context.cluster_resource
    limits.amount_needed_unreserve = context.none
    used = user.usage.used(partition)
    if not calculator.greater(cluster, used, limit):
        return True
    if not context.settings.reservations_continue_looking:
        return False
    without = user.usage.default.used - application.usage.default.reserved
    if not calculator.less_or_equal(cluster, without, limit):
        return False
    limits.amount_needed_unreserve = used - limit
    return True


def is_captured(leaf: LeafQueue, application: FiCaSchedulerApp) -> bool:
    """True if the application's headroom is computed from this leaf and its user's present entry."""
    provider = application.headroom_provider
    return (
        provider is not None
        and provider.leaf is leaf
        and provider.application is application
        and provider.user is leaf.users.users.get(application.user)
    )


def limit_of(
    users: UsersManager, name: str, partition: str, mode: SchedulingMode, *, active_only: bool = True
) -> Resource:
    """The user's limit.

    `active_only`: use Hadoop's variant for active users, on which decisions are based; it is also stored in the user's
    entry.
    """
    key = (partition, mode is RESPECT, active_only)
    kept = users.limits.get(key)
    if kept is None or kept[0] != users.version:
        kept = (users.version, _compute_limit(users, partition, mode, active_only=active_only))
        users.limits[key] = kept
        users.count_waiting()
    user, limit = users.users.get(name), kept[1]
    if user is not None and user.weight != 1:
        limit = _weighted(users, user, limit)
    if user is not None and active_only and user.limit != limit:
        users.store_limit(user, limit)
    return limit


def present_limit(users: UsersManager, name: str, partition: str, mode: SchedulingMode) -> Resource:
    """The value that `limit_of` would return now, without storing anything: for reports."""
    kept, user = users.limits.get((partition, mode is RESPECT, True)), users.users.get(name)
    if kept is not None and kept[0] == users.version:
        limit = kept[1]
    else:
        limit = _compute_limit(users, partition, mode, active_only=True)
    return limit if user is None or user.weight == 1 else _weighted(users, user, limit)


def would_store(users: UsersManager, name: str, partition: str) -> bool:
    """True if `limit_of` for active users would store something now: a limit of this version, or the user's."""
    kept, user = users.limits.get((partition, True, True)), users.users.get(name)
    if kept is None or kept[0] != users.version:
        return True
    return user is not None and user.limit != present_limit(users, name, partition, RESPECT)


def _weighted(users: UsersManager, user: User, limit: Resource) -> Resource:
    """The limit for a user's weight. For weight 1 it would change nothing: the limit is already in whole containers."""
    return users.context.calculator.multiply_and_normalize_down(limit, user.weight, users.context.minimum_allocation)


def _compute_limit(users: UsersManager, partition: str, mode: SchedulingMode, *, active_only: bool) -> Resource:
    """The user limit for weight 1 (UsersManager.computeUserLimit)."""
    context, shape = users.context, users.shape
    calculator, required = context.calculator, context.minimum_allocation
    whole = context.partition_resource(partition)
    own = shape.capacities.at(partition)
    guaranteed = own.effective_minimum
    capacity = calculator.max_of(whole, guaranteed, required)
    consumed = calculator.multiply_and_normalize_up(whole, users.consumed_ratios.get(partition, 0.0), required)
    current = capacity if calculator.less(whole, consumed, capacity) else consumed + required
    if active_only:
        base, weights = users.used_by_active.used(partition) + required, users.active_weights
    else:
        base, weights = current, users.all_weights
    fair_share = calculator.divide_and_ceil(base, weights)
    minimum_share = calculator.divide_and_ceil_by(multiplied(current, shape.user_limit), 100)
    limit = calculator.max_of(whole, fair_share, minimum_share)
    if mode is not RESPECT:
        bound = whole
    elif shape.user_limit_factor == -1 or guaranteed.is_none():
        bound = own.effective_maximum_down
    else:
        bound = multiplied(capacity, shape.user_limit_factor)
    return calculator.round_up(calculator.min_of(whole, limit, bound), required)


# Headroom: reported to the AM for its planning. It does not affect the scheduler's decisions.


def headroom(application: FiCaSchedulerApp) -> Resource:
    """The amount that the application could still get; zero until a first visit has considered it."""
    provider = application.headroom_provider
    return _provided(provider, limit_of) if provider is not None else application.leaf.context.none


def present_headroom(application: FiCaSchedulerApp) -> Resource:
    """The value that `headroom` would return now, without storing anything: for reports."""
    provider = application.headroom_provider
    return _provided(provider, present_limit) if provider is not None else application.leaf.context.none


def _provided(provider: HeadroomProvider, limit_of_user: _LimitOfUser) -> Resource:
    """The sum over all partitions that the attempt ever requested.

    Looking up a user's limit with `limit_of` stores it, so the order of the partitions matters: it is that of Java's
    set.
    """
    leaf, application = provider.leaf, provider.application
    assert isinstance(leaf, LeafQueue)
    total: Resource | None = None
    for partition in _partitions_of(application):
        limit = limit_of_user(leaf.users, application.user, partition, RESPECT)
        part = _headroom_on(leaf, provider.user, limit, partition)
        total = part if total is None else total + part
    assert total is not None
    return total if total.memory_mb >= 0 else Resource(0, total.vcores, total.extra)


def _partitions_of(application: FiCaSchedulerApp) -> Sequence[str]:
    """The partitions of its headroom, in the order of Java's set."""
    requested = application.requests.requested_partitions
    return hash_order(requested, string_hash) if requested else (NO_LABEL,)


class HeadroomLookup(NamedTuple):
    """The limits that `headroom` looks up, and so may store, for one application; the same for others like it."""

    users: UsersManager
    name: str
    partitions: tuple[str, ...]

    @staticmethod
    def of(application: FiCaSchedulerApp) -> HeadroomLookup | None:
        """The lookup for the application; None if no visit has considered it yet."""
        provider = application.headroom_provider
        if provider is None:
            return None
        assert isinstance(provider.leaf, LeafQueue)
        return HeadroomLookup(provider.leaf.users, application.user, tuple(_partitions_of(application)))

    def would_store(self) -> bool:
        """True if the next lookup would store something."""
        return any(would_store(self.users, self.name, partition) for partition in self.partitions)


def _headroom_on(leaf: LeafQueue, user: User, user_limit: Resource, partition: str) -> Resource:
    """The headroom on one partition: what the user's and the queue's limit leave, at most what is free in the cluster.

    The limits are rounded down to whole containers. Memory can be negative on an over-committed cluster. On NO_LABEL
    the copied limit of the queue is used.
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
