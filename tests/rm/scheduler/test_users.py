"""Active users and their limits."""

from __future__ import annotations

import pytest

from rm.scheduler.capacity.limits import limit_of
from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from rm.scheduler.model.context import IGNORE, RESPECT, SchedulerContext
from rm.scheduler.model.usage import QueueCapacities
from rm.scheduler.model.users import QueueShape, UsersManager
from tests.rm.scheduler.cluster import GB, ONE_QUEUE, START_MS, configuration
from yarn.ids import ApplicationId, NodeId
from yarn.java.binary32 import f32
from yarn.resource import Resource

NODE = NodeId("n1", 1)
APP = ApplicationId(START_MS, 1)
OTHER = ApplicationId(START_MS, 2)


def users_of(
    capacity_gb: int, *, cluster_gb: int = 100, user_limit: float = 100, factor: float = 1, **weights: float
) -> UsersManager:
    """A queue with this guarantee in a cluster of one partition."""
    settings = CapacitySchedulerConfiguration.read(configuration(ONE_QUEUE))
    context = SchedulerContext(settings, lambda notice: None)
    context.labels.activate(NODE, Resource(cluster_gb * GB, cluster_gb))
    shape = QueueShape(QueueCapacities(context.none))
    shape.user_limit, shape.user_limit_factor, shape.weights = user_limit, factor, weights
    shape.capacities.default.effective_minimum = Resource(capacity_gb * GB, capacity_gb)
    shape.capacities.default.effective_maximum_down = Resource(cluster_gb * GB, 1)
    return UsersManager(context, shape)


def join(users: UsersManager, name: str, used_gb: int, *, requests: bool = True) -> None:
    """A user with one active application and this much in use."""
    user = users.get_or_add(name)
    users.submitted(user)
    users.activated(user)
    if requests:
        users.activate_application(name, APP)
    users.change_used(name, "", Resource(used_gb * GB, used_gb))


def limit_gb(users: UsersManager, name: str) -> float:
    return limit_of(users, name, "", RESPECT).memory_mb / GB


@pytest.mark.parametrize(("used", "expected"), [([2], 5), ([7], 8), ([11], 12), ([12, 10], 12), ([13, 10, 2], 9)])
def test_active_users_share_what_they_hold_and_one_container_more(used: list[int], expected: int) -> None:
    """UsersManager.computeUserLimit: 25 % of 20 GB, or (held + 1) / users if that is more."""
    users = users_of(20, cluster_gb=40, user_limit=25, factor=1.5)
    for number, amount in enumerate(used):
        join(users, f"u{number}", amount)
    assert limit_gb(users, "u0") == expected


def test_the_factor_times_the_guarantee_bounds_the_limit() -> None:
    users = users_of(20, factor=0.5)
    join(users, "ann", 15)
    assert limit_gb(users, "ann") == 10


def test_the_queues_maximum_bounds_the_limit_without_a_factor() -> None:
    users = users_of(20, factor=-1)
    join(users, "ann", 60)
    assert limit_gb(users, "ann") == 61


def test_the_maximum_bounds_the_limit_in_a_queue_without_guarantee() -> None:
    """computeUserLimit: the maximum is the bound if the guarantee is zero; the capacity counts as one container."""
    users = users_of(0)
    join(users, "ann", 5)
    assert limit_gb(users, "ann") == 6


def test_the_partition_bounds_the_limit_if_it_is_shared() -> None:
    users = users_of(20, factor=0.5)
    join(users, "ann", 60)
    assert limit_of(users, "ann", "", IGNORE).memory_mb == 61 * GB


def test_idle_users_do_not_count() -> None:
    """Their usage is left out of the share, and they are left out of the divisor."""
    users = users_of(100, user_limit=1, factor=10)
    join(users, "idle", 50, requests=False)
    join(users, "ann", 9)
    assert limit_gb(users, "ann") == 10


def test_the_limit_for_all_users_shares_the_current_capacity() -> None:
    users = users_of(100, user_limit=1, factor=10)
    join(users, "idle", 50, requests=False)
    join(users, "ann", 9)
    assert limit_of(users, "ann", "", RESPECT, active_only=False).memory_mb == 50 * GB
    assert users.users["ann"].limit.is_none(), "only the limit in use is cached"


def test_weights_divide_and_multiply_the_limit() -> None:
    """computeUserLimit: the share is per weight; a user's limit is the share times its weight, rounded down."""
    users = users_of(100, user_limit=1, factor=10, heavy=2.0)
    join(users, "heavy", 20)
    join(users, "light", 9)
    assert limit_gb(users, "light") == 10
    assert limit_gb(users, "heavy") == 20


def test_a_limit_is_cached_until_the_version_changes() -> None:
    users = users_of(100, user_limit=1, factor=10)
    join(users, "ann", 9)
    assert limit_gb(users, "ann") == 10
    version = users.version
    user = users.get_or_add("bob")
    assert users.version == version, "a new entry alone does not change the version"
    users.submitted(user)
    assert limit_gb(users, "ann") == 10
    users.change_used("ann", "", Resource(5 * GB, 5))
    assert limit_gb(users, "ann") == 15


def test_users_with_only_pending_applications_are_counted_when_a_limit_is_computed() -> None:
    """The number behind the AM limit can be out of date."""
    users = users_of(100)
    join(users, "ann", 1)
    limit_gb(users, "ann")
    users.submitted(users.get_or_add("bob"))
    assert users.active_count == 1
    users.version += 1
    limit_gb(users, "ann")
    assert users.active_count == 2


def test_a_user_with_only_pending_applications_does_not_become_active() -> None:
    users = users_of(100)
    users.submitted(users.get_or_add("ann"))
    users.activate_application("ann", APP)
    assert not users.is_active("ann")
    assert users.active_count == 0


def test_a_user_is_active_until_its_last_application_requests_nothing() -> None:
    users = users_of(100)
    join(users, "ann", 3)
    users.activate_application("ann", OTHER)
    users.deactivate_application("ann", APP)
    assert users.is_active("ann")
    users.deactivate_application("ann", OTHER)
    assert not users.is_active("ann")
    users.deactivate_application("ann", OTHER)
    assert users.active_count == 0


def test_a_dropped_entry_separates_the_two_notions_of_active() -> None:
    """UsersManager: counted by its applications' requests, but idle, without weight and with its usage as idle."""
    users = users_of(100, user_limit=1, factor=10)
    join(users, "ann", 9)
    users.finished(users.users["ann"], was_active=True)
    assert "ann" not in users.users
    user = users.get_or_add("ann")
    users.submitted(user)
    users.activated(user)
    users.activate_application("ann", APP)
    assert users.active_count == 1
    assert not users.is_active("ann")
    users.deactivate_application("ann", APP)
    users.activate_application("ann", APP)
    assert users.is_active("ann")


def test_usage_of_an_unknown_user_creates_the_entry() -> None:
    users = users_of(100)
    users.change_used("ann", "", Resource(-GB, -1))
    assert users.users["ann"].usage.used("").memory_mb == -GB


def test_the_usage_ratio_is_recomputed_when_the_cluster_changes() -> None:
    """The consumed ratio is a sum of 32-bit shares."""
    users = users_of(10, cluster_gb=100, factor=100)
    join(users, "ann", 5)
    join(users, "bob", 6)
    assert limit_gb(users, "ann") == 12, "consumed 11 of 10 GB and one more"
    users.context.labels.activate(NODE, Resource(200 * GB, 200))
    users.rebuild_ratio("")
    users.version += 1
    assert limit_gb(users, "ann") == 12


MANY = {
    name: number + 0.1
    for number, name in enumerate(
        ("ann", "bob", "cat", "dan", "eve", "fay", "gus", "hal", "ian", "joe", "kim", "lea"),
    )
}
"""Weights whose 32-bit sum depends on the order."""


@pytest.mark.parametrize(("visitor", "of_active"), [(None, 67.19999694824219), ("zoe", 67.19998931884766)])
def test_weights_are_summed_in_the_order_of_maps_that_never_shrink(visitor: str | None, of_active: float) -> None:
    """UsersManager.users is a ConcurrentHashMap, which has 32 buckets from 12 users on; activeUsersSet a HashSet."""
    users = users_of(1 << 30, cluster_gb=1 << 31, user_limit=0, **MANY)
    for name in MANY:
        join(users, name, 1 << 25)
    if visitor is not None:
        join(users, visitor, 0)
        users.deactivate_application(visitor, APP)
        users.remove(visitor)

    def sum_of_weights(base_gb: int, *, active_only: bool) -> float:
        return f32(base_gb * GB / limit_of(users, "nobody", "", RESPECT, active_only=active_only).memory_mb)

    assert sum_of_weights(1 << 30, active_only=False) == 67.19998931884766
    assert sum_of_weights(len(MANY) * (1 << 25) + 1, active_only=True) == of_active
