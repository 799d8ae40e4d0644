"""The cycle of a node's heartbeat, in which nearly everything happens: `NodeHeartbeats.run` has its steps in order."""

from __future__ import annotations

from collections.abc import Sequence

from rm.scheduler.events.cluster_nodes import ClusterNodes
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.placement.visit import Placement, VisitLimits
from rm.scheduler.placement.walk import NodeWalks
from rm.scheduler.preemption.monitor import SchedulingMonitor
from yarn.containers import Container, ContainerStatus
from yarn.ids import ContainerId, NodeId


class NodeHeartbeats:
    """Handles NODE_UPDATE, the scheduler's part of a heartbeat (CapacityScheduler.nodeUpdate)."""

    __slots__ = ("_context", "_monitor", "_nodes", "_placement", "_walks")

    def __init__(
        self,
        context: SchedulerContext,
        nodes: ClusterNodes,
        placement: Placement,
        walks: NodeWalks,
        monitor: SchedulingMonitor,
    ) -> None:
        self._context = context
        self._nodes = nodes
        self._placement = placement
        self._walks = walks
        self._monitor = monitor

    def run(
        self,
        node_id: NodeId,
        launched: Sequence[ContainerId],
        increased: Sequence[Container],
        completed: Sequence[ContainerStatus],
    ) -> None:
        """Carry out one heartbeat: first process the NM's report, then place containers on the node.

        A node that is being decommissioned is visited as well, as in Hadoop: that counts opportunities and gives up
        reservations that are not needed, but the commit refuses all proposals (FiCaSchedulerApp.accept).
        """
        context, placement = self._context, self._placement
        node = context.nodes.get(node_id)

        # 1. Book the NM's report: containers that were started, that grew, that ended. An end frees resources on the
        #    node, in the leaf and its users, and in all queues above.
        self._nodes.take_report(node_id, node, launched, increased, completed)

        # 2. A node that is being decommissioned shrinks to what it runs; one that is too small has containers killed.
        if node is not None:
            self._nodes.adapt_size(node)

        # 3. Place containers, unless walks over all nodes do so (asynchronous scheduling), a restarted RM still waits
        #    for its nodes and AMs, or it is known that nothing would be placed (rm.scheduler.placement.memo).
        if node is not None and self._walks.is_on:
            self._walks.note_heartbeat(node)
        elif node is not None and context.may_place() and placement.begin(node):
            change_count, limits = context.change_count, VisitLimits(context.settings)
            while True:
                # 4. A reserved node serves its reservation, and nothing else.
                if node.reserved_container is not None:
                    placement.serve_reservation(node)
                    break
                # 5. Offer the node down the tree: of each parent's queues the least served first, of a leaf's
                #    applications as its policy orders them, of an application's requests the highest priority first,
                #    node-local before rack-local before off-switch. The first that accepts proposes a container, or
                #    reserves the node for it.
                proposal = placement.propose(node)
                if proposal is None:
                    break
                # 6. Commit the proposal: check the limits of the user and the queues again, then book all or nothing.
                placement.commit(proposal)
                if limits.are_reached_with(proposal):
                    break
            placement.end(node, change_count)

        # 7. Run the round of preemption that is due. Its victims end with the heartbeats of their nodes.
        if context.now_ms >= self._monitor.due_ms:
            self._monitor.run_due()
