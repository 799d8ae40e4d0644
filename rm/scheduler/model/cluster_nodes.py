"""The nodes of the cluster: how they join, leave, change size and label, report, and what it means for containers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rm.scheduler.capacity.partition_changes import apply_label_changes
from rm.scheduler.completion import LOST_NODE, aborted_status
from rm.scheduler.context import SchedulerContext
from rm.scheduler.model.applications import Applications
from rm.scheduler.model.node import NodeTracker, SchedulerNode
from rm.scheduler.model.node_labels import LabelChanges
from rm.scheduler.model.notices import CleanUpContainer, ContainerUntracked, NodesRemapped, RoomTaken
from rm.scheduler.model.queue_tree import QueueTree
from rm.scheduler.model.rm_container import (
    NMDoneChangeResource,
    RMContainer,
    RMContainerFinished,
    RMContainerKill,
    RMContainerLaunched,
)
from rm.scheduler.placement.node_visit import allocate_containers_to_node
from yarn.containers import Container, ContainerStatus
from yarn.ids import ContainerId, NodeId
from yarn.resource import Resource


class ClusterNodes:
    """What happens to nodes. `context.nodes` are those there are."""

    __slots__ = ("_applications", "_context", "_tracker", "_tree")

    def __init__(
        self, context: SchedulerContext, tracker: NodeTracker, tree: QueueTree, applications: Applications
    ) -> None:
        self._context = context
        self._tracker = tracker
        self._tree = tree
        self._applications = applications

    def add(self, node_id: NodeId, rack: str, total: Resource, http_address: str) -> None:
        """An empty node joins."""
        context = self._context
        name = str(node_id) if context.settings.include_port_in_node_name else node_id.host
        total = context.settings.resource_types.complete(total)
        node = SchedulerNode(node_id, name, rack, total, http_address)
        node.partition = context.labels.label_of(node_id)
        context.notify(NodesRemapped(context.labels.activate(node_id, total)))
        self._tracker.add(node)
        context.nodes_peak = max(context.nodes_peak, len(context.nodes))
        context.cluster_resource = context.cluster_resource + total
        self._tree.update_cluster_resource()

    def remove(self, node_id: NodeId) -> None:
        """Its containers are killed (-100, "Container released on a *lost* node").

        Told of one that is gone already, as when its NM registers anew while unhealthy, all are looked at again.
        """
        context = self._context
        context.notify(NodesRemapped(context.labels.deactivate(node_id)))
        node = context.nodes.get(node_id)
        if node is None:
            return
        for container in node.containers_in_hash_order():
            self._applications.complete(container, aborted_status(container.id, LOST_NODE), RMContainerKill)
            node.release_container(container.id, by_node=True)
        reserved = node.reserved_container
        if reserved is not None:
            self._applications.complete(reserved, aborted_status(reserved.id, LOST_NODE), RMContainerKill)
        self._tracker.remove(node_id)
        context.cluster_resource = context.cluster_resource - node.total
        self._tree.update_cluster_resource()

    def resize(self, node_id: NodeId, total: Resource) -> None:
        """Containers stay; a change takes the node out of its partition and puts it back, and tells of both."""
        context = self._context
        node = context.nodes.get(node_id)
        if node is None:
            return
        total = context.settings.resource_types.complete(total)
        change = total - node.total
        if not change.is_none():
            context.notify(NodesRemapped(context.labels.deactivate(node_id)))
            context.notify(NodesRemapped(context.labels.activate(node_id, total)))
            node.update_total(total)
            self._tracker.recount()
            context.cluster_resource = context.cluster_resource + change
        self._tree.update_cluster_resource()

    def relabel(self, labels: Mapping[NodeId, Sequence[str]]) -> None:
        """Give nodes other labels. Raises YarnException, with nothing changed."""
        changes = self._context.labels.replace(labels)
        if changes is not None:
            self._context.notify(NodesRemapped(changes))

    def remove_labels(self, names: Iterable[str]) -> None:
        """Labels go, from their nodes too. Raises YarnException, with nothing changed."""
        used = {path: queue.configuration.accessible_labels for path, queue in self._tree.by_path.items()}
        self._context.notify(NodesRemapped(self._context.labels.remove(names, used)))

    def remapped(self, changes: LabelChanges) -> None:
        """Moves what is on nodes with other labels, and has the queues look again: applications may start that could
        not before the first look counted who waits."""
        apply_label_changes(changes, self._applications, self._context)
        self._tree.update_cluster_resource()

    def update(
        self,
        node_id: NodeId,
        launched: Sequence[ContainerId],
        increased: Sequence[Container],
        completed: Sequence[ContainerStatus],
        *,
        is_leaving: bool = False,
    ) -> None:
        """Notes what the NM reported, then places containers on the node."""
        context = self._context
        node = context.nodes.get(node_id)
        if launched or increased or completed:
            context.revision += 1
        for container_id in launched:
            self._container_launched(container_id, node_id, node)
        for reported in increased:
            self._container_increased(reported, node_id)
        for status in completed:
            container = self._container_on(node_id, status.container_id)
            if container is not None:
                self._applications.complete(container, status, RMContainerFinished)
            else:
                context.notify(ContainerUntracked(node_id, status.container_id))
            if node is not None:
                node.release_container(status.container_id, by_node=True)
        if node is not None and is_leaving and node.total != node.allocated:
            # AbstractYarnScheduler.nodeUpdate: its size becomes what is in use. This takes effect after the placement
            # of this very heartbeat, as in Hadoop.
            context.notify(RoomTaken(node_id, node.allocated))
        if node is not None and context.may_place():
            allocate_containers_to_node(node, self._tree, self._applications.by_id, context)

    def _container_on(self, node_id: NodeId, container_id: ContainerId) -> RMContainer | None:
        """A live container if it is on that node: what a node reports of others' containers changes nothing.

        Hadoop does not compare, so that one node can end the containers of another.
        """
        container = self._applications.container(container_id)
        return container if container is not None and container.node_id == node_id else None

    def _container_launched(self, container_id: ContainerId, node_id: NodeId, node: SchedulerNode | None) -> None:
        """The NM reports it for the first time; what is not known, or is on another node, is to be ended."""
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
        """The NM has let it grow (containerIncreasedOnNode)."""
        container = self._container_on(node_id, reported.id)
        if container is None:
            self._context.notify(CleanUpContainer(node_id, reported.id))
        elif container.allows(NMDoneChangeResource):
            container.handle(NMDoneChangeResource(reported.resource), self._context.now_ms)
