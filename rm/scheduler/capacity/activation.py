"""Which applications a leaf accepts, and which of them are activated: the AM limits.

The queue's AM limit is a share of what it may use now; one user's is a share of the guarantee. A limit that is too
small never stops a queue completely: the first application is always activated. A pass continues after an application
that does not fit, so a smaller, later one may start; rm.scheduler.model.pending_applications skips those that would be
refused anyway.
"""

from __future__ import annotations

from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.refusals import Reason, Refusal
from rm.scheduler.model.users import User
from yarn.errors import AccessControlException
from yarn.ids import ApplicationId
from yarn.java.binary32 import f32, truncated
from yarn.nodes import NO_LABEL
from yarn.resource import Resource
from yarn.states import QueueState

HAS_ALREADY = "already has"
"""Words in the refusal of an application because of a limit on the number of applications, and in no other."""


def check_submission(leaf: LeafQueue, application_id: ApplicationId, user: str) -> None:
    """Raises AccessControlException if the queue, the user or a queue above accepts no more applications."""
    check_state(leaf, application_id)
    if leaf.configuration.is_auto_created:
        # Such a leaf has no limit on applications, but its user needs an entry.
        leaf.users.get_or_add(user)
    else:
        _check_application_limits(leaf, application_id, user)
    for parent in leaf.parents():
        check_state(parent, application_id)


def check_state(queue: CSQueue, application_id: ApplicationId) -> None:
    """Raises AccessControlException unless the queue is RUNNING."""
    if queue.state is not QueueState.RUNNING:
        raise AccessControlException(
            f"Queue {queue.path} is STOPPED. Cannot accept submission of application: {application_id}"
        )


def _check_application_limits(leaf: LeafQueue, application_id: ApplicationId, user: str) -> None:
    """Raises AccessControlException if the leaf, or the user in it, already has the maximum of applications."""
    if leaf.application_total() >= leaf.maximum_applications:
        raise AccessControlException(
            f"Queue {leaf.path} {HAS_ALREADY} {leaf.application_total()} applications, "
            f"cannot accept submission of application: {application_id}"
        )
    count = leaf.users.get_or_add(user).application_count
    if count >= leaf.maximum_applications_per_user:
        raise AccessControlException(
            f"Queue {leaf.path} {HAS_ALREADY} {count} applications from user {user} "
            f"cannot accept submission of application: {application_id}"
        )


def maximum_applications(leaf: LeafQueue, *, is_capacity_known: bool) -> int:
    """The configured maximum of applications, or the leaf's share of the system's limit, rounded down
    (updateMaximumApplications).
    """
    settings, most = leaf.context.settings, leaf.configuration.maximum_applications
    if most >= 0:
        return most
    base = settings.maximum_applications
    if settings.global_queue_max_application > 0:
        base = min(settings.global_queue_max_application, base)
    by_queue = settings.global_queue_max_application > 0 and not leaf.is_absolute
    if by_queue or not is_capacity_known:
        return base
    shares = [leaf.capacities.at(partition).absolute_capacity for partition in leaf.configured_partitions]
    return max([most, *(truncated(f32(base * share)) for share in shares)])


def maximum_for_a_user(leaf: LeafQueue, most: int) -> int:
    """The maximum number of applications of one user in the leaf."""
    if leaf.shape.user_limit_factor == -1:
        return most
    part = f32(f32(most * f32(leaf.shape.user_limit / 100)) * leaf.shape.user_limit_factor)
    return min(most, truncated(part))


def submit_attempt(leaf: LeafQueue, application: FiCaSchedulerApp) -> None:
    """Add a new attempt, and activate it if the AM limits and max-parallel-apps allow it."""
    user = leaf.users.get_or_add(application.user)
    leaf.attempts[application.attempt_id] = application
    if not application.is_runnable:
        leaf.held_back[application.attempt_id] = application
        return
    leaf.runnable[application.attempt_id] = application
    leaf.users.submitted(user)
    leaf.pending.add(application)
    if leaf.context.calculator.is_some(leaf.last_cluster_resource, leaf.last_cluster_resource):
        activate_applications(leaf)


def finish_attempt(leaf: LeafQueue, application: FiCaSchedulerApp) -> None:
    """Remove an ended attempt, and activate waiting ones.

    As in Hadoop, an attempt that was held back is subtracted from its user's pending ones, but was never counted there.
    """
    user = leaf.users.get_or_add(application.user)
    if leaf.runnable.pop(application.attempt_id, None) is None:
        leaf.held_back.pop(application.attempt_id, None)
    was_active = leaf.active.remove(application)
    if was_active:
        am_partition = application.am_partition
        change_am_used(leaf, user, am_partition, -application.am_used(am_partition))
    else:
        leaf.pending.remove(application)
    leaf.attempts.pop(application.attempt_id, None)
    leaf.users.finished(user, was_active=was_active)
    activate_applications(leaf)


def compute_am_limit(leaf: LeafQueue, partition: str) -> Resource:
    """Compute and store the queue's AM limit: a share of its current limit, or of the guarantee if that is above it."""
    context = leaf.context
    guaranteed = leaf.effective_minimum(partition)
    current = leaf.copied_limit if partition == NO_LABEL else context.none
    usable = current if context.calculator.fits_in(guaranteed, current) else guaranteed
    percent = leaf.capacities.at(partition).maximum_am_percent
    limit = context.calculator.multiply_and_normalize_up(usable, percent, context.minimum_allocation)
    leaf.usage.booked(partition).am_limit = limit
    return limit


def user_am_limit(leaf: LeafQueue, partition: str, weight: float) -> Resource:
    """A user's AM limit: an active user's part of the guarantee, at least minimum-user-limit-percent of it."""
    context, shape = leaf.context, leaf.shape
    guaranteed = leaf.effective_minimum(partition)
    percent = leaf.capacities.at(partition).maximum_am_percent
    part = max(f32(shape.user_limit / 100), f32(1 / max(leaf.users.active_count, 1)))
    part = min(f32(part * weight), 1.0)
    share = percent if shape.user_limit_factor == -1 else f32(f32(percent * part) * shape.user_limit_factor)
    limit = context.calculator.multiply_and_normalize_up(guaranteed, share, context.minimum_allocation)
    return context.calculator.min_of(leaf.last_cluster_resource, limit, leaf.am_limit(partition))


def activate_applications(leaf: LeafQueue) -> None:
    """Activate every waiting application that the limits allow.

    The user limit is computed once for each pass and partition, with the first user's weight, and applied to all.
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
            leaf.usage.booked(partition).user_am_limit = (
                limit if user.weight == 1 else user_am_limit(leaf, partition, 1.0)
            )
        refusal = _user_refusal(leaf, application, user, limit)
        if refusal is not None:
            leaf.pending.refuse_user(application, refusal)
            continue
        _activate(leaf, application, user)
        user.usage.booked(partition).am_limit = limit


def change_am_used(leaf: LeafQueue, user: User, partition: str, amount: Resource) -> None:
    """Add the resources of an AM to its queue and its user; a negative amount when the AM ends."""
    for part in (leaf.usage.booked(partition), user.usage.booked(partition)):
        part.am_used = part.am_used + amount


def _activate(leaf: LeafQueue, application: FiCaSchedulerApp, user: User) -> None:
    partition = application.am_partition
    leaf.users.activated(user)
    leaf.active.add(application)
    change_am_used(leaf, user, partition, application.am_used(partition))
    leaf.pending.activated(application, leaf.usage.am_used(partition), leaf.am_limit(partition))


def _queue_refusal(leaf: LeafQueue, application: FiCaSchedulerApp) -> Refusal | None:
    partition = application.am_partition
    if_started = application.am_used(partition) + leaf.usage.am_used(partition)
    return _refusal(leaf, partition, Reason.AM_QUEUE_LIMIT, if_started, leaf.am_limit(partition))


def _user_refusal(leaf: LeafQueue, application: FiCaSchedulerApp, user: User, limit: Resource) -> Refusal | None:
    partition = application.am_partition
    if_started = application.am_used(partition) + user.usage.am_used(partition)
    return _refusal(leaf, partition, Reason.AM_USER_LIMIT, if_started, limit)


def _refusal(leaf: LeafQueue, partition: str, reason: Reason, if_started: Resource, limit: Resource) -> Refusal | None:
    """Why the AM limits refuse an application; None if it is within the limits, or no application is active.

    An amount that is refused once stays refused for the rest of the pass (PendingApplications relies on that): the
    limit does not change meanwhile, and usage and the number of active applications only grow.
    """
    calculator = leaf.context.calculator
    if calculator.fits_in(if_started, limit):
        return None
    am_used = leaf.usage.am_used(partition)
    if len(leaf.active) < 1 or calculator.less_or_equal(leaf.last_cluster_resource, am_used, leaf.context.none):
        return None
    return Refusal(reason, leaf.context.now_ms, None, if_started, limit)
