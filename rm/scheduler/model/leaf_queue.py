"""A queue of applications: who may enter, who is offered a node, and how far they may go (LeafQueue).

Two limits are stored and can differ. `current_limit` is what the last visit (or update of the cluster) left for this
queue; `copied_limit` is its copy from the last time that somebody looked at an application. Headroom and the limit
for masters read the copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rm.scheduler.capacity.activation import activate_applications, change_am_used
from rm.scheduler.capacity.application_limits import check_room, maximum_applications, maximum_for_a_user
from rm.scheduler.capacity.effective_capacity import update_absolute_capacities
from rm.scheduler.capacity.headroom import HeadroomProvider
from rm.scheduler.capacity.ordering import ordering_policy
from rm.scheduler.capacity.user_limit_cache import CachedUserLimit, UserLimitCache
from rm.scheduler.capacity.users import QueueShape, UsersManager
from rm.scheduler.config.queue_configuration import QueueConfiguration
from rm.scheduler.context import RESPECT, SchedulerContext, SchedulingMode
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.assignment import Assignment, Excess, Proposal, Skipped
from rm.scheduler.model.limits import ResourceLimits
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.pending_applications import PendingApplications
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.model.usage import NO_LABEL
from rm.scheduler.placement.allocator import assign_to_application
from rm.scheduler.view.reasons import Reason
from yarn.asks import ANY
from yarn.errors import AccessControlException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.resource import Resource
from yarn.states import QueueState

if TYPE_CHECKING:
    from rm.scheduler.model.parent_queue import ParentQueue


class LeafQueue(CSQueue):
    """`active` are offered nodes, `pending` wait for activation (the limit for masters); both are `runnable`.

    `parked` are above a limit on applications at once, and wait for one to end. `lent` {partition: {id: container that
    asked for no label}}: what may be taken back for the partition's own asks; a node's new label does not change it.

    `maximum_applications` and `maximum_applications_per_user` are as of the last update of the cluster, which is also
    when `last_cluster_resource` was taken.
    """

    __slots__ = (
        "_user_limits",
        "active",
        "attempts",
        "copied_limit",
        "current_limit",
        "last_cluster_resource",
        "lent",
        "maximum_applications",
        "maximum_applications_per_user",
        "minimum_allocation_factor",
        "parked",
        "pending",
        "runnable",
        "shape",
        "users",
    )

    parent: ParentQueue

    def __init__(self, configuration: QueueConfiguration, parent: ParentQueue, context: SchedulerContext) -> None:
        super().__init__(configuration, parent, context)
        self.shape = QueueShape(self.capacities)
        self.users = UsersManager(context, self.shape)
        self.attempts: dict[ApplicationAttemptId, FiCaSchedulerApp] = {}
        self.runnable: dict[ApplicationAttemptId, FiCaSchedulerApp] = {}
        self.parked: dict[ApplicationAttemptId, FiCaSchedulerApp] = {}
        self.pending = PendingApplications()
        self.active = ordering_policy(configuration)
        self.lent: dict[str, dict[ContainerId, RMContainer]] = {}
        self.maximum_applications = 0
        self.maximum_applications_per_user = 0
        self.minimum_allocation_factor = 0.0
        self.last_cluster_resource = context.cluster_resource
        self.current_limit = self.copied_limit = context.cluster_resource
        self._user_limits = UserLimitCache()
        self.reconfigure(configuration)

    # Placing

    def assign_containers(self, node: SchedulerNode, limits: ResourceLimits, mode: SchedulingMode) -> Assignment:
        """What this queue's applications would place on the node, in their order."""
        self._set_current_limit(limits.limit)
        partition = node.partition
        if node.reserved_container is not None:
            application = self.attempts.get(node.reserved_container.id.attempt_id)
            if application is not None:
                return assign_to_application(application, node, limits, mode, node.reserved_container)
        if mode is RESPECT and not self.is_accessible(partition):
            return self._refuse(node, Reason.NO_ACCESS)
        if not self.has_pending(partition, mode):
            return self._refuse(node, Reason.QUEUE_SATISFIED)
        return self._assign_in_order(node, limits, mode)

    def _assign_in_order(self, node: SchedulerNode, limits: ResourceLimits, mode: SchedulingMode) -> Assignment:
        """With reservations about, everybody is asked; else those who ask for nothing can sleep."""
        if not self.usage.default.reserved.is_none():
            return self._walk(self.active.offers(node.partition), node, limits, mode, [])
        satisfied: list[FiCaSchedulerApp] = []
        assignment = self._walk(self.active.awake(node.partition), node, limits, mode, satisfied)
        for application in satisfied:
            self.active.put_to_sleep(application)
        return assignment

    def _walk(
        self,
        applications: Iterator[FiCaSchedulerApp],
        node: SchedulerNode,
        limits: ResourceLimits,
        mode: SchedulingMode,
        satisfied: list[FiCaSchedulerApp],
    ) -> Assignment:
        """The first that takes the node; those that it passed and that ask for nothing are put on `satisfied`."""
        context, partition = self.context, node.partition
        cached_limits = self._user_limits.at(self.users.version, partition, mode)
        refused: dict[str, CachedUserLimit] = {}
        check_queue = True
        for application in applications:
            reserved = application.usage.default.reserved
            if check_queue:
                if not self.can_assign(partition, limits, reserved, mode):
                    used = self.usage.used(partition)
                    return self._refuse(node, Reason.QUEUE_MAXIMUM, used, used + limits.headroom)
                check_queue = context.settings.reservations_continue_looking and not reserved.is_none()
            if self._is_refused_with(application, refused.get(application.user), reserved):
                continue
            cached = self._look_up_limit(application, partition, mode, cached_limits)
            if not self._may_assign_to_user(application, partition, limits, cached, reserved):
                self._refuse_user(application, node, cached.limit)
                refused[application.user] = cached
                continue
            assignment = assign_to_application(application, node, limits, mode, None)
            if isinstance(assignment, (Proposal, Excess)):
                return assignment
            if assignment is Skipped.OTHER:
                if not application.usage.is_pending():
                    satisfied.append(application)
                continue
            if assignment is Skipped.QUEUE_LIMIT:
                self._refuse(node, Reason.QUEUE_HEADROOM, None, limits.headroom)
                return assignment
            return self._refuse(node, Reason.QUEUE_FIFO)
        return Skipped.NONE

    def is_under_guarantee(self, partition: str) -> bool:
        """True if killable containers of others may end for it (setPreemptionAllowed)."""
        own = self.capacities.at(partition)
        if own.effective_minimum.is_none():
            return own.absolute_used_capacity < own.absolute_capacity
        context = self.context
        return context.calculator.less(context.cluster_resource, self.usage.used(partition), own.effective_minimum)

    def _is_refused_with(
        self, application: FiCaSchedulerApp, refused: CachedUserLimit | None, reserved: Resource
    ) -> bool:
        """True if this walk refused another application of the user, and to look at this one would change nothing."""
        return refused is not None and refused.has_failed_with(reserved) and self._is_captured(application)

    def kept_headroom(self, limits: ResourceLimits) -> Resource | None:
        """What its own limit still left it."""
        return limits.headroom

    def _refuse(
        self, node: SchedulerNode, reason: Reason, asked: Resource | None = None, bound: Resource | None = None
    ) -> Skipped:
        self.refusals.note(node.node_id, reason, self.context.now_ms, asked, bound)
        return Skipped.NONE

    def _refuse_user(self, application: FiCaSchedulerApp, node: SchedulerNode, limit: Resource) -> None:
        """For all applications of the user, of which the others are not asked any more in this walk."""
        user, now_ms = self.users.users.get(application.user), self.context.now_ms
        if user is None:
            application.refusals.note(node.node_id, Reason.USER_LIMIT, now_ms, None, limit)
        else:
            used = user.usage.used(node.partition)
            user.refusals.note(node.node_id, Reason.USER_LIMIT, now_ms, used, limit)

    # Limits of users

    def _look_up_limit(
        self,
        application: FiCaSchedulerApp,
        partition: str,
        mode: SchedulingMode,
        cached_limits: dict[str, CachedUserLimit],
    ) -> CachedUserLimit:
        cached = cached_limits.get(application.user)
        limit = self.note_user_limit(application, partition, mode, cached.limit if cached is not None else None)
        if cached is None:
            cached = cached_limits[application.user] = CachedUserLimit(limit, self.context.none)
        return cached

    def note_user_limit(
        self, application: FiCaSchedulerApp, partition: str, mode: SchedulingMode, known: Resource | None
    ) -> Resource:
        """computeUserLimitAndSetHeadroom: the user's limit; renews the copied limit and the headroom provider.

        A user without an entry has none: nothing is stored then.
        """
        user = self.users.users.get(application.user)
        if user is None:
            return self.context.none
        limit = known if known is not None else self.users.limit_of(application.user, partition, mode)
        if self.copied_limit is not self.current_limit:
            self.copied_limit = self.current_limit
            self.context.revision += 1
        if not self._is_captured(application):
            last = application.headroom_provider
            if last is not None and last.leaf is self and last.application is application:
                # The user's entry is a new one. In a walk, the user's first application is the first to see it.
                self.active.wake_all_of(application.user)
            application.headroom_provider = HeadroomProvider(user, self, application)
            self.context.revision += 1
        return limit

    def _is_captured(self, application: FiCaSchedulerApp) -> bool:
        """True if its headroom is taken from here and from its user's present entry."""
        provider = application.headroom_provider
        return (
            provider is not None
            and provider.leaf is self
            and provider.application is application
            and provider.user is self.users.users.get(application.user)
        )

    def _may_assign_to_user(
        self,
        application: FiCaSchedulerApp,
        partition: str,
        limits: ResourceLimits,
        cached: CachedUserLimit,
        reserved: Resource,
    ) -> bool:
        """The check, and the verdict of the same visit for the user's other applications."""
        if cached.has_failed_with(reserved):
            return False
        if self.can_assign_to_user(application, cached.limit, partition, limits):
            return True
        cached.note_failure(reserved)
        return False

    def can_assign_to_user(
        self, application: FiCaSchedulerApp, limit: Resource, partition: str, limits: ResourceLimits
    ) -> bool:
        """True unless the user is ABOVE the limit; being at it, one more container may come (canAssignToUser).

        With continue-looking, a user above it only by what is reserved passes too, and `amount_needed_unreserve`
        says how much of that has to go.
        """
        user = self.users.users.get(application.user)
        if user is None:
            return False
        context = self.context
        calculator, cluster = context.calculator, context.cluster_resource
        limits.amount_needed_unreserve = context.none
        used = user.usage.used(partition)
        if not calculator.greater(cluster, used, limit):
            return True
        if not context.settings.reservations_continue_looking:
            return False
        without = user.usage.default.used - application.usage.default.reserved
        if not calculator.less_or_equal(cluster, without, limit):
            return False
        limits.amount_needed_unreserve = used - limit
        return True

    def _set_current_limit(self, limit: Resource) -> None:
        context = self.context
        down = self.capacities.default.effective_maximum_down
        limit = context.calculator.min_of(context.cluster_resource, down, limit)
        if limit != self.current_limit:
            self.current_limit = limit
            context.revision += 1

    # Booking

    def allocate(self, application: FiCaSchedulerApp, partition: str, amount: Resource, container: RMContainer) -> None:
        """A container or reservation of the application is booked (allocateResource)."""
        self.book_container(partition, amount)
        if partition and not container.partition:
            self.lent.setdefault(partition, {})[container.id] = container
        self.users.change_used(application.user, partition, amount)

    def release(self, application: FiCaSchedulerApp, partition: str, amount: Resource, container: RMContainer) -> None:
        """A container or reservation of the application is over (releaseResource)."""
        self.unbook_container(partition, amount)
        if partition and not container.partition:
            self._forget_lent(partition, container)
        self.users.change_used(application.user, partition, -amount)

    def change_used_of(self, application: FiCaSchedulerApp, partition: str, amount: Resource) -> None:
        """A container that was counted before counts there too, or (negative) no more: its node's label is changing."""
        self.users.change_used(application.user, partition, amount)
        self.change_used(partition, amount)

    def _forget_lent(self, partition: str, container: RMContainer) -> None:
        lent = self.lent.get(partition)
        if lent is not None:
            lent.pop(container.id, None)
            if not lent:
                del self.lent[partition]

    # Applications

    def check_submission(self, application_id: ApplicationId, user: str) -> None:
        """Raises AccessControlException if the queue, the user or a queue above can take no more."""
        if self.state is not QueueState.RUNNING:
            raise AccessControlException(
                f"Queue {self.path} is STOPPED. Cannot accept submission of application: {application_id}"
            )
        self._check_room(application_id, user)
        self.parent.check_submission(application_id)

    def _check_room(self, application_id: ApplicationId, user: str) -> None:
        """The limits on applications, of the queue and of each user."""
        check_room(self, application_id, user)

    def submit_attempt(self, application: FiCaSchedulerApp) -> None:
        """An attempt waits for activation, and gets it if the limits for masters let it; or it is parked."""
        user = self.users.get_or_add(application.user)
        self.attempts[application.attempt_id] = application
        if not application.is_runnable:
            self.parked[application.attempt_id] = application
            return
        self.runnable[application.attempt_id] = application
        self.users.submitted(user)
        self.pending.add(application)
        if self.context.calculator.is_some(self.last_cluster_resource, self.last_cluster_resource):
            activate_applications(self)

    def finish_attempt(self, application: FiCaSchedulerApp) -> None:
        """An attempt is over; those who waited may be next.

        A parked one is taken off its user's pending ones although it was never counted among them, as in Hadoop.
        """
        user = self.users.get_or_add(application.user)
        if self.runnable.pop(application.attempt_id, None) is None:
            self.unpark(application)
        was_active = self.active.remove(application)
        if was_active:
            am_partition = application.am_partition
            change_am_used(self, user, am_partition, -application.am_used(am_partition))
        else:
            self.pending.remove(application)
        self.attempts.pop(application.attempt_id, None)
        self.users.finished(user, was_active=was_active)
        activate_applications(self)

    def unpark(self, application: FiCaSchedulerApp) -> None:
        """It runs now, or is over."""
        self.parked.pop(application.attempt_id, None)

    def finish_application(self, application_id: ApplicationId, user: str) -> None:
        """An application is gone for good: its user is active no more because of it."""
        self.users.deactivate_application(user, application_id)
        self.application_finished()
        self.parent.finish_application()

    @property
    def active_count(self) -> int:
        """Applications that are offered nodes."""
        return len(self.active)

    @property
    def pending_count(self) -> int:
        """Applications that wait for activation."""
        return len(self.pending)

    def application_total(self) -> int:
        """Attempts: active, waiting and parked."""
        return len(self.active) + len(self.pending) + len(self.parked)

    def runnable_total(self) -> int:
        """Attempts that are not parked."""
        return len(self.runnable)

    # Cluster and configuration

    def label_partitions(self) -> list[str]:
        """The partitions that masters may be limited on: what the queue may use, and the one without label.

        If it may use all, those that it has anything of (getNodeLabelsForQueue).
        """
        if ANY in self.configuration.accessible_labels:
            return self.known_partitions()
        return list(dict.fromkeys((*self.configuration.accessible_labels, NO_LABEL)))

    def am_limit(self, partition: str) -> Resource:
        """What masters may use together, as last computed."""
        return self.usage.am_limit(partition)

    def update_cluster_resource(self, limits: ResourceLimits) -> None:
        """Everything that follows from the size of the cluster, and activation with it (updateClusterResource)."""
        if not self.context.settings.legacy_queue_mode:
            self.parent.update_children(limits)
            return
        update_absolute_capacities(self)
        self.update_effective_resources()
        self._limit_applications(is_capacity_known=True)
        self._follow_limit(limits)

    def refresh_after_calculation(self, limits: ResourceLimits) -> None:
        """Of a cluster of nothing there are no shares yet by which applications could be limited."""
        cluster = self.context.cluster_resource
        self._limit_applications(is_capacity_known=any(value > 0 for value in cluster.values()))
        self._follow_limit(limits)

    def _limit_applications(self, *, is_capacity_known: bool) -> None:
        most = self.maximum_applications = maximum_applications(self, is_capacity_known=is_capacity_known)
        self.maximum_applications_per_user = maximum_for_a_user(self, most)

    def _follow_limit(self, limits: ResourceLimits) -> None:
        self.last_cluster_resource = self.context.cluster_resource
        self._set_current_limit(limits.limit)
        self.copied_limit = self.current_limit
        for partition in self.known_partitions():
            self.users.rebuild_ratio(partition)
        self.update_used_capacities()
        activate_applications(self)
        self.users.version += 1
        for application in self.active:
            self.note_user_limit(application, NO_LABEL, RESPECT, None)

    def reconfigure(self, configuration: QueueConfiguration) -> None:
        """Also what leaves alone have."""
        super().reconfigure(configuration)
        context = self.context
        self.last_cluster_resource = context.cluster_resource
        self.current_limit = self.copied_limit = context.cluster_resource
        reordered = ordering_policy(configuration)
        for application in self.active:
            reordered.add(application)
        self.active = reordered
        self.shape.user_limit = configuration.user_limit
        self.shape.user_limit_factor = configuration.user_limit_factor
        self.shape.weights = configuration.user_weights
        maximum = configuration.maximum_allocation
        self.minimum_allocation_factor = context.calculator.ratio(maximum - context.minimum_allocation, maximum)
        self.users.refresh_weights()
