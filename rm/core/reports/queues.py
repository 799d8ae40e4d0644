"""Reports to clients about queues: functions of the context that change nothing.

Source: AbstractCSQueue.getQueueInfo, ParentQueue.getQueueInfo, ClientRMService.getQueueInfo.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from rm.core.context import RMContext
from rm.core.events import Asker
from rm.core.reports import applications as reports
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue, ParentQueue
from yarn.applications import ApplicationFilter, ApplicationReport
from yarn.containers import ANY
from yarn.nodes import NO_LABEL
from yarn.protocols.client import QueueInfoRequest, QueueUserAcls
from yarn.queues import QueueInfo, QueuePartition, QueueStatistics
from yarn.states import ApplicationsRequestScope, QueueACL, YarnApplicationState

ROOT = "root"


def queue_info(context: RMContext, request: QueueInfoRequest, asker: Asker | None = None) -> QueueInfo | None:
    """The queue with that path or unambiguous short name; None if there is none.

    Applications that the asker may not view are omitted.
    """
    queue = context.scheduler.queue(request.queue)
    if queue is None:
        return None
    depth = -1 if request.recursive else int(request.children)
    info = _queue_info(context, queue, depth)
    if not request.applications:
        return info
    return replace(info, applications=_applications_below(context, queue, asker))


def queue_user_acls(context: RMContext, user: str, groups: tuple[str, ...]) -> tuple[QueueUserAcls, ...]:
    """The user's permissions in each queue; a queue comes before its children (ParentQueue.getQueueUserAclInfo)."""
    root = context.scheduler.queue(ROOT)
    assert root is not None
    return tuple(
        QueueUserAcls(
            queue.path,
            frozenset(acl for acl in QueueACL if context.queue_acls.has_access(queue.path, acl, user, groups)),
        )
        for queue in with_all_below(root)
    )


def _queue_info(context: RMContext, queue: CSQueue, depth: int) -> QueueInfo:
    """A queue with `depth` levels of children; negative: all levels."""
    shares = queue.capacities.at(NO_LABEL)
    below = queue.children if isinstance(queue, ParentQueue) and depth != 0 else ()
    return QueueInfo(
        queue.name,
        queue.path,
        queue.state,
        capacity=shares.capacity,
        maximum_capacity=shares.maximum_capacity,
        current_capacity=shares.used_capacity,
        absolute_capacity=shares.absolute_capacity,
        absolute_maximum_capacity=shares.absolute_maximum_capacity,
        absolute_used_capacity=shares.absolute_used_capacity,
        statistics=queue_statistics(context, queue),
        children=tuple(_queue_info(context, child, depth - 1) for child in below),
        accessible_labels=frozenset(queue.configuration.accessible_labels),
        default_label_expression=queue.configuration.default_label or "",
        preemption_disabled=queue.configuration.preemption_disabled,
        intra_queue_preemption_disabled=queue.configuration.intra_queue_preemption_disabled,
        weight=shares.weight,
        max_parallel_apps=queue.configuration.max_parallel_apps,
        maximum_am_percent=shares.maximum_am_percent,
        configured_minimum=queue.configured_minimum(NO_LABEL),
        configured_maximum=queue.configured_maximum(NO_LABEL),
        effective_minimum=shares.effective_minimum,
        effective_maximum=shares.effective_maximum,
        partitions=tuple(_partition(queue, label) for label in _labels_of(context, queue)),
    )


def _labels_of(context: RMContext, queue: CSQueue) -> tuple[str, ...]:
    """The labels that the queue may use: all labels of the cluster for `*` (AbstractCSQueue.getNodeLabelsForQueue)."""
    labels = tuple(label.name for label in context.scheduler.labels.cluster_labels())
    return tuple(label for label in labels if queue.configuration.may_use(label))


def _partition(queue: CSQueue, label: str) -> QueuePartition:
    shares = queue.capacities.at(label)
    return QueuePartition(
        label,
        shares.capacity,
        shares.maximum_capacity,
        shares.absolute_capacity,
        shares.absolute_maximum_capacity,
        shares.effective_minimum,
        shares.effective_maximum,
        shares.maximum_am_percent,
        queue.configured_minimum(label),
        queue.configured_maximum(label),
    )


def _applications_below(context: RMContext, queue: CSQueue, asker: Asker | None) -> tuple[ApplicationReport, ...]:
    """The applications in the queue and all queues below it, in the order of submission."""
    paths = frozenset(leaf.path for leaf in leaves_of(queue))
    live = frozenset(attempt_id.application_id for leaf in leaves_of(queue) for attempt_id in leaf.attempts)
    found = reports.applications(
        context, ApplicationFilter(queues=paths, scope=ApplicationsRequestScope.VIEWABLE), asker
    )
    return tuple(report for report in found if report.application_id in live)


def queue_statistics(context: RMContext, queue: CSQueue) -> QueueStatistics:
    """The queue's statistics, as QueueMetrics counts them.

    Finished applications are counted as long as the RM remembers them. Running ones are those that the scheduler has
    activated. Amounts are those of nodes without a label.
    """
    leaves = list(leaves_of(queue))
    states = _states(context, frozenset(leaf.path for leaf in leaves))
    attempts = [attempt for leaf in leaves for attempt in leaf.attempts.values()]
    used, reserved, pending = queue.usage.used(NO_LABEL), queue.reserved_metric, queue.usage.pending(NO_LABEL)
    available = queue.effective_minimum(NO_LABEL) - used
    return QueueStatistics(
        apps_submitted=states.total(),
        apps_running=sum(leaf.active_count for leaf in leaves),
        apps_pending=sum(leaf.pending_count + len(leaf.held_back) for leaf in leaves),
        apps_completed=states[YarnApplicationState.FINISHED],
        apps_killed=states[YarnApplicationState.KILLED],
        apps_failed=states[YarnApplicationState.FAILED],
        active_users=len({attempt.user for attempt in attempts if requested_containers(attempt)}),
        available_memory_mb=max(0, available.memory_mb),
        allocated_memory_mb=used.memory_mb - reserved.memory_mb,
        pending_memory_mb=pending.memory_mb,
        reserved_memory_mb=reserved.memory_mb,
        available_vcores=max(0, available.vcores),
        allocated_vcores=used.vcores - reserved.vcores,
        pending_vcores=pending.vcores,
        reserved_vcores=reserved.vcores,
        allocated_containers=_sum(attempts, lambda attempt: len(attempt.live_containers)),
        pending_containers=_sum(attempts, requested_containers),
        reserved_containers=_sum(attempts, lambda attempt: len(attempt.reserved)),
    )


def _states(context: RMContext, paths: frozenset[str]) -> Counter[YarnApplicationState]:
    return Counter(reports.application_state(app) for app in context.apps.values() if app.queue in paths)


def with_all_below(queue: CSQueue) -> Iterable[CSQueue]:
    """The queue, and all queues below it, in the order of the tree."""
    yield queue
    if isinstance(queue, ParentQueue):
        for child in queue.children:
            yield from with_all_below(child)


def leaves_of(queue: CSQueue) -> Iterable[LeafQueue]:
    return (below for below in with_all_below(queue) if isinstance(below, LeafQueue))


def requested_containers(attempt: FiCaSchedulerApp) -> int:
    """The number of containers that the attempt requests and does not have."""
    return sum(row.count for _, row in attempt.requests.rows() if row.terms.resource_name == ANY)


def _sum(attempts: Iterable[FiCaSchedulerApp], count: Callable[[FiCaSchedulerApp], int]) -> int:
    return sum(count(attempt) for attempt in attempts)
