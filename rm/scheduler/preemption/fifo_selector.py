"""Victims of queues that are above what they should have: Hadoop's FifoCandidatesSelector.

In each such leaf the application that came last goes first, and of its containers those that matter least and are
newest; its reservations before all of them, masters after those of all applications.
"""

from __future__ import annotations

from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.resource_calculator import multiplied
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.model.usage import NO_LABEL
from rm.scheduler.preemption.ideal_assignment import IdealAssignment
from rm.scheduler.preemption.preemption_round import PreemptionRound, PreemptionRoundFailed
from rm.scheduler.preemption.victims import PreemptionReason, Victim, Victims
from yarn.java.hash_order import hash_order, string_hash
from yarn.resource import Resource


def select_fifo(the_round: PreemptionRound, *, balances: bool) -> Victims:
    """`balances`: the second run, which evens out queues above their guarantees."""
    counts_reserved = the_round.settings.counts_reserved and not balances
    IdealAssignment(the_round, counts_reserved=counts_reserved, balances=balances).compute()
    the_round.deduct_victims()
    chosen = Victims()
    for path in the_round.leaf_paths:
        queue = the_round.queue_at(path, NO_LABEL)
        if queue.is_protected:
            continue
        if queue.leaf is None:
            raise PreemptionRoundFailed("java.lang.NullPointerException", f"{path} has neither queues nor applications")
        _FromLeaf(the_round, queue.leaf, chosen, balances=balances).select()
    return chosen


def last_first(application: FiCaSchedulerApp) -> list[RMContainer]:
    """Its containers: the least urgent first, of these the newest (sortContainers)."""
    return sorted(application.live_containers.values(), key=lambda live: (live.key, live.id), reverse=True)


class _FromLeaf:
    """What is taken of one leaf. `wanted` {partition: what is still to be had}."""

    __slots__ = ("_chosen", "_leaf", "_masters", "_masters_size", "_reason", "_round", "_wanted")

    def __init__(self, the_round: PreemptionRound, leaf: LeafQueue, chosen: Victims, *, balances: bool) -> None:
        self._round = the_round
        self._leaf = leaf
        self._chosen = chosen
        self._reason = PreemptionReason.BALANCE if balances else PreemptionReason.GUARANTEE
        self._wanted = the_round.obtainable(leaf.path)
        self._masters: list[RMContainer] = []
        self._masters_size: Resource = the_round.none

    def select(self) -> None:
        self._from_lent_nodes()
        for application in self._leaf.active.last_first():
            if not self._wanted:
                break
            self._from_application(application)
        self._from_masters()

    def _from_lent_nodes(self) -> None:
        """First what stands on other partitions' nodes only because they were idle, newest first."""
        lent = self._leaf.borrowed
        if not lent:
            return
        partitions = hash_order(list(self._wanted), string_hash)
        for partition in partitions:
            if self._wanted.keys() != set(partitions):
                raise PreemptionRoundFailed(
                    "java.util.ConcurrentModificationException", f"{partition}: what is wanted changed in between"
                )
            for container in sorted(lent.get(partition, {}).values(), key=lambda live: live.id, reverse=True):
                self._take(container)

    def _from_application(self, application: FiCaSchedulerApp) -> None:
        for reserved in application.reserved_in_hash_order():
            if reserved in self._round.victims:
                continue
            if not self._wanted:
                return
            self._take(reserved)
            # It goes whether it was chosen or not.
            self._round.reserved_to_kill.append(reserved)
        for container in last_first(application):
            if not self._wanted:
                return
            if container in self._round.victims or container.id in self._round.killable_ids:
                continue
            if container.is_am:
                self._masters.append(container)
                self._masters_size = self._masters_size + container.resource
            else:
                self._take(container)

    def _from_masters(self) -> None:
        """Masters are saved up to what the queue's masters may use."""
        kept = multiplied(self._leaf.effective_minimum(NO_LABEL), self._leaf.capacities.default.maximum_am_percent)
        for master in self._masters:
            if not self._wanted:
                return
            if self._round.calculator.less_or_equal(self._round.cluster, self._masters_size, kept):
                return
            if self._take(master):
                self._masters_size = self._masters_size - master.resource

    def _take(self, container: RMContainer) -> bool:
        serves = self._round.most_in_need(self._round.partition_of(container))
        victim = Victim(container, self._reason, serves)
        return self._round.try_take(victim, self._wanted, self._chosen, conservative=self._round.settings.conservative)
