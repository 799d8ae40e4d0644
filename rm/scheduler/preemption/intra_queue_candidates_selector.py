"""Preempts containers of applications for other applications of the same leaf: Hadoop's IntraQueueCandidatesSelector.

Only leaves that want more than they should have are considered: any other leaf can get more without this.
FifoIntraQueuePreemptionPlugin computes how much each application is to lose: what the leaf uses is distributed among
its applications from the beginning, in the leaf's order; each gets what it has and requests, up to its user's limit.
Applications that get less than they have can lose the difference. Those that get more claim it, the first application
first, from the last applications.
"""

from __future__ import annotations

from functools import cmp_to_key

from rm.scheduler.capacity.limits import limit_of
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.application_order import FairOrderingPolicy
from rm.scheduler.model.context import RESPECT
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.preemption.fifo_candidates_selector import last_first
from rm.scheduler.preemption.preemption_round import (
    PreemptionReason,
    PreemptionRound,
    PreemptionRoundFailed,
    Victim,
    Victims,
)
from rm.scheduler.preemption.temp_queue_per_partition import (
    TempAppPerPartition,
    TempQueuePerPartition,
    TempUserPerPartition,
)
from yarn.resource import Resource
from yarn.resource_calculator import multiplied, subtracted_non_negative


def select_in_queues(the_round: PreemptionRound) -> Victims:
    """Choose victims: first compute what the applications of every leaf should have, then choose leaf by leaf."""
    for queue, leaf in _under_served(the_round):
        used_capacity = leaf.capacities.at(queue.partition).used_capacity
        if not used_capacity < the_round.settings.intra_queue.minimum_threshold:
            FifoIntraQueuePreemptionPlugin(the_round, queue, leaf).compute()
    the_round.deduct_victims()
    chosen = Victims()
    for queue, leaf in _under_served(the_round):
        if not leaf.configuration.intra_queue_preemption_disabled:
            _IntraQueueCandidates(the_round, queue, leaf, chosen).select()
    return chosen


def _under_served(the_round: PreemptionRound) -> list[tuple[TempQueuePerPartition, LeafQueue]]:
    found = [
        the_round.queue_at(path, partition)
        for partition in the_round.partitions
        for path in the_round.under_served.get(partition, ())
    ]
    return [(queue, queue.leaf) for queue in found if queue.leaf is not None]


class _IntraQueueCandidates:
    """Chooses victims in one leaf.

    `wanted` {partition: the amount still to preempt}; `usage` {user: usage without the victims}.
    """

    __slots__ = ("_chosen", "_leaf", "_queue", "_round", "_usage", "_wanted")

    def __init__(
        self, the_round: PreemptionRound, queue: TempQueuePerPartition, leaf: LeafQueue, chosen: Victims
    ) -> None:
        self._round = the_round
        self._queue = queue
        self._leaf = leaf
        self._chosen = chosen
        total = sum((app.to_obtain for app in queue.apps), start=the_round.none)
        self._wanted: dict[str, Resource] = {queue.partition: total}
        self._usage = {name: user.usage.used(queue.partition) for name, user in leaf.users.users.items()}

    def select(self) -> None:
        for app in self._queue.apps:
            if not app.to_obtain.is_none():
                self._from_application(app)

    def _from_application(self, app: TempAppPerPartition) -> None:
        the_round, intra = self._round, self._round.settings.intra_queue
        for container in last_first(app.application):
            if not self._wanted:
                return
            if container in the_round.victims or container.id in the_round.killable_ids or container.is_am:
                continue
            if intra.users_first and self._would_fall_to_limit(app, container):
                return
            victim = Victim(container, PreemptionReason.INTRA_QUEUE, self._leaf.path)
            taken = the_round.try_take(victim, self._wanted, self._chosen, conservative=intra.conservative)
            if taken and intra.users_first:
                name = app.application.user
                self._usage[name] = self._usage[name] - container.resource

    def _would_fall_to_limit(self, app: TempAppPerPartition, container: RMContainer) -> bool:
        """True if the user would have no more than the user limit, which here includes AM containers.

        Hadoop looks up the leaf by its short name, and finds none if another queue has the same name.
        """
        the_round, name = self._round, app.application.user
        if self._leaf.remembered_as != self._leaf.path:
            raise PreemptionRoundFailed(
                "java.lang.NullPointerException", f"several queues have the name {self._leaf.name}"
            )
        queue = the_round.queue_at(self._leaf.path, the_round.partition_of(container))
        user = queue.users.get(name)
        if user is None:
            return False
        rest = self._usage[name] - container.resource
        return the_round.calculator.less_or_equal(the_round.cluster, rest, user.limit + user.am_used)


class FifoIntraQueuePreemptionPlugin:
    """The amounts that the applications of a leaf are to lose, on one partition."""

    __slots__ = ("_calculator", "_cluster", "_context", "_intra", "_leaf", "_none", "_partition", "_queue", "_round")

    def __init__(self, the_round: PreemptionRound, queue: TempQueuePerPartition, leaf: LeafQueue) -> None:
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
        """Set the queue's `apps` (the last one first), each with the amount to take from it, and its `users`."""
        am_used = self._ams_by_user()
        left = self._queue.used - self._queue.to_obtain - sum(am_used.values(), start=self._none)
        applications = [*self._leaf.pending, *self._leaf.active]
        if len(applications) == 1:
            return
        apps = self._in_order(self._temp_apps(applications, am_used))
        self._distribute(apps, left)
        last_first = apps[::-1]
        self._bound_losses(last_first)
        self._queue.apps = last_first
        self._match(last_first)

    def _ams_by_user(self) -> dict[str, Resource]:
        """{user: AM containers of the user's active applications}; these are never preempted."""
        found: dict[str, Resource] = {}
        for application in self._leaf.active:
            used = application.am_resource if application.am_partition == self._partition else self._none
            found[application.user] = found.get(application.user, self._none) + used
        return found

    def _temp_apps(
        self, applications: list[FiCaSchedulerApp], am_used: dict[str, Resource]
    ) -> list[TempAppPerPartition]:
        users = self._queue.users
        for application in applications:
            name = application.user
            if name not in users:
                user = self._leaf.users.get_or_add(name)
                limit = limit_of(self._leaf.users, name, self._partition, RESPECT, active_only=False)
                used = user.usage.used(self._partition)
                users[name] = TempUserPerPartition(used, am_used.get(name, self._none), limit, self._none)
        return [TempAppPerPartition(found, self._partition, users[found.user], self._none) for found in applications]

    def _in_order(self, apps: list[TempAppPerPartition]) -> list[TempAppPerPartition]:
        """The applications by priority, then age. In a fair leaf with users first, by the usage of their users."""
        if isinstance(self._leaf.active, FairOrderingPolicy) and self._intra.users_first:
            return sorted(apps, key=cmp_to_key(self._compare_fairly))
        return sorted(apps, key=_by_priority)

    def _compare_fairly(self, a: TempAppPerPartition, b: TempAppPerPartition) -> int:
        """The order of TAFairOrderingComparator."""
        if a.application.user == b.application.user:
            order = self._leaf.active
            key_a, key_b = order.key_of(a.application), order.key_of(b.application)
            return (key_a > key_b) - (key_a < key_b)
        used_a, used_b = a.user.used_without_ams, b.user.used_without_ams
        if used_a == used_b:
            id_a, id_b = a.application.attempt_id.application_id, b.application.attempt_id.application_id
            return (id_a > id_b) - (id_a < id_b)
        return -1 if self._calculator.less(self._cluster, used_a, used_b) else 1

    def _distribute(self, apps: list[TempAppPerPartition], left: Resource) -> None:
        """Distribute what the leaf uses among its applications (calculateIdealAssignedResourcePerApp)."""
        calculator, cluster = self._calculator, self._cluster
        for app in apps:
            is_short = calculator.is_any_zero_or_negative(left) and self._intra.conservative
            if is_short or calculator.less_or_equal(cluster, left, self._none):
                continue
            self._note_selected(app)
            user, due = app.user, app.used_without_am + app.pending - app.selected
            if not calculator.less(cluster, user.ideal, user.limit):
                continue
            due = calculator.min_of(cluster, due, user.limit - user.ideal)
            app.ideal = calculator.min_of(cluster, left, due)
            user.ideal = user.ideal + app.ideal
            kept = app.used_without_am - app.selected
            if calculator.greater(cluster, app.ideal, kept):
                app.wanted_of_others = app.ideal - kept
            left = subtracted_non_negative(left, app.ideal)

    def _note_selected(self, app: TempAppPerPartition) -> None:
        for victim in self._round.victims.of_attempt(app.application.attempt_id):
            if victim.container.partition == self._partition:
                app.selected = app.selected + victim.container.resource
                app.user.selected = app.user.selected + victim.container.resource

    def _bound_losses(self, last_first: list[TempAppPerPartition]) -> None:
        """Set what each application could lose, within the leaf's limit for one round
        (calculateToBePreemptedResourcePerApp).
        """
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

    def _match(self, last_first: list[TempAppPerPartition]) -> None:
        """Satisfy claims from the last applications (validateOutSameAppPriorityFromDemand)."""
        is_some = self._calculator.is_some
        for claimant in reversed(last_first):
            if not is_some(self._cluster, claimant.wanted_of_others):
                continue
            for victim in last_first:
                if is_some(self._cluster, victim.to_be_preempted) and self._may_take(claimant, victim):
                    self._take(claimant, victim)

    def _may_take(self, claimant: TempAppPerPartition, victim: TempAppPerPartition) -> bool:
        same_user = claimant.application.user == victim.application.user
        if same_user and victim.application.priority >= claimant.application.priority:
            return False
        exhausted = self._calculator.less_or_equal(self._cluster, victim.to_be_preempted, victim.to_obtain)
        if exhausted or claimant.wanted_of_others.is_none():
            return False
        # With users first, a user within the limit loses nothing to another user, whatever the priorities.
        return same_user or self._is_above_limit(victim.user) or not self._intra.users_first

    def _take(self, claimant: TempAppPerPartition, victim: TempAppPerPartition) -> None:
        calculator, cluster, user = self._calculator, self._cluster, victim.user
        spare = victim.to_be_preempted - victim.to_obtain
        same_user = claimant.application.user == victim.application.user
        same_priority = claimant.application.priority == victim.application.priority
        if not same_user and same_priority and self._is_above_limit(user):
            above = user.used_without_ams - user.selected - user.limit
            if user.has_paid:
                above = self._none
            if calculator.less(cluster, above, spare):
                user.has_paid = True
                spare = above
        if calculator.is_some(cluster, spare):
            taken = calculator.min_of(cluster, claimant.wanted_of_others, spare)
            claimant.wanted_of_others = claimant.wanted_of_others - taken
            victim.to_obtain = victim.to_obtain + taken

    def _is_above_limit(self, user: TempUserPerPartition) -> bool:
        return self._calculator.greater(self._cluster, user.used_without_ams, user.limit)


def _by_priority(app: TempAppPerPartition) -> tuple[int, int, int]:
    """The order of TAPriorityComparator."""
    application_id = app.application.attempt_id.application_id
    return -app.application.priority, application_id.cluster_timestamp, application_id.id
