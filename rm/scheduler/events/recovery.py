"""Recovers containers that ran before a restart of the ResourceManager, as nodes report them.

An NM reports each container with its size and attempt. That is enough to charge the node, queues, user and attempt as
when the container was placed (AbstractYarnScheduler.recoverContainersOnNode).
"""

from __future__ import annotations

from rm.scheduler.capacity.booking import RELEASED_BY_AM, aborted_status, book, complete
from rm.scheduler.model.application import ApplicationTable, FiCaSchedulerApp
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.notices import CleanUpContainer
from rm.scheduler.model.requests import SchedulerKey
from rm.scheduler.model.rm_container import RMContainer, RMContainerState
from rm.scheduler.model.rm_container_events import RMContainerRecover, RMContainerReleased
from yarn.containers import Container, NMContainerStatus
from yarn.ids import NodeId
from yarn.states import ContainerState


class ContainerRecovery:
    """Recovers containers after an RM restart. Applications and attempts are added by the facade, like new ones."""

    __slots__ = ("_applications", "_context")

    def __init__(self, context: SchedulerContext, applications: ApplicationTable) -> None:
        self._context = context
        self._applications = applications

    def begin(self, *, epoch: int, waits: bool, remember_releases_ms: int, now_ms: int) -> None:
        """Start with a new epoch, which becomes part of container ids.

        `waits`: place nothing until nodes and AMs have had time to register again. For `remember_releases_ms` an AM may
        release containers that their nodes have not reported yet.
        """
        context = self._context
        context.now_ms = now_ms
        context.epoch = epoch
        context.placing_from_ms = now_ms + context.settings.settle_ms if waits else None
        context.releases_remembered_until_ms = now_ms + remember_releases_ms

    def take_up(
        self, node_id: NodeId, report: NMContainerStatus, *, keeps_containers: bool, is_master: bool, now_ms: int
    ) -> None:
        """Recover a container that a joining node reported; if that is impossible, request the NM to stop it.

        It is impossible if the container's application has ended, if its attempt has ended and the application does not
        keep containers across attempts (`keeps_containers`), or if the container is known to run on another node.
        """
        context, applications = self._context, self._applications
        context.now_ms = now_ms
        context.note_change()
        node = context.nodes[node_id]
        application = applications.by_id.get(report.container_id.application_id)
        attempt = application.current_attempt if application is not None else None
        if attempt is None or not (keeps_containers or _is_of(attempt, report)):
            if report.state is not ContainerState.COMPLETE:
                context.notify(CleanUpContainer(node_id, report.container_id))
            return
        known = attempt.live_containers.get(report.container_id)
        if known is not None:
            # Hadoop would charge such a container a second time, and never release the second charge.
            if known.node_id != node_id and report.state is not ContainerState.COMPLETE:
                context.notify(CleanUpContainer(node_id, report.container_id))
            return
        container = _rm_container(context, attempt, node, report)
        container.handle(RMContainerRecover(report), now_ms)
        if container.state is RMContainerState.RUNNING:
            _charge(container, attempt, node, applications)
            container.is_am = is_master
        if container.id in attempt.pending_release:
            del attempt.pending_release[container.id]
            if container.state is RMContainerState.RUNNING:
                released = aborted_status(container.id, RELEASED_BY_AM)
                complete(container, released, RMContainerReleased, applications, context)


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


def _charge(
    container: RMContainer, attempt: FiCaSchedulerApp, node: SchedulerNode, applications: ApplicationTable
) -> None:
    """Charge a recovered container to its node, attempt, user and queues.

    An opportunistic container is added without a charge.
    """
    node.allocate_container(container)
    node.container_launched(container.id)
    attempt.note_recovered(container)
    if container.is_opportunistic:
        return
    partition, size, leaf = node.partition, container.resource, LeafQueue.of(attempt)
    part = attempt.usage.booked(partition)
    part.used = part.used + size
    book(leaf, attempt, container, partition, size, applications)
