"""Victims inside a leaf, for another of its applications: Hadoop's IntraQueueCandidatesSelector.

Only leaves that want more than they should have are looked at: a leaf that can have more needs nothing of its own.
"""

from __future__ import annotations

from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.preemption.fifo_selector import last_first
from rm.scheduler.preemption.intra_queue_demand import IntraQueueDemand
from rm.scheduler.preemption.preemption_round import PreemptionRound, PreemptionRoundFailed
from rm.scheduler.preemption.temp_app import TempApp
from rm.scheduler.preemption.temp_queue import TempQueue
from rm.scheduler.preemption.victims import PreemptionReason, Victim, Victims
from yarn.resource import Resource


def select_in_queues(the_round: PreemptionRound) -> Victims:
    """First what every leaf's applications should have, then, leaf by leaf, who goes."""
    for queue, leaf in _under_served(the_round):
        used_capacity = leaf.capacities.at(queue.partition).used_capacity
        if not used_capacity < the_round.settings.intra_queue.minimum_threshold:
            IntraQueueDemand(the_round, queue, leaf).compute()
    the_round.deduct_victims()
    chosen = Victims()
    for queue, leaf in _under_served(the_round):
        if not leaf.configuration.intra_queue_preemption_disabled:
            _InLeaf(the_round, queue, leaf, chosen).select()
    return chosen


def _under_served(the_round: PreemptionRound) -> list[tuple[TempQueue, LeafQueue]]:
    found = [
        the_round.queue_at(path, partition)
        for partition in the_round.partitions
        for path in the_round.under_served.get(partition, ())
    ]
    return [(queue, queue.leaf) for queue in found if queue.leaf is not None]


class _InLeaf:
    """`wanted` {partition: what is still to be had}; `usage` {user: what the user will hold without the victims}."""

    __slots__ = ("_chosen", "_leaf", "_queue", "_round", "_usage", "_wanted")

    def __init__(self, the_round: PreemptionRound, queue: TempQueue, leaf: LeafQueue, chosen: Victims) -> None:
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

    def _from_application(self, app: TempApp) -> None:
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

    def _would_fall_to_limit(self, app: TempApp, container: RMContainer) -> bool:
        """True if the user would have no more than the limit lets; masters count in it again.

        Hadoop looks the leaf up by its short name here, and finds none if another queue is called alike.
        """
        the_round, name = self._round, app.application.user
        if self._leaf.remembered_as != self._leaf.path:
            raise PreemptionRoundFailed(
                "java.lang.NullPointerException", f"several queues are called {self._leaf.name}"
            )
        queue = the_round.queue_at(self._leaf.path, the_round.partition_of(container))
        user = queue.users.get(name)
        if user is None:
            return False
        rest = self._usage[name] - container.resource
        return the_round.calculator.less_or_equal(the_round.cluster, rest, user.limit + user.am_used)
