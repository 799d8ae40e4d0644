"""Handles the scheduler's events of nodes: joining, leaving, changes of size and label, and container reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rm.scheduler.capacity.booking import LOST_NODE, aborted_status, apply_label_changes, complete, kill_or_mark
from rm.scheduler.model.application import ApplicationTable
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.node import NodeTracker, SchedulerNode
from rm.scheduler.model.node_labels import LabelChanges
from rm.scheduler.model.notices import (
    CleanUpContainer,
    ContainerUntracked,
    NodeOvercommitted,
    NodesRemapped,
    NodeUtilizationChanged,
)
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.model.rm_container_events import (
    NMDoneChangeResource,
    RMContainerEnd,
    RMContainerFinished,
    RMContainerKill,
    RMContainerLaunched,
)
from rm.scheduler.queues.queue_tree import QueueTree
from yarn.containers import Container, ContainerStatus
from yarn.ids import ContainerId, NodeId
from yarn.resource import Resource


class ClusterNodes:
    """Handles the events of nodes. `context.nodes` has the present nodes."""

    __slots__ = ("_applications", "_context", "_tracker", "_tree")

    def __init__(
        self, context: SchedulerContext, tracker: NodeTracker, tree: QueueTree, applications: ApplicationTable
    ) -> None:
        self._context = context
        self._tracker = tracker
        self._tree = tree
        self._applications = applications

    def add(self, node_id: NodeId, rack: str, total: Resource, http_address: str) -> None:
        """Add an empty node."""
        context = self._context
        name = str(node_id) if context.settings.include_port_in_node_name else node_id.host
        total = context.settings.resource_types.complete(total)
        node = SchedulerNode(node_id, name, rack, total, http_address)
        node.heard_ms = context.now_ms
        node.partition = context.labels.label_of(node_id)
        context.notify(NodesRemapped(context.labels.activate(node_id, total)))
        self._tracker.add(node)
        context.nodes_peak = max(context.nodes_peak, len(context.nodes))
        context.cluster_resource = context.cluster_resource + total
        self._tree.update_cluster_resource()

    def remove(self, node_id: NodeId) -> None:
        """Remove a node and kill its containers (-100, "Container released on a *lost* node").

        If the node was removed before, because its NM was unhealthy, only its labels are updated.
        """
        context = self._context
        context.notify(NodesRemapped(context.labels.deactivate(node_id)))
        node = context.nodes.get(node_id)
        if node is None:
            return
        for container in node.containers_in_hash_order():
            self._complete(container, aborted_status(container.id, LOST_NODE), RMContainerKill)
            node.release_container(container.id, by_node=True)
        reserved = node.reserved_container
        if reserved is not None:
            self._complete(reserved, aborted_status(reserved.id, LOST_NODE), RMContainerKill)
        self._tracker.remove(node_id)
        context.cluster_resource = context.cluster_resource - node.total
        self._tree.update_cluster_resource()

    def resize(self, node_id: NodeId, total: Resource, over_commit_timeout_ms: int) -> None:
        """Change the node's size (updateNodeResource). If it is too small then, containers stay, unless a timeout from
        0 on says when they are killed.

        A changed node is removed from its partition and added again; a notice is sent for each of the two. The queues
        calculate their limits again even if the scheduler does not have the node, as when an unhealthy node is
        recommissioned (CapacityScheduler.updateNodeAndQueueResource).
        """
        node = self._context.nodes.get(node_id)
        if node is not None:
            self._resize(node, self._context.settings.resource_types.complete(total), over_commit_timeout_ms)
        self._tree.update_cluster_resource()

    def _resize(self, node: SchedulerNode, total: Resource, over_commit_timeout_ms: int) -> None:
        context, change = self._context, total - node.total
        if change.is_none():
            return
        context.notify(NodesRemapped(context.labels.deactivate(node.node_id)))
        context.notify(NodesRemapped(context.labels.activate(node.node_id, total)))
        node.update_total(total)
        if over_commit_timeout_ms >= 0:
            node.over_commit_ends_ms = context.now_ms + over_commit_timeout_ms
        self._signal_overcommitted(node, kills=over_commit_timeout_ms == 0)
        self._tracker.recount()
        context.cluster_resource = context.cluster_resource + change

    def note_state(self, node_id: NodeId, *, is_running: bool) -> None:
        """Note whether the node is RUNNING."""
        node = self._context.nodes.get(node_id)
        if node is not None and node.is_running is not is_running:
            node.is_running = is_running
            self._context.note_change()
            node.note_change()

    def _signal_overcommitted(self, node: SchedulerNode, *, kills: bool) -> None:
        """Kill containers, or ask AMs to release them, until the others fit (signalContainersIfOvercommitted).

        As in Hadoop that is so on each node that ever got a size with such a timeout, until the node leaves.
        """
        context, ends_ms, free = self._context, node.over_commit_ends_ms, node.unallocated
        if ends_ms is None or (kills and context.now_ms < ends_ms):
            return
        fits_in = context.calculator.fits_in
        if fits_in(context.none, free):
            return
        for container in node.containers_to_kill():
            context.notify(NodeOvercommitted(node.node_id, container.id, kills))
            free = free + container.resource
            if fits_in(context.none, free):
                return

    def end_overcommitment(self, node_id: NodeId, container_id: ContainerId, *, kills: bool) -> None:
        """Kill a container of a node that is too small, or ask its AM to release it."""
        node = self._context.nodes.get(node_id)
        container = node.containers.get(container_id) if node is not None else None
        attempt = self._applications.attempt_of(container_id.application_id)
        if container is not None and kills:
            self._context.note_change()
            kill_or_mark(container, self._applications, self._context)
        elif container is not None and attempt is not None:
            attempt.mark_for_preemption(container_id)

    def relabel(self, labels: Mapping[NodeId, Sequence[str]]) -> None:
        """Replace labels of nodes. Raises YarnException; then nothing was changed."""
        changes = self._context.labels.replace(labels)
        if changes is not None:
            self._context.notify(NodesRemapped(changes))

    def remove_labels(self, names: Iterable[str]) -> None:
        """Remove labels, also from their nodes. Raises YarnException; then nothing was changed."""
        used = {path: queue.configuration.accessible_labels for path, queue in self._tree.by_path.items()}
        self._context.notify(NodesRemapped(self._context.labels.remove(names, used)))

    def remapped(self, changes: LabelChanges) -> None:
        """Rebook the containers on nodes whose label changed, and update the queues.

        The update recounts waiting users, which may allow more applications to be activated.
        """
        apply_label_changes(changes, self._applications, self._context)
        self._tree.update_cluster_resource()

    def take_report(
        self,
        node_id: NodeId,
        node: SchedulerNode | None,
        launched: Sequence[ContainerId],
        increased: Sequence[Container],
        completed: Sequence[ContainerStatus],
    ) -> None:
        """Book the container reports of the node's NM; ignored if the node has left."""
        context = self._context
        if launched or increased or completed:
            context.note_change()
        for container_id in launched:
            self._container_launched(container_id, node_id, node)
        for reported in increased:
            self._container_increased(reported, node_id)
        for status in completed:
            container = self._container_on(node_id, status.container_id)
            if container is not None:
                self._complete(container, status, RMContainerFinished)
            else:
                context.notify(ContainerUntracked(node_id, status.container_id))
            if node is not None:
                node.release_container(status.container_id, by_node=True)

    def adapt_size(self, node: SchedulerNode) -> None:
        """Shrink a node that is not RUNNING to the amount in use; kill containers of a node that is too small.

        As in AbstractYarnScheduler.nodeUpdate, the node shrinks only after the visit of this heartbeat.
        """
        if not node.is_running and node.total != node.allocated:
            self._context.notify(NodeUtilizationChanged(node.node_id, node.allocated))
        self._signal_overcommitted(node, kills=True)

    def _complete(self, container: RMContainer, status: ContainerStatus, event: type[RMContainerEnd]) -> None:
        complete(container, status, event, self._applications, self._context)

    def _container_on(self, node_id: NodeId, container_id: ContainerId) -> RMContainer | None:
        """The live container if it is on that node, else None: a node's reports about containers of other nodes are
        ignored.

        Hadoop does not check this, so there one node can end the containers of another.
        """
        container = self._applications.container(container_id)
        return container if container is not None and container.node_id == node_id else None

    def _container_launched(self, container_id: ContainerId, node_id: NodeId, node: SchedulerNode | None) -> None:
        """Handle the NM's first report of a container; the NM must stop one that is unknown or on another node."""
        context = self._context
        attempt = self._applications.attempt_of(container_id.application_id)
        container = self._container_on(node_id, container_id)
        if container is None:
            context.notify(CleanUpContainer(node_id, container_id))
        elif container.allows(RMContainerLaunched):
            container.handle(RMContainerLaunched(), context.now_ms)
        if attempt is not None and node is not None:
            node.container_launched(container_id)

    def _container_increased(self, reported: Container, node_id: NodeId) -> None:
        """Handle the NM's report of an increased container (containerIncreasedOnNode)."""
        container = self._container_on(node_id, reported.id)
        if container is None:
            self._context.notify(CleanUpContainer(node_id, reported.id))
        elif container.allows(NMDoneChangeResource):
            container.handle(NMDoneChangeResource(reported.resource), self._context.now_ms)
