"""A node's turn after its heartbeat: its reservation first, else one container after the other."""

from __future__ import annotations

from collections.abc import Mapping

from rm.scheduler.context import IGNORE, RESPECT, SchedulerContext, SchedulingMode
from rm.scheduler.model.application import SchedulerApplication
from rm.scheduler.model.asks import NodeType
from rm.scheduler.model.assignment import Excess, Proposal
from rm.scheduler.model.limits import ResourceLimits
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue_tree import QueueTree
from rm.scheduler.model.usage import NO_LABEL
from rm.scheduler.placement.commit import commit, commit_excess
from rm.scheduler.view.reasons import Reason
from yarn.ids import ApplicationId

REFUSED_IN_A_ROW_MAX = 100
"""Proposals that are refused one after the other are mostly one and the same. Without a limit on the containers of a
heartbeat Hadoop goes on for ever with one that is not off-switch. It is not the first refusal that ends the visit,
since chances that are counted meanwhile may make another of it, but as many as a heartbeat places by default."""


def allocate_containers_to_node(
    node: SchedulerNode,
    tree: QueueTree,
    applications: Mapping[ApplicationId, SchedulerApplication],
    context: SchedulerContext,
) -> None:
    """Place containers until nothing fits, something was reserved, or the heartbeat's limits are reached.

    A node that nothing can have changed for since a visit in vain is not visited, and none while nobody asks for
    anything: the outcome is known.
    """
    if node.settled_at == context.revision:
        return
    if node.reserved_container is None and not tree.root.usage.is_pending() and not _is_full(node, context):
        # That nothing is asked for is not told: what the root refused on the node before goes, as with a visit.
        tree.root.refusals.clear(node.node_id)
        node.settled_at = context.revision
        return
    before = context.revision
    visit(node, tree, applications, context)
    if context.revision == before:
        node.settled_at = before


def visit(
    node: SchedulerNode,
    tree: QueueTree,
    applications: Mapping[ApplicationId, SchedulerApplication],
    context: SchedulerContext,
) -> None:
    """A proposal that the commit refused counts like a placed one, as in Hadoop, up to REFUSED_IN_A_ROW_MAX."""
    settings = context.settings
    off_switch = placed = refused = 0
    while True:
        if node.reserved_container is not None:
            _serve_reservation(node, applications, context)
            return
        proposal = _place_one(node, tree, context)
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


def _is_full(node: SchedulerNode, context: SchedulerContext) -> bool:
    """True if not even the smallest container has room."""
    return context.calculator.available_containers(node.within_reach, context.minimum_allocation) <= 0


def _place_one(node: SchedulerNode, tree: QueueTree, context: SchedulerContext) -> Proposal | None:
    """A pass over the tree and its commit; the proposal, whether it was booked or not. Shared nodes get two passes."""
    if _is_full(node, context):
        smallest = context.minimum_allocation
        tree.root.refusals.note(node.node_id, Reason.NODE_TOO_SMALL, context.now_ms, smallest, node.within_reach)
        return None
    proposal = _pass(node, tree, context, node.partition, RESPECT)
    if proposal is None and node.partition and context.labels.is_shared(node.partition):
        # Nobody who asks for the partition took it: who asks for none may.
        proposal = _pass(node, tree, context, NO_LABEL, IGNORE)
    return proposal


def _pass(
    node: SchedulerNode, tree: QueueTree, context: SchedulerContext, partition: str, mode: SchedulingMode
) -> Proposal | None:
    """The queues may use what the limits of `partition` leave them, of the node's partition."""
    limits = ResourceLimits(context.partition_resource(partition), context.none)
    assignment = tree.root.assign_containers(node, limits, mode)
    if not isinstance(assignment, Proposal):
        return None
    assignment.is_booked = commit(assignment, context)
    return assignment


def _serve_reservation(
    node: SchedulerNode, applications: Mapping[ApplicationId, SchedulerApplication], context: SchedulerContext
) -> None:
    """Only the reservation is looked at, by its leaf alone: the limits of the queues above do not count here."""
    assert node.reserved_container is not None
    application = applications.get(node.reserved_container.id.application_id)
    if application is None or application.current_attempt is None:
        return
    limits = ResourceLimits(context.partition_resource(NO_LABEL), context.none)
    assignment = application.current_attempt.leaf.assign_containers(node, limits, RESPECT)
    if isinstance(assignment, Proposal):
        commit(assignment, context)
    elif isinstance(assignment, Excess):
        commit_excess(assignment, context)
