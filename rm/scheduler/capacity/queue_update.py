"""Updates queues when the cluster or their configuration changes: shares, amounts, limits, activation.

In legacy queue mode the update goes from parent to children, and each queue computes its own shares and amounts
(effective_capacity.py). Otherwise a parent divides its amounts among all its children at once
(resource_calculation.py).
"""

from __future__ import annotations

from rm.scheduler.capacity.activation import activate_applications, maximum_applications, maximum_for_a_user
from rm.scheduler.capacity.effective_capacity import (
    minimum_ratios,
    normalize_weights,
    update_absolute_capacities,
    update_effective_resources,
)
from rm.scheduler.capacity.limits import available_to_children, limits_of_child, note_user_limit, set_current_limit
from rm.scheduler.capacity.resource_calculation import calculate_children, calculate_root
from rm.scheduler.config.queue_configuration import PRIORITY_UTILIZATION, QueueConfiguration
from rm.scheduler.model.application_order import FifoOrderingPolicy, ordering_policy
from rm.scheduler.model.context import RESPECT
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.usage import ResourceLimits
from yarn.nodes import NO_LABEL


def update_cluster_resource(queue: CSQueue, limits: ResourceLimits) -> None:
    """Update shares, amounts and limits of this queue and all below, after a change of cluster or configuration."""
    if not queue.context.settings.legacy_queue_mode:
        _update_by_vectors(queue, limits)
    elif isinstance(queue, ParentQueue):
        _update_parent(queue, limits)
    elif isinstance(queue, LeafQueue):
        update_absolute_capacities(queue)
        update_effective_resources(queue)
        _limit_applications(queue, is_capacity_known=True)
        _follow_limit(queue, limits)


def _update_parent(parent: ParentQueue, limits: ResourceLimits) -> None:
    """Update the queue's own shares and amounts, then those of the queues below."""
    normalize_weights(parent)
    update_absolute_capacities(parent)
    update_effective_resources(parent)
    for partition in parent.configured_partitions:
        parent.ratios[partition] = minimum_ratios(parent, partition)
    available = available_to_children(parent, limits, NO_LABEL, net=False)
    for child in parent.children:
        update_cluster_resource(child, limits_of_child(child, available, NO_LABEL))
    parent.update_used_capacities()


def _update_by_vectors(queue: CSQueue, limits: ResourceLimits) -> None:
    """Compute the root's amounts from the cluster; those of another queue, with its siblings, from their parent."""
    if isinstance(queue, ParentQueue):
        limits = ResourceLimits(queue.context.cluster_resource, queue.context.none)
        if queue.parent is None:
            calculate_root(queue)
            queue.update_used_capacities()
        _update_children(queue.parent or queue, limits)
    elif queue.parent is not None:
        _update_children(queue.parent, limits)


def _update_children(parent: ParentQueue, limits: ResourceLimits) -> None:
    """Compute the amounts of all queues below from the parent's (CapacitySchedulerQueueCapacityHandler.update)."""
    parent.warnings = calculate_children(parent)
    available = available_to_children(parent, limits, NO_LABEL, net=False)
    for child in parent.children:
        child_limits = limits_of_child(child, available, NO_LABEL)
        _refresh_after_calculation(child, child_limits)
        if isinstance(child, ParentQueue):
            _update_children(child, child_limits)


def _refresh_after_calculation(queue: CSQueue, limits: ResourceLimits) -> None:
    """Update all that depends on newly calculated amounts (refreshAfterResourceCalculation)."""
    if isinstance(queue, LeafQueue):
        # In an empty cluster shares cannot be computed, so they cannot limit applications.
        cluster = queue.context.cluster_resource
        _limit_applications(queue, is_capacity_known=any(value > 0 for value in cluster.values()))
        _follow_limit(queue, limits)
    else:
        queue.update_used_capacities()


def _limit_applications(leaf: LeafQueue, *, is_capacity_known: bool) -> None:
    most = leaf.maximum_applications = maximum_applications(leaf, is_capacity_known=is_capacity_known)
    leaf.maximum_applications_per_user = maximum_for_a_user(leaf, most)


def _follow_limit(leaf: LeafQueue, limits: ResourceLimits) -> None:
    leaf.last_cluster_resource = leaf.context.cluster_resource
    set_current_limit(leaf, limits.limit)
    leaf.copied_limit = leaf.current_limit
    for partition in leaf.known_partitions():
        leaf.users.rebuild_ratio(partition)
    leaf.update_used_capacities()
    activate_applications(leaf)
    leaf.users.note_change()
    for application in leaf.active:
        note_user_limit(leaf, application, NO_LABEL, RESPECT, None)


def configure(queue: CSQueue, configuration: QueueConfiguration) -> None:
    """Apply a configuration (setupQueueConfigs); amounts change at the next update of the cluster."""
    if isinstance(queue, ParentQueue):
        queue.orders_by_priority = configuration.ordering_policy == PRIORITY_UTILIZATION
    queue.configuration = configuration
    queue.capacities.configure(configuration.capacities)
    update_absolute_capacities(queue)
    queue.update_used_capacities()
    if isinstance(queue, LeafQueue):
        _configure_leaf(queue, configuration)


def _configure_leaf(leaf: LeafQueue, configuration: QueueConfiguration) -> None:
    context = leaf.context
    leaf.last_cluster_resource = context.cluster_resource
    leaf.current_limit = leaf.copied_limit = context.cluster_resource
    reorder(leaf, ordering_policy(configuration))
    leaf.shape.user_limit = configuration.user_limit
    leaf.shape.user_limit_factor = configuration.user_limit_factor
    leaf.shape.weights = configuration.user_weights
    maximum = configuration.maximum_allocation
    leaf.minimum_allocation_factor = context.calculator.ratio(maximum - context.minimum_allocation, maximum)
    leaf.users.refresh_weights()


def reorder(leaf: LeafQueue, policy: FifoOrderingPolicy) -> None:
    """Order the leaf's active applications by another policy, until its queue is configured again."""
    for application in leaf.active:
        policy.add(application)
    leaf.active = policy
    leaf.context.note_change()
