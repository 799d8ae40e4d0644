"""Takes containers from queues that have more than they should: Hadoop's FifoCandidatesSelector.

In each such leaf the application submitted last loses first: its reservations, then its containers, those of lowest
priority and the newest first. AM containers come after the containers of all applications.
"""

from __future__ import annotations

from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.preemption.preemptable_resource_calculator import PreemptableResourceCalculator
from rm.scheduler.preemption.preemption_round import (
    PreemptionReason,
    PreemptionRound,
    PreemptionRoundFailed,
    Victim,
    Victims,
)
from yarn.java.hash_order import hash_order, string_hash
from yarn.nodes import NO_LABEL
from yarn.resource import Resource
from yarn.resource_calculator import multiplied


def select_fifo(the_round: PreemptionRound, *, balances: bool) -> Victims:
    """Choose victims. `balances`: this is the second run, which balances queues above their guarantees."""
    counts_reserved = the_round.settings.counts_reserved and not balances
    PreemptableResourceCalculator(the_round, counts_reserved=counts_reserved, balances=balances).compute()
    the_round.deduct_victims()
    chosen = Victims()
    for path in the_round.leaf_paths:
        queue = the_round.queue_at(path, NO_LABEL)
        if queue.is_protected:
            continue
        if queue.leaf is None:
            raise PreemptionRoundFailed("java.lang.NullPointerException", f"{path} is a parent queue without children")
        _LeafCandidates(the_round, queue.leaf, chosen, balances=balances).select()
    return chosen


def last_first(application: FiCaSchedulerApp) -> list[RMContainer]:
    """The application's containers, lowest priority first, then the newest (sortContainers)."""
    return sorted(application.live_containers.values(), key=lambda live: (live.key, live.id), reverse=True)


class _LeafCandidates:
    """Chooses victims in one leaf. `wanted` {partition: the amount still to preempt}."""

    __slots__ = ("_ams", "_ams_size", "_chosen", "_leaf", "_reason", "_round", "_wanted")

    def __init__(self, the_round: PreemptionRound, leaf: LeafQueue, chosen: Victims, *, balances: bool) -> None:
        self._round = the_round
        self._leaf = leaf
        self._chosen = chosen
        self._reason = PreemptionReason.BALANCE if balances else PreemptionReason.GUARANTEE
        self._wanted = the_round.obtainable(leaf.path)
        self._ams: list[RMContainer] = []
        self._ams_size: Resource = the_round.none

    def select(self) -> None:
        if not self._wanted:
            # Hadoop asks for the applications all the same, which puts them in order.
            self._leaf.active.prepare()
            return
        self._from_borrowed_nodes()
        for application in self._leaf.active.last_first():
            if not self._wanted:
                break
            self._from_application(application)
        self._from_ams()

    def _from_borrowed_nodes(self) -> None:
        """Choose containers that borrow idle nodes of other, non-exclusive partitions, the newest first."""
        borrowed = self._leaf.borrowed
        if not borrowed:
            return
        partitions = hash_order(list(self._wanted), string_hash)
        for partition in partitions:
            if self._wanted.keys() != set(partitions):
                raise PreemptionRoundFailed(
                    "java.util.ConcurrentModificationException",
                    f"{partition}: the wanted partitions changed during the iteration",
                )
            for container in sorted(borrowed.get(partition, {}).values(), key=lambda live: live.id, reverse=True):
                self._take(container)

    def _from_application(self, application: FiCaSchedulerApp) -> None:
        for reserved in application.reserved_in_hash_order():
            if reserved in self._round.victims:
                continue
            if not self._wanted:
                return
            self._take(reserved)
            # Hadoop drops the reservation whether it was chosen or not.
            self._round.reserved_to_kill.append(reserved)
        for container in last_first(application):
            if not self._wanted:
                return
            if container in self._round.victims or container.id in self._round.killable_ids:
                continue
            if container.is_am:
                self._ams.append(container)
                self._ams_size = self._ams_size + container.resource
            else:
                self._take(container)

    def _from_ams(self) -> None:
        """Choose AM containers, as far as they exceed the share of the leaf that AMs may use."""
        kept = multiplied(self._leaf.effective_minimum(NO_LABEL), self._leaf.capacities.default.maximum_am_percent)
        for am_container in self._ams:
            if not self._wanted:
                return
            if self._round.calculator.less_or_equal(self._round.cluster, self._ams_size, kept):
                return
            if self._take(am_container):
                self._ams_size = self._ams_size - am_container.resource

    def _take(self, container: RMContainer) -> bool:
        serves = self._round.most_in_need(self._round.partition_of(container))
        victim = Victim(container, self._reason, serves)
        return self._round.try_take(victim, self._wanted, self._chosen, conservative=self._round.settings.conservative)
