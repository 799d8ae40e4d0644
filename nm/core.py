"""The NodeManager as a pure core: an event and the time in, effects out.

    core = NodeManagerCore(node_id, facts, settings)
    effects = core.handle(Start(), now_ms)              RegisterNode
    effects = core.handle(NodeRegistered(...), now_ms)  SendHeartbeat
    effects = core.handle(StartContainers(...), now_ms) FetchResource or LaunchContainer, Reply

One step is one event and all that it sets off among the node's own objects, first in, first out. The time is
wall-clock milliseconds that never go back (the shell's steady clock): tokens are compared with it, timers run on it.
"""

from __future__ import annotations

from typing import assert_never

from nm import diagnostics
from nm.container_service import ContainerService
from nm.containers import NMContainer
from nm.context import NodeContext
from nm.effects import Effect, Stop, UnregisterNode, Warn
from nm.events import (
    ContainerExited,
    ContainerLaunched,
    ContainerSignalled,
    Event,
    GetContainerStatuses,
    GoodByeOver,
    HealthChecked,
    HeartbeatAnswered,
    HeartbeatFailed,
    LaunchCancelled,
    LaunchFailed,
    MemoryExceeded,
    NodeRegistered,
    RegistrationFailed,
    ResourceFetched,
    ResourceFetchFailed,
    ShutDown,
    SignalToContainer,
    Start,
    StartContainers,
    StopContainers,
    Tick,
    UpdateContainers,
    UtilizationSampled,
)
from nm.lifecycles.application import NMApplicationEvent
from nm.lifecycles.container import Exit, Kill, NMContainerEvent
from nm.settings import CoreSettings, NodeFacts
from nm.status_updater import Conversation, NodeStatusUpdater
from yarn.containers import ContainerTokenIdentifier
from yarn.ids import ContainerId, NodeId
from yarn.protocols.tracker import NodeHeartbeatResponse
from yarn.states import ContainerExitStatus, NodeAction

GOOD_BYE_WAIT_MS = 500
"""Containers are ended then, whether the RM has answered the good-bye or not: it may have ended itself."""


class NodeManagerCore:
    """One node. `stopping` is True from the order to stop until the process ends."""

    def __init__(self, node_id: NodeId, facts: NodeFacts, settings: CoreSettings) -> None:
        self.context = NodeContext(settings)
        self.context.on_container_done = self._container_done
        self.status = NodeStatusUpdater(node_id, facts, self.context)
        self.service = ContainerService(self.context, self.status)
        self.stopping = False
        self._failure = ""
        self._finished = False
        self._resync_waits = False
        self._outbox = self.context.outbox

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Take `event` at `now_ms` (never less than at the last call); carry the effects out before the next one.

        Raises InternalError for what cannot happen; the core is then not to be used any more.
        """
        assert now_ms >= self._outbox.now_ms, "time goes forward"
        self._outbox.now_ms = now_ms
        self._outbox.run_due_timers()
        self._outbox.run_posts()
        self._dispatch(event)
        self._outbox.run_posts()
        self._maybe_finish()
        return self._outbox.take_effects()

    def next_deadline_ms(self) -> int | None:
        """When the shell is to send a Tick, None if nothing is planned."""
        return self._outbox.next_deadline_ms()

    def _dispatch(self, event: Event) -> None:
        match event:
            case HeartbeatAnswered(response, updates):
                self._heartbeat_answered(response, updates)
            case UtilizationSampled(containers, node):
                self.status.containers_utilization = containers
                self.status.node_utilization = node
            case Tick():
                pass
            case HealthChecked(health):
                self.status.health = health
            case Start(begun):
                self.service.note_begun(begun)
                self._outbox.after(self.context.settings.cache_cleanup_interval_ms, self._shrink_caches)
                self.status.register()
            case NodeRegistered(response):
                failure = self.status.registered(response)
                if failure:
                    self._shut_down(unregister=False, failure=failure)
            case StartContainers():
                self.service.start(event)
            case StopContainers():
                self.service.stop(event)
            case GetContainerStatuses():
                self.service.get_statuses(event)
            case UpdateContainers():
                self.service.update(event)
            case SignalToContainer():
                self.service.signal(event)
            case RegistrationFailed(problem):
                problem = f"the ResourceManager was not reached to register: {problem}"
                self._shut_down(unregister=False, failure=problem)
            case HeartbeatFailed(problem, unreachable):
                if unreachable:
                    problem = f"the ResourceManager is not reached any more: {problem}"
                    self._shut_down(unregister=False, failure=problem)
                else:
                    self.status.failed(problem)
            case ResourceFetched(fetch_id, path, size_bytes):
                self.context.resources.fetched(fetch_id, path, size_bytes)
            case ResourceFetchFailed(fetch_id, text):
                self.context.resources.failed(fetch_id, text)
            case ContainerLaunched(container_id, launch):
                if self._is_current(container_id, launch):
                    self.context.to_container(container_id, NMContainerEvent.CONTAINER_LAUNCHED)
            case LaunchFailed(container_id, launch, exit_status, problem):
                if self._is_current(container_id, launch):
                    self._failed(container_id, exit_status, problem)
            case LaunchCancelled(container_id, launch):
                if self._is_current(container_id, launch):
                    self._killed(container_id, ContainerExitStatus.TERMINATED, diagnostics.TERMINATED_BEFORE_LAUNCH)
            case ContainerExited():
                if self._is_current(event.container_id, event.launch):
                    self._exited(event)
            case ContainerSignalled():
                self._signalled(event)
            case MemoryExceeded(container_id, launch, exit_status, text):
                if self._is_current(container_id, launch):
                    self.context.to_container(container_id, NMContainerEvent.KILL_CONTAINER, Kill(exit_status, text))
            case ShutDown():
                self._shut_down(unregister=True)
            case GoodByeOver():
                self._end_applications()
            case _:
                assert_never(event)

    # Ends of processes

    def _is_current(self, container_id: ContainerId, launch: int) -> bool:
        """False for news of an earlier start of the container's process, or of one that is forgotten."""
        container = self.context.containers.get(container_id)
        return container is not None and container.launches == launch

    def _exited(self, exited: ContainerExited) -> None:
        container_id, code = exited.container_id, exited.exit_code
        if code == ContainerExitStatus.SUCCESS:
            self.context.to_container(container_id, NMContainerEvent.CONTAINER_EXITED_WITH_SUCCESS)
        elif code in (ContainerExitStatus.FORCE_KILLED, ContainerExitStatus.TERMINATED):
            self._tell(container_id, diagnostics.killed_on_request(code))
            self._killed(container_id, code, diagnostics.non_zero_exit(code))
        else:
            tail_bytes = self.context.settings.stderr_tail_bytes
            self._tell(container_id, diagnostics.launch_exception(container_id, exited))
            self._failed(container_id, code, diagnostics.failed_exit(code, exited.logs, tail_bytes))

    def _signalled(self, event: ContainerSignalled) -> None:
        container = self.context.containers.get(event.container_id)
        if container is not None:
            text = diagnostics.signal_sent(
                event.container_id,
                container.user,
                command=event.command,
                signal=f"SIG{event.signal.name}",
                pid=event.pid,
                delivered=event.delivered,
            )
            self._tell(event.container_id, text)

    def _tell(self, container_id: ContainerId, text: str) -> None:
        self.context.to_container(container_id, NMContainerEvent.UPDATE_DIAGNOSTICS_MSG, text)

    def _failed(self, container_id: ContainerId, code: int, text: str) -> None:
        self.context.to_container(container_id, NMContainerEvent.CONTAINER_EXITED_WITH_FAILURE, Exit(code, text))

    def _killed(self, container_id: ContainerId, code: int, text: str) -> None:
        self.context.to_container(container_id, NMContainerEvent.CONTAINER_KILLED_ON_REQUEST, Exit(code, text))

    def _container_done(self, _: NMContainer) -> None:
        """Posted, as the container is DONE only after the transition that tells it."""
        self._outbox.post(self.status.beat_soon)

    # The RM's orders

    def _heartbeat_answered(
        self, response: NodeHeartbeatResponse, updates: tuple[ContainerTokenIdentifier, ...]
    ) -> None:
        if self.status.answered(response):
            self._follow(response)
            for token in updates:
                self.service.order_update(token)
            self._outbox.run_posts()
            self.status.next_beat()
        elif self.status.state is Conversation.WAITING:
            self._outbox.emit(Warn(f"Message from ResourceManager: {response.diagnostics}"))
            if response.action is NodeAction.SHUTDOWN:
                self._shut_down(unregister=False)
            else:
                self._resync()

    def _follow(self, response: NodeHeartbeatResponse) -> None:
        for container_id in response.containers_to_clean_up:
            self._kill_by_resource_manager(container_id)
        for application_id in response.applications_to_clean_up:
            if application_id in self.context.applications:
                self.context.to_application(
                    application_id, NMApplicationEvent.FINISH_APPLICATION, diagnostics.APPLICATION_FINISHED
                )
        for container_id, command in response.containers_to_signal:
            self.service.order_signal(container_id, command)

    def _kill_by_resource_manager(self, container_id: ContainerId) -> None:
        if container_id in self.context.containers:
            kill = Kill(ContainerExitStatus.KILLED_BY_RESOURCEMANAGER, diagnostics.KILLED_BY_RESOURCE_MANAGER)
            self.context.to_container(container_id, NMContainerEvent.KILL_CONTAINER, kill)

    def _resync(self) -> None:
        """Register again; with containers kept, or (not work-preserving) once all of them are killed."""
        self.status.resync()
        if self.context.settings.work_preserving:
            self.status.register()
            return
        self._resync_waits = True
        for container_id in self.context.containers:
            self._kill_by_resource_manager(container_id)

    # The end

    def _shut_down(self, *, unregister: bool, failure: str = "") -> None:
        """Say good-bye, end every application, then stop. A second order changes nothing.

        The good-bye comes first, as in Hadoop (NodeManager.serviceStop ends the status updater before all others): the
        RM gives the containers up at once, whatever they do yet. Until it has answered, masters may start some more:
        one that is given up is asked for again, one whose start is refused has failed. Not unregistered is a node that
        the RM has sent away, or that cannot reach it.
        """
        if self.stopping:
            return
        self.stopping = True
        self._failure = failure
        says_good_bye = unregister and self.status.state in (Conversation.IDLE, Conversation.WAITING)
        self.status.stop()
        if says_good_bye:
            self._outbox.emit(UnregisterNode())
            self._outbox.after(GOOD_BYE_WAIT_MS, self._end_applications)
        else:
            self._end_applications()

    def _end_applications(self) -> None:
        """Nothing is started any more (ContainerManagerImpl.serviceStop)."""
        if self.service.stopping:
            return
        self.service.stopping = True
        for application_id in self.context.applications:
            self.context.to_application(
                application_id, NMApplicationEvent.FINISH_APPLICATION, diagnostics.APPLICATION_SHUT_DOWN
            )
        self._outbox.after(self.context.settings.shutdown_wait_ms, self._finish)

    def _maybe_finish(self) -> None:
        if self._resync_waits and all(container.is_done for container in self.context.containers.values()):
            self._resync_waits = False
            self.status.register()
        if self.service.stopping and not self.context.applications:
            self._finish()

    def _finish(self) -> None:
        if not self._finished:
            self._finished = True
            self._outbox.emit(Stop(self._failure))

    def _shrink_caches(self) -> None:
        self.context.resources.shrink()
        self._outbox.after(self.context.settings.cache_cleanup_interval_ms, self._shrink_caches)
