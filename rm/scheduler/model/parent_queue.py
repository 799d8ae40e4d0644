"""A queue of queues: it offers a node to its children, the least served first (ParentQueue)."""

from __future__ import annotations

from operator import attrgetter

from rm.scheduler.capacity.effective_capacity import (
    Ratios,
    minimum_ratios,
    normalize_weights,
    update_absolute_capacities,
)
from rm.scheduler.completion import complete_in_queue, preempted_status
from rm.scheduler.config.queue_configuration import PRIORITY_UTILIZATION, QueueConfiguration
from rm.scheduler.context import RESPECT, SchedulerContext, SchedulingMode
from rm.scheduler.model.assignment import Assignment, Proposal, Skipped
from rm.scheduler.model.limits import ResourceLimits
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.resource_calculation import CapacityWarning, calculate_children, calculate_root
from rm.scheduler.model.rm_container import RMContainerKill
from rm.scheduler.model.usage import NO_LABEL
from rm.scheduler.view.reasons import Reason
from yarn.errors import AccessControlException
from yarn.ids import ApplicationId
from yarn.resource import Resource
from yarn.states import QueueState

_BY_SORT_KEY = attrgetter("sort_key")


class ParentQueue(CSQueue):
    """`children` in the order that decides ties: the file's at the start, Java's hash order after a refresh.

    `allow_zero_capacity_sum` is that of the queue's making: a refresh does not change it, as in Hadoop.
    `orders_by_priority`: the policy is priority-utilization. `ratios` {partition: by how much the children's amounts
    are scaled}; `runnable_count`: attempts below that are not parked. `warnings`: what the children are not given as
    it is written, without legacy queue mode.
    """

    __slots__ = (
        "allow_zero_capacity_sum",
        "application_count",
        "children",
        "orders_by_priority",
        "ratios",
        "runnable_count",
        "warnings",
    )

    def __init__(
        self, configuration: QueueConfiguration, parent: ParentQueue | None, context: SchedulerContext
    ) -> None:
        super().__init__(configuration, parent, context)
        self.children: list[CSQueue] = []
        self.allow_zero_capacity_sum = configuration.allow_zero_capacity_sum
        self.orders_by_priority = False
        self.application_count = 0
        self.runnable_count = 0
        self.ratios: dict[str, Ratios] = {}
        self.warnings: list[CapacityWarning] = []
        self.reconfigure(configuration)

    # Placing

    def assign_containers(self, node: SchedulerNode, limits: ResourceLimits, mode: SchedulingMode) -> Assignment:
        """What the queues below would place on the node, one container at most."""
        partition = node.partition
        if mode is RESPECT and not self.is_accessible(partition):
            return self._refuse(node, Reason.NO_ACCESS)
        if not self.has_pending(partition, mode):
            return self._refuse(node, Reason.QUEUE_SATISFIED)
        if node.reserved_container is not None:
            return self._refuse(node, Reason.QUEUE_NODE_RESERVED, node.reserved_container.resource)
        smallest = self.context.minimum_allocation
        if not self.context.calculator.fits_in(smallest, node.within_reach):
            return self._refuse(node, Reason.QUEUE_NODE_FULL, smallest, node.within_reach)
        if not self.can_assign(partition, limits, self.reserved_metric, mode):
            used = self.usage.used(partition)
            return self._refuse(node, Reason.QUEUE_MAXIMUM, used, used + limits.headroom)
        return self._assign_to_children(node, limits, mode)

    def _assign_to_children(self, node: SchedulerNode, limits: ResourceLimits, mode: SchedulingMode) -> Assignment:
        """Each child in turn; one that fails on its limit keeps the room that it has (blocked headroom)."""
        result = Skipped.NONE
        calculator, cluster, none = self.context.calculator, self.context.cluster_resource, self.context.none
        partition = node.partition
        available = self._available(limits, partition, net=True)
        for child in self._in_order(partition):
            child_limits = self._limits_of_child(child, available, partition)
            assignment = child.assign_containers(node, child_limits, mode)
            if isinstance(assignment, Proposal):
                return assignment
            if assignment is Skipped.QUEUE_LIMIT:
                result = Skipped.QUEUE_LIMIT
                kept = child.kept_headroom(child_limits)
                limits.add_blocked_headroom(calculator.max_of(cluster, none if kept is None else kept, none))
                available = self._available(limits, partition, net=True)
        return result

    def kept_headroom(self, limits: ResourceLimits) -> Resource | None:
        """What the queues below keep."""
        return limits.blocked_headroom

    def _available(self, limits: ResourceLimits, partition: str, *, net: bool) -> Resource:
        """What none of us uses. Lowers `limits.limit` to our maximum; `net`: without what children before have kept."""
        context = self.context
        limits.limit = context.calculator.min_of(
            context.cluster_resource, limits.limit, self.effective_maximum(partition)
        )
        available = (limits.net_limit() if net else limits.limit) - self.usage.used(partition)
        if context.killables.is_used:
            available = available + self.killable_below(partition)
        return available

    def _limits_of_child(self, child: CSQueue, available: Resource, partition: str) -> ResourceLimits:
        """What the child may use: what it uses and what is available."""
        context = self.context
        limit = context.calculator.round_down(available + child.usage.used(partition), context.minimum_allocation)
        return ResourceLimits(limit, context.none)

    def _in_order(self, partition: str) -> list[CSQueue]:
        if not partition:
            return sorted(self.children, key=_BY_SORT_KEY)
        return sorted(
            self.children, key=lambda child: (not child.is_accessible(partition), child.key_for_order(partition))
        )

    def _refuse(
        self, node: SchedulerNode, reason: Reason, asked: Resource | None = None, bound: Resource | None = None
    ) -> Skipped:
        self.refusals.note(node.node_id, reason, self.context.now_ms, asked, bound)
        return Skipped.NONE

    def killable_below(self, partition: str) -> Resource:
        """What of the queues below ends as soon as somebody needs its room; a leaf may not count on its own."""
        return self.context.killables.resource(self.path, partition)

    def book_container(self, partition: str, amount: Resource) -> None:
        """Killable containers below end if the queue is above its maximum with the new one: they did not count."""
        super().book_container(partition, amount)
        if self.context.killables.is_used:
            self._enforce_maximum(partition)

    def _enforce_maximum(self, partition: str) -> None:
        """killContainersToEnforceMaxQueueCapacity, by container id."""
        context, maximum = self.context, self.effective_maximum(partition)
        if maximum.is_none():
            own = self.capacities.at(partition)
            is_above = own.absolute_maximum_capacity < own.absolute_used_capacity
        else:
            is_above = context.calculator.greater(context.cluster_resource, self.usage.used(partition), maximum)
        if not is_above:
            return
        whole = context.partition_resource(partition)
        for container in context.killables.containers(self.path, partition):
            if not context.calculator.greater(whole, self.usage.used(partition), maximum):
                return
            attempt, node = context.killables.attempt_of(container), context.nodes.get(container.node_id)
            if attempt is not None and node is not None:
                complete_in_queue(container, preempted_status(container.id), RMContainerKill, attempt, node)

    # Applications

    def check_submission(self, application_id: ApplicationId) -> None:
        """Raises AccessControlException unless this queue and all above it take applications."""
        queue: ParentQueue | None = self
        while queue is not None:
            if queue.state is not QueueState.RUNNING:
                raise AccessControlException(
                    f"Queue {queue.path} is STOPPED. Cannot accept submission of application: {application_id}"
                )
            queue = queue.parent

    def add_application(self) -> None:
        """Count an application, here and above."""
        queue: ParentQueue | None = self
        while queue is not None:
            queue.application_count += 1
            queue = queue.parent

    def finish_application(self) -> None:
        """An application is gone, here and above."""
        queue: ParentQueue | None = self
        while queue is not None:
            queue.application_count -= 1
            queue.application_finished()
            queue = queue.parent

    def application_total(self) -> int:
        """Applications below; one whose attempt is not there yet counts too."""
        return self.application_count

    def runnable_total(self) -> int:
        """Attempts below that are not parked."""
        return self.runnable_count

    # Cluster and configuration

    def update_cluster_resource(self, limits: ResourceLimits) -> None:
        """First our own shares and amounts, then those of the queues below."""
        if not self.context.settings.legacy_queue_mode:
            self._update_by_vectors()
            return
        normalize_weights(self)
        update_absolute_capacities(self)
        self.update_effective_resources()
        for partition in self.configured_partitions:
            self.ratios[partition] = minimum_ratios(self, partition)
        available = self._available(limits, NO_LABEL, net=False)
        for child in self.children:
            child.update_cluster_resource(self._limits_of_child(child, available, NO_LABEL))
        self.update_used_capacities()

    def _update_by_vectors(self) -> None:
        """The root from the cluster; another queue together with its siblings, from their parent."""
        limits = ResourceLimits(self.context.cluster_resource, self.context.none)
        if self.parent is None:
            calculate_root(self)
            self.refresh_after_calculation(limits)
        (self.parent or self).update_children(limits)

    def update_children(self, limits: ResourceLimits) -> None:
        """All below from our own amounts (CapacitySchedulerQueueCapacityHandler.update)."""
        self.warnings = calculate_children(self)
        available = self._available(limits, NO_LABEL, net=False)
        for child in self.children:
            child_limits = self._limits_of_child(child, available, NO_LABEL)
            child.refresh_after_calculation(child_limits)
            if isinstance(child, ParentQueue):
                child.update_children(child_limits)

    def refresh_after_calculation(self, limits: ResourceLimits) -> None:
        """What is used of the new amounts."""
        self.update_used_capacities()

    def reconfigure(self, configuration: QueueConfiguration) -> None:
        """Also the order of the children."""
        self.orders_by_priority = configuration.ordering_policy == PRIORITY_UTILIZATION
        super().reconfigure(configuration)

    def stop(self) -> None:
        """Stops all queues below as well."""
        super().stop()
        for child in self.children:
            child.stop()
