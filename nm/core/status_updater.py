"""The node's calls to the RM: one registration, then one heartbeat after the other (NodeStatusUpdaterImpl).

A heartbeat carries the response id of the last answer. If the RM receives a response id again, it repeats its last
answer, so nothing is lost if an answer is lost. The status of a container that has ended is sent until the RM has
surely received it; `_pending_completed` holds it until then. The first answer after a failed heartbeat does not prove
that the RM received the status: the RM may have received the failed heartbeat and taken the next one for a repetition.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from nm.core.application import NMApplication
from nm.core.container import NMContainer
from nm.core.context import NodeContext
from nm.core.effects import SendHeartbeat, SendRegistration
from nm.core.settings import NodeFacts
from nm.core.stopped_containers import StoppedContainers
from yarn.containers import Container, ContainerStatus, NMContainerStatus
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.java.versions import VERSION_CHARS_SHOWN, compare_versions
from yarn.machine import Warn
from yarn.nodes import NodeHealth, ResourceUtilization
from yarn.protocols.tracker import (
    LogAggregationReport,
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RefusedStart,
    RegisterNodeManagerRequest,
    RegisterNodeManagerResponse,
)
from yarn.resource import INT32_MAX, Resource
from yarn.states import NodeAction

REFUSED_STARTS_MAX = 100
"""Applications whose last refused start is kept for the next heartbeat."""
RM_INVALID_IDENTIFIER = -1
"""The start time of no RM. A node that resyncs uses it to refuse all container tokens (ResourceManagerConstants)."""


class Conversation(Enum):
    """The state of the node's calls to the RM. In WAITING and REGISTERING one call is in progress.

    LEFT_OUT: heartbeats are not sent, because it is known what they would do (NodeStatusUpdater.pause).
    """

    SILENT = 1
    REGISTERING = 2
    IDLE = 3
    WAITING = 4
    STOPPED = 5
    LEFT_OUT = 6


class HeartbeatDue(Struct, frozen=True):
    """The heartbeat interval has passed since heartbeat `number`."""

    number: int


class NodeStatusUpdater:
    """The state of the reports to the RM, and the RM's last answer.

    `has_news`: something has happened since the last heartbeat was sent, so the next one may differ from it.
    `rm_identifier` is the start time of the RM whose container tokens are accepted; `has_registered`: there was one.
    `resource` is the node's size: the configured one until the RM overrides it. `increased`: containers that have grown
    since the last heartbeat; an increase is reported once, and if that heartbeat is lost, the RM rolls it back.

    `_open`: containers whose end no heartbeat has reported yet, `_new` those of them that no heartbeat has reported at
    all; `_has_ended`: some of them may have ended. `_reported`: those of running applications whose end was reported,
    which the node keeps until the RM has it forget them. A heartbeat goes through the first ones only.
    """

    def __init__(
        self,
        node_id: NodeId,
        facts: NodeFacts,
        context: NodeContext,
        containers: dict[ContainerId, NMContainer],
        applications: dict[ApplicationId, NMApplication],
    ) -> None:
        self.node_id = node_id
        self.rm_identifier = RM_INVALID_IDENTIFIER
        self.has_registered = False
        self.state = Conversation.SILENT
        self.resource: Resource = facts.resource
        self.health = NodeHealth()
        self.containers_utilization = ResourceUtilization()
        self.node_utilization = ResourceUtilization()
        self._sent_state = self._state_of_node()
        self._facts = facts
        self._context = context
        self._containers = containers
        self._applications = applications
        self._response_id = 0
        self._interval_ms = context.settings.heartbeat_interval_ms
        self._heartbeat_number = 0
        self._heartbeat_wanted = False
        self._missed = False
        self.has_news = True
        self._pending_completed: dict[ContainerId, ContainerStatus] = {}
        self._to_forget: dict[ContainerId, None] = {}
        self.increased: dict[ContainerId, Container] = {}
        self._log_reports: dict[ApplicationId, LogAggregationReport] = {}
        self._log_reports_sent: tuple[LogAggregationReport, ...] = ()
        self._refused: dict[ApplicationId, RefusedStart] = {}
        self._refused_sent: tuple[RefusedStart, ...] = ()
        self._open: dict[ContainerId, NMContainer] = {}
        self._new: dict[ContainerId, NMContainer] = {}
        self._has_ended = False
        self._reported: dict[ApplicationId, dict[ContainerId, None]] = {}
        self._recently_stopped = StoppedContainers(context.settings.stopped_containers_kept_ms)

    def register(self) -> None:
        """Register the node, and report the status of every container, because the RM may have restarted."""
        if self.state is Conversation.STOPPED:
            return
        self.state = Conversation.REGISTERING
        facts = self._facts
        self._context.dispatcher.emit(
            SendRegistration(
                RegisterNodeManagerRequest(
                    self.node_id,
                    facts.http_port,
                    self.resource,
                    facts.version,
                    self._registration_statuses(),
                    self._running_applications(),
                    facts.physical,
                    self.health,
                    tuple(self._log_reports.values()),
                )
            )
        )

    def registered(self, response: RegisterNodeManagerResponse) -> str:
        """Handle the answer to a registration, and send the first heartbeat.

        Returns the reason why the RM refuses the node, or the node refuses the RM; "" if neither does.
        """
        if self.state is not Conversation.REGISTERING:
            return ""
        if response.action is NodeAction.SHUTDOWN:
            return (
                "Received SHUTDOWN signal from Resourcemanager, Registration of NodeManager failed, "
                f"Message from ResourceManager: {response.diagnostics}"
            )
        outdated = self._outdated_rm(response.rm_version)
        if outdated:
            return outdated
        self.rm_identifier = response.rm_identifier
        self.has_registered = True
        self.resource = response.resource or self.resource
        self._response_id = 0
        self._missed = False
        self._send()
        return ""

    def _outdated_rm(self, version: str) -> str:
        """The reason not to start with an RM of this version, or "" (NodeStatusUpdaterImpl.registerWithRM)."""
        minimum = self._context.settings.rm_minimum_version
        if minimum is None:
            return ""
        if not version:
            return (
                "Shutting down the Node Manager. The Resource Manager's did not return a version. "
                "Valid version cannot be checked."
            )
        if compare_versions(version, minimum) >= 0:
            return ""
        return (
            "Shutting down the Node Manager on RM version error, The Resource Manager's version "
            f"({version[:VERSION_CHARS_SHOWN]}) is less than the minimum allowed version {minimum}"
        )

    def resync(self) -> None:
        """Register again with an RM that does not know the node.

        New containers are refused until that has succeeded.
        """
        self.rm_identifier = RM_INVALID_IDENTIFIER
        self.state = Conversation.SILENT
        self._pending_completed.clear()

    def stop(self) -> None:
        """Send no more calls."""
        self.state = Conversation.STOPPED

    def send_soon(self) -> None:
        """Report a container that has ended: at once or, if a call is in progress, as soon as that one is answered.

        While heartbeats are left out, `is_wanted` says that one is due now.
        """
        self._has_ended = True
        if self.state is Conversation.IDLE:
            self._send(at_once=True)
        elif self.state in (Conversation.WAITING, Conversation.LEFT_OUT):
            self._heartbeat_wanted = True

    def answered(self, response: NodeHeartbeatResponse) -> bool:
        """Handle the answer to a heartbeat.

        Returns False if no answer was expected, or if it orders a resync or a shutdown.
        """
        if self.state is not Conversation.WAITING:
            return False
        self._interval_ms = response.next_heartbeat_ms if response.next_heartbeat_ms > 0 else self._interval_ms
        if response.action is not NodeAction.NORMAL:
            return False
        self.has_news |= self._changes_heartbeats(response)
        self._forget(response.containers_to_forget)
        self.has_news |= any(self._reports_end_of(one) for one in response.applications_to_clean_up)
        if self._missed:
            self._missed = False
        else:
            self._pending_completed.clear()
            self._log_reports_received()
            self._refused_starts_received()
        self._response_id = response.response_id
        self.resource = response.resource or self.resource
        return True

    def _changes_heartbeats(self, response: NodeHeartbeatResponse) -> bool:
        """True if the next heartbeat may differ from the last one, not because an application is over.

        Usual orders about an ended container do not change it: to kill it, and to forget it, unless its end was
        reported just now.
        """
        if response.is_quiet:
            return False
        to_kill = tuple(one for one in response.containers_to_clean_up if self._is_alive(one))
        to_forget = tuple(one for one in response.containers_to_forget if one in self._pending_completed)
        others = replace(
            response, containers_to_clean_up=to_kill, applications_to_clean_up=(), containers_to_forget=to_forget
        )
        return not others.is_quiet

    def _reports_end_of(self, application_id: ApplicationId) -> bool:
        """True if the next heartbeat may differ from the last one because the application is over.

        One that is played has no logs, so heartbeats only differ by its containers.
        """
        application = self._applications.get(application_id)
        if application is None or not application.is_played or application_id in self._reported:
            return True
        return any(container_id.application_id == application_id for container_id in self._open)

    def only_forgets(self, response: NodeHeartbeatResponse) -> bool:
        """True if the answer only has the node forget containers that have ended, and applications that were played."""
        return not self._changes_heartbeats(response) and not any(
            self._has_to_end(one) for one in response.applications_to_clean_up
        )

    def only_forgets_ended(self, response: NodeHeartbeatResponse) -> bool:
        """True if the answer only has the node forget containers whose end was reported.

        Then nothing depends on when it arrives, before anything else happens on the node.
        """
        return (
            not response.applications_to_clean_up
            and self.only_forgets(response)
            and all(
                one in self._recently_stopped or one not in self._containers for one in response.containers_to_forget
            )
        )

    def _has_to_end(self, application_id: ApplicationId) -> bool:
        application = self._applications.get(application_id)
        return application is not None and bool(not application.is_played or application.containers)

    def _is_alive(self, container_id: ContainerId) -> bool:
        container = self._containers.get(container_id)
        return container is not None and not container.is_done

    def failed(self, problem: str) -> None:
        """Handle a failed heartbeat: send the next one after the last known interval, with the same response id."""
        if self.state is Conversation.WAITING:
            self._context.dispatcher.emit(Warn(f"Caught exception in status-updater: {problem}"))
            self._missed = True
            self.schedule_next()

    def schedule_next(self) -> None:
        """Schedule the next heartbeat, or send it now if that was requested."""
        self.state = Conversation.IDLE
        if self._heartbeat_wanted and not self._missed:
            self._send(at_once=True)
            return
        self._context.dispatcher.send_after(self._interval_ms, HeartbeatDue(self._heartbeat_number))

    def send_if_due(self, due: HeartbeatDue) -> None:
        """Send a heartbeat, unless one was sent after this timer was set."""
        if self.state is Conversation.IDLE and self._heartbeat_number == due.number:
            self._send()

    def report_log_aggregation(self, report: LogAggregationReport) -> None:
        """Report the outcome of an application's log aggregation with the next heartbeats, until one is answered."""
        self._log_reports[report.application_id] = report

    def report_refused_start(self, refused: RefusedStart) -> None:
        """Report a refused start with the next heartbeats, until one is answered or the application has a newer one."""
        application_id = refused.container_id.application_id
        self._refused.pop(application_id, None)
        self._refused[application_id] = refused
        if len(self._refused) > REFUSED_STARTS_MAX:
            del self._refused[next(iter(self._refused))]

    def add(self, container: NMContainer) -> None:
        """Keep a container that was started, and report its status with each heartbeat until it has ended."""
        self._containers[container.id] = self._open[container.id] = self._new[container.id] = container

    def is_recently_stopped(self, container_id: ContainerId) -> bool:
        return container_id in self._recently_stopped

    @property
    def is_quiet(self) -> bool:
        """True if heartbeats would only repeat the last one, until something happens on the node.

        They change nothing on the node either, if their answers contain nothing. An ended container that was reported,
        and waits until its AM has learnt of its end, is not reported again.
        """
        return self.state is Conversation.IDLE and not self.has_news and self.reports_only_containers

    @property
    def reports_only_containers(self) -> bool:
        """True if the next heartbeat differs from the last one only by containers that have started or ended.

        Nothing is left of earlier heartbeats and answers, and no call is in progress.
        """
        return self.state in (Conversation.IDLE, Conversation.LEFT_OUT) and not (
            self._missed
            or self._pending_completed
            or self._to_forget
            or self._log_reports
            or self._refused
            or self.increased
            or self._state_of_node() != self._sent_state
        )

    def _state_of_node(self) -> tuple[NodeHealth, ResourceUtilization, ResourceUtilization]:
        return self.health, self.containers_utilization, self.node_utilization

    @property
    def is_wanted(self) -> bool:
        """True if a heartbeat that is left out is due at once."""
        return self._heartbeat_wanted

    def pause(self) -> None:
        """Send no heartbeats until `resume`. Only right after an answer."""
        self.state = Conversation.LEFT_OUT
        self._context.dispatcher.cancel(HeartbeatDue)

    def paused_request(self) -> NodeHeartbeatRequest:
        """The content of the first heartbeat after `pause`."""
        self._heartbeat_wanted = self.has_news = False
        return self._next_request(())

    def take_news(self) -> tuple[ContainerStatus, ...]:
        """The containers' statuses of that heartbeat without those that the last one contained."""
        self._heartbeat_wanted = self.has_news = False
        self._note_ends()
        started = [container.status() for container in self._new.values() if container.id in self._open]
        self._new.clear()
        return (*started, *self._pending_completed.values())

    def reports_received(self, to_forget: tuple[ContainerId, ...]) -> None:
        """Note that a heartbeat that was left out is answered with nothing but containers to forget."""
        self._forget(to_forget)
        self._pending_completed.clear()

    def await_answer(self) -> None:
        """Expect the answer to a heartbeat that was left out."""
        self.state = Conversation.WAITING

    def resume(self, count: int, due_ms: int) -> None:
        """Resume as if `count` heartbeats had been sent and answered with nothing; the next one is due at `due_ms`."""
        self.state = Conversation.IDLE
        self._response_id = (self._response_id + count) & INT32_MAX
        self._heartbeat_number += count
        dispatcher = self._context.dispatcher
        dispatcher.send_after(due_ms - dispatcher.now_ms, HeartbeatDue(self._heartbeat_number))

    def _send(self, *, at_once: bool = False) -> None:
        self.state = Conversation.WAITING
        self._heartbeat_number += 1
        self._heartbeat_wanted = False
        self.has_news = False
        self._sent_state = self._state_of_node()
        increased = tuple(self.increased.values())
        self.increased.clear()
        self._log_reports_sent = tuple(self._log_reports.values())
        self._refused_sent = tuple(self._refused.values())
        self._context.dispatcher.emit(SendHeartbeat(self._next_request(increased), at_once))

    def _next_request(self, increased: tuple[Container, ...]) -> NodeHeartbeatRequest:
        return NodeHeartbeatRequest(
            self.node_id,
            self._response_id,
            self._container_statuses(),
            self.health,
            (),
            self.containers_utilization,
            self.node_utilization,
            increased,
            log_aggregation_reports=self._log_reports_sent,
            refused_starts=self._refused_sent,
        )

    def _log_reports_received(self) -> None:
        for report in self._log_reports_sent:
            if self._log_reports.get(report.application_id) is report:
                del self._log_reports[report.application_id]
        self._log_reports_sent = ()

    def _refused_starts_received(self) -> None:
        for refused in self._refused_sent:
            application_id = refused.container_id.application_id
            if self._refused.get(application_id) is refused:
                del self._refused[application_id]
        self._refused_sent = ()

    def _container_statuses(self) -> tuple[ContainerStatus, ...]:
        """The status of every running container, and of each ended container until the RM has surely received it."""
        self._note_ends()
        self._new.clear()
        live = [container.status() for container in self._open.values()]
        return (*live, *self._pending_completed.values())

    def _note_ends(self) -> None:
        """Have the next heartbeat report the containers that have ended, in the order of their starts."""
        self._drop_containers_of_stopped_applications()
        if not self._has_ended:
            return
        self._has_ended = False
        ended = [container for container in self._open.values() if container.is_done]
        for container in ended:
            self._report_end(container)
        if ended:
            self._recently_stopped.expire(self._context.dispatcher.now_ms, self._is_application_stopped)

    def _drop_containers_of_stopped_applications(self) -> None:
        """Report the end of containers whose application has stopped once more, and drop them."""
        for application_id in [one for one in self._reported if self._is_application_stopped(one)]:
            for container_id in self._reported.pop(application_id):
                self._pending_completed[container_id] = self._containers.pop(container_id).status()
                self._context.recorder.container_dropped(container_id)

    def _report_end(self, container: NMContainer) -> None:
        del self._open[container.id]
        stopped = self._is_application_stopped(container.id.application_id)
        if stopped:
            del self._containers[container.id]
            self._context.recorder.container_dropped(container.id)
        else:
            self._reported.setdefault(container.id.application_id, {})[container.id] = None
        if stopped or container.id not in self._recently_stopped:
            self._pending_completed[container.id] = container.status()
        self._recently_stopped.add(container.id, self._context.dispatcher.now_ms)

    def _registration_statuses(self) -> tuple[NMContainerStatus, ...]:
        statuses: list[NMContainerStatus] = []
        for container in list(self._containers.values()):
            if container.id.application_id not in self._applications:
                self._drop(container.id)
                continue
            statuses.append(container.registration_status())
            if container.is_done:
                self._recently_stopped.add(container.id, self._context.dispatcher.now_ms)
        return tuple(statuses)

    def _running_applications(self) -> tuple[ApplicationId, ...]:
        return tuple(self._applications)

    def _is_application_stopped(self, application_id: ApplicationId) -> bool:
        application = self._applications.get(application_id)
        return application is None or application.is_stopped

    def _forget(self, container_ids: tuple[ContainerId, ...]) -> None:
        """Drop the containers whose end the RM has reported to the AM.

        A container whose end was not in a heartbeat yet is dropped later.
        """
        self._to_forget.update(dict.fromkeys(container_ids))
        for container_id in list(self._to_forget):
            container = self._containers.get(container_id)
            if container is None or container_id in self._recently_stopped:
                self._drop(container_id)
                del self._to_forget[container_id]
            self._pending_completed.pop(container_id, None)

    def _drop(self, container_id: ContainerId) -> None:
        if self._containers.pop(container_id, None):
            self._context.recorder.container_dropped(container_id)
        self._open.pop(container_id, None)
        reported = self._reported.get(container_id.application_id, {})
        reported.pop(container_id, None)
        if not reported:
            self._reported.pop(container_id.application_id, None)
