"""Offers a node down the tree: a parent to its children, a leaf to its applications (assignContainers).

A parent offers it to the least served child first. A leaf offers it to its applications in the order of its policy,
within the limits of the queue and the user. The first application that accepts the node ends the offer.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from rm.scheduler.capacity.limits import (
    available_to_children,
    can_assign,
    can_assign_to_user,
    has_pending,
    limit_of_child,
    limits_of_child,
    note_user_limit,
    set_current_limit,
)
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.context import RESPECT, SchedulingMode
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.refusals import Reason
from rm.scheduler.model.usage import ResourceLimits
from rm.scheduler.model.users import CachedUserLimit
from rm.scheduler.placement.allocator import (
    Assignment,
    Proposal,
    SkippedType,
    UnneededReservation,
    assign_to_application,
)
from rm.scheduler.placement.memo import RefusedOffers, RefusedUsers, only_for_limits, rest, with_demand
from yarn.resource import Resource

_BY_SORT_KEY = attrgetter("sort_key")


def assign_containers(
    queue: CSQueue, node: SchedulerNode, limits: ResourceLimits, mode: SchedulingMode, refused: RefusedOffers
) -> Assignment:
    """The proposal of this queue or those below for the node: at most one container."""
    if isinstance(queue, LeafQueue):
        return assign_in_leaf(queue, node, limits, mode)
    assert isinstance(queue, ParentQueue)
    return _assign_in_parent(queue, node, limits, mode, refused)


def _refuse(
    queue: CSQueue, node: SchedulerNode, reason: Reason, asked: Resource | None = None, bound: Resource | None = None
) -> SkippedType:
    queue.refusals.note(node.node_id, reason, queue.context.now_ms, asked, bound)
    return SkippedType.NONE


def _assign_in_parent(
    parent: ParentQueue, node: SchedulerNode, limits: ResourceLimits, mode: SchedulingMode, refused: RefusedOffers
) -> Assignment:
    partition, context = node.partition, parent.context
    if mode is RESPECT and not parent.is_accessible(partition):
        return _refuse(parent, node, Reason.NO_ACCESS)
    if not has_pending(parent, partition, mode):
        return _refuse(parent, node, Reason.QUEUE_SATISFIED)
    if node.reserved_container is not None:
        return _refuse(parent, node, Reason.QUEUE_NODE_RESERVED, node.reserved_container.resource)
    smallest = context.minimum_allocation
    if not context.calculator.fits_in(smallest, node.within_reach):
        context.note_node_check()
        return _refuse(parent, node, Reason.QUEUE_NODE_FULL, smallest, node.within_reach)
    if not can_assign(parent, partition, limits, parent.reserved_metric, mode):
        used = parent.usage.used(partition)
        return _refuse(parent, node, Reason.QUEUE_MAXIMUM, used, used + limits.headroom)
    return _assign_to_children(parent, node, limits, mode, refused)


def _assign_to_children(
    parent: ParentQueue, node: SchedulerNode, limits: ResourceLimits, mode: SchedulingMode, refused: RefusedOffers
) -> Assignment:
    """Offer the node to each child in turn. What a child cannot use because of its limit is kept back from the
    children after it (Hadoop's blocked headroom).
    """
    result = SkippedType.NONE
    context, partition = parent.context, node.partition
    available = available_to_children(parent, limits, partition, net=True)
    for child in _children_in_order(parent, partition):
        if refused.include(child, available):
            if refused.depends_on_node(child):
                context.note_node_check()
            continue
        if _pass_over(child, node, available, mode):
            continue
        child_limits = limits_of_child(child, available, partition)
        change_count, node_check_count = context.change_count, context.node_check_count
        assignment = assign_containers(child, node, child_limits, mode, refused)
        if isinstance(assignment, Proposal):
            return assignment
        if assignment is SkippedType.NONE and isinstance(child, LeafQueue) and context.change_count == change_count:
            refused.add(child, available, depends_on_node=context.node_check_count != node_check_count)
        elif assignment is SkippedType.QUEUE_LIMIT:
            result = SkippedType.QUEUE_LIMIT
            # Keep what the limit of a leaf left, or what the queues below a parent have blocked.
            kept = child_limits.headroom if isinstance(child, LeafQueue) else child_limits.blocked_headroom
            none = context.none
            blocked = context.calculator.max_of(context.cluster_resource, none if kept is None else kept, none)
            limits.add_blocked_headroom(blocked)
            available = available_to_children(parent, limits, partition, net=True)
    return result


def _pass_over(child: CSQueue, node: SchedulerNode, available: Resource, mode: SchedulingMode) -> bool:
    """True if the child has no requests for such a node; what an offer would leave behind is done then.

    This is only faster than an offer: of 100 queues most request nothing.
    """
    partition = node.partition
    if has_pending(child, partition, mode) or node.reserved_container is not None:
        return False
    if mode is RESPECT and not child.is_accessible(partition):
        return False
    if isinstance(child, LeafQueue):
        set_current_limit(child, limit_of_child(child, available, partition))
    child.refusals.note(node.node_id, Reason.QUEUE_SATISFIED, child.context.now_ms)
    return True


def _children_in_order(parent: ParentQueue, partition: str) -> list[CSQueue]:
    if not partition:
        return sorted(parent.children, key=_BY_SORT_KEY)
    return sorted(
        parent.children, key=lambda child: (not child.is_accessible(partition), child.key_for_order(partition))
    )


def assign_in_leaf(leaf: LeafQueue, node: SchedulerNode, limits: ResourceLimits, mode: SchedulingMode) -> Assignment:
    """Offer the node to the leaf's applications in order."""
    set_current_limit(leaf, limits.limit)
    partition = node.partition
    if node.reserved_container is not None:
        application = leaf.attempts.get(node.reserved_container.id.attempt_id)
        if application is not None:
            return assign_to_application(leaf, application, node, limits, mode, node.reserved_container)
    if mode is RESPECT and not leaf.is_accessible(partition):
        return _refuse(leaf, node, Reason.NO_ACCESS)
    if not has_pending(leaf, partition, mode):
        return _refuse(leaf, node, Reason.QUEUE_SATISFIED)
    satisfied: list[FiCaSchedulerApp] = []
    assignment = _walk(leaf, with_demand(leaf, partition), node, limits, mode, satisfied)
    rest(leaf, satisfied)
    return assignment


def _walk(
    leaf: LeafQueue,
    applications: Iterator[FiCaSchedulerApp],
    node: SchedulerNode,
    limits: ResourceLimits,
    mode: SchedulingMode,
    satisfied: list[FiCaSchedulerApp],
) -> Assignment:
    """The proposal of the first application that accepts the node.

    Skipped ones without requests and reservations are added to `satisfied`.
    """
    partition = node.partition
    cached_limits = leaf.user_limits.at(leaf.users.version, partition, mode)
    refused, only_limits = RefusedUsers(leaf), only_for_limits(leaf)
    check_queue = True
    for application in applications:
        reserved = application.usage.default.reserved
        if check_queue:
            if not can_assign(leaf, partition, limits, reserved, mode):
                used = leaf.usage.used(partition)
                return _refuse(leaf, node, Reason.QUEUE_MAXIMUM, used, used + limits.headroom)
            check_queue = leaf.context.settings.reservations_continue_looking and not reserved.is_none()
        if refused.include(application, reserved):
            continue
        cached = _look_up_limit(leaf, application, partition, mode, cached_limits)
        if not _may_assign_to_user(leaf, application, partition, limits, cached):
            _refuse_user(leaf, application, node, cached.limit)
            refused.add(application, cached)
            continue
        if application.attempt_id.application_id in only_limits:
            continue
        assignment = assign_to_application(leaf, application, node, limits, mode, None)
        if isinstance(assignment, (Proposal, UnneededReservation)):
            return assignment
        if assignment is SkippedType.OTHER:
            if reserved.is_none() and not application.usage.is_pending():
                satisfied.append(application)
            continue
        if assignment is SkippedType.QUEUE_LIMIT:
            _refuse(leaf, node, Reason.QUEUE_HEADROOM, None, limits.headroom)
            return assignment
        return _refuse(leaf, node, Reason.QUEUE_FIFO)
    return SkippedType.NONE


def _look_up_limit(
    leaf: LeafQueue,
    application: FiCaSchedulerApp,
    partition: str,
    mode: SchedulingMode,
    cached_limits: dict[str, CachedUserLimit],
) -> CachedUserLimit:
    cached = cached_limits.get(application.user)
    limit = note_user_limit(leaf, application, partition, mode, cached.limit if cached is not None else None)
    if cached is None:
        cached = cached_limits[application.user] = CachedUserLimit(limit, leaf.context.none)
    return cached


def _may_assign_to_user(
    leaf: LeafQueue, application: FiCaSchedulerApp, partition: str, limits: ResourceLimits, cached: CachedUserLimit
) -> bool:
    """True as for can_assign_to_user, but reuses results for other applications of the user in the same visit."""
    reserved = application.usage.default.reserved
    if cached.has_failed_with(reserved):
        return False
    if can_assign_to_user(leaf, application, cached.limit, partition, limits):
        return True
    cached.note_failure(reserved)
    return False


def _refuse_user(leaf: LeafQueue, application: FiCaSchedulerApp, node: SchedulerNode, limit: Resource) -> None:
    """Record the refusal for all applications of the user: the others are not offered the node in this iteration."""
    user, now_ms = leaf.users.users.get(application.user), leaf.context.now_ms
    if user is None:
        application.refusals.note(node.node_id, Reason.USER_LIMIT, now_ms, None, limit)
    else:
        used = user.usage.used(node.partition)
        user.refusals.note(node.node_id, Reason.USER_LIMIT, now_ms, used, limit)
