"""Connects the ResourceManager's state machines with its scheduler: events go in, notices come back.

The scheduler takes plain values, which are looked up here when an event is delivered. The scheduler reports results as
notices, where Hadoop's RMContainerImpl and CapacityScheduler send events; each notice becomes an event for the state
machine concerned.
"""

from __future__ import annotations

from typing import assert_never

from rm.core.context import RMContext
from rm.core.effects import Preempted
from rm.core.lifecycle_events import (
    AppAccepted,
    AppAdded,
    AppAttemptAdded,
    AppAttemptRemoved,
    AppRejected,
    AppRemoved,
    AppRunningOnNode,
    ContainerExpired,
    FinishedContainersPulledByAM,
    IncreaseExpired,
    NodeAdded,
    NodeRemoved,
    NodeResourceUpdate,
    NodeUpdate,
    RMAppAttemptContainerFinished,
    RMAppKill,
    RMNodeCleanupContainer,
    RMNodeResourceUpdate,
    SchedulerTick,
)
from rm.scheduler.model.notices import (
    ApplicationAccepted,
    ApplicationRejected,
    AttemptAdded,
    CleanUpContainer,
    ContainerAcquired,
    ContainerAllocated,
    ContainerFinished,
    ContainerRecovered,
    ContainerReportedRunning,
    ContainerUntracked,
    IncreaseAcquired,
    IncreaseSettled,
    NodeOvercommitted,
    NodesRemapped,
    NodeUtilizationChanged,
    Notice,
    PreemptionDecided,
    PreemptionFailed,
    QueueMissing,
    ReleaseTemporary,
    UpdateContainer,
)
from yarn.containers import NMContainerStatus
from yarn.ids import NodeId
from yarn.states import ContainerExitStatus


class SchedulerBridge:
    """Delivers events to the scheduler, and passes its notices on."""

    def __init__(self, context: RMContext) -> None:
        self._context = context

    def register_handlers(self) -> None:
        """Register the handlers of all events for the scheduler.

        The notices NodesRemapped, NodeOvercommitted and ReleaseTemporary go back to the scheduler.
        """
        on, scheduler, context = self._context.dispatcher.on, self._context.scheduler, self._context
        on(NodeAdded, self._add_node)
        on(NodeRemoved, lambda event: scheduler.remove_node(event.node_id, context.now_ms))
        on(NodeUpdate, self._update_node)
        on(NodeResourceUpdate, self._update_node_resource)
        on(AppAdded, lambda event: context.apps[event.application_id].add_to_scheduler())
        on(AppRemoved, lambda event: scheduler.remove_application(event.application_id, event.final_state_name))
        on(AppAttemptAdded, self._add_attempt)
        on(AppAttemptRemoved, self._remove_attempt)
        on(ContainerExpired, lambda event: scheduler.expire_container(event.container_id, context.now_ms))
        on(IncreaseExpired, lambda event: scheduler.roll_back_increase(event.container_id, context.now_ms))
        on(SchedulerTick, lambda _: scheduler.tick(context.now_ms))
        on(NodesRemapped, lambda notice: scheduler.nodes_remapped(notice.changes, context.now_ms))
        on(NodeOvercommitted, self._end_overcommitment)
        on(ReleaseTemporary, lambda notice: scheduler.release_temporary(notice.container_id, context.now_ms))

    def _add_node(self, event: NodeAdded) -> None:
        context = self._context
        node = context.nodes[event.node_id]
        context.scheduler.add_node(
            node.node_id, node.rack, node.capability, context.now_ms, http_address=node.http_address
        )
        if context.settings.work_preserving:
            for report in event.containers:
                self._recover_container(node.node_id, report)

    def _recover_container(self, node_id: NodeId, report: NMContainerStatus) -> None:
        app = self._context.apps.get(report.container_id.application_id)
        attempt = app.current_attempt if app is not None else None
        self._context.scheduler.recovery.take_up(
            node_id,
            report,
            keeps_containers=app is not None and app.submission.keep_containers_across_attempts,
            is_master=attempt is not None and attempt.is_am_container(report.container_id),
            now_ms=self._context.now_ms,
        )

    def _update_node(self, event: NodeUpdate) -> None:
        context = self._context
        node = context.nodes[event.node_id]
        launched, increased, completed = node.pull_updates()
        context.scheduler.node_update(node.node_id, launched, completed, context.now_ms, increased=increased)

    def _update_node_resource(self, event: NodeResourceUpdate) -> None:
        node = self._context.nodes[event.node_id]
        self._context.scheduler.update_node_resource(
            node.node_id, node.capability, self._context.now_ms, over_commit_ms=event.over_commit_timeout_ms
        )

    def _end_overcommitment(self, notice: NodeOvercommitted) -> None:
        scheduler, now_ms = self._context.scheduler, self._context.now_ms
        scheduler.end_overcommitment(notice.node_id, notice.container_id, now_ms, kills=notice.kills)

    def _add_attempt(self, event: AppAttemptAdded) -> None:
        attempt = self._context.apps[event.attempt_id.application_id].attempts[event.attempt_id]
        attempt.add_to_scheduler(transfers_containers=event.transfers_containers)

    def _remove_attempt(self, event: AppAttemptRemoved) -> None:
        self._context.scheduler.remove_attempt(
            event.attempt_id,
            keep_containers=event.keeps_containers,
            final_state_name=event.final_state_name,
            now_ms=self._context.now_ms,
        )

    def notify(self, notice: Notice) -> None:
        """Pass a notice on as an event. Expiry of containers and resource-seconds are updated at once."""
        context = self._context
        match notice:
            case ContainerAllocated() | AttemptAdded() | UpdateContainer():
                context.send(notice)
            case NodesRemapped() | NodeOvercommitted() | ReleaseTemporary():
                context.send(notice)
            case ContainerAcquired(container_id, node_id):
                context.allocation_expiry.register(container_id, context.now_ms)
                context.send(AppRunningOnNode(container_id.application_id, node_id))
            case ContainerReportedRunning(container_id):
                context.stop_expiry(container_id)
            case ContainerFinished(attempt_id, node_id, status):
                context.stop_expiry(status.container_id)
                self._account(notice)
                context.send(RMAppAttemptContainerFinished(attempt_id, node_id, status))
            case CleanUpContainer(node_id, container_id):
                context.send(RMNodeCleanupContainer(node_id, container_id))
            case IncreaseAcquired(container_id):
                context.increase_expiry.register(container_id, context.now_ms)
            case IncreaseSettled(container_id):
                context.increase_expiry.unregister(container_id)
            case ContainerUntracked(node_id, container_id):
                context.send(FinishedContainersPulledByAM(node_id, (container_id,)))
            case NodeUtilizationChanged(node_id, allocated):
                context.send(RMNodeResourceUpdate(node_id, allocated, over_commit_timeout_ms=0))
            case PreemptionDecided(container_id, _, step, reason, serves):
                context.emit(Preempted(container_id, step, reason, serves))
            case PreemptionFailed(text):
                context.warn(f"a round of preemption was aborted: {text}")
            case ContainerRecovered(container_id, node_id):
                context.send(AppRunningOnNode(container_id.application_id, node_id))
            case QueueMissing(application_id, diagnostics):
                context.send(RMAppKill(application_id, diagnostics))
            case ApplicationAccepted(application_id, _):
                context.send(AppAccepted(application_id))
            case ApplicationRejected(application_id, diagnostics):
                context.send(AppRejected(application_id, diagnostics))
            case _:
                assert_never(notice)

    def _account(self, finished: ContainerFinished) -> None:
        """Add the resource-seconds of an ended container to its application, and to its losses if it was preempted."""
        app = self._context.apps.get(finished.attempt_id.application_id)
        if app is None:
            return
        lifetime_ms = self._context.now_ms - finished.started_ms
        app.account(finished.resource, lifetime_ms)
        if finished.status.exit_status == ContainerExitStatus.PREEMPTED:
            app.account_loss(finished.resource, lifetime_ms, is_am=finished.is_am)
