"""Places containers on a node: first the node's reservation, else one container after another.

A heartbeat of the node may place several (`place`), a visit of a walk one (`place_one`, see walk.py).
"""

from __future__ import annotations

from collections.abc import Callable

from rm.scheduler.model.application import ApplicationTable
from rm.scheduler.model.context import IGNORE, RESPECT, SchedulerContext, SchedulingMode
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue import ParentQueue
from rm.scheduler.model.refusals import Reason
from rm.scheduler.model.requests import NodeType
from rm.scheduler.model.usage import ResourceLimits
from rm.scheduler.placement.allocator import Proposal, UnneededReservation
from rm.scheduler.placement.commit import Commit
from rm.scheduler.placement.memo import VisitMemo
from rm.scheduler.placement.offer import assign_containers, assign_in_leaf
from yarn.nodes import NO_LABEL

REFUSED_IN_A_ROW_MAX = 100
"""The number of consecutive refused proposals after which a visit ends.

Such proposals are mostly identical, and if containers per heartbeat are unlimited, Hadoop never stops repeating one
that is not off-switch. The first refusal does not end the visit, because opportunities that were counted meanwhile may
change the next proposal. The number is the default number of containers per heartbeat.
"""


class Placement:
    """Places containers on nodes. `watch` is called with each proposal before it is booked (see CommitWatch)."""

    __slots__ = ("_commit", "_context", "_memo", "applications", "root")

    def __init__(self, context: SchedulerContext, root: ParentQueue, applications: ApplicationTable) -> None:
        self._context = context
        self._memo = VisitMemo(context)
        self._commit = Commit(context, applications)
        self.root = root
        self.applications = applications

    @property
    def watch(self) -> Callable[[Proposal], None] | None:
        return self._commit.watch

    @watch.setter
    def watch(self, watch: Callable[[Proposal], None]) -> None:
        self._commit.watch = watch

    def place(self, node: SchedulerNode) -> None:
        """Place containers until nothing fits, something was reserved, or the heartbeat's limits are reached."""
        self._unless_known(node, self.visit)

    def place_one(self, node: SchedulerNode) -> bool:
        """Place or reserve one container at most. False if it was known that this would do nothing."""
        return self._unless_known(node, self.visit_once)

    def _unless_known(self, node: SchedulerNode, visit: Callable[[SchedulerNode], None]) -> bool:
        """Visit the node; False if the outcome was known.

        It is known if nothing has changed since a visit that did nothing, or if nothing is requested at all. In the
        latter case Hadoop's root queue would skip the node in its first check.
        """
        change_count = self._context.change_count
        if self._memo.is_settled(node):
            return False
        if node.reserved_container is None and not self.root.usage.is_pending() and not self._is_full(node):
            # Clear the root's earlier refusal of this node, as a visit would.
            self.root.refusals.clear(node.node_id)
        else:
            visit(node)
        if self._context.change_count == change_count:
            self._memo.settle(node)
        return True

    def visit_once(self, node: SchedulerNode) -> None:
        """Serve the node's reservation, or place or reserve one container."""
        if node.reserved_container is not None:
            self._serve_reservation(node)
        else:
            self._place_one(node)

    def is_known(self, node: SchedulerNode) -> bool:
        """True if a visit would place nothing and change nothing but refusals, which only explanations read."""
        if self._memo.is_settled(node):
            return True
        return node.reserved_container is None and (self.is_refusing(node.partition) or self._is_full(node))

    def is_refusing(self, partition: str) -> bool:
        """True if nothing would be placed on any node of the partition that has no reservation."""
        return not self.root.usage.is_pending() or self._memo.refuses_all(partition)

    def is_full(self, node: SchedulerNode) -> bool:
        """True if nothing can be placed on the node until something on it ends, or it grows."""
        return node.reserved_container is None and self._is_full(node)

    def visit(self, node: SchedulerNode) -> None:
        """Place containers on the node until nothing fits or a limit is reached.

        As in Hadoop, a proposal that the commit refuses counts like a placed one, up to REFUSED_IN_A_ROW_MAX.
        """
        settings = self._context.settings
        off_switch = placed = refused = 0
        while True:
            if node.reserved_container is not None:
                self._serve_reservation(node)
                return
            proposal = self._place_one(node)
            if proposal is None or not proposal.is_allocation or not settings.multiple_assignments_enabled:
                return
            placed += 1
            refused = 0 if proposal.is_booked else refused + 1
            if refused == REFUSED_IN_A_ROW_MAX:
                return
            if proposal.kind is NodeType.OFF_SWITCH:
                off_switch += 1
            most = settings.maximum_container_assignments
            if off_switch >= settings.maximum_offswitch_assignments or (most != -1 and placed >= most):
                return

    def _is_full(self, node: SchedulerNode) -> bool:
        """True if not even the smallest container fits."""
        context = self._context
        return context.calculator.available_containers(node.within_reach, context.minimum_allocation) <= 0

    def _place_one(self, node: SchedulerNode) -> Proposal | None:
        """Offer the node to the queues and commit; returns the proposal, booked or not.

        Nodes of shared partitions are offered twice: requests without a label get what requests for the partition
        leave.
        """
        context = self._context
        if self._is_full(node):
            smallest = context.minimum_allocation
            self.root.refusals.note(node.node_id, Reason.NODE_TOO_SMALL, context.now_ms, smallest, node.within_reach)
            return None
        change_count, node_check_count = context.change_count, context.node_check_count
        proposal = self._offer(node, node.partition, RESPECT)
        if proposal is None and node.partition and context.labels.is_shared(node.partition):
            proposal = self._offer(node, NO_LABEL, IGNORE)
        if context.change_count == change_count and context.node_check_count == node_check_count:
            self._memo.refuse_all(node.partition)
        return proposal

    def _offer(self, node: SchedulerNode, partition: str, mode: SchedulingMode) -> Proposal | None:
        """Offer the node to the tree, with the limits that the queues have on `partition`."""
        context = self._context
        limits = ResourceLimits(context.partition_resource(partition), context.none)
        assignment = assign_containers(self.root, node, limits, mode, self._memo.refused(node, mode))
        if not isinstance(assignment, Proposal):
            return None
        assignment.is_booked = self._commit.commit(assignment)
        return assignment

    def _serve_reservation(self, node: SchedulerNode) -> None:
        """Serve only the reservation, from its leaf: the limits of the queues above do not apply."""
        assert node.reserved_container is not None
        application = self.applications.attempt_of(node.reserved_container.id.application_id)
        if application is None:
            return
        limits = ResourceLimits(self._context.partition_resource(NO_LABEL), self._context.none)
        assignment = assign_in_leaf(LeafQueue.of(application), node, limits, RESPECT)
        if isinstance(assignment, Proposal):
            self._commit.commit(assignment)
        elif isinstance(assignment, UnneededReservation):
            self._commit.release(assignment)
