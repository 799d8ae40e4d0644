"""Checks whether a queue and a user may get a container: before the offer to an application, and at the commit.

The first check considers only what is already used: the next container may be larger than what is left. The check at
the commit includes the container.
"""

from __future__ import annotations

from rm.scheduler.capacity.limits import note_user_limit
from rm.scheduler.model.application import ApplicationTable, FiCaSchedulerApp
from rm.scheduler.model.context import RESPECT, SchedulerContext, SchedulingMode
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.refusals import Reason
from rm.scheduler.model.rm_container import FINAL
from rm.scheduler.model.usage import NO_LABEL, ResourceLimits
from rm.scheduler.placement.allocator import Proposal
from yarn.resource import Resource


def has_pending(queue: CSQueue, partition: str, mode: SchedulingMode) -> bool:
    """True if an application below has requests that a visit of this node serves."""
    served = partition if mode is RESPECT else NO_LABEL
    context = queue.context
    return context.calculator.is_some(context.cluster_resource, queue.usage.pending(served))


def can_assign(
    queue: CSQueue, partition: str, limits: ResourceLimits, could_be_unreserved: Resource, mode: SchedulingMode
) -> bool:
    """canAssignToThisQueue: True if below the limit, possibly without reservations; always sets `limits.headroom`."""
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


def refusal_at_commit(
    proposal: Proposal, applications: ApplicationTable, context: SchedulerContext
) -> tuple[Reason, Resource, Resource] | None:
    """Why the proposal cannot be booked. A reservation to be filled passed the limits when it was made."""
    if not proposal.node.is_running:
        return Reason.COMMIT_NODE_STATE, proposal.resource, proposal.node.unallocated
    if proposal.to_kill and not _frees_enough(proposal, applications, context):
        return Reason.COMMIT_NO_ROOM, proposal.resource, proposal.node.unallocated
    if proposal.reserved is not None:
        return None
    application, partition = proposal.application, proposal.node.partition
    leaf, calculator = LeafQueue.of(application), context.calculator
    released = _released(proposal)
    limit = note_user_limit(leaf, application, partition, proposal.mode, None)
    user = leaf.users.users.get(application.user)
    if user is None:
        return Reason.COMMIT_USER_LIMIT, proposal.resource, context.none
    used = user.usage.used(partition)
    if released is not None:
        used = used - released
    if calculator.greater(context.cluster_resource, used, limit):
        return Reason.COMMIT_USER_LIMIT, used, limit
    added = proposal.resource if released is None else proposal.resource - released
    queue: CSQueue | None = application.leaf
    while queue is not None:
        maximum = (
            queue.effective_maximum(partition) if proposal.mode is RESPECT else context.partition_resource(partition)
        )
        after = queue.usage.used(partition) + added
        if not calculator.fits_in(after, maximum):
            return Reason.COMMIT_QUEUE_MAXIMUM, after, maximum
        queue = queue.parent
    return None


def _frees_enough(proposal: Proposal, applications: ApplicationTable, context: SchedulerContext) -> bool:
    """False if one of the containers to kill has already ended (the node frees its resources when its NM reports that),
    or if an application was removed and the rest is not enough."""
    free = proposal.node.unallocated
    proposal.to_kill = [
        container for container in proposal.to_kill if applications.attempt_of(container.id.application_id) is not None
    ]
    for container in proposal.to_kill:
        if container.state in FINAL:
            return False
        free = free + container.resource
    return context.calculator.fits_in(proposal.resource, free)


def _released(proposal: Proposal) -> Resource | None:
    """The resources released for it, in any queue, as Hadoop counts them; None if there are none."""
    if not proposal.going:
        return None
    first, *others = (container.resource for container in proposal.going)
    return sum(others, start=first)
