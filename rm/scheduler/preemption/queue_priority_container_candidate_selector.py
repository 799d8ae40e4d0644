"""Preempts for reservations of queues with a higher priority: Hadoop's QueuePriorityContainerCandidateSelector.

A leaf may preempt from another one if, just below their lowest common queue, its branch has the higher priority. It
does so on the node of a reservation that has waited long enough, while the leaf is below its guarantee.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key

from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.model.rm_container_events import RMContainerReserved
from rm.scheduler.preemption.preemption_round import PreemptionReason, PreemptionRound, Victim, Victims
from rm.scheduler.preemption.temp_queue_per_partition import TempQueuePerPartition
from yarn.containers import ANY
from yarn.ids import NodeId
from yarn.nodes import NO_LABEL
from yarn.resource import Resource


def select_by_queue_priority(the_round: PreemptionRound) -> Victims:
    """Choose victims; none unless some queue has a higher priority than another one."""
    above = _priorities(the_round)
    return _QueuePriorityCandidates(the_round, above).select() if above else Victims()


def _priorities(the_round: PreemptionRound) -> set[tuple[str, str]]:
    """{(leaf, leaf from which it may preempt)}."""
    leaves = [the_round.queue_at(path, NO_LABEL) for path in the_round.leaf_paths]
    found: set[tuple[str, str]] = set()
    for first in leaves:
        for second in leaves:
            if first.path < second.path:
                one, other = _below_common(first, second)
                if one.priority > other.priority:
                    found.add((first.path, second.path))
                elif one.priority < other.priority:
                    found.add((second.path, first.path))
    return found


def _below_common(
    first: TempQueuePerPartition, second: TempQueuePerPartition
) -> tuple[TempQueuePerPartition, TempQueuePerPartition]:
    """The two ancestors (or the queues themselves) just below the lowest common ancestor of two queues."""
    one, other = _from_root(first), _from_root(second)
    depth = 0
    while one[depth] is other[depth]:
        depth += 1
    return one[depth], other[depth]


def _from_root(queue: TempQueuePerPartition) -> list[TempQueuePerPartition]:
    path = [queue]
    while (parent := path[-1].parent) is not None:
        path.append(parent)
    return path[::-1]


class _QueuePriorityCandidates:
    """Selects victims for the reservations of queues of higher priority.

    `above`: pairs (leaf, leaf that it may preempt from). `promised`: {(leaf, partition): resources being freed for that
    leaf}. `touched`: nodes already used in this round.
    """

    __slots__ = ("_above", "_chosen", "_promised", "_round", "_touched")

    def __init__(self, the_round: PreemptionRound, above: set[tuple[str, str]]) -> None:
        self._round = the_round
        self._above = above
        self._chosen = Victims()
        self._promised: dict[tuple[str, str], Resource] = {}
        self._touched: set[NodeId] = set()

    def select(self) -> Victims:
        context = self._round.context
        demanding = {path for path, _ in self._above}
        nodes = context.nodes_in_hash_order()
        found = [node.reserved_container for node in nodes if node.reserved_container is not None]
        waiting = self._in_order(reserved for reserved in found if reserved.queue in demanding)
        for reserved in waiting:
            if context.now_ms - reserved.started_ms < self._round.settings.queue_priority_delay_ms:
                continue
            node = context.nodes.get(reserved.node_id)
            if node is None or self._is_satisfied(reserved.queue, node.partition):
                continue
            containers = self._enough_on(node, reserved, moving=False)
            if containers is not None:
                self._take(reserved, node, containers)
            elif self._round.settings.moves_reservations:
                self._move(reserved, nodes)
        return self._chosen

    def _in_order(self, containers: Iterable[RMContainer]) -> list[RMContainer]:
        """The reservations, those of queues with higher priority first, then the oldest.

        The reservations of one heartbeat are in the order of placement.
        """
        return sorted(containers, key=cmp_to_key(self._compare))

    def _compare(self, a: RMContainer, b: RMContainer) -> int:
        if (a.queue, b.queue) in self._above:
            return -1
        if (b.queue, a.queue) in self._above:
            return 1
        return a.started_ms - b.started_ms

    def _is_satisfied(self, path: str, partition: str) -> bool:
        """True if the leaf has its guarantee: without its reservations, and with what is being freed for it."""
        queue = self._round.find_queue(path, partition)
        if queue is None:
            return False
        promised = self._promised.get((path, partition), self._round.none)
        held = queue.used - queue.reserved + promised
        return self._round.calculator.greater_or_equal(self._round.cluster, held, queue.guaranteed)

    def _enough_on(self, node: SchedulerNode, reserved: RMContainer, *, moving: bool) -> list[RMContainer] | None:
        """The containers to preempt on the node for the reservation; None if not enough can be preempted.

        Source: canPreemptEnoughResourceForAsked.
        """
        if node.node_id in self._touched or (moving and node.reserved_container is not None):
            return None
        the_round = self._round
        fits_in, none = the_round.calculator.fits_in, the_round.none
        lacking = reserved.resource - (node.total - node.allocated)
        running = self._in_order(node.containers.values())
        for container in running:
            if container in the_round.victims:
                lacking = lacking - container.resource
        if fits_in(lacking, none):
            return []
        allowed, found = the_round.allowed, list[RMContainer]()
        for container in running:
            may_take = (reserved.queue, container.queue) in self._above and not container.is_am
            if container in the_round.victims or not may_take:
                continue
            size = container.resource
            if the_round.calculator.greater_or_equal(the_round.cluster, allowed, size):
                allowed, lacking = allowed - size, lacking - size
                found.append(container)
            if fits_in(lacking, none):
                return found
        return None

    def _take(self, reserved: RMContainer, node: SchedulerNode, containers: list[RMContainer]) -> None:
        self._touched.add(node.node_id)
        key = (reserved.queue, node.partition)
        self._promised[key] = self._promised.get(key, self._round.none) + reserved.resource
        for container in containers:
            self._round.choose(Victim(container, PreemptionReason.QUEUE_PRIORITY, reserved.queue), self._chosen)
            self._round.allowed = self._round.allowed - container.resource

    def _move(self, reserved: RMContainer, nodes: list[SchedulerNode]) -> None:
        """Move the reservation to a node on which enough can be preempted (tryToMakeBetterReservationPlacement)."""
        for node in nodes:
            if not self._may_move(reserved, node) or self._enough_on(node, reserved, moving=True) is None:
                continue
            if move_reservation(reserved, node, self._round):
                self._touched.add(node.node_id)

    def _may_move(self, reserved: RMContainer, node: SchedulerNode) -> bool:
        """True if the reservation may be moved to another node of the partition.

        It must not be for a container update, it must be placeable on any host, and it must request the node's
        partition.
        """
        attempt = self._round.applications.attempt_of(reserved.id.application_id)
        if reserved.key.container_id is not None or attempt is None:
            return False
        requests = attempt.requests.at(reserved.key)
        if requests is not None and not requests.may_relax(ANY):
            return False
        return reserved.partition == node.partition


def move_reservation(reserved: RMContainer, target: SchedulerNode, the_round: PreemptionRound) -> bool:
    """Move a reservation to another node of its partition, once at most; False if refused (moveReservedContainer)."""
    context = the_round.context
    source, attempt = (
        context.nodes.get(reserved.node_id),
        the_round.applications.attempt_of(reserved.id.application_id),
    )
    if source is None or attempt is None or reserved.was_moved or source.partition != target.partition:
        return False
    by_node = attempt.reserved.get(reserved.key)
    if by_node is None or source.reserved_container is not reserved:
        return False
    source.reserved_container, target.reserved_container = None, reserved
    del by_node[source.node_id]
    by_node[target.node_id] = reserved
    reserved.move_to(target.node_id)
    reserved.handle(RMContainerReserved(), context.now_ms)
    target.note_change()
    return True
