"""Moving a living application to another leaf, and giving it another priority (CapacityScheduler).

A move books what the application holds over, container by container, then ends its attempt in the one leaf and
submits it to the other, where it waits for activation like a new one. What Hadoop leaves behind is left behind here:
the queues' reserved amounts stay with the source, and the headroom is the source's until a visit looks at it anew.
"""

from __future__ import annotations

from rm.scheduler.context import SchedulerContext
from rm.scheduler.model.application import FiCaSchedulerApp, SchedulerApplication
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.queue_tree import QueueTree
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.model.usage import NO_LABEL
from yarn.errors import AccessControlException, YarnException
from yarn.ids import ApplicationId
from yarn.java.hash_order import hash_order, string_hash


def target_leaf(name: str, tree: QueueTree) -> LeafQueue:
    """The leaf of a path or unambiguous short name; raises YarnException (getAndCheckLeafQueue)."""
    name = tree.behind_plan(name)
    found = tree.get(name)
    if found is None:
        raise YarnException(f"The specified Queue: {name} doesn't exist")
    if not isinstance(found, LeafQueue):
        raise YarnException(f"The specified Queue: {name} is not a Leaf Queue.")
    return found


def move(application_id: ApplicationId, application: SchedulerApplication, target: LeafQueue) -> None:
    """Move it. Raises YarnException, with nothing moved, if the target takes no (more) applications, or not its labels.

    The move to the leaf that it is in does all that a move does.
    """
    source, attempt = application.leaf, application.current_attempt
    if attempt is not None and source.context.labels.enabled:
        _check_labels(attempt, target)
    try:
        target.check_submission(application_id, application.user)
    except AccessControlException as refusal:
        raise YarnException(f"{refusal.java_class}: {refusal.message}") from None
    target.parent.add_application()
    if attempt is not None:
        _move_containers(attempt, source, target)
        if not attempt.is_stopped:
            source.finish_attempt(attempt)
            target.submit_attempt(attempt)
        _hand_over(attempt, source, target)
    source.application_finished()
    source.parent.finish_application()
    application.leaf = target


def change_priority(application: SchedulerApplication, priority: int) -> None:
    """Order the current attempt anew by `priority`; nothing if the application was submitted with it.

    One in neither list (it waits for fewer applications to run) is put among those that wait for activation.
    """
    attempt = application.current_attempt
    if application.priority == priority or attempt is None:
        return
    leaf = application.leaf
    if not leaf.active.remove(attempt):
        leaf.pending.change_priority(attempt, priority)
        return
    attempt.priority = priority
    leaf.active.add(attempt)


def _check_labels(attempt: FiCaSchedulerApp, target: LeafQueue) -> None:
    """Raises YarnException if the attempt ever asked for a label that the target may not use (checkQueuePartition).

    That it asked for no label is forgotten by this, as in Hadoop; its headroom shows it.
    """
    asked, accessible = attempt.asks.requested_partitions, target.configuration.accessible_labels
    asked.pop(NO_LABEL, None)
    refused = [label for label in hash_order(asked, string_hash) if not target.configuration.may_use(label)]
    if refused:
        labels = ", ".join(hash_order(accessible, string_hash))
        raise YarnException(
            f"Specified queue={target.path} can't satisfy following apps label expressions =[{', '.join(refused)}] "
            f"accessible node labels =[{labels}]"
        )


def _move_containers(attempt: FiCaSchedulerApp, source: LeafQueue, target: LeafQueue) -> None:
    """What it holds and what is reserved for it counts in the target, one container after the other."""
    guaranteed = [container for container in attempt.live_in_hash_order() if not container.is_opportunistic]
    for container in (*guaranteed, *attempt.reserved_containers):
        partition = _partition_of_node(container, source.context)
        size = container.container.resource
        source.release(attempt, partition, size, container)
        queue: CSQueue | None = source.parent
        while queue is not None:
            queue.unbook_container(partition, size)
            queue = queue.parent
        target.allocate(attempt, partition, size, container)
        queue = target.parent
        while queue is not None:
            queue.book_container(partition, size)
            queue = queue.parent


def _hand_over(attempt: FiCaSchedulerApp, source: LeafQueue, target: LeafQueue) -> None:
    """The attempt itself, its asks, and the metric of reservations (SchedulerApplicationAttempt.move)."""
    for container in (*attempt.live_containers.values(), *attempt.reserved_containers):
        container.queue = target.path
    for container in attempt.reserved_containers:
        source.change_reserved_metric(container.partition, -container.resource)
        target.change_reserved_metric(container.partition, container.resource)
    if not attempt.is_stopped:
        attempt.asks.move(target)
    attempt.leaf = target


def _partition_of_node(container: RMContainer, context: SchedulerContext) -> str:
    return context.nodes[container.node_id].partition
