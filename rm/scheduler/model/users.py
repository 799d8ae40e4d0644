"""The users of one leaf queue: who is active, what they use, and their stored limits (UsersManager).

"Active" has two meanings here, as in Hadoop. `_applications` {user: applications with requests} gives the number of
active users; `_active` are the users whose weights and usage are summed up as active. The two differ after a user's
entry was dropped and created again.

Limits are computed in rm.scheduler.capacity.limits and stored here, as in Hadoop: a stored limit can be older than the
numbers it was computed from.
"""

from __future__ import annotations

from rm.scheduler.model.context import RESPECT, SchedulerContext, SchedulingMode
from rm.scheduler.model.last_refusals import Refusals
from rm.scheduler.model.usage import QueueCapacities, ResourceUsage
from yarn.ids import ApplicationId
from yarn.java.binary32 import f32
from yarn.java.hash_order import hash_order, string_hash
from yarn.resource import Resource


class User:
    """A user's entry in a leaf. It is dropped, with its usage, when the user's last attempt ends.

    `limit` is stored whenever the user's limit is looked up, for reports. `refusals`: nodes on which all applications
    of the user were refused because the user was above the limit.
    """

    __slots__ = (
        "active_applications",
        "limit",
        "name",
        "pending_applications",
        "ratios",
        "refusals",
        "usage",
        "weight",
    )

    def __init__(self, name: str, weight: float, none: Resource) -> None:
        self.name = name
        self.weight = weight
        self.usage = ResourceUsage(none)
        self.limit = none
        self.pending_applications = 0
        self.active_applications = 0
        self.ratios: dict[str, float] = {}
        self.refusals = Refusals()

    @property
    def application_count(self) -> int:
        return self.pending_applications + self.active_applications


class QueueShape:
    """The settings of the leaf on which user limits depend; updated with the leaf's configuration.

    `user_limit` is a percentage, `user_limit_factor` -1 = one user may use all; `weights` {user: weight}.
    """

    __slots__ = ("capacities", "user_limit", "user_limit_factor", "weights")

    def __init__(self, capacities: QueueCapacities) -> None:
        self.capacities = capacities
        self.user_limit = 100.0
        self.user_limit_factor = 1.0
        self.weights: dict[str, float] = {}


class UsersManager:
    """All users of a leaf. `version` counts the changes that may affect a limit.

    `watch`, if set: the users add themselves when the next lookup of a limit may store something.
    `limits` {(partition, respects exclusivity, active users only): (version, limit for weight 1)}. `consumed_ratios`
    {partition: sum of the users' shares of it, in 32 bits}. `active_weights`, `all_weights`: sums of weights;
    `used_by_active`: usage of active users. `dropped`: what entries had in use when they were dropped; that has been
    missing from the users' sum since then, and only the invariants read it.
    """

    __slots__ = (
        "_active",
        "_active_peak",
        "_applications",
        "_idle",
        "_used_by_idle",
        "_users_peak",
        "_waiting_changed",
        "active_weights",
        "all_weights",
        "consumed_ratios",
        "context",
        "dropped",
        "limits",
        "only_pending_count",
        "shape",
        "used_by_active",
        "users",
        "version",
        "watch",
    )

    def __init__(self, context: SchedulerContext, shape: QueueShape) -> None:
        self.context = context
        self.shape = shape
        self.users: dict[str, User] = {}
        self.version = 0
        self.watch: dict[UsersManager, None] | None = None
        self.only_pending_count = 0
        self._waiting_changed = False
        self._applications: dict[str, dict[ApplicationId, None]] = {}
        self._users_peak = 0
        self._active: dict[str, None] = {}
        self._active_peak = 0
        self._idle: dict[str, None] = {}
        self.active_weights = 0.0
        self.all_weights = 0.0
        self.dropped = ResourceUsage(context.none)
        self.used_by_active = ResourceUsage(context.none)
        self._used_by_idle = ResourceUsage(context.none)
        self.consumed_ratios: dict[str, float] = {}
        self.limits: dict[tuple[str, bool, bool], tuple[int, Resource]] = {}

    def note_change(self) -> None:
        """Count a change that may affect a limit."""
        self.version += 1
        self._note_lookups()

    def _note_lookups(self) -> None:
        if self.watch is not None:
            self.watch[self] = None

    def get_or_add(self, name: str) -> User:
        """The user's entry, created if absent; a new user is idle."""
        user = self.users.get(name)
        if user is None:
            user = self.users[name] = User(name, self.shape.weights.get(name, 1.0), self.context.none)
            self._users_peak = max(self._users_peak, len(self.users))
            self.all_weights = self._all_weights_now()
            self._idle[name] = None
            self._note_lookups()
        return user

    def submitted(self, user: User) -> None:
        """Count an attempt that waits for activation."""
        user.pending_applications += 1
        self._waiting_changed = True

    def activated(self, user: User) -> None:
        """Count a waiting attempt as activated."""
        user.pending_applications -= 1
        user.active_applications += 1
        self._waiting_changed = True

    def finished(self, user: User, *, was_active: bool) -> None:
        """Subtract an ended attempt; the entry is dropped with the last one."""
        if was_active:
            user.active_applications -= 1
        else:
            user.pending_applications -= 1
        self._waiting_changed = True
        if user.application_count == 0:
            self.remove(user.name)

    def remove(self, name: str) -> None:
        """Drop the entry. The user still counts in `active_count` while applications of the user have requests."""
        user = self.users.pop(name, None)
        if user is not None:
            for partition in user.usage.partitions():
                part = self.dropped.booked(partition)
                part.used = part.used + user.usage.used(partition)
        self._active.pop(name, None)
        self._idle.pop(name, None)
        self.active_weights = self._active_weights_now()
        self.all_weights = self._all_weights_now()

    def is_active(self, name: str) -> bool:
        """True if the user's weight and usage are counted as active."""
        return name in self._active

    @property
    def active_count(self) -> int:
        """The number of active users: those with requests, plus (as last counted) those with only waiting
        applications.
        """
        return len(self._applications) + self.only_pending_count

    def refresh_weights(self) -> None:
        """Apply newly configured weights."""
        for user in self.users.values():
            user.weight = self.shape.weights.get(user.name, 1.0)
        self.active_weights = self._active_weights_now()
        self.all_weights = self._all_weights_now()
        self.note_change()

    def activate_application(self, name: str, application_id: ApplicationId) -> None:
        """Note that an application has requests; ignored while all of the user's applications wait for activation."""
        user = self.users.get(name)
        if user is not None and user.active_applications <= 0:
            return
        applications = self._applications.get(name)
        if applications is None:
            applications = self._applications[name] = {}
            self.note_change()
            user = self.get_or_add(name)
            if name in self._idle:
                del self._idle[name]
                self._active[name] = None
                self._active_peak = max(self._active_peak, len(self._active))
                self.active_weights = self._active_weights_now()
                _move_used(user, self._used_by_idle, self.used_by_active)
        applications[application_id] = None

    def deactivate_application(self, name: str, application_id: ApplicationId) -> None:
        """Note that an application has no requests left."""
        applications = self._applications.get(name)
        if applications is None:
            return
        applications.pop(application_id, None)
        if applications:
            return
        del self._applications[name]
        self.note_change()
        user = self.users.get(name)
        if user is not None and name in self._active:
            del self._active[name]
            self._idle[name] = None
            self.active_weights = self._active_weights_now()
            _move_used(user, self.used_by_active, self._used_by_idle)

    def change_used(self, name: str, partition: str, amount: Resource) -> User:
        """Change the user's usage; creates the entry if absent."""
        user = self.get_or_add(name)
        part = user.usage.booked(partition)
        part.used = part.used + amount
        total = (self.used_by_active if name in self._active else self._used_by_idle).booked(partition)
        total.used = total.used + amount
        self.note_change()
        whole = self.context.partition_resource(partition)
        ratio = self.context.calculator.ratio(part.used, whole)
        delta = f32(ratio - user.ratios.get(partition, 0.0))
        user.ratios[partition] = ratio
        self.consumed_ratios[partition] = f32(self.consumed_ratios.get(partition, 0.0) + delta)
        return user

    def rebuild_ratio(self, partition: str) -> None:
        """Recompute each user's share of the partition, after a change of the cluster."""
        whole = self.context.partition_resource(partition)
        consumed = 0.0
        for name in self.in_hash_order():
            user = self.users[name]
            ratio = self.context.calculator.ratio(user.usage.used(partition), whole)
            user.ratios[partition] = ratio
            consumed = f32(consumed + ratio)
        self.consumed_ratios[partition] = consumed

    def store_limit(self, user: User, limit: Resource) -> None:
        """Set the limit in the user's entry."""
        user.limit = limit
        self.context.note_change()
        self.context.stored_limit_count += 1
        self._note_lookups()

    def count_waiting(self) -> None:
        """Recount users with only waiting applications; called when a limit is computed, so it may be stale before."""
        if self._waiting_changed:
            self._waiting_changed = False
            self.only_pending_count = sum(
                user.pending_applications > 0 and user.active_applications <= 0 for user in self.users.values()
            )

    def _all_weights_now(self) -> float:
        if not self.shape.weights:
            return float(len(self.users))
        return self._weights_of(self.in_hash_order())

    def _active_weights_now(self) -> float:
        if not self.shape.weights:
            return float(len(self._active))
        return self._weights_of(hash_order(self._active, string_hash, peak=self._active_peak))

    def _weights_of(self, names: list[str]) -> float:
        """The sum of the users' weights, added up in 32 bits in the given order."""
        total = 0.0
        for name in names:
            total = f32(total + self.users[name].weight)
        return total

    def in_hash_order(self) -> list[str]:
        """The names of the users, in the order of Java's map."""
        return hash_order(self.users, string_hash, peak=self._users_peak, concurrent=True)


def _move_used(user: User, source: ResourceUsage, target: ResourceUsage) -> None:
    for partition in list(user.usage.partitions()):
        used = user.usage.used(partition)
        away, into = source.booked(partition), target.booked(partition)
        away.used = away.used - used
        into.used = into.used + used


class CachedUserLimit:
    """A user's limit as looked up, and the reserved amount with which one of its applications failed the check.

    Hadoop's userLimitsCache: if a user is at its limit, a visit checks only the first of the user's applications.
    """

    __slots__ = ("_can_assign", "_reservation", "limit")

    def __init__(self, limit: Resource, none: Resource) -> None:
        self.limit = limit
        self._can_assign = True
        self._reservation = none

    def has_failed_with(self, reserved: Resource) -> bool:
        """True if an application with at least as much reserved has failed the check."""
        return not self._can_assign and (reserved is self._reservation or reserved.fits_in(self._reservation))

    def note_failure(self, reserved: Resource) -> None:
        """Record that an application with this much reserved failed the check."""
        if self._reservation.fits_in(reserved):
            self._can_assign = False
            self._reservation = reserved


class UserLimitCache:
    """The cached limits {user: limit} for each partition and mode; emptied when the version of the users changes."""

    __slots__ = ("_limits", "_version")

    def __init__(self) -> None:
        self._limits: dict[tuple[str, bool], dict[str, CachedUserLimit]] = {}
        self._version = -1

    def at(self, version: int, partition: str, mode: SchedulingMode) -> dict[str, CachedUserLimit]:
        """The limits of this version; the caller adds those that it looks up."""
        if self._version != version:
            self._version = version
            self._limits = {}
        return self._limits.setdefault((partition, mode is RESPECT), {})
