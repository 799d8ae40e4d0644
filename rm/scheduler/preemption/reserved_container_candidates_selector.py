"""Preempts what a reservation lacks on its node: Hadoop's ReservedContainerCandidatesSelector ("surgical" preemption).

The FIFO selector frees an amount of a queue, on any nodes; a large container needs that amount on one node. Here, for
each node with a reservation, containers of the node are chosen, the newest first, within what their queues are to lose.
The node with the least loss for the amount reserved comes first.
"""

from __future__ import annotations

from operator import itemgetter

from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.preemption.preemptable_resource_calculator import PreemptableResourceCalculator
from rm.scheduler.preemption.preemption_round import PreemptionReason, PreemptionRound, Victim, Victims
from yarn.resource import Resource


def select_for_reservations(the_round: PreemptionRound) -> Victims:
    """Choose victims. A node on which not enough can be freed loses nothing."""
    PreemptableResourceCalculator(the_round, counts_reserved=True, balances=False).compute()
    quotas = {path: the_round.obtainable(path) for path in the_round.leaf_paths}
    nodes = [node for node in the_round.context.nodes_in_hash_order() if node.reserved_container is not None]
    tried = [(cost, node) for node in nodes if (cost := _NodeCandidates(the_round, node, quotas).cost()) is not None]
    chosen = Victims()
    for _, node in sorted(tried, key=itemgetter(0)):
        reserved = node.reserved_container
        assert reserved is not None
        for container in _NodeCandidates(the_round, node, quotas).take():
            victim = Victim(container, PreemptionReason.RESERVATION, reserved.queue)
            the_round.choose(victim, chosen)
    return chosen


class _NodeCandidates:
    """A node with a reservation. `quotas` {leaf: {partition: the amount that may be preempted in it}}."""

    __slots__ = ("_node", "_partition", "_quotas", "_required", "_round")

    def __init__(self, the_round: PreemptionRound, node: SchedulerNode, quotas: dict[str, dict[str, Resource]]) -> None:
        assert node.reserved_container is not None
        self._round = the_round
        self._node = node
        self._quotas = quotas
        self._partition = node.partition
        self._required = node.reserved_container.resource

    def cost(self) -> float | None:
        """Lost / reserved resources, a 32-bit float; None if nothing has to be preempted, or not enough can be."""
        room, lost = self._node.within_reach, self._round.none
        if self._suffices(room):
            return None
        for container in self._newest_first():
            if not self._may_take(container):
                continue
            if container not in self._round.victims:
                lost = lost + container.resource
            room = room + container.resource
            if self._suffices(room):
                return self._round.calculator.ratio(lost, self._required)
        return None

    def take(self) -> list[RMContainer]:
        """The containers to choose, subtracted from the quotas; none if the quotas are no longer sufficient.

        Then the quotas of the queues are restored, but, as in Hadoop, not the amount that the round allows.
        """
        room, taken = self._node.within_reach, list[RMContainer]()
        if self._suffices(room):
            return []
        for container in self._newest_first():
            if not self._may_take(container):
                continue
            self._change_quota(container, -container.resource)
            self._round.allowed = self._round.allowed - container.resource
            if container not in self._round.victims:
                taken.append(container)
            room = room + container.resource
            if self._suffices(room):
                return taken
        for container in taken:
            self._change_quota(container, container.resource)
        return []

    def _suffices(self, room: Resource) -> bool:
        return self._round.calculator.fits_in(self._required, room)

    def _newest_first(self) -> list[RMContainer]:
        """All containers except AM containers and those that are killable anyway, the newest first."""
        containers = sorted(self._node.containers.values(), key=lambda live: live.id, reverse=True)
        return [live for live in containers if live.id not in self._node.killable and not live.is_am]

    def _may_take(self, container: RMContainer) -> bool:
        quota = self._quotas.get(container.queue, {}).get(self._partition)
        fits_in = self._round.calculator.fits_in
        return (
            quota is not None
            and fits_in(container.resource, quota)
            and fits_in(container.resource, self._round.allowed)
        )

    def _change_quota(self, container: RMContainer, amount: Resource) -> None:
        quota = self._quotas[container.queue]
        quota[self._partition] = quota[self._partition] + amount
