"""The end of a container or reservation: who is told, and whose room comes back when.

The queues and the user have the room back at once. The node has it back when its NM has told the end, unless the NM
never told the start. What its AM never saw is asked for again.
"""

from __future__ import annotations

from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.rm_container import RMContainer, RMContainerEnd, RMContainerState
from yarn.containers import ContainerStatus
from yarn.ids import ContainerId
from yarn.states import ContainerExitStatus, ContainerState

RELEASED_BY_AM = "Container released by application"
LOST_NODE = "Container released on a *lost* node"
EXPIRED = "Container expired since it was unused"
COMPLETED_APPLICATION = "Container of a completed application"
PREEMPTED = "Container preempted by scheduler"
UNRESERVED = "Container reservation no longer required."
APPLICATION_COMPLETE = "Application Complete"


def aborted_status(container_id: ContainerId, diagnostics: str) -> ContainerStatus:
    """An end that the ResourceManager makes itself (SchedulerUtils.createAbnormalContainerStatus)."""
    return ContainerStatus(container_id, ContainerState.COMPLETE, ContainerExitStatus.ABORTED, diagnostics)


def unreserved_status(container_id: ContainerId) -> ContainerStatus:
    """The end of a reservation that is not needed any more."""
    return aborted_status(container_id, UNRESERVED)


def preempted_status(container_id: ContainerId) -> ContainerStatus:
    """The end of a container that is taken for others (createPreemptedContainerStatus)."""
    return ContainerStatus(container_id, ContainerState.COMPLETE, ContainerExitStatus.PREEMPTED, PREEMPTED)


def complete_in_queue(
    container: RMContainer,
    status: ContainerStatus,
    event: type[RMContainerEnd],
    application: FiCaSchedulerApp,
    node: SchedulerNode,
) -> None:
    """Take it off its application, node and queues (LeafQueue.completedContainer)."""
    if container.state is RMContainerState.RESERVED:
        removed = unreserve(application, node, container)
        if container.allows(event):
            container.handle(event(status), application.leaf.context.now_ms)
    else:
        removed = _complete_live(container, status, event, application, node.partition)
        node.release_container(container.id, by_node=False)
    if removed:
        _release_in_queues(container, application, node)
    if status.exit_status == ContainerExitStatus.PREEMPTED:
        _note_loss(container, application)
    killables = application.leaf.context.killables
    if killables.is_used:
        killables.remove(container, node.partition, application.leaf.path)


def _note_loss(container: RMContainer, application: FiCaSchedulerApp) -> None:
    """updateQueuePreemptionMetrics, up the tree."""
    lifetime_ms = application.leaf.context.now_ms - container.started_ms
    queue: CSQueue | None = application.leaf
    while queue is not None:
        queue.losses.add(container.resource, lifetime_ms)
        queue = queue.parent


def _release_in_queues(container: RMContainer, application: FiCaSchedulerApp, node: SchedulerNode) -> None:
    size = container.container.resource
    application.leaf.active.usage_changed(application)
    application.leaf.release(application, node.partition, size, container)
    queue: CSQueue | None = application.leaf.parent
    while queue is not None:
        queue.unbook_container(node.partition, size)
        queue = queue.parent


def complete_opportunistic(
    container: RMContainer,
    status: ContainerStatus,
    event: type[RMContainerEnd],
    application: FiCaSchedulerApp,
    node: SchedulerNode | None,
) -> None:
    """Take an opportunistic one off: nothing counted for it."""
    if container.allows(event):
        container.handle(event(status), application.leaf.context.now_ms)
    application.live_containers.pop(container.id, None)
    if node is not None:
        node.release_container(container.id, by_node=False)


def unreserve(application: FiCaSchedulerApp, node: SchedulerNode, reserved: RMContainer) -> bool:
    """Take the reservation off the application, the node and the queues' reserved amounts."""
    if not application.unreserve(reserved.key, node.node_id, node.partition):
        return False
    node.reserved_container = None
    application.leaf.change_reserved_metric(node.partition, -reserved.resource)
    application.leaf.change_reserved(node.partition, -reserved.resource)
    return True


def _complete_live(
    container: RMContainer,
    status: ContainerStatus,
    event: type[RMContainerEnd],
    application: FiCaSchedulerApp,
    partition: str,
) -> bool:
    """Off the application; False if it was not on it any more.

    A container that its AM gives back before it was handed out ends without a word: Hadoop's table has no row for it.
    """
    if application.live_containers.pop(container.id, None) is None:
        return False
    application.newly_allocated.pop(container.id, None)
    application.to_preempt.pop(container.id, None)
    if container.allows(event):
        container.handle(event(status), application.leaf.context.now_ms)
    part = application.usage.booked(partition)
    part.used = part.used - container.container.resource
    return True
