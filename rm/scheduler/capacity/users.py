"""The users of one leaf queue: who is active, what they use, and how much one of them may use (UsersManager).

A user's limit is the larger of a fair share (what active users hold plus one container, divided among them) and
minimum-user-limit-percent of the queue's current capacity, held under user-limit-factor times the guarantee. So it
creeps up as usage grows. It is computed when somebody asks and the version has moved since, and kept until then:
what is kept is state, for it can be older than the numbers it was made from.

There are two notions of active. `_applications` {user: applications with asks} counts them. `_active` are the names
that weigh and whose usage is summed as active. They part when an entry is dropped and made anew.
"""

from __future__ import annotations

from rm.scheduler.context import RESPECT, SchedulerContext, SchedulingMode
from rm.scheduler.model.resource_calculator import multiplied
from rm.scheduler.model.usage import QueueCapacities, ResourceUsage
from rm.scheduler.view.reasons import Refusals
from yarn.ids import ApplicationId
from yarn.java.binary32 import f32
from yarn.java.hash_order import hash_order, string_hash
from yarn.resource import Resource


class User:
    """A user's entry in a leaf. It is dropped with the user's last attempt, and forgets what was used.

    `limit` is stored whenever the user's limit is looked up; it is what reports show. `refusals`: the nodes that none
    of the user's applications got because the user was above the limit.
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
    """What of its queue the users' limits depend on; the leaf keeps it up to date.

    `user_limit` is a percentage, `user_limit_factor` -1 = one user may use all; `weights` {user: weight}.
    """

    __slots__ = ("capacities", "user_limit", "user_limit_factor", "weights")

    def __init__(self, capacities: QueueCapacities) -> None:
        self.capacities = capacities
        self.user_limit = 100.0
        self.user_limit_factor = 1.0
        self.weights: dict[str, float] = {}


class UsersManager:
    """All users of a leaf. `version` moves with everything that can change a limit."""

    __slots__ = (
        "_active",
        "_active_peak",
        "_active_weights",
        "_all_weights",
        "_applications",
        "_context",
        "_idle",
        "_limits",
        "_ratios",
        "_shape",
        "_used_by_active",
        "_used_by_idle",
        "_users_peak",
        "_waiting_changed",
        "only_pending_count",
        "users",
        "version",
    )

    def __init__(self, context: SchedulerContext, shape: QueueShape) -> None:
        self._context = context
        self._shape = shape
        self.users: dict[str, User] = {}
        self.version = 0
        self.only_pending_count = 0
        self._waiting_changed = False
        self._applications: dict[str, dict[ApplicationId, None]] = {}
        self._users_peak = 0
        self._active: dict[str, None] = {}
        self._active_peak = 0
        self._idle: dict[str, None] = {}
        self._active_weights = 0.0
        self._all_weights = 0.0
        self._used_by_active = ResourceUsage(context.none)
        self._used_by_idle = ResourceUsage(context.none)
        self._ratios: dict[str, float] = {}
        self._limits: dict[tuple[str, bool, bool], tuple[int, Resource]] = {}

    # Entries

    def get_or_add(self, name: str) -> User:
        """The user's entry, made if absent; a new user is idle."""
        user = self.users.get(name)
        if user is None:
            user = self.users[name] = User(name, self._shape.weights.get(name, 1.0), self._context.none)
            self._users_peak = max(self._users_peak, len(self.users))
            self._all_weights = self._all_weights_now()
            self._idle[name] = None
        return user

    def submitted(self, user: User) -> None:
        """An attempt waits for activation."""
        user.pending_applications += 1
        self._waiting_changed = True

    def activated(self, user: User) -> None:
        """An attempt that waited is active."""
        user.pending_applications -= 1
        user.active_applications += 1
        self._waiting_changed = True

    def finished(self, user: User, *, was_active: bool) -> None:
        """An attempt is over; with the last one the entry goes."""
        if was_active:
            user.active_applications -= 1
        else:
            user.pending_applications -= 1
        self._waiting_changed = True
        if user.application_count == 0:
            self.remove(user.name)

    def remove(self, name: str) -> None:
        """Drop the entry; the asks of its applications still count it as active."""
        self.users.pop(name, None)
        self._active.pop(name, None)
        self._idle.pop(name, None)
        self._active_weights = self._active_weights_now()
        self._all_weights = self._all_weights_now()

    def is_active(self, name: str) -> bool:
        """True if the user counts in the fair share."""
        return name in self._active

    @property
    def active_count(self) -> int:
        """getNumActiveUsers: users with asks, and (as last counted) those who only wait for activation."""
        return len(self._applications) + self.only_pending_count

    def refresh_weights(self) -> None:
        """Weights were configured anew."""
        for user in self.users.values():
            user.weight = self._shape.weights.get(user.name, 1.0)
        self._active_weights = self._active_weights_now()
        self._all_weights = self._all_weights_now()
        self.version += 1

    # Active users

    def activate_application(self, name: str, application_id: ApplicationId) -> None:
        """An application has asks; ignored while all of the user's applications still wait for activation."""
        user = self.users.get(name)
        if user is not None and user.active_applications <= 0:
            return
        applications = self._applications.get(name)
        if applications is None:
            applications = self._applications[name] = {}
            self.version += 1
            user = self.get_or_add(name)
            if name in self._idle:
                del self._idle[name]
                self._active[name] = None
                self._active_peak = max(self._active_peak, len(self._active))
                self._active_weights = self._active_weights_now()
                _move_used(user, self._used_by_idle, self._used_by_active)
        applications[application_id] = None

    def deactivate_application(self, name: str, application_id: ApplicationId) -> None:
        """An application has no asks left."""
        applications = self._applications.get(name)
        if applications is None:
            return
        applications.pop(application_id, None)
        if applications:
            return
        del self._applications[name]
        self.version += 1
        user = self.users.get(name)
        if user is not None and name in self._active:
            del self._active[name]
            self._idle[name] = None
            self._active_weights = self._active_weights_now()
            _move_used(user, self._used_by_active, self._used_by_idle)

    # Usage

    def change_used(self, name: str, partition: str, amount: Resource) -> User:
        """Book a container (or, negative, its end) on the user; the entry is made if it is absent."""
        user = self.get_or_add(name)
        part = user.usage.booked(partition)
        part.used = part.used + amount
        total = (self._used_by_active if name in self._active else self._used_by_idle).booked(partition)
        total.used = total.used + amount
        self.version += 1
        whole = self._context.partition_resource(partition)
        ratio = self._context.calculator.ratio(part.used, whole)
        delta = f32(ratio - user.ratios.get(partition, 0.0))
        user.ratios[partition] = ratio
        self._ratios[partition] = f32(self._ratios.get(partition, 0.0) + delta)
        return user

    def rebuild_ratio(self, partition: str) -> None:
        """The cluster has changed: take each user's share of it anew."""
        whole = self._context.partition_resource(partition)
        consumed = 0.0
        for name in self._users_in_hash_order():
            user = self.users[name]
            ratio = self._context.calculator.ratio(user.usage.used(partition), whole)
            user.ratios[partition] = ratio
            consumed = f32(consumed + ratio)
        self._ratios[partition] = consumed

    # Limits

    def limit_of(self, name: str, partition: str, mode: SchedulingMode, *, active_only: bool = True) -> Resource:
        """What the user may use; stored in the entry, if there is one (for active users: the variant that decides)."""
        key = (partition, mode is RESPECT, active_only)
        kept = self._limits.get(key)
        if kept is None or kept[0] != self.version:
            kept = (self.version, self._compute_limit(partition, mode, active_only=active_only))
            self._limits[key] = kept
            if self._waiting_changed:
                self._count_waiting()
        user, limit = self.users.get(name), kept[1]
        if user is not None and user.weight != 1:
            # For weight 1 this changes nothing: the limit is in whole containers already.
            smallest = self._context.minimum_allocation
            limit = self._context.calculator.multiply_and_normalize_down(limit, user.weight, smallest)
        if user is not None and active_only and user.limit != limit:
            user.limit = limit
            self._context.revision += 1
        return limit

    def _count_waiting(self) -> None:
        """Users who only wait for activation: counted when a limit is computed, so it can be out of date."""
        self._waiting_changed = False
        self.only_pending_count = sum(
            user.pending_applications > 0 and user.active_applications <= 0 for user in self.users.values()
        )

    def _compute_limit(self, partition: str, mode: SchedulingMode, *, active_only: bool) -> Resource:
        """computeUserLimit, for weight 1."""
        context, shape = self._context, self._shape
        calculator, required = context.calculator, context.minimum_allocation
        whole = context.partition_resource(partition)
        own = shape.capacities.at(partition)
        guaranteed = own.effective_minimum
        capacity = calculator.max_of(whole, guaranteed, required)
        consumed = calculator.multiply_and_normalize_up(whole, self._ratios.get(partition, 0.0), required)
        current = capacity if calculator.less(whole, consumed, capacity) else consumed + required
        if active_only:
            base, weights = self._used_by_active.used(partition) + required, self._active_weights
        else:
            base, weights = current, self._all_weights
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

    def _all_weights_now(self) -> float:
        if not self._shape.weights:
            return float(len(self.users))
        return self._weights_of(self._users_in_hash_order())

    def _active_weights_now(self) -> float:
        if not self._shape.weights:
            return float(len(self._active))
        return self._weights_of(hash_order(self._active, string_hash, peak=self._active_peak))

    def _weights_of(self, names: list[str]) -> float:
        """The sum of their weights, added up in 32 bits in the order given."""
        total = 0.0
        for name in names:
            total = f32(total + self.users[name].weight)
        return total

    def _users_in_hash_order(self) -> list[str]:
        return hash_order(self.users, string_hash, peak=self._users_peak, concurrent=True)


def _move_used(user: User, source: ResourceUsage, target: ResourceUsage) -> None:
    for partition in list(user.usage.partitions()):
        used = user.usage.used(partition)
        away, into = source.booked(partition), target.booked(partition)
        away.used = away.used - used
        into.used = into.used + used
