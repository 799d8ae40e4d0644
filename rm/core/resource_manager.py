"""The ResourceManager as a pure core: an event and the time in, effects out.

    core = ResourceManagerCore(configuration, cluster_timestamp=start_ms)
    for effect in core.handle(SubmitApplication(call=7, user="ann", context=...), now_ms): ...
    core.next_deadline_ms()     when to send a Tick, if nothing happens before

One step is one event: first the call itself, and its reply; then everything it set off, in the order of Hadoop's
dispatcher. So a reply is what Hadoop's would be if its dispatcher were idle, and the state after a step is what
Hadoop's is once its queues are empty. Every RPC is answered exactly once; a refused one changed nothing.
"""

from __future__ import annotations

from typing import get_args

from rm.core.access_control import ApplicationAcls
from rm.core.administration import NodeLabelService, NodesListManager, QueueAdministration
from rm.core.app_manager import RMAppManager
from rm.core.application_masters import ApplicationMasterService
from rm.core.clients import ClientRMService
from rm.core.context import RMContext
from rm.core.effects import Effect
from rm.core.events import (
    AddClusterNodeLabels,
    Allocate,
    AMLaunched,
    AMLaunchFailed,
    ApplicationSaved,
    ApplicationSaveFailed,
    AttemptSaved,
    Event,
    FailApplicationAttempt,
    FinishApplicationMaster,
    GetNewApplication,
    HostListsRead,
    KillApplication,
    MoveApplication,
    NodeHeartbeat,
    PlayedHeartbeat,
    ProcessStalled,
    QuietHeartbeat,
    RefreshClusterMaxPriority,
    RefreshNodes,
    RefreshQueues,
    RegisterApplicationMaster,
    RegisterNode,
    RemoveClusterNodeLabels,
    ReplaceLabelsOnNodes,
    SignalContainer,
    StateLoaded,
    SubmitApplication,
    UnregisterNode,
    UpdateApplicationPriority,
    UpdateApplicationTimeouts,
    UpdateNodeResource,
)
from rm.core.invariants import RMAudit
from rm.core.lifecycle_events import (
    AppCompleted,
    AppSaveFailed,
    ContainerExpired,
    IncreaseExpired,
    NodeChanged,
    RMAppAttemptEvent,
    RMAppAttemptExpire,
    RMAppAttemptLaunched,
    RMAppAttemptLaunchFailed,
    RMAppEvent,
    RMAppKill,
    RMNodeDecommission,
    RMNodeEvent,
    RMNodeExpire,
    SchedulerTick,
)
from rm.core.quiet_masters import QuietMasters
from rm.core.quiet_nodes import QuietNodes
from rm.core.resource_tracker import ResourceTrackerService
from rm.core.rm_app_attempt_lifecycle import RM_APP_ATTEMPT_LIFECYCLE
from rm.core.rm_app_lifecycle import RM_APP_LIFECYCLE
from rm.core.rm_node_lifecycle import INACTIVE, RM_NODE_LIFECYCLE
from rm.core.scheduler_bridge import SchedulerBridge
from rm.core.settings import RMSettings
from rm.core.states import RMAppState
from rm.scheduler.capacity_scheduler import CapacityScheduler
from rm.scheduler.model.notices import Notice
from rm.scheduler.placement.walk import Draw, first_of
from yarn.configuration import Configuration
from yarn.ids import ApplicationAttemptId
from yarn.machine import Tick
from yarn.states import NodeState

LIFETIME_EXCEEDED = "Application is killed by ResourceManager as it has exceeded the lifetime period."


class ResourceManagerCore:
    """A ResourceManager. `cluster_timestamp` is its start time (ms) and part of every id that it creates.

    `user`: the user that the process runs as. `strict`: an event for which a lifecycle has no row raises
    IllegalTransition; otherwise such an event causes a warning and no change, as in Hadoop. `draw`: random numbers for
    asynchronous scheduling, the same ones when a log is replayed. Raises ConfigurationException with all faults of the
    configuration. Queries read `context` through rm.core.reports; only
    the core changes it.
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        cluster_timestamp: int,
        user: str | None = None,
        strict: bool = False,
        draw: Draw = first_of,
    ) -> None:
        settings = RMSettings.of(configuration)
        self.context = context = RMContext(settings, cluster_timestamp=cluster_timestamp, strict=strict)
        self._dispatcher = context.dispatcher
        self._bridge = SchedulerBridge(context)
        context.scheduler = CapacityScheduler(
            configuration, cluster_timestamp=cluster_timestamp, notify=self._notify, draw=draw
        )
        self._audit = RMAudit(context) if settings.check_invariants else None
        context.application_acls = ApplicationAcls(
            configuration, owner=user, scheduler=context.scheduler, queue_acls=lambda: context.queue_acls
        )
        self._queues = QueueAdministration(context, configuration)
        self._app_manager = RMAppManager(context)
        self._clients = ClientRMService(context)
        self._masters = ApplicationMasterService(context)
        self._tracker = ResourceTrackerService(context)
        self._labels = NodeLabelService(context)
        self._nodes_list = NodesListManager(context)
        self.quiet_nodes = QuietNodes(context)
        self.quiet_masters = QuietMasters(context)
        self._register_calls()
        self._register_events()

    @property
    def scheduler(self) -> CapacityScheduler:
        """The scheduler, for reading only."""
        return self.context.scheduler

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Process `event` at `now_ms`, which never decreases; returns the effects, to be carried out before the
        next call.
        """
        self._dispatcher.begin(now_ms)
        self._dispatcher.deliver(event)
        self._dispatcher.drain()
        self.context.scheduler.walks.plan(now_ms)
        effects: list[Effect] = self._dispatcher.take_effects()
        if self._audit is not None:
            effects += self._audit.look_at_step(event, effects)
        return effects

    def skip_am_heartbeat(self, attempt_id: ApplicationAttemptId, now_ms: int) -> bool:
        """Apply a heartbeat of this AM without news, if the reply would contain only the headroom.

        Otherwise returns False, and nothing has changed. With asynchronous scheduling a walk may be due afterwards.
        """
        is_skipped = self.quiet_masters.heartbeat(attempt_id, now_ms)
        if is_skipped:
            # The headroom may have stored a user's limit, which is a reason to walk.
            self.context.scheduler.walks.plan(now_ms)
        return is_skipped

    def next_deadline_ms(self) -> int | None:
        """The next time at which something may expire: send a Tick then. None: nothing is watched."""
        context = self.context
        deadlines = [
            deadline
            for monitor in (
                context.node_liveness,
                context.am_liveness,
                context.am_finishing,
                context.allocation_expiry,
                context.increase_expiry,
                context.lifetimes,
                self._tracker.decommissioning,
                context.scheduler,
            )
            if (deadline := monitor.next_deadline_ms()) is not None
        ]
        return min(deadlines, default=None)

    def _register_calls(self) -> None:
        """Register the handler of each RPC; it returns the response or raises a YarnException."""
        on_call = self._dispatcher.on_call
        on_call(NodeHeartbeat, self._tracker.heartbeat)
        on_call(PlayedHeartbeat, self.quiet_nodes.heartbeat_with_news)
        on_call(RegisterNode, self._tracker.register)
        on_call(UnregisterNode, self._tracker.unregister)
        on_call(UpdateNodeResource, self._tracker.resize)
        on_call(Allocate, self._masters.allocate)
        on_call(RegisterApplicationMaster, self._masters.register)
        on_call(FinishApplicationMaster, self._masters.finish)
        on_call(SubmitApplication, self._app_manager.submit)
        on_call(GetNewApplication, self._clients.new_application)
        on_call(KillApplication, self._clients.kill)
        on_call(FailApplicationAttempt, self._clients.fail_attempt)
        on_call(MoveApplication, self._clients.move)
        on_call(UpdateApplicationPriority, self._clients.update_priority)
        on_call(UpdateApplicationTimeouts, self._clients.update_timeouts)
        on_call(SignalContainer, self._clients.signal_container)
        on_call(RefreshQueues, self._queues.refresh_queues)
        on_call(RefreshClusterMaxPriority, self._queues.refresh_cluster_max_priority)
        on_call(RefreshNodes, self._nodes_list.refresh)
        on_call(AddClusterNodeLabels, self._labels.add)
        on_call(RemoveClusterNodeLabels, self._labels.remove)
        on_call(ReplaceLabelsOnNodes, self._labels.replace)

    def _register_events(self) -> None:
        """Register the handler of every other event of rm.core.events, and of every event of
        rm.core.lifecycle_events.
        """
        on, send, context = self._dispatcher.on, self._dispatcher.send, self.context
        on(StateLoaded, self._recover)
        on(HostListsRead, self._nodes_list.take_hosts)
        on(AMLaunched, lambda event: send(RMAppAttemptLaunched(event.attempt_id)))
        on(AMLaunchFailed, lambda event: send(RMAppAttemptLaunchFailed(event.attempt_id, event.diagnostics)))
        on(ApplicationSaved, lambda event: context.store.application_saved(event.application_id, event.saving))
        on(ApplicationSaveFailed, self._application_save_failed)
        on(AttemptSaved, lambda event: context.store.attempt_saved(event.attempt_id, event.saving))
        on(ProcessStalled, self._extend_deadlines)
        on(QuietHeartbeat, self.quiet_nodes.heartbeat)
        on(Tick, self._expire)
        on(AppCompleted, self._app_manager.completed)
        on(NodeChanged, self._nodes_list.node_changed)
        self._bridge.register_handlers()
        for event in get_args(RMAppEvent):
            on(event, self._to_app)
        for event in get_args(RMAppAttemptEvent):
            on(event, self._to_attempt)
        for event in get_args(RMNodeEvent):
            on(event, self._to_node)

    # State machines. An event for an object that the ResourceManager does not know, or no longer knows, is dropped.

    def _to_app(self, event: RMAppEvent) -> None:
        app = self.context.apps.get(event.application_id)
        if app is not None:
            self._dispatcher.transition(RM_APP_LIFECYCLE, app, app.machine, event)
            if app.current_attempt is not None:
                self.quiet_masters.note(app.current_attempt.attempt_id)

    def _to_attempt(self, event: RMAppAttemptEvent) -> None:
        app = self.context.apps.get(event.attempt_id.application_id)
        attempt = app.attempts.get(event.attempt_id) if app is not None else None
        if attempt is not None:
            self._dispatcher.transition(RM_APP_ATTEMPT_LIFECYCLE, attempt, attempt.machine, event)
            self.quiet_masters.note(attempt.attempt_id)

    def _to_node(self, event: RMNodeEvent) -> None:
        context = self.context
        node = context.nodes.get(event.node_id)
        if node is not None:
            self._dispatcher.transition(RM_NODE_LIFECYCLE, node, node.machine, event)
            context.scheduler.note_state(node.node_id, is_running=node.machine.state is NodeState.RUNNING)
            self.quiet_nodes.note(event.node_id)
            if node.machine.state in INACTIVE:
                del context.nodes[node.node_id]
                context.inactive_nodes[node.node_id] = node

    def _notify(self, notice: Notice) -> None:
        if self._audit is not None:
            self._audit.look_at_notice(notice)
        self._bridge.notify(notice)

    def _recover(self, event: StateLoaded) -> None:
        """Restore labels and applications, and then update the queues.

        In this order, because Hadoop handles the update of the labels after the recovered attempts were added. The
        update activates some of them, although no node has registered yet.
        """
        self._labels.recover(event.state.node_labels)
        self._app_manager.recover(event.state)
        self._dispatcher.drain()
        if event.state.node_labels.given and self.scheduler.labels.enabled:
            self.scheduler.nodes_remapped((), self.context.now_ms)

    def _application_save_failed(self, event: ApplicationSaveFailed) -> None:
        """Reject a new application. One that is ending already is not rejected; its end is stored later."""
        app = self.context.apps.get(event.application_id)
        if app is not None and app.state is RMAppState.NEW_SAVING:
            self._dispatcher.send(AppSaveFailed(event.application_id, event.diagnostics))

    def _expire(self, _: Tick) -> None:
        """Send an event for everything that was silent for too long or has passed its deadline, the longest silence
        first.
        """
        context, send, now_ms = self.context, self._dispatcher.send, self.context.now_ms
        for node_id in context.node_liveness.expire(now_ms):
            send(RMNodeExpire(node_id))
        for node_id in self._tracker.decommissioning.expire(now_ms):
            send(RMNodeDecommission(node_id))
        for attempt_id in (*context.am_liveness.expire(now_ms), *context.am_finishing.expire(now_ms)):
            send(RMAppAttemptExpire(attempt_id))
        for container_id in context.allocation_expiry.expire(now_ms):
            send(ContainerExpired(container_id))
        for container_id in context.increase_expiry.expire(now_ms):
            send(IncreaseExpired(container_id))
        for application_id in context.lifetimes.expire(now_ms):
            send(RMAppKill(application_id, LIFETIME_EXCEEDED))
        send(SchedulerTick())

    def _extend_deadlines(self, event: ProcessStalled) -> None:
        """Extend all deadlines: the time during which this process was stalled does not count, as heartbeats are still
        queued.

        Hadoop's AbstractLivelinessMonitor lacks this: after a stall its checker may run before the first heartbeat is
        processed, and all nodes are lost.
        """
        context = self.context
        for containers in (context.allocation_expiry, context.increase_expiry):
            containers.extend(event.for_ms)
        for attempts in (context.am_liveness, context.am_finishing):
            attempts.extend(event.for_ms)
        context.node_liveness.extend(event.for_ms)
        context.warn(f"the ResourceManager was stalled for {event.for_ms} ms; liveness timeouts extended by that much")
