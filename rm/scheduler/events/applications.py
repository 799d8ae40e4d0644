"""The applications of the scheduler: which leaf accepts them, their attempts, moves, priorities, ends."""

from __future__ import annotations

import math
from contextlib import suppress

from rm.scheduler.capacity.activation import check_submission, finish_attempt, submit_attempt
from rm.scheduler.capacity.booking import (
    APPLICATION_COMPLETE,
    COMPLETED_APPLICATION,
    EXPIRED,
    aborted_status,
    book,
    complete,
    end_requests,
    move_requests,
    unbook,
)
from rm.scheduler.capacity.managed_queues import AutoCreatedLeafQueue
from rm.scheduler.capacity.parallel_applications import ParallelApplications
from rm.scheduler.model.application import ApplicationTable, FiCaSchedulerApp, SchedulerApplication
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.notices import ApplicationAccepted, ApplicationRejected, AttemptAdded, QueueMissing
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.rm_container import FINAL, RMContainer
from rm.scheduler.model.rm_container_events import RMContainerEnd, RMContainerExpire, RMContainerKill
from rm.scheduler.placement.container_updates import apply_updates
from rm.scheduler.queues.dynamic_queues import CreationRefused, create_queue
from rm.scheduler.queues.queue_tree import QueueTree
from yarn.applications import ApplicationResourceUsage
from yarn.containers import ContainerStatus, UpdateContainerRequest
from yarn.errors import AccessControlException, YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.java.binary32 import f32
from yarn.java.hash_order import hash_order, string_hash
from yarn.java.values import trim
from yarn.nodes import NO_LABEL
from yarn.resource import Resource
from yarn.settings.scheduler import PREFIX
from yarn.states import ContainerUpdateType, QueueState


class Applications:
    """Adds, removes and moves applications and attempts; `table` has all that are in the scheduler."""

    __slots__ = ("_context", "_tree", "parallel", "table")

    def __init__(self, context: SchedulerContext, tree: QueueTree) -> None:
        self._context = context
        self._tree = tree
        self.parallel = ParallelApplications(context)
        self.table = ApplicationTable()

    def add(
        self, application_id: ApplicationId, queue: str, user: str, priority: int, placed: str | None = None
    ) -> None:
        """Add a new application; emits ApplicationAccepted or ApplicationRejected."""
        context = self._context
        try:
            leaf = leaf_for(application_id, queue, user, placed=placed, tree=self._tree, context=context)
        except SubmissionRefused as refusal:
            context.notify(ApplicationRejected(application_id, str(refusal)))
            return
        self._enter(application_id, leaf, user, priority)
        context.notify(ApplicationAccepted(application_id, leaf.path))

    def create_missing_queue(
        self, application_id: ApplicationId, queue: str, user: str, placed: str | None = None
    ) -> str | None:
        """Create the queue of an application that is about to be stored, if it does not exist; why it cannot be."""
        try:
            check_queue(application_id, placed or queue, user, self._tree, by_rule=placed is not None)
        except SubmissionRefused as refusal:
            return str(refusal)
        return None

    def add_recovered(
        self, application_id: ApplicationId, queue: str, user: str, priority: int, placed: str | None = None
    ) -> None:
        """Add an application that was accepted before a restart (addApplicationOnRecovery).

        A refusal by limits is ignored, but as in Hadoop a full or stopped leaf does not note the user.
        """
        try:
            leaf = recovered_leaf(queue, placed=placed, tree=self._tree)
        except SubmissionRefused as refusal:
            self._context.notify(QueueMissing(application_id, str(refusal)))
            return
        with suppress(AccessControlException):
            check_submission(leaf, application_id, user)
        self._enter(application_id, leaf, user, priority)

    def _enter(self, application_id: ApplicationId, leaf: LeafQueue, user: str, priority: int) -> None:
        leaf.count_application()
        self.table.by_id[application_id] = SchedulerApplication(leaf, user, priority)

    def remove(self, application_id: ApplicationId) -> None:
        """Remove an application; a no-op for an unknown one."""
        application = self.table.by_id.pop(application_id, None)
        if application is not None:
            _leave(LeafQueue.of(application), application_id, application.user)

    def move(self, application_id: ApplicationId, queue: str) -> str:
        """Move a running application; returns its new leaf's path. Raises YarnException; then nothing was moved."""
        application = self.table.by_id.get(application_id)
        if application is None:
            raise YarnException(f"App to be moved {application_id} not found.")
        target = target_leaf(queue, self._tree)
        move(application_id, application, target, self.table)
        return target.path

    def update_priority(self, application_id: ApplicationId, priority: int) -> None:
        """Change the priority of the current attempt. Raises YarnException for an unknown application."""
        application = self.table.by_id.get(application_id)
        if application is None:
            raise YarnException(f"Application '{application_id}' is not present, hence could not change priority.")
        change_priority(application, priority)

    def add_attempt(
        self,
        attempt_id: ApplicationAttemptId,
        *,
        transfer: bool,
        am_resource: Resource | None,
        am_label: str | None,
        label: str | None,
        recovering: bool = False,
    ) -> None:
        """Add a new attempt; emits AttemptAdded unless it is recovering. See CapacityScheduler.add_attempt."""
        context = self._context
        application = self.table.by_id.get(attempt_id.application_id)
        if application is None:
            return
        attempt = FiCaSchedulerApp(
            attempt_id,
            application.user,
            application.leaf,
            context,
            am_resource=am_resource,
            am_label=am_label,
            label=label,
            priority=application.priority,
        )
        if recovering:
            attempt.is_recovering = attempt.has_master = True
        if transfer and application.current_attempt is not None:
            attempt.transfer_from(application.current_attempt)
        application.current_attempt = attempt
        self.parallel.admit(attempt)
        submit_attempt(LeafQueue.of(application), attempt)
        if not recovering:
            context.notify(AttemptAdded(attempt_id))

    def remove_attempt(self, attempt_id: ApplicationAttemptId, *, keep_containers: bool) -> None:
        """Remove an ended attempt and kill its containers, except running ones if `keep_containers`."""
        attempt = self.table.attempt_of(attempt_id.application_id)
        if attempt is None:
            return
        for container in attempt.live_in_hash_order():
            if not (keep_containers and container.is_running):
                status = aborted_status(container.id, COMPLETED_APPLICATION)
                self.complete(container, status, RMContainerKill)
        for reserved in attempt.reserved_containers:
            self.complete(reserved, aborted_status(reserved.id, APPLICATION_COMPLETE), RMContainerKill)
        end_requests(attempt)
        finish_attempt(LeafQueue.of(attempt), attempt)
        self.parallel.dismiss(attempt)

    def mark_am_container(self, container_id: ContainerId) -> None:
        """Record that this container runs the AM of its attempt."""
        attempt = self.table.attempt_of(container_id.application_id)
        if attempt is None:
            return
        attempt.has_master = True
        container = attempt.live_containers.get(container_id)
        if container is not None:
            container.is_am = True

    def expire_container(self, container_id: ContainerId) -> None:
        """End a container that was acquired and not launched in time."""
        container = self.table.container(container_id)
        if container is not None and container.allows(RMContainerExpire):
            self.complete(container, aborted_status(container_id, EXPIRED), RMContainerExpire)

    def roll_back_increase(self, container_id: ContainerId) -> None:
        """Shrink the container to its last confirmed size (rollbackContainerUpdate)."""
        container = self.table.container(container_id)
        attempt = self.table.attempt_of(container_id.application_id)
        if container is None or attempt is None or not container.last_confirmed.fits_in(container.resource):
            return
        version, size = container.container.version, container.last_confirmed
        decrease = ContainerUpdateType.DECREASE_RESOURCE
        apply_updates(attempt, [(UpdateContainerRequest(container_id, version, decrease, size), container)])

    def complete(self, container: RMContainer, status: ContainerStatus, event: type[RMContainerEnd]) -> None:
        """End a container or reservation; request again what its AM never saw (completedContainer)."""
        complete(container, status, event, self.table, self._context)


class SubmissionRefused(Exception):
    """No leaf accepts the application; the message is for the client."""


def leaf_for(
    application_id: ApplicationId,
    queue: str,
    user: str,
    *,
    placed: str | None,
    tree: QueueTree,
    context: SchedulerContext,
) -> LeafQueue:
    """The leaf with that path or short name, if it accepts the application; created if the parent supports that.

    `placed`: the queue chosen by placement rules, which overrides the submission (getAddedAppQueueName). Raises
    SubmissionRefused; a queue created before the refusal stays.
    """
    if tree.root.application_count >= context.settings.maximum_applications:
        raise SubmissionRefused(
            f"Maximum system application limit reached,cannot accept submission of application: {application_id}"
        )
    leaf = _leaf_called(application_id, placed or queue, user, tree, by_rule=placed is not None)
    try:
        check_submission(leaf, application_id, user)
    except AccessControlException as refusal:
        raise SubmissionRefused(f"{refusal.java_class}: {refusal.message}") from None
    leaf.last_submitted_ms = context.now_ms
    return leaf


def recovered_leaf(queue: str, *, placed: str | None, tree: QueueTree) -> LeafQueue:
    """The leaf that an application was in before a restart; created again if it was created on demand.

    A queue that was stopped meanwhile becomes DRAINING. Raises SubmissionRefused if the leaf no longer exists.
    """
    path = tree.behind_plan(placed or queue)
    found = tree.get(path)
    if found is None and not tree.is_ambiguous(path):
        with suppress(CreationRefused):
            found = create_queue(path, tree)
    if found is None:
        raise SubmissionRefused(
            f"Application killed on recovery as it was submitted to queue {queue} which no longer exists after restart."
        )
    if not isinstance(found, LeafQueue):
        raise SubmissionRefused(
            f"Application killed on recovery as it was submitted to queue {queue} "
            "which is no longer a leaf queue after restart."
        )
    if found.state is QueueState.STOPPED:
        found.recover_draining()
    return found


def check_queue(application_id: ApplicationId, queue: str, user: str, tree: QueueTree, *, by_rule: bool) -> None:
    """Create the queue if it does not exist, before its application is stored (checkAndGetApplicationLifetime, 3.5.0).

    Raises SubmissionRefused if the queue does not exist and cannot be created.
    """
    queue = tree.behind_plan(queue)
    if _found_or_created(application_id, queue, user, tree, by_rule=by_rule) is None:
        # In Hadoop the name of the application stands twice in the message for an unknown queue.
        first = "" if tree.is_ambiguous(queue) else f"Application {application_id} submitted by user {user}"
        raise SubmissionRefused(f"{first}{_no_such_queue(application_id, queue, user, tree)}")


def _found_or_created(
    application_id: ApplicationId, queue: str, user: str, tree: QueueTree, *, by_rule: bool
) -> CSQueue | None:
    """The queue, created if necessary (getOrCreateQueueFromPlacementContext); None if that is not possible.

    `by_rule`: a placement rule chose the queue; then SubmissionRefused states why the queue was not created.
    """
    found = tree.get(queue)
    if found is not None or tree.is_ambiguous(queue):
        return found
    try:
        return create_queue(queue, tree)
    except CreationRefused as refusal:
        if by_rule and refusal.is_reported:
            raise SubmissionRefused(
                f"Application {application_id} submission by user : {user} to  queue : {queue} failed : {refusal}"
            ) from None
        return None


def _no_such_queue(application_id: ApplicationId, queue: str, user: str, tree: QueueTree) -> str:
    if tree.is_ambiguous(queue):
        return (
            f"Application {application_id} submitted by user {user} to ambiguous queue: {queue} "
            "please use full queue path instead."
        )
    return f"Application {application_id} submitted by user {user} to unknown queue: {queue}"


def _leaf_called(application_id: ApplicationId, queue: str, user: str, tree: QueueTree, *, by_rule: bool) -> LeafQueue:
    """The leaf with the given name, created if necessary. `by_rule`: a placement rule chose it."""
    queue = tree.behind_plan(queue)
    found = _found_or_created(application_id, queue, user, tree, by_rule=by_rule)
    if isinstance(found, AutoCreatedLeafQueue) and not by_rule:
        raise SubmissionRefused(
            f"Application {application_id} submission by user : {user} to specified queue : {queue}  is prohibited. "
            f"Verify automatic queue mapping for user exists in {PREFIX}queue-mappings"
        )
    if found is not None and queue != trim(queue):
        # Hadoop creates the queue without the blanks, and does not find it for the application's attempts.
        raise SubmissionRefused(
            f"Application {application_id} failed: Could not find queue for application : {queue} "
            f"(the queue is {found.path}: remove the blanks)"
        )
    if isinstance(found, LeafQueue):
        return found
    if found is not None:
        raise SubmissionRefused(f"Application {application_id} submitted by user : {user} to non-leaf queue : {queue}")
    raise SubmissionRefused(_no_such_queue(application_id, queue, user, tree))


def target_leaf(name: str, tree: QueueTree) -> LeafQueue:
    """The leaf with that path or unambiguous short name; raises YarnException (getAndCheckLeafQueue)."""
    name = tree.behind_plan(name)
    found = tree.get(name)
    if found is None:
        raise YarnException(f"The specified Queue: {name} doesn't exist")
    if not isinstance(found, LeafQueue):
        raise YarnException(f"The specified Queue: {name} is not a Leaf Queue.")
    return found


def move(
    application_id: ApplicationId, application: SchedulerApplication, target: LeafQueue, applications: ApplicationTable
) -> None:
    """Move an application. Raises YarnException if the target does not accept it or its labels; then nothing was moved.

    Its usage is rebooked container by container; then its attempt leaves the source and is submitted to the target,
    where it waits for activation like a new one. As in Hadoop, the reserved amounts stay with the source, and the
    headroom is computed from the source until a visit considers the attempt. A move to the same leaf does all of this.
    """
    source, attempt = LeafQueue.of(application), application.current_attempt
    if attempt is not None and source.context.labels.enabled:
        _check_labels(attempt, target)
    try:
        check_submission(target, application_id, application.user)
    except AccessControlException as refusal:
        raise YarnException(f"{refusal.java_class}: {refusal.message}") from None
    target.count_application()
    if attempt is not None:
        _move_containers(attempt, source, target, applications)
        if not attempt.is_stopped:
            finish_attempt(source, attempt)
            submit_attempt(target, attempt)
        _hand_over(attempt, source, target)
    source.application_finished()
    source.uncount_application()
    application.leaf = target


def change_priority(application: SchedulerApplication, priority: int) -> None:
    """Reorder the current attempt by `priority`; a no-op if the application was submitted with that priority.

    As in Hadoop, an attempt held back by max-parallel-apps is added to those that wait for activation.
    """
    attempt = application.current_attempt
    if application.priority == priority or attempt is None:
        return
    leaf = LeafQueue.of(application)
    if not leaf.active.remove(attempt):
        leaf.pending.change_priority(attempt, priority)
        return
    attempt.priority = priority
    leaf.active.add(attempt)


def _check_labels(attempt: FiCaSchedulerApp, target: LeafQueue) -> None:
    """Raises YarnException if the attempt ever requested a label that the target may not use (checkQueuePartition).

    As in Hadoop this removes NO_LABEL from the attempt's requested labels, which affects its headroom.
    """
    requested, accessible = attempt.requests.requested_partitions, target.configuration.accessible_labels
    requested.pop(NO_LABEL, None)
    attempt.note_news()
    refused = [label for label in hash_order(requested, string_hash) if not target.configuration.may_use(label)]
    if refused:
        labels = ", ".join(hash_order(accessible, string_hash))
        raise YarnException(
            f"Specified queue={target.path} can't satisfy following apps label expressions =[{', '.join(refused)}] "
            f"accessible node labels =[{labels}]"
        )


def _move_containers(
    attempt: FiCaSchedulerApp, source: LeafQueue, target: LeafQueue, applications: ApplicationTable
) -> None:
    """Move the containers and reservations of the attempt from the source to the target, one by one."""
    guaranteed = [container for container in attempt.live_in_hash_order() if not container.is_opportunistic]
    for container in (*guaranteed, *attempt.reserved_containers):
        partition = source.context.nodes[container.node_id].partition
        size = container.container.resource
        unbook(source, attempt, container, partition, size)
        book(target, attempt, container, partition, size, applications)
    if any(container.state in FINAL for container in guaranteed):
        # As in Hadoop one that was killed to make room in the target is subtracted from the source.
        source.context.containers_miscounted = True


def _hand_over(attempt: FiCaSchedulerApp, source: LeafQueue, target: LeafQueue) -> None:
    """Move the attempt, its requests, and the metric of reservations (SchedulerApplicationAttempt.move)."""
    for container in (*attempt.live_containers.values(), *attempt.reserved_containers):
        container.queue = target.path
    for container in attempt.reserved_containers:
        source.change_reserved_metric(container.partition, -container.resource)
        target.change_reserved_metric(container.partition, container.resource)
    if not attempt.is_stopped:
        move_requests(attempt, source, target)
    attempt.leaf = target


def _leave(leaf: LeafQueue, application_id: ApplicationId, user: str) -> None:
    """Remove the application from its leaf. It no longer counts towards the activity of its user."""
    leaf.users.deactivate_application(user, application_id)
    leaf.application_finished()
    leaf.uncount_application()


def usage_of(attempt: FiCaSchedulerApp, context: SchedulerContext) -> ApplicationResourceUsage:
    """An attempt's usage and requests for reports: amounts over all partitions, and percentages of the queue's
    guarantee and of the cluster. The resource-seconds are not filled in here."""
    used = reserved = context.none
    for partition in attempt.usage.partitions():
        used = used + attempt.usage.used(partition)
        reserved = reserved + attempt.usage.reserved(partition)
    return ApplicationResourceUsage(
        used_containers=len(attempt.live_containers),
        reserved_containers=len(attempt.reserved),
        used=used,
        reserved=reserved,
        needed=used + reserved,
        queue_usage_percentage=_percentage(context, used, attempt.leaf.effective_minimum(attempt.am_partition)),
        cluster_usage_percentage=_percentage(context, used, context.cluster_resource),
    )


def _percentage(context: SchedulerContext, used: Resource, whole: Resource) -> float:
    """A 32-bit float; 0 if the total is zero."""
    if whole.is_none() or context.cluster_resource.is_none():
        return 0.0
    share = f32(context.calculator.divide(context.cluster_resource, used, whole) * 100)
    return share if math.isfinite(share) else 0.0
