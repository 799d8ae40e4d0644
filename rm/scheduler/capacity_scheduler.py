"""The facade of the scheduler: what the core calls, and what reports and checks may read.

The core calls one method for each of Hadoop's scheduler events and for an AM's allocate call; results are reported
through `notify`, in order. Each method runs to completion in the caller's step: the scheduler has no event queue. Only
`node_update` places containers, or with asynchronous scheduling `tick`: an allocate call applies requests and returns
what was placed since the last one.

The work is done in events/ (nodes, applications, allocate calls) and queues/ (the tree and its refresh), which use
model/ (state), capacity/ (shares, limits, booking), placement/ (which container goes where) and preemption/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from rm.scheduler.events.allocate import AllocateCalls
from rm.scheduler.events.applications import Applications, usage_of
from rm.scheduler.events.cluster_nodes import ClusterNodes
from rm.scheduler.events.recovery import ContainerRecovery
from rm.scheduler.events.request_checks import ContainerSizes
from rm.scheduler.heartbeat import NodeHeartbeats
from rm.scheduler.model.allocation import Allocation
from rm.scheduler.model.application import FiCaSchedulerApp, SchedulerApplication
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import NodeTracker, SchedulerNode
from rm.scheduler.model.node_labels import LabelChanges, NodeLabels
from rm.scheduler.model.notices import Notice
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.placement.visit import Placement
from rm.scheduler.placement.walk import Draw, NodeWalks, first_of
from rm.scheduler.preemption.monitor import SchedulingMonitor
from rm.scheduler.queues.dynamic_queues import can_create, paths_to_create
from rm.scheduler.queues.queue_policies import Policies
from rm.scheduler.queues.queue_refresh import QueueRefresh
from rm.scheduler.queues.queue_tree import QueueTree
from yarn.applications import ApplicationResourceUsage
from yarn.configuration import Configuration
from yarn.containers import Container, ContainerStatus, ResourceRequest, UpdateContainerError, UpdateContainerRequest
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.resource import Resource, ResourceTypes
from yarn.resource_calculator import DefaultResourceCalculator
from yarn.states import SchedulerResourceTypes


class CapacityScheduler:
    """Hadoop's CapacityScheduler, driven by heartbeats, or with asynchronous scheduling by walks over all nodes.

    `cluster_timestamp` and every `now_ms` are ms of the same clock, which never goes back. As in Hadoop, events of a
    node, application or container that no longer exists are ignored.
    """

    __slots__ = (
        "_allocate",
        "_applications",
        "_context",
        "_heartbeats",
        "_monitor",
        "_nodes",
        "_refresh",
        "_sizes",
        "_tree",
        "cluster_timestamp",
        "placement",
        "policies",
        "recovery",
        "walks",
    )

    def __init__(
        self,
        configuration: Configuration,
        *,
        cluster_timestamp: int,
        notify: Callable[[Notice], None],
        draw: Draw = first_of,
    ) -> None:
        """Raises ConfigurationException with every fault of the configuration. `draw`: see NodeWalks."""
        settings = CapacitySchedulerConfiguration.read(configuration)
        context = self._context = SchedulerContext(settings, notify)
        context.now_ms = cluster_timestamp
        tracker = NodeTracker(context.nodes, settings.maximum_allocation, cluster_timestamp)
        self._tree = QueueTree(context)
        self._applications = Applications(context, self._tree)
        applications = self._applications.table
        self.policies = Policies(context, self._tree, applications)
        self.placement = Placement(context, self._tree.root, applications)
        self.walks = NodeWalks(context, self.placement, draw)
        self._nodes = ClusterNodes(context, tracker, self._tree, applications)
        self._sizes = ContainerSizes(context, tracker, self._tree)
        self._allocate = AllocateCalls(context, applications, self._sizes)
        parallel = self._applications.parallel
        self._refresh = QueueRefresh(configuration, context, tracker, self._tree, applications, parallel)
        self.recovery = ContainerRecovery(context, applications)
        self._monitor = SchedulingMonitor(context, self._tree, self._applications)
        self._heartbeats = NodeHeartbeats(context, self._nodes, self.placement, self.walks, self._monitor)
        self.cluster_timestamp = cluster_timestamp
        self.policies.configure(cluster_timestamp)

    def next_deadline_ms(self) -> int | None:
        """The time of the next round of a policy, or walk over the nodes; None = never."""
        round_ms, walk_ms = self.policies.next_deadline_ms(), self.walks.due_ms
        if round_ms is None or walk_ms is None:
            return walk_ms if round_ms is None else round_ms
        return min(round_ms, walk_ms)

    def tick(self, now_ms: int) -> None:
        """Run the rounds of policies that are due, and with asynchronous scheduling the walk that is due."""
        self.policies.tick(now_ms)
        self.walks.tick(now_ms)

    def add_node(self, node_id: NodeId, rack: str, total: Resource, now_ms: int, *, http_address: str = "") -> None:
        """NODE_ADDED: an empty node joins. Containers on it will carry its `http_address`."""
        self._at(now_ms)
        self._nodes.add(node_id, rack, total, http_address)

    def remove_node(self, node_id: NodeId, now_ms: int) -> None:
        """NODE_REMOVED: kill the node's containers (-100, "Container released on a *lost* node")."""
        self._at(now_ms)
        self._nodes.remove(node_id)

    def update_node_resource(self, node_id: NodeId, total: Resource, now_ms: int, over_commit_ms: int = -1) -> None:
        """NODE_RESOURCE_UPDATE: change the node's size; its containers stay, or are killed after the timeout."""
        self._at(now_ms)
        self._nodes.resize(node_id, total, over_commit_ms)

    def end_overcommitment(self, node_id: NodeId, container_id: ContainerId, now_ms: int, *, kills: bool) -> None:
        """MARK_CONTAINER_FOR_KILLABLE, or _FOR_PREEMPTION if not `kills`, of a node that is too small."""
        self._at(now_ms)
        self._nodes.end_overcommitment(node_id, container_id, kills=kills)

    def note_state(self, node_id: NodeId, *, is_running: bool) -> None:
        """Note that the state of a node may have changed. Nothing is booked on a node that is not RUNNING."""
        self._nodes.note_state(node_id, is_running=is_running)

    def nodes_remapped(self, changes: LabelChanges, now_ms: int) -> None:
        """NODE_LABELS_UPDATE, which is sent after a node was added, removed or resized, and after changes of labels."""
        self._at(now_ms)
        self._nodes.remapped(changes)

    @property
    def labels(self) -> NodeLabels:
        """The labels of the cluster and their nodes: callers may read them and add labels."""
        return self._context.labels

    def replace_node_labels(self, labels: Mapping[NodeId, Sequence[str]], now_ms: int) -> None:
        """Replace the labels of nodes (port 0: whole hosts); an empty sequence removes the label.

        Raises YarnException; then nothing was changed.
        """
        self._at(now_ms)
        self._nodes.relabel(labels)

    def remove_node_labels(self, names: Iterable[str], now_ms: int) -> None:
        """Remove labels, also from their nodes. Raises YarnException if a queue uses one; then nothing was changed."""
        self._at(now_ms)
        self._nodes.remove_labels(names)

    def node_count_for(self, queue: str) -> int:
        """The number of nodes reported to an AM in the queue: those of the queue's default label, or all."""
        label = self.default_label(queue)
        return self._context.labels.active_count(label) if label else self._context.node_count

    def node_update(
        self,
        node_id: NodeId,
        launched: Sequence[ContainerId],
        completed: Sequence[ContainerStatus],
        now_ms: int,
        *,
        increased: Sequence[Container] = (),
    ) -> None:
        """NODE_UPDATE: process the NM's report, then place containers on the node."""
        self._context.now_ms = now_ms
        self._heartbeats.run(node_id, launched, increased, completed)

    @property
    def round_due_ms(self) -> int:
        """The first heartbeat at this time, or after it, runs a round of preemption."""
        return self._monitor.due_ms

    def has_master_on(self, node_id: NodeId) -> bool:
        """True if an AM's container is on the node, whether or not the NM has reported it."""
        node = self._context.nodes.get(node_id)
        return node is not None and any(container.is_am for container in node.containers.values())

    def add_application(
        self,
        application_id: ApplicationId,
        queue: str,
        user: str,
        priority: int,
        now_ms: int,
        *,
        placed: str | None = None,
        recovering: bool = False,
    ) -> None:
        """APP_ADDED: add an application; emits ApplicationAccepted or ApplicationRejected.

        `placed`: the queue chosen by placement rules. `recovering`: the application was accepted before a restart; then
        nothing is emitted, or QueueMissing if its queue no longer exists.
        """
        self._at(now_ms)
        if recovering:
            self._applications.add_recovered(application_id, queue, user, priority, placed)
        else:
            self._applications.add(application_id, queue, user, priority, placed)

    def create_missing_queue(
        self, application_id: ApplicationId, queue: str, user: str, now_ms: int, *, placed: str | None = None
    ) -> str | None:
        """Create the queue of an application that is about to be stored; why that is not possible, or None.

        Only releases that create queues then do so: the others do it when the application is added.
        """
        if not self._context.settings.release.creates_queues_before_storing:
            return None
        self._at(now_ms)
        return self._applications.create_missing_queue(application_id, queue, user, placed)

    def remove_application(self, application_id: ApplicationId, final_state_name: str) -> None:
        """APP_REMOVED: remove the application."""
        self._context.note_change()
        self._applications.remove(application_id)

    def move_application(self, application_id: ApplicationId, queue: str, now_ms: int) -> str:
        """Move a running application; returns its new leaf's path. Raises YarnException; then nothing was moved."""
        self._at(now_ms)
        return self._applications.move(application_id, queue)

    def update_priority(self, application_id: ApplicationId, priority: int, now_ms: int) -> None:
        """Change the priority of the application's current attempt. Raises YarnException for an unknown one."""
        self._at(now_ms)
        self._applications.update_priority(application_id, priority)

    def add_attempt(
        self,
        attempt_id: ApplicationAttemptId,
        *,
        transfer: bool,
        am_resource: Resource | None,
        now_ms: int,
        am_label: str | None = None,
        label: str | None = None,
        recovering: bool = False,
    ) -> None:
        """APP_ATTEMPT_ADDED: add an attempt; emits AttemptAdded unless `recovering` (its AM was started before a
        restart).

        `transfer`: take over the containers of the last attempt. `am_resource`: the normalised size of the AM, for the
        AM limits; None for an unmanaged AM. `am_label` is the label of the AM's request, `label` that of the
        application.
        """
        self._at(now_ms)
        self._applications.add_attempt(
            attempt_id,
            transfer=transfer,
            am_resource=am_resource,
            am_label=am_label,
            label=label,
            recovering=recovering,
        )

    def remove_attempt(
        self, attempt_id: ApplicationAttemptId, *, keep_containers: bool, final_state_name: str, now_ms: int
    ) -> None:
        """APP_ATTEMPT_REMOVED: kill the attempt's containers, except running ones if `keep_containers`."""
        self._at(now_ms)
        self._applications.remove_attempt(attempt_id, keep_containers=keep_containers)

    def check_asks(self, queue: str, asks: Iterable[ResourceRequest]) -> tuple[ResourceRequest, ...]:
        """The requests, with the queue's default label if they have none.

        Raises InvalidResourceRequestException (or its subclass for labels) for the first invalid one.
        """
        return self._sizes.check_asks(queue, asks)

    def check_limits(
        self,
        attempt_id: ApplicationAttemptId,
        asks: Sequence[ResourceRequest],
        releases: Sequence[ContainerId],
        blacklist_additions: Sequence[str],
        blacklist_removals: Sequence[str],
        now_ms: int,
    ) -> None:
        """Raises YarnException if the attempt would exceed one of the limits on what one application keeps here."""
        self._context.now_ms = now_ms
        self._allocate.check_limits(attempt_id, asks, releases, blacklist_additions, blacklist_removals)

    def allocate(
        self,
        attempt_id: ApplicationAttemptId,
        asks: Sequence[ResourceRequest],
        releases: Sequence[ContainerId],
        blacklist_additions: Sequence[str],
        blacklist_removals: Sequence[str],
        updates: Sequence[UpdateContainerRequest],
        now_ms: int,
    ) -> Allocation:
        """Apply an AM's releases and requests (normalised here), and return what was placed since its last call.

        `updates` must have passed `check_updates`.
        """
        self._context.now_ms = now_ms
        return self._allocate.allocate(attempt_id, asks, releases, blacklist_additions, blacklist_removals, updates)

    def allocate_nothing(self, attempt_id: ApplicationAttemptId, now_ms: int) -> Resource | None:
        """The headroom that an allocate call without requests returns; None if it would return more, and do more."""
        self._context.now_ms = now_ms
        return self._allocate.allocate_nothing(attempt_id)

    def without_news(self, attempt_id: ApplicationAttemptId) -> FiCaSchedulerApp | None:
        """The attempt, if an allocate call without requests would return only its headroom."""
        return self._allocate.without_news(attempt_id)

    def check_updates(
        self, queue: str, updates: Sequence[UpdateContainerRequest]
    ) -> tuple[list[UpdateContainerRequest], list[UpdateContainerError]]:
        """(accepted updates of containers, errors for the others).

        Raises YARNFeatureNotEnabledException for a demotion if opportunistic containers are disabled.
        """
        return self._allocate.check_updates(queue, updates)

    def pull_recovered(self, attempt_id: ApplicationAttemptId) -> tuple[Container, ...]:
        """Containers that the AM's earlier attempts started, recovered after an RM restart since the last call."""
        return self._allocate.pull_recovered(attempt_id)

    def release_temporary(self, container_id: ContainerId, now_ms: int) -> None:
        """RELEASE_CONTAINER: release a temporary container, and with it the resources that it took over."""
        self._at(now_ms)
        self._allocate.release(self._context.temporaries.pop(container_id))

    def mark_am_container(self, container_id: ContainerId) -> None:
        """Record that this container runs the AM of its attempt."""
        self._context.note_change()
        self._applications.mark_am_container(container_id)

    def expire_container(self, container_id: ContainerId, now_ms: int) -> None:
        """CONTAINER_EXPIRED: end a container that was acquired but not launched in time."""
        self._at(now_ms)
        self._applications.expire_container(container_id)

    def roll_back_increase(self, container_id: ContainerId, now_ms: int) -> None:
        """CONTAINER_EXPIRED of an increase: undo an increase that the AM did not send to the NM in time."""
        self._at(now_ms)
        self._applications.roll_back_increase(container_id)

    @property
    def resource_types(self) -> ResourceTypes:
        """The resource types of the cluster."""
        return self._context.settings.resource_types

    @property
    def scheduling_resource_types(self) -> tuple[SchedulerResourceTypes, ...]:
        """The resource types that the calculator compares (CapacityScheduler.getSchedulingResourceTypes)."""
        if isinstance(self._context.calculator, DefaultResourceCalculator):
            return (SchedulerResourceTypes.MEMORY,)
        return (SchedulerResourceTypes.MEMORY, SchedulerResourceTypes.CPU)

    @property
    def minimum_allocation(self) -> Resource:
        """The smallest container, and the unit of all sizes."""
        return self._context.minimum_allocation

    @property
    def cluster_resource(self) -> Resource:
        """The sum of all nodes."""
        return self._context.cluster_resource

    def maximum_allocation(self, now_ms: int, queue: str | None = None) -> Resource:
        """The largest container allowed at `now_ms`, in a queue (a leaf's name or path) or anywhere."""
        return self._sizes.maximum(now_ms, queue)

    def master_requests(self, queue: str, asks: Iterable[ResourceRequest]) -> tuple[ResourceRequest, ...]:
        """The requests for an AM in the queue, with normalised sizes (RMAppManager). Raises like check_asks."""
        return self._sizes.master_requests(queue, asks)

    def default_label(self, queue: str) -> str | None:
        """The queue's default-node-label-expression; None if there is none, or no such queue."""
        found = self._tree.get(queue)
        return found.configuration.default_label if found is not None else None

    def queue_path(self, queue: str) -> str:
        """The path of a queue named by its path or unambiguous short name; the name as given for an unknown queue."""
        found = self._tree.get(queue)
        return found.path if found is not None else queue

    def default_priority(self, queue: str) -> int:
        """The queue's default-application-priority; 0 for an unknown queue."""
        found = self._tree.get(queue)
        return found.configuration.default_application_priority if found is not None else 0

    def application_lifetime(self, queue: str, requested_s: int) -> int:
        """The lifetime in seconds of an application that requests `requested_s` (0: none); 0 = unlimited."""
        found = self._tree.get(queue)
        if isinstance(found, LeafQueue):
            requested_s = found.configuration.lifetime.of(requested_s)
        return max(requested_s, 0)

    def paths_to_create(self, path: str) -> tuple[str, ...]:
        """The paths that a submission to an unknown queue would create, the leaf last; () if it cannot be created."""
        return paths_to_create(path, self._tree)

    def can_create(self, path: str) -> bool:
        """True if a submission to an unknown queue creates it."""
        return can_create(path, self._tree)

    def reinitialize(
        self,
        configuration: Configuration,
        now_ms: int,
        check: Callable[[CapacitySchedulerConfiguration], None] | None = None,
    ) -> None:
        """refreshQueues: apply the configuration, or raise ConfigurationException with every fault.

        `check` may also refuse the configuration; see QueueRefresh.
        """
        self._at(now_ms)
        self._refresh.apply(configuration, check)
        self.policies.configure(now_ms)
        self._monitor.refresh()

    def check(
        self, configuration: Configuration, check: Callable[[CapacitySchedulerConfiguration], None] | None = None
    ) -> None:
        """Check a configuration like `reinitialize`, and change nothing. Raises ConfigurationException."""
        self._refresh.check(configuration, check)

    @property
    def applications(self) -> Mapping[ApplicationId, SchedulerApplication]:
        """The applications, in the order they were added."""
        return self._applications.table.by_id

    @property
    def nodes(self) -> Mapping[NodeId, SchedulerNode]:
        """The nodes, in the order they were added."""
        return self._context.nodes

    @property
    def queues(self) -> Mapping[str, CSQueue]:
        """The queues by path, parents before their children."""
        return self._tree.by_path

    @property
    def monitor(self) -> SchedulingMonitor:
        """The monitor that runs rounds of preemption."""
        return self._monitor

    @property
    def context(self) -> SchedulerContext:
        """The state shared by all parts of the scheduler."""
        return self._context

    def queue(self, name: str) -> CSQueue | None:
        """The queue of a path or of an unambiguous short name."""
        return self._tree.get(name)

    def is_ambiguous(self, name: str) -> bool:
        """True if several queues have this short name."""
        return self._tree.is_ambiguous(name)

    def container(self, container_id: ContainerId) -> RMContainer | None:
        """A live container of the application's current attempt; None if it has ended, is only reserved or unknown."""
        return self._applications.table.container(container_id)

    def containers_of(self, application_id: ApplicationId) -> Mapping[ContainerId, RMContainer]:
        """The live containers of the application's current attempt, kept ones included."""
        return self._applications.table.containers_of(application_id)

    def attempt_of(self, application_id: ApplicationId) -> FiCaSchedulerApp | None:
        """The application's current attempt; None if there is none."""
        return self._applications.table.attempt_of(application_id)

    def node_usage(self, node_id: NodeId) -> tuple[Resource, int]:
        """(allocated resources, number of containers) of a node; zero for an unknown one."""
        node = self._context.nodes.get(node_id)
        return (node.allocated, len(node.containers)) if node is not None else (self._context.none, 0)

    def application_usage(self, application_id: ApplicationId) -> ApplicationResourceUsage | None:
        """Usage and requests of the current attempt; None without one. The core adds the resource-seconds."""
        attempt = self._applications.table.attempt_of(application_id)
        return usage_of(attempt, self._context) if attempt is not None else None

    def _at(self, now_ms: int) -> SchedulerContext:
        """Set the time, and count a change that placement may depend on."""
        self._context.now_ms = now_ms
        self._context.note_change()
        return self._context
