"""A read-only view of a ResourceManager: what a recorded run and the views of yarnling see of its state.

Records are made when they are asked for, and asking changes nothing, so a run that is looked at is the same run. All
of it is plain: no record leads back to an object of the core.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from rm.core.applications import RMApp
from rm.core.explain.application import explanation
from rm.core.explain.obstacles import counted_types, obstacles_of
from rm.core.explain.verdict import Cause, limit_of_attempt
from rm.core.explain.verdict_wording import reason_of
from rm.core.reports.applications import application_state, final_status
from rm.core.reports.queues import leaves_of, requested_containers, with_all_below
from rm.core.resource_manager import ResourceManagerCore
from rm.scheduler.capacity.activation import user_am_limit
from rm.scheduler.capacity.limits import present_headroom, present_limit
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.context import RESPECT
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.refusals import Reason, Refusal
from rm.scheduler.model.rm_container import RMContainer
from yarn.containers import Container
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.nodes import NO_LABEL, ResourceUtilization
from yarn.resource import NONE, Resource
from yarn.settings.scheduler import ROOT
from yarn.states import FinalApplicationStatus, YarnApplicationState

__all__ = [
    "ApplicationSnapshot",
    "Cause",
    "ContainerSnapshot",
    "LoadSnapshot",
    "NodeSnapshot",
    "QueueSnapshot",
    "RMView",
    "RefusalSnapshot",
    "UseSnapshot",
    "UserSnapshot",
]

_NOT_REFUSED = frozenset({Reason.APPLICATION_SATISFIED, Reason.QUEUE_SATISFIED, Reason.REQUEST_SATISFIED})
"""Nothing was requested, so nothing was refused."""


class ContainerSnapshot(Struct, frozen=True):
    """A container, or a reservation. `state`: of the scheduler's RMContainer. `started_ms`: when it was allocated."""

    container_id: ContainerId
    node_id: NodeId
    queue: str
    resource: Resource
    state: str
    is_am: bool
    started_ms: int


class NodeSnapshot(Struct, frozen=True):
    """A node of the scheduler."""

    node_id: NodeId
    rack: str
    label: str
    allocated: Resource
    unallocated: Resource
    containers: tuple[ContainerSnapshot, ...]
    reserved: ContainerSnapshot | None


class QueueSnapshot(NamedTuple):
    """The use of a queue in one partition. `running`, `pending_applications`: in the queue and below it."""

    path: str
    used: Resource
    reserved: Resource
    pending: Resource
    guaranteed: Resource
    maximum: Resource
    running_applications: int
    pending_applications: int
    label: str


class LoadSnapshot(Struct, frozen=True):
    """The load of the cluster in all partitions together, as an autoscaler sees it in the ResourceManager's metrics.

    `used` includes what is reserved.
    """

    total: Resource
    used: Resource
    pending: Resource
    allocated_containers: int
    pending_containers: int


class UserSnapshot(Struct, frozen=True):
    """A user in a leaf queue. `limit`: as it was last looked up."""

    name: str
    used: Resource
    limit: Resource
    is_active: bool


class ApplicationSnapshot(Struct, frozen=True):
    """An application that the ResourceManager knows. `attempts`: their number; `am_container`: of the current one.
    `memory_mb_s`: memory times time of its containers that have ended, those released unused among them.
    """

    application_id: ApplicationId
    user: str
    queue: str
    state: YarnApplicationState
    final_status: FinalApplicationStatus
    submit_ms: int
    diagnostics: str
    attempts: int
    am_container: Container | None
    memory_mb_s: int


class UseSnapshot(Struct, frozen=True):
    """The use of a running application in the default partition, with the limit of its user, the use of all of the
    user's applications in the queue, and the headroom that its next `allocate` would report.
    """

    attempt_id: ApplicationAttemptId
    user: str
    queue: str
    used: Resource
    user_used: Resource
    limit: Resource
    headroom: Resource
    guaranteed: Resource


class RefusalSnapshot(Struct, frozen=True):
    """An application got nothing on `node_id`, or on no node if that is None.

    `by`: the path of the queue that refused; "" if it was the node, or a limit of the application itself.
    """

    application_id: ApplicationId
    node_id: NodeId | None
    queue: str
    by: str
    reason: str


class RMView:
    """A read-only view of one core. After a restart of the ResourceManager a new view is needed."""

    def __init__(self, core: ResourceManagerCore) -> None:
        self._core = core
        self._scheduler = core.scheduler

    def node_ids(self) -> Collection[NodeId]:
        """The nodes of the scheduler."""
        return self._scheduler.nodes.keys()

    def node(self, node_id: NodeId) -> NodeSnapshot | None:
        """A node of the scheduler; None for an unknown one."""
        node = self._scheduler.nodes.get(node_id)
        if node is None:
            return None
        reserved = node.reserved_container
        return NodeSnapshot(
            node_id,
            node.rack,
            node.partition,
            node.allocated,
            node.unallocated,
            tuple(map(_container, node.containers.values())),
            None if reserved is None else _container(reserved),
        )

    def node_state(self, node_id: NodeId) -> str:
        """The state of a node in the ResourceManager, "" if it is not known."""
        context = self._core.context
        known = context.nodes.get(node_id) or context.inactive_nodes.get(node_id)
        return "" if known is None else known.state.name

    def containers_utilization(self, node_id: NodeId) -> ResourceUtilization | None:
        """The use of a node's containers as its last heartbeat has reported it; None for a node that is not in use."""
        known = self._core.context.nodes.get(node_id)
        return None if known is None else known.containers_utilization

    def last_response_id(self, node_id: NodeId) -> int:
        """The response id of the last reply to a heartbeat of a node that is in use."""
        return self._core.context.nodes[node_id].last_response.response_id

    def container(self, container_id: ContainerId) -> ContainerSnapshot | None:
        """A container that runs, or is reserved or allocated."""
        found = self._scheduler.container(container_id)
        return None if found is None else _container(found)

    def queues(self, labels: Sequence[str] = (NO_LABEL,)) -> Iterator[QueueSnapshot]:
        """All queues in the order of the tree, each in those of the partitions that it may use."""
        for queue in with_all_below(self._root()):
            running, pending = _applications(queue)
            for label in labels:
                if queue.is_root or queue.is_accessible(label):
                    yield _queue(queue, label, running, pending)

    def queue(self, name: str, label: str = NO_LABEL) -> QueueSnapshot | None:
        """The queue of that name or path; None if there is none."""
        queue = self._scheduler.queue(name)
        return None if queue is None else _queue(queue, label, *_applications(queue))

    def leaf_queues(self) -> tuple[str, ...]:
        """The paths of the leaf queues, in the order of the tree."""
        return tuple(leaf.path for leaf in leaves_of(self._root()))

    def users(self, path: str) -> Iterator[UserSnapshot]:
        """The users of a leaf queue; none for another queue."""
        leaf = self._scheduler.queue(path)
        if isinstance(leaf, LeafQueue):
            for user in leaf.users.users.values():
                is_active = leaf.users.is_active(user.name)
                yield UserSnapshot(user.name, user.usage.used(NO_LABEL), user.limit, is_active)

    def am_limits(self, path: str) -> tuple[Resource, Resource]:
        """The AM limits of a leaf queue and of one of its users, in the default partition; 0 for another queue."""
        leaf = self._scheduler.queue(path)
        if not isinstance(leaf, LeafQueue):
            return NONE, NONE
        return leaf.am_limit(NO_LABEL), user_am_limit(leaf, NO_LABEL, 1.0)

    def queue_path(self, name: str) -> str:
        """The path of the queue `name`, or `name` itself if there is no such queue."""
        return self._scheduler.queue_path(name)

    def cluster_resource(self) -> Resource:
        """The sum of the nodes."""
        return self._scheduler.cluster_resource

    def load(self) -> LoadSnapshot:
        """The load of the cluster."""
        root, usage = self._root(), self._root().usage
        attempts = [attempt for leaf in leaves_of(root) for attempt in leaf.attempts.values()]
        return LoadSnapshot(
            self._scheduler.cluster_resource,
            sum((usage.used(label) for label in usage.partitions()), NONE),
            sum((usage.pending(label) for label in usage.partitions()), NONE),
            sum(len(attempt.live_containers) for attempt in attempts),
            sum(map(requested_containers, attempts)),
        )

    def allocation_bounds(self) -> tuple[Resource, Resource]:
        """The smallest and the largest container."""
        return self._scheduler.minimum_allocation, self._scheduler.maximum_allocation(self._scheduler.context.now_ms)

    def counted_types(self) -> tuple[str, ...]:
        """The resource types that the scheduler compares."""
        return counted_types(self._scheduler.context)

    def _root(self) -> CSQueue:
        root = self._scheduler.queue(ROOT)
        assert root is not None, "the root queue always exists"
        return root

    def application(self, application_id: ApplicationId) -> ApplicationSnapshot | None:
        """An application; None if the ResourceManager does not know it."""
        app = self._core.context.apps.get(application_id)
        return None if app is None else _application(app)

    def applications(self) -> Iterator[ApplicationSnapshot]:
        """All applications, in the order of their submission."""
        return map(_application, self._core.context.apps.values())

    def containers_of(self, application_id: ApplicationId) -> tuple[ContainerSnapshot, ...] | None:
        """The containers and reservations of a running application; None if it does not run."""
        attempt = self._running(application_id)
        return None if attempt is None else tuple(map(_container, attempt.live_containers.values()))

    def waits(self, application_id: ApplicationId, now_ms: int) -> tuple[int, tuple[str, ...]]:
        """(number of containers that an application waits for, reasons as `yarnling explain` says them)."""
        found = explanation(self._core.context, application_id, now_ms)
        count = sum(ask.count for ask in found.asks if ask.resource_name == "*")
        return count, tuple(verdict.sentence for verdict in found.verdicts)

    def reason(self, application_id: ApplicationId, key: tuple[int, int] | None, now_ms: int) -> tuple[str, str] | None:
        """The cause and the sentence of the verdict on a request of a running application, with times as of `now_ms`.

        `key`: its priority and allocation request id; None for the first request of the application.
        """
        attempt = self._running(application_id)
        return None if attempt is None else reason_of(self._core.context, attempt, key, now_ms)

    def limit(self, application_id: ApplicationId) -> Cause | None:
        """The limit of its queue or its user that a running application waits for."""
        attempt = self._running(application_id)
        return None if attempt is None else limit_of_attempt(attempt, self._scheduler.context)

    def uses(self) -> Iterator[UseSnapshot]:
        """The use of each running application."""
        return map(_use, self._attempts())

    def use(self, application_id: ApplicationId) -> UseSnapshot | None:
        """The use of an application; None if it does not run."""
        attempt = self._running(application_id)
        return None if attempt is None else _use(attempt)

    def missed_opportunities(self, application_id: ApplicationId) -> int:
        """The most heartbeats that have passed over a request of a running application (delay scheduling)."""
        attempt = self._running(application_id)
        return 0 if attempt is None else max(attempt.opportunities.values(), default=0)

    def _running(self, application_id: ApplicationId) -> FiCaSchedulerApp | None:
        attempt = self._scheduler.attempt_of(application_id)
        return None if attempt is None or attempt.is_stopped else attempt

    def _attempts(self) -> Iterator[FiCaSchedulerApp]:
        for application in self._scheduler.applications.values():
            attempt = application.current_attempt
            if attempt is not None and not attempt.is_stopped:
                yield attempt

    def refusals(self, node_id: NodeId, now_ms: int) -> Iterator[RefusalSnapshot]:
        """The refusals noted at the present heartbeat of a node, and the applications whose AM is held back."""
        for attempt in self._attempts():
            leaf = LeafQueue.of(attempt)
            held_back = leaf.am_refusal(attempt)
            if held_back is not None:
                yield _refusal(attempt, None, held_back)
            elif attempt.usage.is_pending():
                refusal = leaf.last_refusals(attempt).get(node_id)
                if refusal is not None and refusal.at_ms == now_ms and refusal.reason not in _NOT_REFUSED:
                    yield _refusal(attempt, node_id, refusal)

    def refusals_in_force(self, node_id: NodeId, served: Collection[ApplicationId]) -> Iterator[RefusalSnapshot]:
        """The refusals at the heartbeat of a node, one for each application that waits and was not `served`.

        If nothing has changed since a heartbeat that placed nothing, the scheduler does not look again: what it noted
        then still holds.
        """
        node = self._scheduler.nodes.get(node_id)
        if node is None:
            return
        for attempt in self._attempts():
            if attempt.attempt_id.application_id in served or not attempt.usage.is_pending():
                continue
            for obstacle in obstacles_of(attempt, [node]):
                if obstacle.node_id in {None, node_id}:
                    by = "" if obstacle.subject == str(attempt.attempt_id) else obstacle.subject
                    yield _refusal(attempt, node_id, obstacle.refusal, by)
                    break


def _container(container: RMContainer) -> ContainerSnapshot:
    return ContainerSnapshot(
        container.id,
        container.node_id,
        container.queue,
        container.resource,
        container.state.name,
        container.is_am,
        container.started_ms,
    )


def _queue(queue: CSQueue, label: str, running: int, pending: int) -> QueueSnapshot:
    usage = queue.usage
    return QueueSnapshot(
        queue.path,
        usage.used(label),
        usage.reserved(label),
        usage.pending(label),
        queue.effective_minimum(label),
        queue.effective_maximum(label),
        running,
        pending,
        label,
    )


def _applications(queue: CSQueue) -> tuple[int, int]:
    """The numbers of applications in the queue, and below it, that are active, and that wait for activation."""
    running = pending = 0
    for leaf in leaves_of(queue):
        running += leaf.active_count
        pending += leaf.application_total() - leaf.active_count
    return running, pending


def _application(app: RMApp) -> ApplicationSnapshot:
    attempt = app.current_attempt
    return ApplicationSnapshot(
        app.application_id,
        app.user,
        app.queue,
        application_state(app),
        final_status(app),
        app.submit_ms,
        str(app.diagnostics),
        len(app.attempts),
        None if attempt is None else attempt.am_container,
        app.memory_mb_seconds,
    )


def _use(attempt: FiCaSchedulerApp) -> UseSnapshot:
    leaf = LeafQueue.of(attempt)
    user = leaf.users.users.get(attempt.user)
    return UseSnapshot(
        attempt.attempt_id,
        attempt.user,
        leaf.path,
        attempt.usage.used(NO_LABEL),
        Resource(0, 0) if user is None else user.usage.used(NO_LABEL),
        present_limit(leaf.users, attempt.user, NO_LABEL, RESPECT),
        present_headroom(attempt),
        leaf.effective_minimum(NO_LABEL),
    )


def _refusal(attempt: FiCaSchedulerApp, node_id: NodeId | None, refusal: Refusal, by: str = "") -> RefusalSnapshot:
    return RefusalSnapshot(attempt.attempt_id.application_id, node_id, attempt.leaf.path, by, str(refusal))
