"""How much each application of a leaf should lose to others of it: Hadoop's FifoIntraQueuePreemptionPlugin.

What the leaf uses is dealt out anew among its applications, the one that comes first in the leaf's order first, to
each what it has and asks for, as far as its user's limit goes. Who is left with less than he has may lose the
difference; who should have more claims it, the first one first, of those who come last.
"""

from __future__ import annotations

from functools import cmp_to_key

from rm.scheduler.capacity.limits import limit_of
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.application_order import FairOrderingPolicy
from rm.scheduler.model.context import RESPECT
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.resource_calculator import multiplied, subtracted_non_negative
from rm.scheduler.preemption.preemption_round import PreemptionRound
from rm.scheduler.preemption.temp_app import TempApp, TempUser
from rm.scheduler.preemption.temp_queue import TempQueue
from yarn.resource import Resource


class IntraQueueDemand:
    """One leaf on one partition."""

    __slots__ = ("_calculator", "_cluster", "_context", "_intra", "_leaf", "_none", "_partition", "_queue", "_round")

    def __init__(self, the_round: PreemptionRound, queue: TempQueue, leaf: LeafQueue) -> None:
        self._round = the_round
        self._queue = queue
        self._leaf = leaf
        self._partition = queue.partition
        self._context = the_round.context
        self._calculator = the_round.calculator
        self._cluster = the_round.cluster
        self._none = the_round.none
        self._intra = the_round.settings.intra_queue

    def compute(self) -> None:
        """Set the queue's `apps` (those that come last first) with what they are to lose, and its `users`."""
        masters = self._masters_by_user()
        to_deal = self._queue.used - self._queue.to_obtain - sum(masters.values(), start=self._none)
        applications = [*self._leaf.pending, *self._leaf.active]
        if len(applications) == 1:
            return
        apps = self._in_order(self._temp_apps(applications, masters))
        self._deal_out(apps, to_deal)
        last_first = apps[::-1]
        self._bound_losses(last_first)
        self._queue.apps = last_first
        self._match(last_first)

    # The copies

    def _masters_by_user(self) -> dict[str, Resource]:
        """What masters of active applications use: nobody takes that."""
        found: dict[str, Resource] = {}
        for application in self._leaf.active:
            used = application.am_resource if application.am_partition == self._partition else self._none
            found[application.user] = found.get(application.user, self._none) + used
        return found

    def _temp_apps(self, applications: list[FiCaSchedulerApp], masters: dict[str, Resource]) -> list[TempApp]:
        users = self._queue.users
        for application in applications:
            name = application.user
            if name not in users:
                user = self._leaf.users.get_or_add(name)
                limit = limit_of(self._leaf.users, name, self._partition, RESPECT, active_only=False)
                used = user.usage.used(self._partition)
                users[name] = TempUser(used, masters.get(name, self._none), limit, self._none)
        return [TempApp(found, self._partition, users[found.user], self._none) for found in applications]

    def _in_order(self, apps: list[TempApp]) -> list[TempApp]:
        """Higher priority first, then the older; in a fair leaf with users first, whose user has less."""
        if isinstance(self._leaf.active, FairOrderingPolicy) and self._intra.users_first:
            return sorted(apps, key=cmp_to_key(self._compare_fairly))
        return sorted(apps, key=_by_priority)

    def _compare_fairly(self, a: TempApp, b: TempApp) -> int:
        """TAFairOrderingComparator."""
        if a.application.user == b.application.user:
            order = self._leaf.active
            key_a, key_b = order.key_of(a.application), order.key_of(b.application)
            return (key_a > key_b) - (key_a < key_b)
        used_a, used_b = a.user.used_without_masters, b.user.used_without_masters
        if used_a == used_b:
            id_a, id_b = a.application.attempt_id.application_id, b.application.attempt_id.application_id
            return (id_a > id_b) - (id_a < id_b)
        return -1 if self._calculator.less(self._cluster, used_a, used_b) else 1

    # What each should have

    def _deal_out(self, apps: list[TempApp], to_deal: Resource) -> None:
        """calculateIdealAssignedResourcePerApp."""
        calculator, cluster = self._calculator, self._cluster
        for app in apps:
            is_short = calculator.is_any_zero_or_negative(to_deal) and self._intra.conservative
            if is_short or calculator.less_or_equal(cluster, to_deal, self._none):
                continue
            self._note_selected(app)
            user, due = app.user, app.used_without_master + app.pending - app.selected
            if not calculator.less(cluster, user.ideal, user.limit):
                continue
            due = calculator.min_of(cluster, due, user.limit - user.ideal)
            app.ideal = calculator.min_of(cluster, to_deal, due)
            user.ideal = user.ideal + app.ideal
            kept = app.used_without_master - app.selected
            if calculator.greater(cluster, app.ideal, kept):
                app.wanted_of_others = app.ideal - kept
            to_deal = subtracted_non_negative(to_deal, app.ideal)

    def _note_selected(self, app: TempApp) -> None:
        for victim in self._round.victims.of_attempt(app.application.attempt_id):
            if victim.container.partition == self._partition:
                app.selected = app.selected + victim.container.resource
                app.user.selected = app.user.selected + victim.container.resource

    def _bound_losses(self, last_first: list[TempApp]) -> None:
        """What each could lose, as far as the leaf may lose in one round (calculateToBePreemptedResourcePerApp)."""
        calculator, cluster, queue = self._calculator, self._cluster, self._queue
        most = multiplied(queue.guaranteed, self._intra.max_allowable_limit)
        if calculator.greater(cluster, most, queue.to_obtain):
            most = most - queue.to_obtain
        else:
            most = self._none
        left = calculator.min_of(cluster, most, self._round.allowed)
        for app in last_first:
            nothing_left = calculator.less_or_equal(cluster, left, self._none)
            if nothing_left or calculator.less_or_equal(cluster, app.used, self._none):
                continue
            spare = subtracted_non_negative(app.used - app.ideal, app.selected)
            spare = subtracted_non_negative(spare, app.am_used)
            if self._intra.users_first:
                spare = subtracted_non_negative(spare, self._context.minimum_allocation)
            app.to_be_preempted = calculator.min_of(cluster, calculator.max_of(cluster, spare, self._none), left)
            left = subtracted_non_negative(left, app.to_be_preempted)

    # Who loses to whom

    def _match(self, last_first: list[TempApp]) -> None:
        """Each that claims something gets it of those who come last (validateOutSameAppPriorityFromDemand)."""
        is_some = self._calculator.is_some
        for claimant in reversed(last_first):
            if not is_some(self._cluster, claimant.wanted_of_others):
                continue
            for victim in last_first:
                if is_some(self._cluster, victim.to_be_preempted) and self._may_take(claimant, victim):
                    self._take(claimant, victim)

    def _may_take(self, claimant: TempApp, victim: TempApp) -> bool:
        same_user = claimant.application.user == victim.application.user
        if same_user and victim.application.priority >= claimant.application.priority:
            return False
        exhausted = self._calculator.less_or_equal(self._cluster, victim.to_be_preempted, victim.to_obtain)
        if exhausted or claimant.wanted_of_others.is_none():
            return False
        # With users first nobody who is within his limit loses to another user, whatever the priorities.
        return same_user or self._is_above_limit(victim.user) or not self._intra.users_first

    def _take(self, claimant: TempApp, victim: TempApp) -> None:
        calculator, cluster, user = self._calculator, self._cluster, victim.user
        spare = victim.to_be_preempted - victim.to_obtain
        same_user = claimant.application.user == victim.application.user
        same_priority = claimant.application.priority == victim.application.priority
        if not same_user and same_priority and self._is_above_limit(user):
            above = user.used_without_masters - user.selected - user.limit
            if user.has_paid:
                above = self._none
            if calculator.less(cluster, above, spare):
                user.has_paid = True
                spare = above
        if calculator.is_some(cluster, spare):
            taken = calculator.min_of(cluster, claimant.wanted_of_others, spare)
            claimant.wanted_of_others = claimant.wanted_of_others - taken
            victim.to_obtain = victim.to_obtain + taken

    def _is_above_limit(self, user: TempUser) -> bool:
        return self._calculator.greater(self._cluster, user.used_without_masters, user.limit)


def _by_priority(app: TempApp) -> tuple[int, int, int]:
    """TAPriorityComparator."""
    application_id = app.application.attempt_id.application_id
    return -app.application.priority, application_id.cluster_timestamp, application_id.id
