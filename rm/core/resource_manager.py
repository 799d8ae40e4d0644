"""The ResourceManager as a pure machine: an event and the time in, effects out.

    core = ResourceManagerCore(configuration, cluster_timestamp=start_ms)
    for effect in core.handle(SubmitApplication(call=7, user="ann", context=...), now_ms): ...
    core.next_deadline_ms()     when to send a Tick, if nothing happens before

One event is one step: the call itself first, and its reply; then everything it set off, in the order of Hadoop's
dispatcher (rm.core.context). So a reply is what Hadoop's would be if its dispatcher had been idle, and the state after
a step is what Hadoop's is once it has come to rest. Every RPC is answered exactly once; a refused one changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, assert_never

from rm.core.administration import AdminService
from rm.core.application_acls import ApplicationAcls
from rm.core.application_masters import ApplicationMasterService
from rm.core.audit import Audit
from rm.core.clients import ClientRMService
from rm.core.context import RMContext
from rm.core.effects import Effect, Preempted
from rm.core.events import (
    AddClusterNodeLabels,
    Allocate,
    ApplicationSaved,
    ApplicationSaveFailed,
    Asker,
    AttemptSaved,
    Event,
    FailApplicationAttempt,
    FinishApplicationMaster,
    GetNewApplication,
    HostListsRead,
    KillApplication,
    MasterLaunched,
    MasterLaunchFailed,
    MoveApplication,
    NodeHeartbeat,
    RefreshClusterMaxPriority,
    RefreshNodes,
    RefreshQueues,
    RegisterApplicationMaster,
    RegisterNode,
    RemoveClusterNodeLabels,
    ReplaceLabelsOnNodes,
    SignalContainer,
    StateLoaded,
    Stood,
    SubmitApplication,
    Tick,
    UnregisterNode,
    UpdateApplicationPriority,
    UpdateApplicationTimeouts,
    UpdateNodeResource,
)
from rm.core.lifecycle_events import FinishedContainer, RMAppAttemptEventType, RMAppEventType, RMNodeEventType
from rm.core.node_label_service import NodeLabelService
from rm.core.nodes_list import NodesListManager
from rm.core.recovery import recover
from rm.core.resource_tracker import ResourceTrackerService
from rm.core.settings import RMSettings
from rm.core.state_store import KeepingStateStore, StateStore
from rm.scheduler.capacity_scheduler import CapacityScheduler
from rm.scheduler.model.notices import (
    ApplicationAccepted,
    ApplicationRejected,
    AttemptAdded,
    CleanUpContainer,
    ContainerAcquired,
    ContainerAllocated,
    ContainerFinished,
    ContainerLaunched,
    ContainerRecovered,
    ContainerUntracked,
    IncreaseAcquired,
    IncreaseSettled,
    NodesRemapped,
    Notice,
    PreemptionFailed,
    QueueMissing,
    ReleaseTemporary,
    RoomTaken,
    UpdateContainer,
    VictimOrdered,
)
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.machine import Refuse, Reply
from yarn.machine.effects import Call

LIFETIME_EXCEEDED = "Application is killed by ResourceManager as it has exceeded the lifetime period."


class _CalledByUser(Protocol):
    @property
    def user(self) -> str: ...
    @property
    def groups(self) -> tuple[str, ...]: ...


def _asker(event: _CalledByUser) -> Asker:
    return event.user, event.groups


class ResourceManagerCore:
    """One ResourceManager. `cluster_timestamp` is its start (ms) and part of every id that it gives;
    `user` is who it runs as.

    Raises ConfigurationException, with all faults, for a configuration that cannot be. `strict` lets an event that
    a lifecycle has no row for raise IllegalTransition; otherwise it is told as a warning and changes nothing, as in
    Hadoop. Queries go to `context`, through rm.core.reports.applications; nobody but the core changes it.
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        cluster_timestamp: int,
        user: str | None = None,
        strict: bool = False,
    ) -> None:
        settings = RMSettings.of(configuration)
        self.context = RMContext(settings, cluster_timestamp=cluster_timestamp, strict=strict)
        self.context.scheduler = CapacityScheduler(
            configuration, cluster_timestamp=cluster_timestamp, notify=self._notice
        )
        self._audit = Audit(self.context) if settings.check_invariants else None
        self.context.store = (KeepingStateStore if settings.recovery_enabled else StateStore)(self.context)
        self.context.masters = ApplicationMasterService(self.context)
        self.context.application_acls = ApplicationAcls(self.context, configuration, user)
        self._admin = AdminService(self.context, configuration)
        self._clients = ClientRMService(self.context)
        self._tracker = ResourceTrackerService(self.context)
        self._labels = NodeLabelService(self.context)
        self._nodes_list = NodesListManager(self.context)

    @property
    def scheduler(self) -> CapacityScheduler:
        """For reading only."""
        return self.context.scheduler

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Everything that `event` sets off at `now_ms`, in order; carry it out before the next call."""
        context = self.context
        context.now_ms = now_ms
        context.effects = []
        self._dispatch(event)
        context.drain()
        if self._audit is not None:
            context.effects += self._audit.look_at_step(event, context.effects)
        return context.effects

    def next_deadline_ms(self) -> int | None:
        """When the first of all watches may find something expired: send a Tick then. None: nothing to wait for."""
        context = self.context
        deadlines = [
            deadline
            for monitor in (
                context.node_liveness,
                context.master_liveness,
                context.master_finishing,
                context.allocation_expiry,
                context.increase_expiry,
                context.lifetimes,
                context.decommissioning,
                context.scheduler,
            )
            if (deadline := monitor.next_deadline_ms()) is not None
        ]
        return min(deadlines, default=None)

    def _dispatch(self, event: Event) -> None:
        clients, tracker, masters = self._clients, self._tracker, self.context.masters
        match event:
            case NodeHeartbeat():
                self._answer(event.call, tracker.heartbeat, event.request)
            case Allocate():
                self._answer(event.call, masters.allocate, event.attempt_id, event.request)
            case GetNewApplication():
                self._answer(event.call, clients.new_application)
            case SubmitApplication():
                self._answer(event.call, clients.submit, event.user, event.context, event.groups)
            case KillApplication():
                self._answer(event.call, clients.kill, event.application_id, event.diagnostics, _asker(event))
            case FailApplicationAttempt():
                self._answer(event.call, clients.fail_attempt, event.attempt_id, _asker(event))
            case MoveApplication():
                self._answer(event.call, clients.move, event.application_id, event.queue, _asker(event))
            case UpdateApplicationPriority():
                self._answer(event.call, clients.update_priority, event.application_id, event.priority, _asker(event))
            case UpdateApplicationTimeouts():
                self._answer(event.call, clients.update_timeouts, event.application_id, event.expiry_ms, _asker(event))
            case SignalContainer():
                self._answer(event.call, clients.signal_container, event.container_id, event.command, _asker(event))
            case RegisterApplicationMaster():
                self._answer(event.call, masters.register, event.attempt_id, event.request)
            case FinishApplicationMaster():
                self._answer(event.call, masters.finish, event.attempt_id, event.request)
            case RegisterNode():
                self._answer(event.call, tracker.register, event.request, event.rack)
            case UnregisterNode():
                self._answer(event.call, tracker.unregister, event.node_id)
            case UpdateNodeResource():
                self._answer(event.call, tracker.resize, event.resources)
            case RefreshQueues():
                self._answer(event.call, self._admin.refresh_queues, event.configuration)
            case AddClusterNodeLabels():
                self._answer(event.call, self._labels.add, event.labels)
            case RemoveClusterNodeLabels():
                self._answer(event.call, self._labels.remove, event.labels)
            case ReplaceLabelsOnNodes():
                self._answer(event.call, self._labels.replace, event.labels, event.fail_on_unknown_nodes)
            case RefreshNodes():
                self._answer(event.call, self._nodes_list.refresh, event.hosts, event.type, event.timeout_s)
            case RefreshClusterMaxPriority():
                self._answer(event.call, self._admin.refresh_cluster_max_priority, event.priority)
            case HostListsRead():
                self.context.hosts = event.hosts
            case MasterLaunched():
                self.context.send_attempt(event.attempt_id, RMAppAttemptEventType.LAUNCHED)
            case StateLoaded():
                self._labels.recover(event.state.node_labels)
                recover(self.context, event.state)
            case ApplicationSaved():
                self.context.store.application_saved(event.application_id, event.saving)
            case ApplicationSaveFailed():
                self.context.store.application_save_failed(event.application_id, event.diagnostics)
            case AttemptSaved():
                self.context.store.attempt_saved(event.attempt_id, event.saving)
            case MasterLaunchFailed():
                self.context.send_attempt(event.attempt_id, RMAppAttemptEventType.LAUNCH_FAILED, event.diagnostics)
            case Stood():
                self._forgive(event.for_ms)
            case Tick():
                self._expire()
            case _:
                assert_never(event)

    def _answer(self, call: Call, handler: Callable[..., object], *arguments: object) -> None:
        """Answer `call` with what `handler` returns, or with the error it raises."""
        try:
            value = handler(*arguments)
        except YarnException as error:
            self.context.effects.append(Refuse(call, error))
        else:
            self.context.effects.append(Reply(call, value))

    def _expire(self) -> None:
        """Whoever has been silent for too long, in the order of Hadoop's monitors here and of the silence in each."""
        context, now_ms = self.context, self.context.now_ms
        for node_id in context.node_liveness.expire(now_ms):
            context.send_node(node_id, RMNodeEventType.EXPIRE)
        for node_id in context.decommissioning.expire(now_ms):
            context.send_node(node_id, RMNodeEventType.DECOMMISSION)
        for attempt_id in context.master_liveness.expire(now_ms):
            context.send_attempt(attempt_id, RMAppAttemptEventType.EXPIRE)
        for attempt_id in context.master_finishing.expire(now_ms):
            context.send_attempt(attempt_id, RMAppAttemptEventType.EXPIRE)
        for container_id in context.allocation_expiry.expire(now_ms):
            context.send(context.scheduler.expire_container, container_id, now_ms)
        for container_id in context.increase_expiry.expire(now_ms):
            context.send(context.scheduler.roll_back_increase, container_id, now_ms)
        for application_id in context.lifetimes.expire(now_ms):
            context.send_app(application_id, RMAppEventType.KILL, LIFETIME_EXCEEDED)
        context.send(context.scheduler.tick, now_ms)

    def _forgive(self, stood_ms: int) -> None:
        """Nobody was silent while nobody listened: what they have sent meanwhile is still on its way.

        AbstractLivelinessMonitor lacks this: its checker may run before the first heartbeat, and all nodes are lost.
        """
        context = self.context
        for watched in (context.node_liveness, context.allocation_expiry, context.increase_expiry):
            watched.forgive(stood_ms)
        for masters in (context.master_liveness, context.master_finishing):
            masters.forgive(stood_ms)
        context.warn(f"the ResourceManager did not run for {stood_ms} ms: nobody's silence of that time counts")

    def _notice(self, notice: Notice) -> None:
        """Queue what the scheduler tells for the machine that it concerns."""
        context = self.context
        if self._audit is not None:
            self._audit.look_at_notice(notice)
        match notice:
            case ContainerAllocated(attempt_id, _):
                context.send_attempt(attempt_id, RMAppAttemptEventType.CONTAINER_ALLOCATED)
            case ContainerAcquired(container_id, node_id):
                context.allocation_expiry.register(container_id, context.now_ms)
                context.send_app(container_id.application_id, RMAppEventType.APP_RUNNING_ON_NODE, node_id)
            case ContainerLaunched(container_id):
                context.heard_of_container(container_id)
            case ContainerFinished(attempt_id, node_id, status):
                context.heard_of_container(status.container_id)
                context.account(notice)
                finished = FinishedContainer(node_id, status)
                context.send_attempt(attempt_id, RMAppAttemptEventType.CONTAINER_FINISHED, finished)
            case CleanUpContainer(node_id, container_id):
                context.send_node(node_id, RMNodeEventType.CLEANUP_CONTAINER, container_id)
            case IncreaseAcquired(container_id):
                context.increase_expiry.register(container_id, context.now_ms)
            case IncreaseSettled(container_id):
                context.increase_expiry.unregister(container_id)
            case UpdateContainer(node_id, container):
                context.send_node(node_id, RMNodeEventType.UPDATE_CONTAINER, container)
            case ContainerUntracked(node_id, container_id):
                context.send_node(node_id, RMNodeEventType.FINISHED_CONTAINERS_PULLED_BY_AM, (container_id,))
            case NodesRemapped(changes):
                context.send(context.scheduler.nodes_remapped, changes, context.now_ms)
            case RoomTaken(node_id, allocated):
                context.send_node(node_id, RMNodeEventType.RESOURCE_UPDATE, allocated)
            case ReleaseTemporary(container_id):
                context.send(context.scheduler.release_temporary, container_id, context.now_ms)
            case VictimOrdered(container_id, _, step, reason, serves):
                context.effects.append(Preempted(container_id, step, reason, serves))
            case PreemptionFailed(text):
                context.warn(f"a round of preemption broke off: {text}")
            case ContainerRecovered(container_id, node_id):
                context.send_app(container_id.application_id, RMAppEventType.APP_RUNNING_ON_NODE, node_id)
            case QueueMissing(application_id, diagnostics):
                context.send_app(application_id, RMAppEventType.KILL, diagnostics)
            case ApplicationAccepted(application_id, _):
                context.send_app(application_id, RMAppEventType.APP_ACCEPTED)
            case ApplicationRejected(application_id, diagnostics):
                context.send_app(application_id, RMAppEventType.APP_REJECTED, diagnostics)
            case AttemptAdded(attempt_id):
                context.send_attempt(attempt_id, RMAppAttemptEventType.ATTEMPT_ADDED)
            case _:
                assert_never(notice)
