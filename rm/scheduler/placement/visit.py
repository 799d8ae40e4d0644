"""The steps of a visit of a node: its reservation is served, or containers are proposed and committed one by one.

A heartbeat of the node may place several containers (rm.scheduler.heartbeat), a visit of a walk one (walk.py).
"""

from __future__ import annotations

from collections.abc import Callable

from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
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


class VisitLimits:
    """Counts what one heartbeat of a node places, up to the limits that Hadoop sets on it.

    As in Hadoop, a proposal that the commit refuses counts like a placed one, up to REFUSED_IN_A_ROW_MAX.
    """

    __slots__ = ("_off_switch", "_placed", "_refused", "_settings")

    def __init__(self, settings: CapacitySchedulerConfiguration) -> None:
        self._settings = settings
        self._off_switch = self._placed = self._refused = 0

    def are_reached_with(self, proposal: Proposal) -> bool:
        """Count the proposal; True if the visit ends with it, as it also does with a reservation."""
        settings = self._settings
        if not proposal.is_allocation or not settings.multiple_assignments_enabled:
            return True
        self._placed += 1
        self._refused = 0 if proposal.is_booked else self._refused + 1
        if proposal.kind is NodeType.OFF_SWITCH:
            self._off_switch += 1
        most = settings.maximum_container_assignments
        return (
            self._refused == REFUSED_IN_A_ROW_MAX
            or self._off_switch >= settings.maximum_offswitch_assignments
            or (most != -1 and self._placed >= most)
        )


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

    def begin(self, node: SchedulerNode) -> bool:
        """False if the outcome of a visit is known: it would repeat one that did nothing, or nothing is requested.

        In the latter case Hadoop's root queue would skip the node in its first check.
        """
        if self._memo.is_settled(node):
            return False
        if node.reserved_container is None and not self.root.usage.is_pending() and not self._is_full(node):
            # Clear the root's earlier refusal of this node, as a visit would.
            self.root.refusals.clear(node.node_id)
            self._memo.settle(node)
            return False
        return True

    def end(self, node: SchedulerNode, change_count: int) -> None:
        """End a visit that began at this change count; remember it if it did nothing."""
        if self._context.change_count == change_count:
            self._memo.settle(node)

    def place_one(self, node: SchedulerNode) -> bool:
        """Serve the node's reservation, or place or reserve one container. False if nothing has changed since a visit
        that did nothing.
        """
        if self._memo.is_settled(node):
            return False
        if not self.begin(node):
            return True
        change_count = self._context.change_count
        if node.reserved_container is not None:
            self.serve_reservation(node)
        else:
            proposal = self.propose(node)
            if proposal is not None:
                self.commit(proposal)
        self.end(node, change_count)
        return True

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

    def _is_full(self, node: SchedulerNode) -> bool:
        """True if not even the smallest container fits."""
        context = self._context
        return context.calculator.available_containers(node.within_reach, context.minimum_allocation) <= 0

    def propose(self, node: SchedulerNode) -> Proposal | None:
        """Offer the node to the queues; returns the first proposal, None if there is none.

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
        if proposal is None and (change_count, node_check_count) == (context.change_count, context.node_check_count):
            self._memo.refuse_all(node.partition)
        return proposal

    def _offer(self, node: SchedulerNode, partition: str, mode: SchedulingMode) -> Proposal | None:
        """Offer the node to the tree, with the limits that the queues have on `partition`."""
        context = self._context
        limits = ResourceLimits(context.partition_resource(partition), context.none)
        assignment = assign_containers(self.root, node, limits, mode, self._memo.refused(node, mode))
        return assignment if isinstance(assignment, Proposal) else None

    def commit(self, proposal: Proposal) -> None:
        """Book the proposal, or note that it is refused."""
        proposal.is_booked = self._commit.commit(proposal)

    def serve_reservation(self, node: SchedulerNode) -> None:
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
