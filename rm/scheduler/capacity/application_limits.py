"""How many applications a leaf takes, of everybody and of each user (LeafQueue.updateMaximumApplications)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yarn.errors import AccessControlException
from yarn.ids import ApplicationId
from yarn.java.binary32 import f32, truncated

if TYPE_CHECKING:
    from rm.scheduler.model.leaf_queue import LeafQueue


def check_room(leaf: LeafQueue, application_id: ApplicationId, user: str) -> None:
    """Raises AccessControlException if the leaf, or the user in it, has as many as may be."""
    if leaf.application_total() >= leaf.maximum_applications:
        raise AccessControlException(
            f"Queue {leaf.path} already has {leaf.application_total()} applications, "
            f"cannot accept submission of application: {application_id}"
        )
    count = leaf.users.get_or_add(user).application_count
    if count >= leaf.maximum_applications_per_user:
        raise AccessControlException(
            f"Queue {leaf.path} already has {count} applications from user {user} "
            f"cannot accept submission of application: {application_id}"
        )


def maximum_applications(leaf: LeafQueue, *, is_capacity_known: bool) -> int:
    """Configured, or the leaf's share of the system's limit, cut off."""
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
    """One user's part of it."""
    if leaf.shape.user_limit_factor == -1:
        return most
    part = f32(f32(most * f32(leaf.shape.user_limit / 100)) * leaf.shape.user_limit_factor)
    return min(most, truncated(part))
