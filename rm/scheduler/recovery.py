"""Containers of before a restart of the ResourceManager, brought back by the nodes they run on.

The scheduler knows of a container what its NM says: where it is, its size and for which attempt. That is enough to
charge node, queues, user and attempt as when it was placed (AbstractYarnScheduler.recoverContainersOnNode).
"""

from __future__ import annotations

from rm.scheduler.completion import RELEASED_BY_AM, aborted_status
from rm.scheduler.context import SchedulerContext
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.applications import Applications
from rm.scheduler.model.asks import SchedulerKey
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.notices import CleanUpContainer
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.rm_container import RMContainer, RMContainerRecover, RMContainerReleased, RMContainerState
from yarn.containers import Container, NMContainerStatus
from yarn.ids import ApplicationAttemptId, NodeId
from yarn.states import ContainerState


class Recovery:
    """What the scheduler is told after a restart, besides applications and attempts."""

    __slots__ = ("_applications", "_context")

    def __init__(self, context: SchedulerContext, applications: Applications) -> None:
        self._context = context
        self._applications = applications

    def begin(self, *, epoch: int, waits: bool, remember_releases_ms: int, now_ms: int) -> None:
        """Containers get ids of the epoch. `waits`: none is placed until nodes and masters had time to come back.

        For `remember_releases_ms` a master may give back what its node has still to bring.
        """
        context = self._context
        context.now_ms = now_ms
        context.epoch = epoch
        context.placing_from_ms = now_ms + context.settings.settle_ms if waits else None
        context.releases_remembered_until_ms = now_ms + remember_releases_ms

    def take_up(
        self, node_id: NodeId, report: NMContainerStatus, *, keeps_containers: bool, is_master: bool, now_ms: int
    ) -> None:
        """A node that joins has a container of before the restart. It is to be ended if nobody can take it up.

        That is so if its application is over, or its attempt, unless it `keeps_containers` of earlier attempts, and if
        the container is known to run on another node.
        """
        context, applications = self._context, self._applications
        context.now_ms = now_ms
        context.revision += 1
        node = context.nodes[node_id]
        application = applications.by_id.get(report.container_id.application_id)
        attempt = application.current_attempt if application is not None else None
        if attempt is None or not (keeps_containers or _is_of(attempt, report)):
            if report.state is not ContainerState.COMPLETE:
                context.notify(CleanUpContainer(node_id, report.container_id))
            return
        known = attempt.live_containers.get(report.container_id)
        if known is not None:
            # Hadoop would book it a second time, and never give that room back.
            if known.node_id != node_id and report.state is not ContainerState.COMPLETE:
                context.notify(CleanUpContainer(node_id, report.container_id))
            return
        container = _rm_container(context, attempt, node, report)
        container.handle(RMContainerRecover(report), now_ms)
        if container.state is RMContainerState.RUNNING:
            _charge(container, attempt, node)
            container.is_am = is_master
        if container.id in attempt.pending_release:
            del attempt.pending_release[container.id]
            if container.state is RMContainerState.RUNNING:
                released = aborted_status(container.id, RELEASED_BY_AM)
                applications.complete(container, released, RMContainerReleased)

    def pull_recovered(self, attempt_id: ApplicationAttemptId) -> tuple[Container, ...]:
        """Containers of earlier attempts that were taken up since the last pull (pullPreviousAttemptContainers)."""
        attempt = self._applications.attempt_of(attempt_id.application_id)
        if attempt is None or attempt.attempt_id != attempt_id:
            return ()
        return attempt.pull_recovered()


def _is_of(attempt: FiCaSchedulerApp, report: NMContainerStatus) -> bool:
    return not attempt.is_stopped and attempt.attempt_id == report.container_id.attempt_id


def _rm_container(
    context: SchedulerContext, attempt: FiCaSchedulerApp, node: SchedulerNode, report: NMContainerStatus
) -> RMContainer:
    container = Container(
        report.container_id,
        node.node_id,
        node.http_address,
        context.settings.resource_types.complete(report.resource),
        report.priority,
        execution_type=report.execution_type,
        allocation_request_id=report.allocation_request_id,
        version=report.version,
    )
    return RMContainer(
        container,
        SchedulerKey(False, report.priority, report.allocation_request_id),
        user=attempt.user,
        queue=attempt.leaf.path,
        partition=report.node_label_expression,
        started_ms=report.creation_time_ms,
        notify=context.notify,
    )


def _charge(container: RMContainer, attempt: FiCaSchedulerApp, node: SchedulerNode) -> None:
    """Node, attempt, leaf and user, and all queues above; an opportunistic one counts for nobody but its node."""
    node.allocate_container(container)
    node.container_launched(container.id)
    attempt.note_recovered(container)
    if container.is_opportunistic:
        return
    partition, size = node.partition, container.resource
    part = attempt.usage.booked(partition)
    part.used = part.used + size
    attempt.leaf.allocate(attempt, partition, size, container)
    attempt.leaf.active.usage_changed(attempt)
    queue: CSQueue | None = attempt.leaf.parent
    while queue is not None:
        queue.book_container(partition, size)
        queue = queue.parent
