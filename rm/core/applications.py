"""RMApp and RMAppAttempt: the state of an application and of its attempts.

An application owns its attempts. Their transitions are in rm_app_lifecycle and rm_app_attempt_lifecycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from msgspec.structs import replace

from rm.core.lifecycle_events import AppRejected, FinishedContainersPulledByAM, RMAppAttemptContainerFinished
from rm.core.log_aggregation import AppLogAggregation
from rm.core.service_context import RMServiceContext
from rm.core.states import RMAppAttemptState, RMAppState
from rm.core.stored_state import ApplicationAttemptStateData, ApplicationStateData
from rm.scheduler.config.acls import AccessControlList
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.usage import Losses
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ANY, Container, ContainerStatus, ResourceRequest
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import Machine
from yarn.nodes import NO_LABEL
from yarn.protocols.inspection import RefusedStartReport
from yarn.protocols.master import FinishApplicationMasterRequest
from yarn.resource import Resource
from yarn.states import ContainerExitStatus, FinalApplicationStatus, NodeUpdateType

UNAVAILABLE = "N/A"
RECOVERED = "Attempt recovered after RM restart"

NOT_COUNTED = frozenset(
    {
        ContainerExitStatus.PREEMPTED,
        ContainerExitStatus.ABORTED,
        ContainerExitStatus.DISKS_FAILED,
        ContainerExitStatus.KILLED_BY_RESOURCEMANAGER,
    }
)
"""Exit statuses that are not the AM's fault. Such an end does not count towards the maximum of attempts."""

NOT_THE_NODES_FAULT = NOT_COUNTED | {
    ContainerExitStatus.SUCCESS,
    ContainerExitStatus.KILLED_BY_APPMASTER,
    ContainerExitStatus.KILLED_AFTER_APP_COMPLETION,
    ContainerExitStatus.KILLED_EXCEEDED_VMEM,
    ContainerExitStatus.KILLED_EXCEEDED_PMEM,
}
"""Exit statuses that do not put the AM's node on the blacklist (Apps.shouldCountTowardsNodeBlacklisting).

A node whose disks failed is unhealthy and gets no containers anyway.
"""


class RMApp:
    """An application. Times are wall-clock ms, 0 = not yet.

    `placed`: the queue that placement rules chose, if any. `ran_nodes`: nodes on which it had containers, in order; at
    the end each is ordered to clean up. `updated_nodes`: changes of nodes to report with the AM's next allocate.
    `*_seconds`: resources used by containers that have ended, times seconds. `lifetime_s`: the requested lifetime
    within the queue's limits; 0 = unlimited. `lifetime_ends_ms`: None = never; kept after the application has ended.
    `am_blacklist`: hosts on which its AMs failed; None if such hosts are not avoided. `target` and `after_saving`: the
    state after FINAL_SAVING, and what to do then. `recovered_final_state`: its final state if it had ended before this
    ResourceManager started. `refused_start`: the last container that a node refused to start.
    """

    def __init__(
        self,
        context: RMServiceContext,
        submission: ApplicationSubmissionContext,
        *,
        user: str,
        queue: str,
        placed: str | None,
        am_requests: tuple[ResourceRequest, ...],
        priority: int,
    ) -> None:
        self.context = context
        self.submission = submission
        self.application_id: ApplicationId = submission.application_id
        self.user = user
        self.queue = queue
        self.placed = placed
        self.am_requests = am_requests
        self.priority = priority
        self.max_attempts = _max_attempts(context, submission)
        threshold = context.settings.am_blacklist_threshold
        self.am_blacklist = None if threshold is None or submission.unmanaged_am else AMBlacklist(threshold)
        self.acls = {
            access: AccessControlList.parse(acl) for access, acl in submission.am_container.application_acls.items()
        }
        self.submit_ms = context.now_ms
        self.lifetime_s = 0
        self.lifetime_ends_ms: int | None = None
        self.launch_ms = 0
        self.finish_ms = 0
        self.attempts: dict[ApplicationAttemptId, RMAppAttempt] = {}
        self.current_attempt: RMAppAttempt | None = None
        self.ran_nodes: dict[NodeId, None] = {}
        self.log_aggregation = AppLogAggregation(
            enabled=context.settings.log_aggregation_enabled, timeout_ms=context.settings.log_aggregation_timeout_ms
        )
        self.updated_nodes: dict[NodeId, NodeUpdateType] = {}
        self.diagnostics = ""
        self.refused_start: RefusedStartReport | None = None
        self.state_before_killing = RMAppState.NEW
        self.state_before_final_saving = RMAppState.NEW
        self.target = RMAppState.NEW
        self.after_saving: Callable[[], None] | None = None
        self.stored_finish_ms = 0
        self.recovered_final_state: RMAppState | None = None
        self.memory_mb_seconds = 0
        self.vcore_seconds = 0
        self.losses = Losses()
        self.preempted_containers = 0
        self.machine = Machine(RMAppState.NEW)

    @property
    def state(self) -> RMAppState:
        return self.machine.state

    @property
    def preempted_ams(self) -> int:
        """The number of attempts whose AM was preempted (numAMContainerPreempted)."""
        return sum(attempt.is_preempted for attempt in self.attempts.values())

    def __str__(self) -> str:
        return str(self.application_id)

    def describe(self) -> str:
        """Details for the log of a state change: queue and user, or why the application ended."""
        return self.diagnostics or f"queue={self.queue} user={self.user}"

    def with_refused_start(self, diagnostics: str) -> str:
        """The diagnostics with the last refused start, which may be why the application did not succeed."""
        if (refused := self.refused_start) is None:
            return diagnostics
        return f"{diagnostics}\nLast refused start: {refused.container_id} on {refused.node_id}: {refused.reason}"

    def add_attempt(self, attempt_id: ApplicationAttemptId) -> RMAppAttempt:
        """Create a new attempt; it becomes the current one."""
        attempt = RMAppAttempt(self.context, self, attempt_id)
        self.attempts[attempt_id] = attempt
        self.current_attempt = attempt
        return attempt

    def add_to_scheduler(self, *, recovering: bool = False) -> None:
        """Add the application to the scheduler at once (APP_ADDED)."""
        self.context.scheduler.add_application(
            self.application_id,
            self.submission.queue,
            self.user,
            self.priority,
            now_ms=self.context.now_ms,
            placed=self.placed,
            recovering=recovering,
        )

    def create_missing_queue(self) -> None:
        """Have the application's queue created, where the release does that first; rejects it if there can be none."""
        context, queue = self.context, self.submission.queue
        refusal = context.scheduler.create_missing_queue(
            self.application_id, queue, self.user, context.now_ms, placed=self.placed
        )
        if refusal is not None:
            context.send(AppRejected(self.application_id, refusal))

    def end_lifetime_at(self, moment_ms: int) -> None:
        """End the lifetime at this time: the application is killed then, unless it has ended."""
        self.lifetime_ends_ms = moment_ms
        self.context.lifetimes.register(self.application_id, moment_ms)

    def failed_attempts(self) -> int:
        """The number of attempts whose failure counts towards the maximum."""
        return sum(attempt.counts_as_failure() for attempt in self.attempts.values())

    def account(self, resource: Resource, lifetime_ms: int) -> None:
        """Add the resource-seconds of an ended container, in whole seconds (RMContainerImpl)."""
        self.memory_mb_seconds += resource.memory_mb * lifetime_ms // 1000
        self.vcore_seconds += resource.vcores * lifetime_ms // 1000

    def account_loss(self, resource: Resource, lifetime_ms: int, *, is_am: bool) -> None:
        """Add the resource-seconds of a preempted container. A preempted AM also marks the current attempt."""
        self.losses.add(resource, lifetime_ms)
        if not is_am:
            self.preempted_containers += 1
        elif self.current_attempt is not None:
            self.current_attempt.is_preempted = True

    def pull_node_updates(self) -> list[tuple[NodeId, NodeUpdateType]]:
        """Take the changes of nodes since the last pull, so that each is reported once."""
        updates = list(self.updated_nodes.items())
        self.updated_nodes.clear()
        return updates

    def state_data(self) -> ApplicationStateData:
        """The record to store while the application has not ended."""
        return ApplicationStateData(
            replace(self.submission, priority=self.priority),
            self.user,
            self.submit_ms,
            placed=self.placed,
            launch_ms=self.launch_ms,
            lifetime_ends_ms=self.lifetime_ends_ms,
        )


def _max_attempts(context: RMServiceContext, submission: ApplicationSubmissionContext) -> int:
    """The maximum of attempts: what the client requested, or the RM's default, at most the global limit (RMAppImpl)."""
    if submission.max_app_attempts <= 0:
        return context.settings.max_attempts
    return min(submission.max_app_attempts, context.settings.global_max_attempts)


class RMAppAttempt:
    """An attempt. Times are ms, 0 = not yet.

    `am_container`: the AM's container, once the scheduler has allocated it. `launch_diagnostics`: shown as long as
    there are no other diagnostics; None once the AM has registered. `am_end`: the final status of the AM's container.
    `no_am_will_ask`: True if no AM will pull `finished_containers` any more. `unregistration`: the AM's
    finishApplicationMaster request. `target`, `after_saving` and `recovered_final_state` are as in RMApp.
    """

    def __init__(self, context: RMServiceContext, app: RMApp, attempt_id: ApplicationAttemptId) -> None:
        self.context = context
        self.app = app
        self.attempt_id = attempt_id
        self.am_container: Container | None = None
        self.host = UNAVAILABLE
        self.rpc_port = -1
        self.original_tracking_url = UNAVAILABLE
        self.proxied_tracking_url = f"http://{context.settings.web_address}/proxy/{app}/"
        self.progress = 0.0
        self.is_preempted = False
        self.start_ms = 0
        self.finish_ms = 0
        self.final_status: FinalApplicationStatus | None = None
        self.am_exit_status: int = ContainerExitStatus.INVALID
        self.launch_diagnostics: str | None = None
        self.final_diagnostics = BoundedText(context.settings.attempt_diagnostics_chars_max)
        self.finished_containers = FinishedContainers()
        self.am_end: RMAppAttemptContainerFinished | None = None
        self.no_am_will_ask = False
        self.unregistration: FinishApplicationMasterRequest | None = None
        self.state_before_final_saving = RMAppAttemptState.NEW
        self.target = RMAppAttemptState.NEW
        self.after_saving: Callable[[], None] | None = None
        self.recovered_final_state: RMAppAttemptState | None = None
        self.machine = Machine(RMAppAttemptState.NEW)

    @property
    def state(self) -> RMAppAttemptState:
        return self.machine.state

    @property
    def tracking_url(self) -> str:
        """The tracking URL: the own page of an unmanaged AM, else the RM's proxy of the AM's page."""
        return self.original_tracking_url if self.app.submission.unmanaged_am else self.proxied_tracking_url

    @property
    def page(self) -> str:
        """The RM's page about the application, for use after the AM's page is gone."""
        return f"http://{self.context.settings.web_address}/cluster/app/{self.app}"

    @property
    def diagnostics(self) -> str:
        """Why the attempt ended, or what it is waiting for."""
        if not self.final_diagnostics and self.launch_diagnostics is not None:
            return self.launch_diagnostics
        return str(self.final_diagnostics)

    def __str__(self) -> str:
        return str(self.attempt_id)

    def describe(self) -> str:
        """Details for the log of a state change."""
        return str(self.final_diagnostics) or (
            f"am_container={self.am_container.id}" if self.am_container is not None else ""
        )

    def is_am_container(self, container_id: ContainerId) -> bool:
        """True if the container is this attempt's AM container."""
        return self.am_container is not None and self.am_container.id == container_id

    def counts_as_failure(self) -> bool:
        """True unless the AM's end was not its fault or is older than the validity interval
        (shouldCountTowardsMaxAttemptRetry).
        """
        interval_ms = self.app.submission.attempt_failures_validity_interval_ms
        if interval_ms > 0 and 0 < self.finish_ms < self.context.now_ms - interval_ms:
            return False
        return self.am_exit_status not in NOT_COUNTED

    def add_to_scheduler(self, *, transfers_containers: bool, recovering: bool = False) -> None:
        """Add the attempt to the scheduler at once (APP_ATTEMPT_ADDED)."""
        requests = self.app.am_requests
        self.context.scheduler.add_attempt(
            self.attempt_id,
            transfer=transfers_containers,
            am_resource=requests[0].capability if requests else None,
            am_label=requests[0].label if requests else None,
            label=self.app.submission.node_label_expression,
            now_ms=self.context.now_ms,
            recovering=recovering,
        )

    def recover(self, data: ApplicationAttemptStateData) -> None:
        """Restore what an earlier ResourceManager stored. The event RMAppAttemptRecover follows."""
        self.recovered_final_state = data.state
        self.am_container = data.master
        self.start_ms = data.start_ms
        self.finish_ms = data.finish_ms
        self.original_tracking_url = data.tracking_url or UNAVAILABLE
        self.final_status = data.final_status
        self.am_exit_status = data.exit_status
        self.is_preempted = data.exit_status == ContainerExitStatus.PREEMPTED
        self.final_diagnostics.append(RECOVERED)
        self.final_diagnostics.append(data.diagnostics)
        app = self.app
        app.memory_mb_seconds = max(app.memory_mb_seconds, data.memory_mb_seconds)
        app.vcore_seconds = max(app.vcore_seconds, data.vcore_seconds)
        app.losses.memory_mb_seconds = max(app.losses.memory_mb_seconds, data.preempted_memory_mb_seconds)
        app.losses.vcore_seconds = max(app.losses.vcore_seconds, data.preempted_vcore_seconds)

    def let_nodes_forget(self, pulled: Pulled) -> None:
        """Order nodes to drop ended containers that an AM has acknowledged, or that no AM will ask for."""
        for node_id, container_ids in pulled:
            self.context.send(FinishedContainersPulledByAM(node_id, container_ids))


Statuses = dict[NodeId, list[ContainerStatus]]
Pulled = list[tuple[NodeId, tuple[ContainerId, ...]]]
"""Containers that nodes may forget: (node, its containers), in the order in which nodes first had one."""


class FinishedContainers:
    """The ended containers of an attempt, until its AM has received their statuses.

    An allocate moves a status from "just finished" to "sent". The AM's next allocate proves that the reply arrived;
    only then may the node forget the container. If the AM dies in between, statuses that were sent become "just
    finished" again, for the next attempt (RMAppAttemptImpl.pullJustFinishedContainers, transferStateFromAttempt).
    """

    __slots__ = ("_just_finished", "_sent")

    def __init__(self) -> None:
        self._just_finished: Statuses = {}
        self._sent: Statuses = {}

    @property
    def is_empty(self) -> bool:
        """True if nothing is to be reported, and no node waits to be allowed to forget."""
        return not (self._just_finished or self._sent)

    def add(self, node_id: NodeId, status: ContainerStatus) -> None:
        """Add an ended container to the just finished ones."""
        self._just_finished.setdefault(node_id, []).append(status)

    def mark_sent(self, node_id: NodeId, status: ContainerStatus) -> None:
        """Add an ended container that is not reported to any AM, such as the AM's own, as sent."""
        self._sent.setdefault(node_id, []).append(status)

    def pull(self, attempt_id: ApplicationAttemptId, *, keep_containers: bool) -> tuple[ContainerStatus, ...]:
        """Take the statuses to report to the AM now; they count as sent.

        Without `keep_containers` the containers of earlier attempts are omitted but also count as sent, so their nodes
        forget them.
        """
        pulled = tuple(
            status
            for statuses in self._just_finished.values()
            for status in statuses
            if keep_containers or status.container_id.attempt_id == attempt_id
        )
        for node_id, statuses in self._just_finished.items():
            self._sent.setdefault(node_id, []).extend(statuses)
        self._just_finished.clear()
        return pulled

    def unacknowledged(self, container_id: ContainerId) -> tuple[NodeId, ContainerStatus] | None:
        """The node and the status of this container, if an AM has yet to acknowledge it."""
        for node_id, statuses in chain(self._just_finished.items(), self._sent.items()):
            for status in statuses:
                if status.container_id == container_id:
                    return node_id, status
        return None

    def unacknowledged_on(self, node_id: NodeId) -> set[ContainerId]:
        """The containers of this node whose ends an AM has yet to acknowledge."""
        statuses = chain(self._just_finished.get(node_id, ()), self._sent.get(node_id, ()))
        return {status.container_id for status in statuses}

    def take_sent(self) -> Pulled:
        """Take the containers that the AM has acknowledged; their nodes may forget them."""
        return _take(self._sent)

    def take_unsent(self) -> Pulled:
        """Take the containers that no AM will ask for any more; their nodes may forget them, too."""
        return _take(self._just_finished)

    def handed_on(self) -> FinishedContainers:
        """Hand the list on to the next attempt. Statuses that were sent, but perhaps not received, become unsent.

        Both attempts share the list: a container of the old attempt that ends from now on is reported to the new one.
        """
        for node_id, statuses in self._sent.items():
            self._just_finished.setdefault(node_id, []).extend(statuses)
        self._sent.clear()
        return self


def _take(statuses: Statuses) -> Pulled:
    taken = [(node_id, tuple(status.container_id for status in some)) for node_id, some in statuses.items()]
    statuses.clear()
    return taken


class BoundedText:
    """The last `chars_max` characters of all appended text, with a note if some were dropped (BoundedAppender)."""

    __slots__ = ("_chars_max", "_kept", "_total")

    def __init__(self, chars_max: int) -> None:
        self._chars_max = chars_max
        self._kept = ""
        self._total = 0

    def append(self, text: str) -> None:
        """Append `text`, and drop characters from the front if the limit is exceeded."""
        self._total += len(text)
        self._kept = (self._kept + text)[-self._chars_max :]

    def __bool__(self) -> bool:
        return bool(self._kept)

    def __str__(self) -> str:
        if len(self._kept) == self._total:
            return self._kept
        shown = f"showing last {len(self._kept)} chars out of {self._total}"
        return f"Diagnostic messages truncated, {shown}:\n...{self._kept}"


class AMBlacklist:
    """Hosts on which AMs of an application failed, kept across its attempts (SimpleBlacklistManager).

    The blacklist is off unless it is configured. If it reaches `threshold` (a fraction) of the hosts that the AM could
    use, all of them are allowed again.
    """

    __slots__ = ("_hosts", "_threshold")

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._hosts: dict[str, None] = {}

    def note_end(self, exit_status: int, node: SchedulerNode | None) -> None:
        """Note that an AM ended on `node`; None if the scheduler no longer has that node."""
        if node is not None and exit_status not in NOT_THE_NODES_FAULT:
            self._hosts[node.name] = None

    def updates(self, applicable_nodes: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(additions, removals) of the blacklist for the next AM, for which `applicable_nodes` are possible."""
        hosts = tuple(self._hosts)
        return (hosts, ()) if len(hosts) < self._threshold * applicable_nodes else ((), hosts)


def applicable_nodes(requests: Sequence[ResourceRequest], nodes: Iterable[SchedulerNode]) -> int:
    """The number of nodes that match these AM requests (RMServerUtils.getApplicableNodeCountForAM)."""
    names = {request.resource_name for request in requests if request.relax_locality and request.resource_name != ANY}
    partition = requests[0].label or NO_LABEL
    known = list(nodes)
    wanted = [node for node in known if node.name in names or node.rack in names]
    labelled = [node for node in known if node.partition == partition]
    if wanted and labelled:
        return sum(node.partition == partition for node in wanted)
    return len(wanted or labelled or known)
