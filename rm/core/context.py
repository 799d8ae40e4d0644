"""What the parts of the ResourceManager's core share (Hadoop's RMContext), and the queue between them.

Hadoop's state machines talk to one another through a dispatcher: a first-in-first-out queue that one thread empties.
Its order is part of the behaviour (an attempt's end reaches the application before the scheduler drops the attempt's
containers; a retried attempt is made before the old one's containers are counted as finished), so it is kept: whatever
a handler sets off is queued and handled after what was queued before it, and one step of the core ends when the queue
is empty. Calling the next machine directly would be simpler and gives other orders.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from rm.core.decommissioning import DecommissioningNodesWatcher
from rm.core.effects import Effect
from rm.core.host_lists import HostLists
from rm.core.lifecycle_events import RMAppAttemptEventType, RMAppEventType, RMNodeEventType
from rm.core.liveness import DeadlineMonitor, LivenessMonitor
from rm.core.settings import RMSettings
from rm.core.states import STORED_APP_STATES
from yarn.containers import NMContainerStatus
from yarn.errors import ApplicationNotFoundException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.lifecycle import IllegalTransition
from yarn.machine import StateChanged, Warn
from yarn.states import ContainerExitStatus, NodeState, NodeUpdateType

if TYPE_CHECKING:
    from rm.core.application_acls import ApplicationAcls
    from rm.core.application_masters import ApplicationMasterService
    from rm.core.placement_rules.mapping import MappingPlacement
    from rm.core.queue_acls import QueueAcls
    from rm.core.rm_app import RMApp
    from rm.core.rm_app_attempt import RMAppAttempt
    from rm.core.rm_node import RMNode
    from rm.core.state_store import StateStore
    from rm.scheduler.capacity_scheduler import CapacityScheduler
    from rm.scheduler.config.priority_acls import PriorityAcl
    from rm.scheduler.model.notices import ContainerFinished


class RMContext:
    """The state of one ResourceManager.

    `apps` in the order of submission; `nodes` are those in use, `inactive_nodes` the last known of the others; a node
    is in one of the two. `effects` are those of the step under way; `now_ms` is its time. `priority_acls` {leaf's
    path: who may have which priorities}, as of the last refresh.
    """

    scheduler: CapacityScheduler
    masters: ApplicationMasterService
    store: StateStore
    placement: MappingPlacement
    queue_acls: QueueAcls
    application_acls: ApplicationAcls

    def __init__(self, settings: RMSettings, *, cluster_timestamp: int, strict: bool) -> None:
        self.settings = settings
        self.cluster_timestamp = cluster_timestamp
        self.strict = strict
        self.now_ms = cluster_timestamp
        self.effects: list[Effect] = []
        self.apps: dict[ApplicationId, RMApp] = {}
        self.priority_acls: dict[str, tuple[PriorityAcl, ...]] = {}
        self.completed_apps: deque[ApplicationId] = deque()
        self._stored_completed = 0
        self.nodes: dict[NodeId, RMNode] = {}
        self.inactive_nodes: dict[NodeId, RMNode] = {}
        start = cluster_timestamp
        self.node_liveness: LivenessMonitor[NodeId] = LivenessMonitor(settings.node_expiry_ms, start)
        self.master_liveness: LivenessMonitor[ApplicationAttemptId] = LivenessMonitor(settings.master_expiry_ms, start)
        self.master_finishing: LivenessMonitor[ApplicationAttemptId] = LivenessMonitor(settings.master_expiry_ms, start)
        self.allocation_expiry: LivenessMonitor[ContainerId] = LivenessMonitor(settings.allocation_expiry_ms, start)
        self.increase_expiry: LivenessMonitor[ContainerId] = LivenessMonitor(settings.allocation_expiry_ms, start)
        self.hosts = HostLists()
        self.decommissioning = DecommissioningNodesWatcher(
            settings.decommissioning_poll_interval_ms, start, self.nodes.get
        )
        self.lifetimes: DeadlineMonitor[ApplicationId] = DeadlineMonitor(settings.lifetime_check_interval_ms, start)
        self._queue: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()

    # The queue

    def send(self, handler: Callable[..., object], *arguments: object) -> None:
        """Have `handler(*arguments)` called after all that is queued already."""
        self._queue.append((handler, arguments))

    def send_app(self, application_id: ApplicationId, event: RMAppEventType, detail: object = None) -> None:
        """Queue an event for an application; one that the RM does not know (any more) drops it."""
        self._queue.append((self._handle_app, (application_id, event, detail)))

    def send_attempt(
        self, attempt_id: ApplicationAttemptId, event: RMAppAttemptEventType, detail: object = None
    ) -> None:
        """Queue an event for an attempt; an unknown one drops it."""
        self._queue.append((self._handle_attempt, (attempt_id, event, detail)))

    def send_node(self, node_id: NodeId, event: RMNodeEventType, detail: object = None) -> None:
        """Queue an event for a node in use; an unknown or inactive one drops it."""
        self._queue.append((self._handle_node, (node_id, event, detail)))

    def drain(self) -> None:
        """Handle what is queued, and what that queues, until nothing is left."""
        queue = self._queue
        while queue:
            handler, arguments = queue.popleft()
            handler(*arguments)

    @property
    def has_work(self) -> bool:
        """True while something is queued: never between two steps."""
        return bool(self._queue)

    def find_app(self, application_id: ApplicationId) -> RMApp:
        """The application; raises ApplicationNotFoundException for an unknown one."""
        app = self.apps.get(application_id)
        if app is None:
            raise ApplicationNotFoundException(
                f"Application with id '{application_id}' doesn't exist in RM. "
                "Please check that the job submission was successful."
            )
        return app

    def attempt(self, attempt_id: ApplicationAttemptId) -> RMAppAttempt | None:
        """The attempt, None if the RM does not know it."""
        app = self.apps.get(attempt_id.application_id)
        return None if app is None else app.attempts.get(attempt_id)

    # What nodes have the scheduler told

    def add_node(self, node: RMNode, containers: tuple[NMContainerStatus, ...] = ()) -> None:
        """NODE_ADDED. `containers`: what the node has from before a restart of the RM."""
        self.scheduler.add_node(node.node_id, node.rack, node.capability, self.now_ms, http_address=node.http_address)
        if self.settings.work_preserving:
            for report in containers:
                self._recover_container(node.node_id, report)

    def _recover_container(self, node_id: NodeId, report: NMContainerStatus) -> None:
        app = self.apps.get(report.container_id.application_id)
        attempt = app.current_attempt if app is not None else None
        self.scheduler.recovery.take_up(
            node_id,
            report,
            keeps_containers=app is not None and app.submission.keep_containers_across_attempts,
            is_master=attempt is not None and attempt.is_master(report.container_id),
            now_ms=self.now_ms,
        )

    def remove_node(self, node_id: NodeId) -> None:
        """NODE_REMOVED."""
        self.scheduler.remove_node(node_id, self.now_ms)

    def update_node(self, node: RMNode) -> None:
        """NODE_UPDATE: what is new on the node; the scheduler serves it then."""
        is_leaving = node.state is NodeState.DECOMMISSIONING
        launched, increased, completed = node.pull_updates()
        self.scheduler.node_update(
            node.node_id, launched, completed, self.now_ms, increased=increased, is_leaving=is_leaving
        )

    def update_node_resource(self, node: RMNode) -> None:
        """NODE_RESOURCE_UPDATE."""
        self.scheduler.update_node_resource(node.node_id, node.capability, self.now_ms)

    # What the RM does once an application is known or over (RMAppManager)

    def add_application(self, app: RMApp, *, recovering: bool = False) -> None:
        """Hand a stored application to the scheduler (APP_ADDED)."""
        self.scheduler.add_application(
            app.application_id,
            app.submission.queue,
            app.user,
            app.priority,
            now_ms=self.now_ms,
            placed=app.placed,
            recovering=recovering,
        )

    def add_attempt(self, attempt: RMAppAttempt, transfers_containers: bool, *, recovering: bool = False) -> None:
        """Hand a started attempt to the scheduler (APP_ATTEMPT_ADDED)."""
        requests = attempt.app.am_requests
        self.scheduler.add_attempt(
            attempt.attempt_id,
            transfer=transfers_containers,
            am_resource=requests[0].capability if requests else None,
            am_label=requests[0].label if requests else None,
            label=attempt.app.submission.node_label_expression,
            now_ms=self.now_ms,
            recovering=recovering,
        )

    def remove_attempt(self, attempt: RMAppAttempt, final_state_name: str, keeps_containers: bool) -> None:
        """Take an attempt that ended from the scheduler (APP_ATTEMPT_REMOVED)."""
        self.scheduler.remove_attempt(
            attempt.attempt_id,
            keep_containers=keeps_containers,
            final_state_name=final_state_name,
            now_ms=self.now_ms,
        )

    def heard_of_container(self, container_id: ContainerId) -> None:
        """It runs, or is over: neither it nor a larger size of it is waited for."""
        self.allocation_expiry.unregister(container_id)
        self.increase_expiry.unregister(container_id)

    def account(self, finished: ContainerFinished) -> None:
        """A container is over: what its application has used, and lost."""
        app = self.apps.get(finished.attempt_id.application_id)
        if app is None:
            return
        lifetime_ms = self.now_ms - finished.started_ms
        app.account(finished.resource, lifetime_ms)
        if finished.status.exit_status == ContainerExitStatus.PREEMPTED:
            app.account_loss(finished.resource, lifetime_ms, is_master=finished.is_am)

    def complete_application(self, application_id: ApplicationId) -> None:
        """Keep it among the completed ones, of which the oldest are forgotten (RMAppManager)."""
        self.completed_apps.append(application_id)
        self._stored_completed += 1
        while self._stored_completed > self.settings.stored_completed_applications_max:
            self.store.remove_application(self.completed_apps[-self._stored_completed])
            self._stored_completed -= 1
        while len(self.completed_apps) > self.settings.completed_applications_max:
            del self.apps[self.completed_apps.popleft()]

    def tell_apps_of_node(self, node: RMNode, update: NodeUpdateType) -> None:
        """Queue a node's change for each application whose outcome is still open (NodesListManager)."""
        for app in self.apps.values():
            if app.state not in STORED_APP_STATES:
                self.send_app(app.application_id, RMAppEventType.NODE_UPDATE, (node, update))

    def warn(self, text: str) -> None:
        """Have an operator told."""
        self.effects.append(Warn(text))

    # Delivery: an illegal event is logged and changes nothing, as in Hadoop; `strict` raises it

    def step_app(self, app: RMApp, event: RMAppEventType, detail: object) -> None:
        """Have an application take an event at once: while the RM recovers, before anything that is queued."""
        self._step("RMApp", app, event, detail)

    def step_attempt(self, attempt: RMAppAttempt, event: RMAppAttemptEventType, detail: object) -> None:
        """The same for an attempt."""
        self._step("RMAppAttempt", attempt, event, detail)

    def _handle_app(self, application_id: ApplicationId, event: RMAppEventType, detail: object) -> None:
        app = self.apps.get(application_id)
        if app is not None:
            self._step("RMApp", app, event, detail)

    def _handle_attempt(self, attempt_id: ApplicationAttemptId, event: RMAppAttemptEventType, detail: object) -> None:
        attempt = self.attempt(attempt_id)
        if attempt is not None:
            self._step("RMAppAttempt", attempt, event, detail)

    def _handle_node(self, node_id: NodeId, event: RMNodeEventType, detail: object) -> None:
        node = self.nodes.get(node_id)
        if node is not None:
            self._step("RMNode", node, event, detail)

    def _step(self, kind: str, subject: RMApp | RMAppAttempt | RMNode, event: object, detail: object) -> None:
        source = subject.machine.state
        try:
            target = subject.machine.handle(subject, event, detail, self.now_ms)  # type: ignore[arg-type]
        except IllegalTransition as error:
            if self.strict:
                raise
            self.warn(str(error))
            return
        if target is not source:
            name = event.name  # type: ignore[attr-defined]
            self.effects.append(StateChanged(kind, str(subject), name, source.name, target.name, subject.story()))
