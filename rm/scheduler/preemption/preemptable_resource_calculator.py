"""The amounts that each queue should have, and is to lose: Hadoop's PreemptableResourceCalculator.

From the root down, what a parent should have is distributed among its children. First each child keeps what it uses,
up to its guarantee; the rest goes, in rounds, to the child with the least in proportion to its guarantee, until no
child wants more or nothing is left. What a queue uses above that is to be preempted, within the total of the round.

    guaranteed 10 40 20, used 30 60 10 of 100, the last one wants 20 more:
    ideal 20 60 20 (the second keeps its 60: the others do not want that much)
"""

from __future__ import annotations

from collections.abc import Sequence

from rm.scheduler.preemption.preemption_round import PreemptionRound
from rm.scheduler.preemption.temp_queue_per_partition import TempQueuePerPartition
from yarn.java.binary32 import f32
from yarn.java.priority_queue import JavaPriorityQueue
from yarn.nodes import NO_LABEL
from yarn.resource import INT32_MAX, Resource, componentwise_max, componentwise_min
from yarn.resource_calculator import multiplied
from yarn.settings.scheduler import ROOT


class PreemptableResourceCalculator:
    """Computes what each queue should have and is to lose.

    `counts_reserved`: reserved resources count as demand, and the natural termination factor does not apply.
    `balances`: queues above their guarantees are balanced, too.
    """

    __slots__ = ("_balances", "_calculator", "_counts_reserved", "_none", "_round")

    def __init__(self, the_round: PreemptionRound, *, counts_reserved: bool, balances: bool) -> None:
        self._round = the_round
        self._calculator = the_round.calculator
        self._none = the_round.none
        self._counts_reserved = counts_reserved
        self._balances = balances

    def compute(self) -> None:
        """Set `ideal`, `to_be_preempted` and `to_obtain` of the round's queues (computeIdealAllocation)."""
        for partition in self._round.partitions:
            root = self._round.queue_at(ROOT, partition)
            self._update_extras(root)
            root.ideal = root.guaranteed
            self._assign_below(root)
        for path in self._round.leaf_paths:
            if not self._round.queue_at(path, NO_LABEL).is_protected:
                for leaf in self._round.partitions_of(path):
                    leaf.to_obtain = self._amount_to_obtain(leaf)

    def _amount_to_obtain(self, leaf: TempQueuePerPartition) -> Resource:
        """The amount to preempt: nothing within max_ignored_over_capacity, else what is above the ideal, times
        natural_termination_factor.
        """
        settings, calculator, amount = self._round.settings, self._calculator, leaf.to_be_preempted
        if amount.is_none():
            return amount
        ignored = multiplied(leaf.guaranteed, 1.0 + settings.max_ignored_over_capacity)
        if not calculator.greater(self._round.cluster, leaf.used, ignored):
            return self._none
        if self._counts_reserved or not calculator.is_some(self._round.cluster, amount):
            return amount
        one = Resource(1, 1, self._none.extra)
        return calculator.multiply_and_normalize_up(amount, settings.natural_termination_factor, one)

    def _update_extras(self, queue: TempQueuePerPartition) -> None:
        if queue.is_unused():
            return
        for child in queue.children:
            self._update_extras(child)
        queue.update_extras(self._calculator)

    def _assign_below(self, parent: TempQueuePerPartition) -> None:
        if parent.children and not parent.is_unused():
            self._distribute(parent.children, parent.ideal)
            for child in parent.children:
                self._assign_below(child)

    def _distribute(self, queues: Sequence[TempQueuePerPartition], total: Resource) -> None:
        """Distribute what a parent should have among its children, on one level (computeIdealResourceDistribution).

        Equally served queues come in the order of their objects' addresses in Hadoop, and in the order of `queues`
        here.
        """
        calculator, none = self._calculator, self._none
        guaranteed = [queue for queue in queues if calculator.is_some(total, queue.guaranteed)]
        others = [queue for queue in queues if not calculator.is_some(total, queue.guaranteed)]
        left = self._fixpoint(guaranteed, total, total, evenly=False)
        if others and calculator.is_some(total, left):
            self._fixpoint(others, left, total, evenly=True)
        above = (queue.used - queue.ideal for queue in queues if calculator.greater(total, queue.used, queue.ideal))
        needed = sum(above, start=none)
        allowed, scale = self._round.allowed, 1.0
        if calculator.greater(total, needed, allowed):
            scale = calculator.divide(total, allowed, needed)
        for queue in queues:
            queue.assign_preemption(scale, calculator, total)

    def _fixpoint(
        self, queues: Sequence[TempQueuePerPartition], unassigned: Resource, total: Resource, *, evenly: bool
    ) -> Resource:
        """Distribute `unassigned`; returns what the caller considers to be left (computeFixpointAllocation).

        That is too much: Hadoop's caller sees only what the initial assignment and the first offer gave, because after
        the first offer a new object is decremented.
        """
        calculator = self._calculator
        wanting = JavaPriorityQueue(self._comparison(total))
        for queue in queues:
            queue.ideal = self._first_assignment(queue, total)
            unassigned = unassigned - queue.ideal
            if calculator.less(total, queue.ideal, queue.used + queue.pending):
                wanting.add(queue)
        seen: Resource | None = None
        while len(wanting) and calculator.is_some(total, unassigned):
            self._normalize(wanting, evenly=evenly)
            offered = unassigned
            for queue in self._least_served(wanting, total):
                if not calculator.is_any_above_zero(unassigned):
                    break
                available = calculator.multiply_each_and_round_up(offered, queue.share)
                taken = queue.offer(
                    componentwise_min(available, unassigned),
                    calculator,
                    total,
                    counts_reserved=self._counts_reserved,
                    balances=self._balances,
                )
                if calculator.is_some(total, taken):
                    wanting.add(queue)
                unassigned = unassigned - taken
                seen = unassigned if seen is None else seen
                unassigned = componentwise_max(unassigned, self._none)
        while len(wanting):
            self._round.note_under_served(wanting.pop())
        return unassigned if seen is None else seen

    def _first_assignment(self, queue: TempQueuePerPartition, total: Resource) -> Resource:
        """The first assignment of a queue: its usage up to its guarantee, plus what must not be preempted."""
        if self._calculator.greater(total, queue.used, queue.guaranteed):
            return componentwise_min(queue.guaranteed, queue.used) + queue.untouchable_extra
        return queue.used

    def _least_served(
        self, wanting: JavaPriorityQueue[TempQueuePerPartition], total: Resource
    ) -> list[TempQueuePerPartition]:
        """Remove the least served queue and all that are served equally (getMostUnderservedQueues)."""
        compare = self._comparison(total)
        found: list[TempQueuePerPartition] = []
        while len(wanting):
            queue = wanting.pop()
            found.append(queue)
            self._round.note_under_served(queue)
            following = wanting.peek()
            if following is None:
                break
            if compare(queue, following) < 0:
                self._round.note_under_served(following)
                break
        return found

    def _comparison(self, total: Resource) -> _LeastServedFirst:
        return _LeastServedFirst(self._round, total)

    def _normalize(self, queues: JavaPriorityQueue[TempQueuePerPartition], *, evenly: bool) -> None:
        """Set each queue's share of each resource type (resetCapacity)."""
        equal = f32(1 / len(queues))
        guaranteed, absolute = self._none, 0.0
        for queue in queues:
            guaranteed = guaranteed + queue.guaranteed
            absolute = f32(absolute + queue.absolute_capacity)
        for index, together in enumerate(guaranteed.values()):
            rounded_away = any(
                queue.guaranteed.values()[index] == 0 and queue.absolute_capacity != 0 for queue in queues
            )
            for queue in queues:
                if evenly:
                    queue.share[index] = equal
                elif rounded_away and together != 0:
                    queue.share[index] = f32(queue.absolute_capacity / absolute) if absolute else queue.share[index]
                elif absolute == 0 or together == 0:
                    queue.share[index] = equal
                else:
                    queue.share[index] = f32(f32(queue.guaranteed.values()[index]) / f32(together))


class _LeastServedFirst:
    """The order of TQComparator: by ideal / guarantee.

    If both are below 1, or both are not, a higher priority comes first.
    """

    __slots__ = ("_calculator", "_total")

    def __init__(self, the_round: PreemptionRound, total: Resource) -> None:
        self._calculator = the_round.calculator
        self._total = total

    def __call__(self, a: TempQueuePerPartition, b: TempQueuePerPartition) -> int:
        served_a, served_b = self._served(a), self._served(b)
        if a.priority != b.priority and ((served_a < 1 and served_b < 1) or (served_a >= 1 and served_b >= 1)):
            return b.priority - a.priority
        return _compare_doubles(served_a, served_b)

    def _served(self, queue: TempQueuePerPartition) -> float:
        if not self._calculator.is_some(self._total, queue.guaranteed):
            return float(INT32_MAX)
        return self._calculator.divide(self._total, queue.ideal, queue.guaranteed)


def _compare_doubles(a: float, b: float) -> int:
    """Double.compare: NaN is greater than everything."""
    key_a, key_b = (a != a, 0.0 if a != a else a), (b != b, 0.0 if b != b else b)
    return (key_a > key_b) - (key_a < key_b)
