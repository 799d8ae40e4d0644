"""The applications that the scheduler knows: how they come, go and move, and how their containers end."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from rm.scheduler.capacity.parallel_applications import ParallelApplications
from rm.scheduler.completion import (
    APPLICATION_COMPLETE,
    COMPLETED_APPLICATION,
    EXPIRED,
    aborted_status,
    complete_in_queue,
    complete_opportunistic,
)
from rm.scheduler.container_updates import apply_updates
from rm.scheduler.context import SchedulerContext
from rm.scheduler.model.application import FiCaSchedulerApp, SchedulerApplication
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.notices import ApplicationAccepted, ApplicationRejected, AttemptAdded, QueueMissing
from rm.scheduler.model.queue_tree import QueueTree
from rm.scheduler.model.rm_container import RMContainer, RMContainerEnd, RMContainerExpire, RMContainerKill
from rm.scheduler.moving import change_priority, move, target_leaf
from rm.scheduler.submission import SubmissionRefused, leaf_for, recovered_leaf
from yarn.asks import UpdateContainerRequest
from yarn.containers import ContainerStatus
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.resource import Resource
from yarn.states import ContainerUpdateType


class Applications:
    """Applications and, through their current attempts, their containers. `by_id` in the order they came."""

    __slots__ = ("_context", "_parallel", "_tree", "by_id")

    def __init__(self, context: SchedulerContext, tree: QueueTree) -> None:
        self._context = context
        self._tree = tree
        self._parallel = ParallelApplications(context)
        self.by_id = context.applications

    # Looking up

    def attempt_of(self, application_id: ApplicationId) -> FiCaSchedulerApp | None:
        """The application's current attempt."""
        application = self.by_id.get(application_id)
        return application.current_attempt if application is not None else None

    def container(self, container_id: ContainerId) -> RMContainer | None:
        """A live container of the application's current attempt; None if it is over, only reserved or unknown."""
        attempt = self.attempt_of(container_id.application_id)
        return attempt.live_containers.get(container_id) if attempt is not None else None

    def containers_of(self, application_id: ApplicationId) -> Mapping[ContainerId, RMContainer]:
        """The live containers of the application's current attempt, kept ones included."""
        attempt = self.attempt_of(application_id)
        return attempt.live_containers if attempt is not None else {}

    # Applications

    def add(
        self, application_id: ApplicationId, queue: str, user: str, priority: int, placed: str | None = None
    ) -> None:
        """Answered with ApplicationAccepted or ApplicationRejected."""
        context = self._context
        try:
            leaf = leaf_for(application_id, queue, user, placed=placed, tree=self._tree, context=context)
        except SubmissionRefused as refusal:
            context.notify(ApplicationRejected(application_id, str(refusal)))
            return
        self._enter(application_id, leaf, user, priority)
        context.notify(ApplicationAccepted(application_id, leaf.path))

    def add_recovered(
        self, application_id: ApplicationId, queue: str, user: str, priority: int, placed: str | None = None
    ) -> None:
        """One that was accepted before a restart: no limit keeps it out (addApplicationOnRecovery)."""
        try:
            leaf = recovered_leaf(queue, placed=placed, tree=self._tree)
        except SubmissionRefused as refusal:
            self._context.notify(QueueMissing(application_id, str(refusal)))
            return
        leaf.users.get_or_add(user)
        self._enter(application_id, leaf, user, priority)

    def _enter(self, application_id: ApplicationId, leaf: LeafQueue, user: str, priority: int) -> None:
        leaf.parent.add_application()
        self.by_id[application_id] = SchedulerApplication(leaf, user, priority)

    def remove(self, application_id: ApplicationId) -> None:
        """An application is gone for good."""
        application = self.by_id.pop(application_id, None)
        if application is not None:
            application.leaf.finish_application(application_id, application.user)

    def move(self, application_id: ApplicationId, queue: str) -> str:
        """Move a living one; returns the path of its new leaf. Raises YarnException, with nothing moved."""
        application = self.by_id.get(application_id)
        if application is None:
            raise YarnException(f"App to be moved {application_id} not found.")
        target = target_leaf(queue, self._tree)
        move(application_id, application, target)
        return target.path

    def update_priority(self, application_id: ApplicationId, priority: int) -> None:
        """Another priority for the current attempt. Raises YarnException for an unknown application."""
        application = self.by_id.get(application_id)
        if application is None:
            raise YarnException(f"Application '{application_id}' is not present, hence could not change priority.")
        change_priority(application, priority)

    def recheck_parallel(self) -> None:
        """Limits on applications at once were configured anew."""
        self._parallel.recheck(self._tree.root)

    # Attempts

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
        """Answered with AttemptAdded unless it is recovering; see CapacityScheduler.add_attempt."""
        context = self._context
        application = self.by_id.get(attempt_id.application_id)
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
        self._parallel.admit(attempt)
        application.leaf.submit_attempt(attempt)
        if not recovering:
            context.notify(AttemptAdded(attempt_id))

    def remove_attempt(self, attempt_id: ApplicationAttemptId, *, keep_containers: bool) -> None:
        """Its containers are killed, but for running ones if `keep_containers`."""
        attempt = self.attempt_of(attempt_id.application_id)
        if attempt is None:
            return
        for container in attempt.live_in_hash_order():
            if not (keep_containers and container.is_running):
                status = aborted_status(container.id, COMPLETED_APPLICATION)
                self.complete(container, status, RMContainerKill)
        for reserved in attempt.reserved_containers:
            self.complete(reserved, aborted_status(reserved.id, APPLICATION_COMPLETE), RMContainerKill)
        attempt.stop()
        attempt.leaf.finish_attempt(attempt)
        self._parallel.dismiss(attempt)

    # Containers

    def mark_am_container(self, container_id: ContainerId) -> None:
        """The attempt of this container took it for its master."""
        attempt = self.attempt_of(container_id.application_id)
        if attempt is None:
            return
        attempt.has_master = True
        container = attempt.live_containers.get(container_id)
        if container is not None:
            container.is_am = True

    def expire_container(self, container_id: ContainerId) -> None:
        """Acquired and never launched in time."""
        container = self.container(container_id)
        if container is not None and container.allows(RMContainerExpire):
            self.complete(container, aborted_status(container_id, EXPIRED), RMContainerExpire)

    def roll_back_increase(self, container_id: ContainerId) -> None:
        """Have it shrink to the size that its NM last told (rollbackContainerUpdate)."""
        container = self.container(container_id)
        attempt = self.attempt_of(container_id.application_id)
        if container is None or attempt is None or not container.last_confirmed.fits_in(container.resource):
            return
        version, size = container.container.version, container.last_confirmed
        decrease = ContainerUpdateType.DECREASE_RESOURCE
        apply_updates(attempt, [(UpdateContainerRequest(container_id, version, decrease, size), container)])

    def complete(self, container: RMContainer, status: ContainerStatus, event: type[RMContainerEnd]) -> None:
        """End a container or reservation; ask again for what its AM never saw (completedContainer)."""
        attempt = self.attempt_of(container.id.application_id)
        if attempt is None:
            return
        node = self._context.nodes.get(container.node_id)
        if container.is_opportunistic:
            complete_opportunistic(container, status, event, attempt, node)
        elif node is not None:
            complete_in_queue(container, status, event, attempt, node)
            self._complete_reserved_update(status, event, node)
        if container.asks is not None and not attempt.is_stopped:
            attempt.asks.restore(container.key, container.asks)

    def _complete_reserved_update(
        self, status: ContainerStatus, event: type[RMContainerEnd], node: SchedulerNode
    ) -> None:
        """What is reserved on the node for an increase of the container that is over goes with it."""
        reserved = node.reserved_container
        if reserved is None or reserved.key.container_id != status.container_id:
            return
        attempt = self.attempt_of(reserved.id.application_id)
        if attempt is not None:
            complete_in_queue(reserved, replace(status, container_id=reserved.id), event, attempt, node)
