"""The NodeManager as a pure core: it handles one event at a given time and returns the effects to carry out.

    core = NodeManagerCore(node_id, facts, settings)
    effects = core.handle(Start(), now_ms)              SendRegistration
    effects = core.handle(NodeRegistered(...), now_ms)  SendHeartbeat
    effects = core.handle(StartContainers(...), now_ms) FetchResource or LaunchContainer, Reply

One step handles one event, and then the events that the node's own objects send one another, first in, first out. The
time is in milliseconds of a wall clock that never goes back (the shell's WallClock). Timers and the expiry of tokens
use this clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from msgspec import Struct

from nm.core import diagnostics
from nm.core.application import (
    APPLICATION_LIFECYCLE,
    ApplicationContainerInit,
    ApplicationEvent,
    ApplicationForgotten,
    ContainerOfApplicationEvent,
    FinishApplication,
    NMApplication,
)
from nm.core.container import (
    ContainerDone,
    ContainerExitedWithFailure,
    ContainerExitedWithSuccess,
    ContainerKilledOnRequest,
    ContainerRelaunchDue,
    KillContainer,
    NMContainer,
    UpdateDiagnosticsMsg,
)
from nm.core.container_lifecycle import CONTAINER_LIFECYCLE, ContainerEvent
from nm.core.container_service import ContainerService
from nm.core.context import EffectDue, NodeContext
from nm.core.effects import Effect, EndNode, EraseStoredState, LeaveContainers, SendUnregistration
from nm.core.events import (
    ContainerExited,
    ContainerLaunched,
    ContainerSignalled,
    Event,
    GetContainerStatuses,
    HealthChecked,
    LaunchCancelled,
    LaunchFailed,
    LimitExceeded,
    LogsAggregated,
    NodeHeartbeatAnswered,
    NodeHeartbeatFailed,
    NodeRegistered,
    Recover,
    RegistrationFailed,
    ResourceFetched,
    ResourceFetchFailed,
    ShutDown,
    SignalToContainer,
    Start,
    StartContainers,
    StopContainers,
    UnregisterCompleted,
    UpdateContainers,
    UtilizationSampled,
)
from nm.core.invariants import NodeAudit
from nm.core.played_container import PlayedContainer
from nm.core.recovery import NodeRecovery
from nm.core.settings import CoreSettings, NodeFacts
from nm.core.status_updater import RM_INVALID_IDENTIFIER, Conversation, HeartbeatDue, NodeStatusUpdater
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.machine import InvariantsBroken, Tick, Warn, event_name
from yarn.protocols.tracker import LogAggregationReport, NodeHeartbeatRequest, NodeHeartbeatResponse
from yarn.states import ContainerExitStatus, LogAggregationStatus, NodeAction

UNREGISTER_TIMEOUT_MS = 500
"""End the containers after this long even if the RM has not acknowledged the unregistration; the RM may be down."""


class ShrinkCaches(Struct, frozen=True):
    """The interval between two cleanups of the resource caches has passed."""


class ShutdownTimeout(Struct, frozen=True):
    """The containers of a stopping node did not end in time."""


_SILENT_TIMERS = (HeartbeatDue, ShrinkCaches, EffectDue)
"""Timers that change nothing that a heartbeat reports."""


class NodeManagerCore:
    """The core of one node. `stopping` is True from the order to stop until the process ends.

    `containers` holds each container from its accepted start until the RM has acknowledged its end, `applications` each
    application until the deletion of its logs is scheduled; both in the order of their starts.
    """

    def __init__(self, node_id: NodeId, facts: NodeFacts, settings: CoreSettings) -> None:
        self.context = NodeContext(settings)
        self.containers: dict[ContainerId, NMContainer] = {}
        self.applications: dict[ApplicationId, NMApplication] = {}
        self.status = NodeStatusUpdater(node_id, facts, self.context, self.containers, self.applications)
        self.service = ContainerService(self.context, self.status, self.containers, self.applications)
        self.stopping = False
        self._decommissioned = False
        self._failure = ""
        self._finished = False
        self._resync_waits = False
        self._cleanups_due_ms: list[int] = []
        self._audit = (
            NodeAudit(self.containers, self.applications, self.context.resources, lambda: self.status.rm_identifier)
            if settings.check_invariants
            else None
        )
        self._dispatcher = self.context.dispatcher
        self._register_handlers()

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle `event` and return its effects, which must be carried out before the next call.

        `now_ms` is never less than in the last call.

        Raises InternalError for an illegal transition; do not use the core after that.
        """
        if type(event) is not Tick and type(event) is not NodeHeartbeatAnswered:
            self.status.has_news = True
        self._dispatcher.begin(now_ms)
        self._dispatcher.deliver(event)
        self._dispatcher.drain()
        self._maybe_finish()
        self.context.recorder.end_step()
        effects = self._dispatcher.take_effects()
        if self._audit is not None and (broken := self._audit.violations(event, effects, now_ms)):
            effects.append(InvariantsBroken(tuple(broken)))
        return effects

    @property
    def plays_starts(self) -> bool:
        """True if the node accepts every start with a valid token: it is registered, and does not stop."""
        return self.status.rm_identifier != RM_INVALID_IDENTIFIER and not self.service.stopping

    def play_starts(self, containers: Iterable[PlayedContainer], now_ms: int) -> list[Effect]:
        """Start containers: what StartContainers and ContainerLaunched come to. Only if `plays_starts`.

        Those whose application has stopped here have ended afterwards. No invariants are checked.
        """
        self.status.has_news = True
        self._dispatcher.begin(now_ms)
        for container in containers:
            self._play_start(container)
        self._dispatcher.drain()
        return self._dispatcher.take_effects()

    def _play_start(self, container: PlayedContainer) -> None:
        application_id = container.id.attempt_id.application_id
        application = self.applications.get(application_id)
        if application is None:
            application = NMApplication(application_id, container.user, self.context)
            application.play_start()
            self.applications[application_id] = application
        self.status.add(container)
        if application.is_stopped:
            self._dispatcher.send(ApplicationContainerInit(container.id))
        else:
            application.add(container.id)
            container.play_start()
            self.status.has_news = True

    def play_end(self, container: PlayedContainer, now_ms: int) -> list[Effect]:
        """End a container that runs: what ContainerExited with exit code 0 comes to."""
        self.status.has_news = True
        self._dispatcher.begin(now_ms)
        container.play_end()
        self.applications[container.id.attempt_id.application_id].remove(container.id)
        self.status.send_soon()
        return self._dispatcher.take_effects()

    @property
    def is_quiet(self) -> bool:
        """True if heartbeats would only repeat the last one, until an event other than a Tick is handled."""
        return self.status.is_quiet and self._has_only_silent_timers

    @property
    def reports_only_containers(self) -> bool:
        """True if the next heartbeat can only report containers that were played, and changes nothing else here."""
        return self.status.reports_only_containers and self._has_only_silent_timers

    @property
    def _has_only_silent_timers(self) -> bool:
        return all(isinstance(timer, _SILENT_TIMERS) for timer in self._dispatcher.scheduled())

    def pause_heartbeats(self) -> None:
        """Send no heartbeats until `resume_heartbeats`. Only if quiet, or if the next one `reports_only_containers`.

        Cleaning the caches is left out too, if it would do nothing.
        """
        if self.context.resources.is_small:
            self._cleanups_due_ms = self._dispatcher.cancel(ShrinkCaches)
        self.status.pause()

    def paused_heartbeat(self) -> NodeHeartbeatRequest:
        """The content of the first heartbeat that is not sent."""
        return self.status.paused_request()

    def play_answer(self, response: NodeHeartbeatResponse, now_ms: int) -> list[Effect]:
        """Handle the answer to a heartbeat that was not sent; the following ones are not sent either.

        Only if it is `status.only_forgets`.
        """
        self.status.await_answer()
        effects = self.handle(NodeHeartbeatAnswered(response), now_ms)
        self.status.pause()
        return effects

    def resume_heartbeats(self, count: int, due_ms: int, now_ms: int) -> None:
        """Resume as if `count` heartbeats had been sent and answered with nothing; the next one is due at `due_ms`."""
        interval_ms = self.context.settings.cache_cleanup_interval_ms
        for cleanup_ms in self._cleanups_due_ms:
            missed = max(0, -((cleanup_ms - now_ms) // interval_ms))
            self._dispatcher.send_after(cleanup_ms + missed * interval_ms - self._dispatcher.now_ms, ShrinkCaches())
        self._cleanups_due_ms = []
        self.status.resume(count, due_ms)

    def next_deadline_ms(self) -> int | None:
        """The time (ms) at which the shell must send a Tick; None if nothing is scheduled."""
        return self._dispatcher.next_deadline_ms()

    def _register_handlers(self) -> None:
        """Register one handler for each event of nm.core.events, of both lifecycles, and of the timers."""
        on, on_call = self._dispatcher.on, self._dispatcher.on_call
        on_call(StartContainers, self.service.start)
        on_call(StopContainers, self.service.stop)
        on_call(GetContainerStatuses, self.service.get_statuses)
        on_call(UpdateContainers, self.service.update)
        on_call(SignalToContainer, self.service.signal)
        recovery = NodeRecovery(self.context, self.status, self.service, self.applications)
        on(Recover, lambda event: recovery.recover(event.state))
        on(Start, self._start)
        on(NodeRegistered, self._registered)
        on(RegistrationFailed, self._registration_failed)
        on(NodeHeartbeatAnswered, self._heartbeat_answered)
        on(NodeHeartbeatFailed, self._heartbeat_failed)
        on(HeartbeatDue, self.status.send_if_due)
        on(ResourceFetched, lambda event: self.context.resources.fetched(event.fetch_id, event.path, event.size_bytes))
        on(ResourceFetchFailed, lambda event: self.context.resources.failed(event.fetch_id, event.diagnostics))
        on(LaunchFailed, self._launch_failed)
        on(LaunchCancelled, self._launch_cancelled)
        on(ContainerExited, self._exited)
        on(ContainerSignalled, self._signalled)
        on(LimitExceeded, self._limit_exceeded)
        on(UtilizationSampled, self._utilization_sampled)
        on(HealthChecked, self._health_checked)
        on(ContainerDone, lambda _: self.status.send_soon())
        on(ContainerRelaunchDue, self._relaunch)
        on(LogsAggregated, self._logs_aggregated)
        on(ApplicationForgotten, self._forget_application)
        on(ShrinkCaches, self._shrink_caches)
        on(Tick, lambda _: None)
        on(ShutDown, lambda _: self._shut_down(unregister=True))
        on(UnregisterCompleted, lambda _: self._end_applications())
        on(ShutdownTimeout, lambda _: self._finish())
        for event in get_args(ContainerEvent):
            on(event, self._to_container if event is not ContainerLaunched else self._launched)
        for event in get_args(ApplicationEvent):
            on(event, lambda event: self._to_application(event.application_id, event))
        for event in get_args(ContainerOfApplicationEvent):
            on(event, lambda event: self._to_application(event.container_id.application_id, event))

    def _to_container(self, event: ContainerEvent) -> None:
        container = self.containers.get(event.container_id)
        if container is None:
            name = event_name(type(event))
            self._dispatcher.emit(Warn(f"Event {name} sent to absent container {event.container_id}"))
        else:
            self._dispatcher.transition(CONTAINER_LIFECYCLE, container, container.machine, event)

    def _to_application(
        self, application_id: ApplicationId, event: ApplicationEvent | ContainerOfApplicationEvent
    ) -> None:
        application = self.applications.get(application_id)
        if application is None:
            name = event_name(type(event))
            self._dispatcher.emit(Warn(f"Event {name} sent to absent application {application_id}"))
        else:
            self._dispatcher.transition(APPLICATION_LIFECYCLE, application, application.machine, event)

    def _logs_aggregated(self, event: LogsAggregated) -> None:
        application = self.applications.get(event.application_id)
        if application is not None:
            status = LogAggregationStatus.FAILED if event.problem else LogAggregationStatus.SUCCEEDED
            self.status.report_log_aggregation(LogAggregationReport(event.application_id, status, event.problem))
            application.logs_aggregated(event.problem)

    def _forget_application(self, event: ApplicationForgotten) -> None:
        if self.applications.pop(event.application_id, None) is not None:
            self.context.recorder.application_forgotten(event.application_id)

    def _start(self, event: Start) -> None:
        self.service.note_started_before(event.started_before)
        self._dispatcher.send_after(self.context.settings.cache_cleanup_interval_ms, ShrinkCaches())
        self.status.register()

    def _utilization_sampled(self, event: UtilizationSampled) -> None:
        self.status.containers_utilization = event.containers
        self.status.node_utilization = event.node

    def _health_checked(self, event: HealthChecked) -> None:
        self.status.health = event.health

    def _shrink_caches(self, _: ShrinkCaches) -> None:
        self.context.resources.shrink()
        self._dispatcher.send_after(self.context.settings.cache_cleanup_interval_ms, ShrinkCaches())

    def _is_current(self, container_id: ContainerId, launch: int) -> bool:
        """False if the launch is not the container's latest, or if the node no longer has the container."""
        container = self.containers.get(container_id)
        return container is not None and container.launches == launch

    def _launched(self, event: ContainerLaunched) -> None:
        if self._is_current(event.container_id, event.launch):
            self._to_container(event)

    def _launch_failed(self, event: LaunchFailed) -> None:
        if self._is_current(event.container_id, event.launch):
            self._failed(event.container_id, event.exit_status, event.problem)

    def _launch_cancelled(self, event: LaunchCancelled) -> None:
        if self._is_current(event.container_id, event.launch):
            text = diagnostics.TERMINATED_BEFORE_LAUNCH
            self._killed(event.container_id, ContainerExitStatus.TERMINATED, text)

    def _limit_exceeded(self, event: LimitExceeded) -> None:
        if self._is_current(event.container_id, event.launch):
            self._dispatcher.send(KillContainer(event.container_id, event.exit_status, event.diagnostics))

    def _relaunch(self, event: ContainerRelaunchDue) -> None:
        container = self.containers.get(event.container_id)
        if container is not None:
            container.relaunch_if_due()

    def _exited(self, event: ContainerExited) -> None:
        container_id, code = event.container_id, event.exit_code
        if not self._is_current(container_id, event.launch):
            return
        if code == ContainerExitStatus.SUCCESS:
            self._dispatcher.send(ContainerExitedWithSuccess(container_id))
        elif self.containers[container_id].is_reacquired:
            self._failed(container_id, code, diagnostics.recovered_exit(code))
        elif code in (ContainerExitStatus.FORCE_KILLED, ContainerExitStatus.TERMINATED):
            self._add_diagnostics(container_id, diagnostics.killed_on_request(code))
            self._killed(container_id, code, diagnostics.non_zero_exit(code))
        else:
            tail_bytes = self.context.settings.stderr_tail_bytes
            self._add_diagnostics(container_id, diagnostics.launch_exception(container_id, event))
            self._failed(container_id, code, diagnostics.failed_exit(code, event.logs, tail_bytes))

    def _signalled(self, event: ContainerSignalled) -> None:
        container = self.containers.get(event.container_id)
        if container is not None:
            text = diagnostics.signal_sent(
                event.container_id,
                container.user,
                command=event.command,
                signal=f"SIG{event.signal.name}",
                pid=event.pid,
                delivered=event.delivered,
            )
            self._add_diagnostics(event.container_id, text)

    def _add_diagnostics(self, container_id: ContainerId, text: str) -> None:
        self._dispatcher.send(UpdateDiagnosticsMsg(container_id, text))

    def _failed(self, container_id: ContainerId, code: int, text: str) -> None:
        self._dispatcher.send(ContainerExitedWithFailure(container_id, code, text))

    def _killed(self, container_id: ContainerId, code: int, text: str) -> None:
        self._dispatcher.send(ContainerKilledOnRequest(container_id, code, text))

    def _registered(self, event: NodeRegistered) -> None:
        failure = self.status.registered(event.response)
        if failure:
            self._shut_down(unregister=False, failure=failure)

    def _registration_failed(self, event: RegistrationFailed) -> None:
        problem = f"cannot register with the ResourceManager: {event.problem}"
        self._shut_down(unregister=False, failure=problem)

    def _heartbeat_failed(self, event: NodeHeartbeatFailed) -> None:
        if event.unreachable:
            problem = f"lost the connection to the ResourceManager: {event.problem}"
            self._shut_down(unregister=False, failure=problem)
        else:
            self.status.failed(event.problem)

    def _heartbeat_answered(self, event: NodeHeartbeatAnswered) -> None:
        response = event.response
        if self.status.answered(response):
            if event.updates:
                self.status.has_news = True
            self._follow(response)
            for token in event.updates:
                self.service.order_update(token)
            self._dispatcher.drain()
            self.status.schedule_next()
        elif self.status.state is Conversation.WAITING:
            self._dispatcher.emit(Warn(f"Message from ResourceManager: {response.diagnostics}"))
            if response.action is NodeAction.SHUTDOWN:
                self._decommissioned = True
                self._shut_down(unregister=False)
            else:
                self._resync()

    def _follow(self, response: NodeHeartbeatResponse) -> None:
        for container_id in response.containers_to_clean_up:
            self._kill_by_resource_manager(container_id)
        for application_id in response.applications_to_clean_up:
            if application_id in self.applications:
                self._dispatcher.send(FinishApplication(application_id, diagnostics.APPLICATION_FINISHED))
        for container_id, command in response.containers_to_signal:
            self.service.order_signal(container_id, command)

    def _kill_by_resource_manager(self, container_id: ContainerId) -> None:
        if container_id in self.containers:
            status, text = ContainerExitStatus.KILLED_BY_RESOURCEMANAGER, diagnostics.KILLED_BY_RESOURCE_MANAGER
            self._dispatcher.send(KillContainer(container_id, status, text))

    def _resync(self) -> None:
        """Register again. If the node is not work-preserving, kill all containers first."""
        self.status.resync()
        if self.context.settings.work_preserving:
            self.status.register()
            return
        self._resync_waits = True
        for container_id in self.containers:
            self._kill_by_resource_manager(container_id)

    def _shut_down(self, *, unregister: bool, failure: str = "") -> None:
        """Unregister, end every application, then stop the node. A second call has no effect.

        Unregistering comes first, as in Hadoop (NodeManager.serviceStop stops the status updater before all others):
        the RM then considers the node's containers lost at once. Until the RM has answered, the node still accepts new
        containers, because an AM requests a lost container again, but counts a refused start as a failure. A node that
        the RM shut down, or that cannot reach the RM, does not unregister. A supervised node that recovers neither
        unregisters nor ends its containers, unless the RM shut it down.
        """
        if self.stopping:
            return
        self.stopping = True
        self._failure = failure
        if self.context.settings.leaves_containers and not self._decommissioned:
            self.status.stop()
            self.service.stopping = True
            self._dispatcher.emit(LeaveContainers())
            self._finish()
            return
        unregisters = unregister and self.status.state in (Conversation.IDLE, Conversation.WAITING)
        self.status.stop()
        if unregisters:
            self._dispatcher.emit(SendUnregistration())
            self._dispatcher.send_after(UNREGISTER_TIMEOUT_MS, UnregisterCompleted())
        else:
            self._end_applications()

    def _end_applications(self) -> None:
        """Refuse new containers, and end the running ones (ContainerManagerImpl.serviceStop)."""
        if self.service.stopping:
            return
        self.service.stopping = True
        for application_id in self.applications:
            self._dispatcher.send(FinishApplication(application_id, diagnostics.APPLICATION_SHUT_DOWN))
        self._dispatcher.send_after(self.context.settings.shutdown_wait_ms, ShutdownTimeout())

    def _maybe_finish(self) -> None:
        if self._resync_waits and all(container.is_done for container in self.containers.values()):
            self._resync_waits = False
            self.status.register()
        if self.service.stopping and not self.applications:
            self._finish()

    def _finish(self) -> None:
        if not self._finished:
            self._finished = True
            if self._decommissioned and self.context.recorder.enabled:
                self._dispatcher.emit(EraseStoredState())
            self._dispatcher.emit(EndNode(self._failure))
