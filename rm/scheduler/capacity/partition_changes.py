"""What the scheduler does once nodes have other labels (CapacityScheduler.updateNodeLabelsAndQueueResource).

The containers on such a node run on. What they use counts in the new partition, for their application, its user and
the queues above, and a master takes its application's limit for masters along. The node's reservation is given up.
"""

from __future__ import annotations

from rm.scheduler.capacity.activation import change_am_used
from rm.scheduler.completion import unreserved_status
from rm.scheduler.context import SchedulerContext
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.applications import Applications
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.node_labels import LabelChanges
from rm.scheduler.model.rm_container import RMContainer, RMContainerKill


def apply_label_changes(changes: LabelChanges, applications: Applications, context: SchedulerContext) -> None:
    """Bring the nodes under the labels that they have now; a node that keeps its label is treated no other way.

    The caller updates the tree afterwards.
    """
    for node_id, label in changes:
        node = context.nodes.get(node_id)
        if node is not None:
            _relabel(node, label, applications)


def _relabel(node: SchedulerNode, label: str, applications: Applications) -> None:
    for container in node.containers_in_hash_order():
        attempt = applications.attempt_of(container.id.application_id)
        if attempt is not None:
            _count_over(attempt, container, node.partition, label)
    reserved = node.reserved_container
    if reserved is not None:
        applications.complete(reserved, unreserved_status(reserved.id), RMContainerKill)
    node.partition = label


def _count_over(attempt: FiCaSchedulerApp, container: RMContainer, old: str, new: str) -> None:
    """FiCaSchedulerApp.nodePartitionUpdated. What its application has given back already counts over too."""
    size, leaf = container.container.resource, attempt.leaf
    for partition, amount in ((old, -size), (new, size)):
        part = attempt.usage.booked(partition)
        part.used = part.used + amount
    leaf.change_used_of(attempt, old, -size)
    leaf.change_used_of(attempt, new, size)
    if not container.is_am:
        return
    attempt.am_partition = new
    user = leaf.users.users.get(attempt.user)
    for partition, amount in ((old, -size), (new, size)):
        part = attempt.usage.booked(partition)
        part.am_used = part.am_used + amount
        if user is not None:
            change_am_used(leaf, user, partition, amount)
    leaf.pending.size_changed(attempt)
