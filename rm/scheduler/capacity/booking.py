"""Books requests, containers and reservations in their leaf, their user and the queues above.

An attempt's requests (AppSchedulingInfo) do not know about queues: they return what has changed, and the functions here
apply the change to pending amounts, and to which users are active.

When a container ends, the queues and the user get its resources back at once. The node gets them back when its NM has
reported the end, or at once if the NM never reported the start. A container that its AM never saw is requested again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from rm.scheduler.capacity.activation import change_am_used
from rm.scheduler.model.application import ApplicationTable, FiCaSchedulerApp
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.node_labels import LabelChanges
from rm.scheduler.model.queue import ParentQueue
from rm.scheduler.model.requests import Change, DemandChange, NodeType, PendingChanged, RequestTerms, SchedulerKey
from rm.scheduler.model.rm_container import RMContainer, RMContainerState
from rm.scheduler.model.rm_container_events import RMContainerEnd, RMContainerKill
from yarn.containers import ContainerStatus, ResourceRequest
from yarn.ids import ContainerId
from yarn.resource import Resource
from yarn.states import ContainerExitStatus, ContainerState


def update_requests(application: FiCaSchedulerApp, requests: Sequence[ResourceRequest]) -> bool:
    """Apply an AM's new rows; True if anything pending changed."""
    is_changed, changes = application.requests.update(requests, application.leaf.context.now_ms)
    _apply(application, changes)
    return is_changed


def put_requests(application: FiCaSchedulerApp, key: SchedulerKey, rows: list[tuple[RequestTerms, int]]) -> None:
    """Replace the rows of one key."""
    _apply(application, application.requests.put(key, rows, application.leaf.context.now_ms))


def restore_requests(application: FiCaSchedulerApp, key: SchedulerKey, terms: Iterable[RequestTerms]) -> None:
    """Request again a container that was lost before its AM saw it."""
    _apply(application, application.requests.restore(key, terms, application.leaf.context.now_ms))


def take_request(
    application: FiCaSchedulerApp, kind: NodeType, node: SchedulerNode, key: SchedulerKey
) -> tuple[RequestTerms, ...]:
    """Subtract a container placed on the node; returns the terms to request it again if it is lost."""
    terms, changes = application.requests.allocate(kind, node.name, node.rack, key)
    _apply(application, changes)
    return terms


def move_requests(application: FiCaSchedulerApp, source: LeafQueue, target: LeafQueue) -> None:
    """Move what is pending to another leaf, and make the user active there instead (AppSchedulingInfo.move)."""
    for partition, amount in application.requests.booked_pending():
        source.change_pending(partition, -amount)
        target.change_pending(partition, amount)
    application_id = application.attempt_id.application_id
    source.users.deactivate_application(application.user, application_id)
    if application.requests.keys:
        target.users.activate_application(application.user, application_id)


def end_requests(application: FiCaSchedulerApp) -> None:
    """Subtract all that an ended attempt had pending. This does not deactivate the user."""
    application.is_stopped = True
    for partition, amount in application.requests.stop():
        application.leaf.change_pending(partition, -amount)


def _apply(application: FiCaSchedulerApp, changes: Iterable[Change]) -> None:
    leaf, application_id = LeafQueue.of(application), application.attempt_id.application_id
    for change in changes:
        if isinstance(change, PendingChanged):
            leaf.change_pending(change.partition, change.amount)
            leaf.active.listener.requests_changed(application_id)
        elif change is DemandChange.STARTED:
            leaf.users.activate_application(application.user, application_id)
        elif change is DemandChange.ENDED:
            leaf.users.deactivate_application(application.user, application_id)
        else:
            leaf.context.pending_miscounted = True


RELEASED_BY_AM = "Container released by application"
LOST_NODE = "Container released on a *lost* node"
EXPIRED = "Container expired since it was unused"
COMPLETED_APPLICATION = "Container of a completed application"
PREEMPTED = "Container preempted by scheduler"
UNRESERVED = "Container reservation no longer required."
APPLICATION_COMPLETE = "Application Complete"


def aborted_status(container_id: ContainerId, diagnostics: str) -> ContainerStatus:
    """The status of a container that the scheduler ends (SchedulerUtils.createAbnormalContainerStatus)."""
    return ContainerStatus(container_id, ContainerState.COMPLETE, ContainerExitStatus.ABORTED, diagnostics)


def unreserved_status(container_id: ContainerId) -> ContainerStatus:
    """The status of a reservation that is no longer needed."""
    return aborted_status(container_id, UNRESERVED)


def preempted_status(container_id: ContainerId) -> ContainerStatus:
    """The status of a preempted container (createPreemptedContainerStatus)."""
    return ContainerStatus(container_id, ContainerState.COMPLETE, ContainerExitStatus.PREEMPTED, PREEMPTED)


def book(
    leaf: LeafQueue,
    application: FiCaSchedulerApp,
    container: RMContainer,
    partition: str,
    amount: Resource,
    applications: ApplicationTable,
) -> None:
    """Charge a container or reservation to the leaf, the user and all queues above (allocateResource).

    If a queue exceeds its maximum with the new one, killable containers below it are killed: they had not been counted.
    """
    leaf.book_container(partition, amount)
    if partition and not container.partition:
        leaf.borrowed.setdefault(partition, {})[container.id] = container
    leaf.users.change_used(application.user, partition, amount)
    parent: ParentQueue | None = leaf.parent
    while parent is not None:
        parent.book_container(partition, amount)
        if parent.context.killables.is_used:
            _enforce_maximum(parent, partition, applications)
        parent = parent.parent


def unbook(
    leaf: LeafQueue, application: FiCaSchedulerApp, container: RMContainer, partition: str, amount: Resource
) -> None:
    """Subtract a container or reservation from the leaf, the user and all queues above (releaseResource)."""
    leaf.unbook_container(partition, amount)
    borrowed = leaf.borrowed.get(partition)
    if borrowed is not None and partition and not container.partition:
        borrowed.pop(container.id, None)
        if not borrowed:
            del leaf.borrowed[partition]
    leaf.users.change_used(application.user, partition, -amount)
    parent: ParentQueue | None = leaf.parent
    while parent is not None:
        parent.unbook_container(partition, amount)
        parent = parent.parent


def _enforce_maximum(queue: ParentQueue, partition: str, applications: ApplicationTable) -> None:
    """Kill killable containers until the queue is within its maximum, in the order of container ids.

    Source: killContainersToEnforceMaxQueueCapacity.
    """
    context, maximum = queue.context, queue.effective_maximum(partition)
    if maximum.is_none():
        own = queue.capacities.at(partition)
        is_above = own.absolute_maximum_capacity < own.absolute_used_capacity
    else:
        is_above = context.calculator.greater(context.cluster_resource, queue.usage.used(partition), maximum)
    if not is_above:
        return
    whole = context.partition_resource(partition)
    for container in context.killables.containers(queue.path, partition):
        if not context.calculator.greater(whole, queue.usage.used(partition), maximum):
            return
        attempt, node = applications.attempt_of(container.id.application_id), context.nodes.get(container.node_id)
        if attempt is not None and node is not None:
            complete_in_queue(container, preempted_status(container.id), RMContainerKill, attempt, node)


def complete(
    container: RMContainer,
    status: ContainerStatus,
    event: type[RMContainerEnd],
    applications: ApplicationTable,
    context: SchedulerContext,
) -> None:
    """End a container or reservation; request again what its AM never saw (completedContainer)."""
    attempt = applications.attempt_of(container.id.application_id)
    if attempt is None:
        return
    node = context.nodes.get(container.node_id)
    if container.is_opportunistic:
        _complete_opportunistic(container, status, event, attempt, node)
    elif node is not None:
        complete_in_queue(container, status, event, attempt, node)
        _complete_reserved_update(status, event, node, applications)
    is_surplus = container.state is RMContainerState.EXPIRED and context.settings.corrects_requests
    if container.asks is not None and not attempt.is_stopped and not is_surplus:
        restore_requests(attempt, container.key, container.asks)


def kill_or_mark(container: RMContainer, applications: ApplicationTable, context: SchedulerContext) -> None:
    """Kill a container; with lazy preemption, mark it to be killed when its resources are needed
    (markContainerForKillable).
    """
    if not context.settings.preemption.lazy:
        complete(container, preempted_status(container.id), RMContainerKill, applications, context)
        return
    node = context.nodes[container.node_id]
    node.mark_killable(container.id)
    attempt = applications.attempt_of(container.id.application_id)
    if attempt is not None:
        context.killables.add(container, node.partition, attempt.leaf.path)


def complete_in_queue(
    container: RMContainer,
    status: ContainerStatus,
    event: type[RMContainerEnd],
    application: FiCaSchedulerApp,
    node: SchedulerNode,
) -> None:
    """Remove a container or reservation from its application, node and queues (LeafQueue.completedContainer)."""
    leaf = LeafQueue.of(application)
    context = leaf.context
    if container.state is RMContainerState.RESERVED:
        removed = unreserve(application, node, container)
        if container.allows(event):
            container.handle(event(status), context.now_ms)
    else:
        removed = _complete_live(container, status, event, application, node.partition)
        node.release_container(container.id, by_node=False)
    if removed:
        leaf.active.usage_changed(application)
        unbook(leaf, application, container, node.partition, container.container.resource)
        context.ended.add(container, context.now_ms)
    if context.health is not None:
        is_preempted = status.exit_status == ContainerExitStatus.PREEMPTED
        context.health.note_end(leaf.path, node.node_id, container.id, is_preempted=is_preempted)
    if status.exit_status == ContainerExitStatus.PREEMPTED:
        # As in updateQueuePreemptionMetrics
        for queue in leaf.and_above():
            queue.losses.add(container.resource, context.now_ms - container.started_ms)
    if context.killables.is_used:
        context.killables.remove(container, node.partition, leaf.path)


def unreserve(application: FiCaSchedulerApp, node: SchedulerNode, reserved: RMContainer) -> bool:
    """Remove the reservation from the application, the node and the queues' amounts; False if there is none."""
    if not application.unreserve(reserved.key, node.node_id, node.partition):
        return False
    node.reserved_container = None
    application.leaf.change_reserved_metric(node.partition, -reserved.resource)
    application.leaf.change_reserved(node.partition, -reserved.resource)
    return True


def _complete_opportunistic(
    container: RMContainer,
    status: ContainerStatus,
    event: type[RMContainerEnd],
    application: FiCaSchedulerApp,
    node: SchedulerNode | None,
) -> None:
    """Remove an opportunistic container, which is charged to no queue."""
    if container.allows(event):
        container.handle(event(status), application.leaf.context.now_ms)
    application.live_containers.pop(container.id, None)
    if node is not None:
        node.release_container(container.id, by_node=False)


def _complete_live(
    container: RMContainer,
    status: ContainerStatus,
    event: type[RMContainerEnd],
    application: FiCaSchedulerApp,
    partition: str,
) -> bool:
    """Remove a container from its application; False if the application no longer holds it.

    A container that its AM releases before acquiring it gets no event: Hadoop's transition table has no row for that.
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


def _complete_reserved_update(
    status: ContainerStatus, event: type[RMContainerEnd], node: SchedulerNode, applications: ApplicationTable
) -> None:
    """End the reservation on the node for an increase of the ended container."""
    reserved = node.reserved_container
    if reserved is None or reserved.key.container_id != status.container_id:
        return
    attempt = applications.attempt_of(reserved.id.application_id)
    if attempt is not None:
        complete_in_queue(reserved, replace(status, container_id=reserved.id), event, attempt, node)


def apply_label_changes(changes: LabelChanges, applications: ApplicationTable, context: SchedulerContext) -> None:
    """Apply the new labels of nodes (CapacityScheduler.updateNodeLabelsAndQueueResource).

    The containers on such a node keep running. Their usage is moved to the new partition, for their application, its
    user and the queues above; an AM's usage moves with it. The node's reservation ends. A node that keeps its label is
    treated the same way. The caller must update the tree afterwards.
    """
    for node_id, label in changes:
        node = context.nodes.get(node_id)
        if node is None:
            continue
        for container in node.containers_in_hash_order():
            attempt = applications.attempt_of(container.id.application_id)
            if attempt is not None:
                _change_partition(attempt, container, node.partition, label)
        reserved = node.reserved_container
        if reserved is not None:
            complete(reserved, unreserved_status(reserved.id), RMContainerKill, applications, context)
        node.update_partition(label)


def _change_partition(attempt: FiCaSchedulerApp, container: RMContainer, old: str, new: str) -> None:
    """Move the usage of a node's containers to its new partition (FiCaSchedulerApp.nodePartitionUpdated).

    This includes containers that the application has already released.
    """
    size, leaf = container.container.resource, LeafQueue.of(attempt)
    for partition, amount in ((old, -size), (new, size)):
        part = attempt.usage.booked(partition)
        part.used = part.used + amount
        leaf.users.change_used(attempt.user, partition, amount)
        leaf.change_used(partition, amount)
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
