"""An application and a user of a leaf as one round of preemption inside the leaf sees them, on one partition."""

from __future__ import annotations

from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.resource_calculator import ResourceCalculator
from yarn.resource import Resource


class TempUser:
    """A user (TempUserPerPartition). `limit` is what the user may use besides masters; `ideal` what of it is dealt out.

    `selected`: what earlier selectors chose. `has_paid`: what is above the limit has been claimed.
    """

    __slots__ = ("am_used", "has_paid", "ideal", "limit", "selected", "used")

    def __init__(self, used: Resource, am_used: Resource, user_limit: Resource, none: Resource) -> None:
        self.used = used
        self.am_used = am_used
        self.limit = user_limit - am_used
        self.ideal = self.selected = none
        self.has_paid = False

    @property
    def used_without_masters(self) -> Resource:
        return self.used - self.am_used


class TempApp:
    """An application (TempAppPerPartition). `ideal` is what it should have, `wanted_of_others` what it misses of that,
    `to_be_preempted` what it could lose, and `to_obtain` what it is to lose (actuallyToBePreempted)."""

    __slots__ = (
        "am_used",
        "application",
        "ideal",
        "pending",
        "selected",
        "to_be_preempted",
        "to_obtain",
        "used",
        "user",
        "wanted_of_others",
    )

    def __init__(self, application: FiCaSchedulerApp, partition: str, user: TempUser, none: Resource) -> None:
        has_master = not application.is_waiting_for_master and application.am_partition == partition
        self.application = application
        self.user = user
        self.used = application.usage.used(partition)
        self.am_used = application.am_resource if has_master else none
        self.pending = application.requests.pending_on(partition, none)
        self.ideal = self.selected = self.to_be_preempted = self.to_obtain = self.wanted_of_others = none

    @property
    def used_without_master(self) -> Resource:
        return self.used - self.am_used

    def deduct(self, calculator: ResourceCalculator, whole: Resource, amount: Resource) -> None:
        """An earlier selector has taken `amount` of the leaf, of whichever application."""
        if calculator.greater(whole, self.to_obtain, amount):
            self.to_obtain = self.to_obtain - amount
