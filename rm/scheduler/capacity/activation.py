"""Which waiting applications may start: the limits on what masters use.

The queue's limit is a share of what it may use now; one user's is a share of the guarantee. Too small a limit never
stops a queue altogether: the first application is always let in. The pass goes on past an application that does not
fit, so a smaller one behind it may start; rm.scheduler.model.pending_applications skips those that are sure to be
refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rm.scheduler.capacity.users import User
from rm.scheduler.model.usage import NO_LABEL
from rm.scheduler.view.reasons import Reason, Refusal
from yarn.java.binary32 import f32
from yarn.resource import Resource

if TYPE_CHECKING:
    from rm.scheduler.model.application import FiCaSchedulerApp
    from rm.scheduler.model.leaf_queue import LeafQueue


def compute_am_limit(leaf: LeafQueue, partition: str) -> Resource:
    """The queue's limit, stored: a share of its current limit if that is not under the guarantee, else of that."""
    context = leaf.context
    guaranteed = leaf.effective_minimum(partition)
    current = leaf.copied_limit if partition == NO_LABEL else context.none
    usable = current if context.calculator.fits_in(guaranteed, current) else guaranteed
    percent = leaf.capacities.at(partition).maximum_am_percent
    limit = context.calculator.multiply_and_normalize_up(usable, percent, context.minimum_allocation)
    leaf.usage.booked(partition).am_limit = limit
    return limit


def user_am_limit(leaf: LeafQueue, partition: str, weight: float) -> Resource:
    """One user's limit: an active user's part of the guarantee, or minimum-user-limit-percent of it if that is more."""
    context, shape = leaf.context, leaf.shape
    guaranteed = leaf.effective_minimum(partition)
    percent = leaf.capacities.at(partition).maximum_am_percent
    part = max(f32(shape.user_limit / 100), f32(1 / max(leaf.users.active_count, 1)))
    part = min(f32(part * weight), 1.0)
    share = percent if shape.user_limit_factor == -1 else f32(f32(percent * part) * shape.user_limit_factor)
    limit = context.calculator.multiply_and_normalize_up(guaranteed, share, context.minimum_allocation)
    return context.calculator.min_of(leaf.last_cluster_resource, limit, leaf.am_limit(partition))


def activate_applications(leaf: LeafQueue) -> None:
    """Let every waiting application start that the limits let.

    The users' limit is computed once a pass and partition, with the first user's weight, and holds for all.
    """
    for partition in leaf.label_partitions():
        compute_am_limit(leaf, partition)
    user_limits: dict[str, Resource] = {}
    for application in leaf.pending.candidates():
        refusal = _queue_refusal(leaf, application)
        if refusal is not None:
            leaf.pending.refuse_size(application, refusal)
            continue
        partition = application.am_partition
        user = leaf.users.get_or_add(application.user)
        limit = user_limits.get(partition)
        if limit is None:
            limit = user_limits[partition] = user_am_limit(leaf, partition, user.weight)
        refusal = _user_refusal(leaf, application, user, limit)
        if refusal is not None:
            leaf.pending.refuse_user(application, refusal)
            continue
        _activate(leaf, application, user)


def change_am_used(leaf: LeafQueue, user: User, partition: str, amount: Resource) -> None:
    """Book a master on its queue and user (negative: its end)."""
    for part in (leaf.usage.booked(partition), user.usage.booked(partition)):
        part.am_used = part.am_used + amount


def _activate(leaf: LeafQueue, application: FiCaSchedulerApp, user: User) -> None:
    leaf.users.activated(user)
    leaf.active.add(application)
    change_am_used(leaf, user, application.am_partition, application.am_used(application.am_partition))
    leaf.pending.remove(application)


def _queue_refusal(leaf: LeafQueue, application: FiCaSchedulerApp) -> Refusal | None:
    partition = application.am_partition
    if_started = application.am_used(partition) + leaf.usage.am_used(partition)
    return _refusal(leaf, partition, Reason.AM_QUEUE_LIMIT, if_started, leaf.am_limit(partition))


def _user_refusal(leaf: LeafQueue, application: FiCaSchedulerApp, user: User, limit: Resource) -> Refusal | None:
    partition = application.am_partition
    if_started = application.am_used(partition) + user.usage.am_used(partition)
    return _refusal(leaf, partition, Reason.AM_USER_LIMIT, if_started, limit)


def _refusal(leaf: LeafQueue, partition: str, reason: Reason, if_started: Resource, limit: Resource) -> Refusal | None:
    """None within the limit, or if the queue would otherwise have no application at all.

    Once this refuses in a pass it refuses the same amount in all of it (PendingApplications relies on that): during a
    pass the limit stands, and what is used and the number of active applications only grow.
    """
    calculator = leaf.context.calculator
    if calculator.fits_in(if_started, limit):
        return None
    am_used = leaf.usage.am_used(partition)
    if len(leaf.active) < 1 or calculator.less_or_equal(leaf.last_cluster_resource, am_used, leaf.context.none):
        return None
    return Refusal(reason, leaf.context.now_ms, None, if_started, limit)
