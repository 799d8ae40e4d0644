"""The door of the scheduler: what the core calls, and what reports and checks may read.

The core calls one method for each of Hadoop's scheduler events and for an AM's allocate; what happened comes back
through `notify`, in order. Everything runs at once, in the caller's step: there is no queue of events in here.
Nothing is placed but in `node_update`: an AM's call notes what is wanted and hands over what was placed since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from rm.lifecycles.rm_container import RMContainer, RMContainerEvent
from rm.scheduler.allocation import Allocation
from rm.scheduler.application import FiCaSchedulerApp, SchedulerApplication
from rm.scheduler.application_usage import usage_of
from rm.scheduler.ask_checks import check_capability, check_label
from rm.scheduler.completion import (
    APPLICATION_COMPLETE,
    COMPLETED_APPLICATION,
    EXPIRED,
    LOST_NODE,
    RELEASED_BY_AM,
    aborted_status,
    complete_in_queue,
    unreserved_status,
)
from rm.scheduler.configuration import CapacitySchedulerConfiguration
from rm.scheduler.container_updates import apply_updates, check_updates
from rm.scheduler.context import SchedulerContext
from rm.scheduler.explanation import Obstacle, obstacles_of
from rm.scheduler.java_order import container_hash, hash_order
from rm.scheduler.leaf_queue import LeafQueue
from rm.scheduler.moving import change_priority, move, target_leaf
from rm.scheduler.node import NodeTracker, SchedulerNode
from rm.scheduler.node_visit import allocate_containers_to_node
from rm.scheduler.notices import ApplicationAccepted, ApplicationRejected, AttemptAdded, CleanUpContainer, Notice
from rm.scheduler.parallel_applications import ParallelApplications
from rm.scheduler.queue import CSQueue
from rm.scheduler.queue_tree import QueueTree
from rm.scheduler.submission import SubmissionRefused, leaf_for
from yarn.applications import ApplicationResourceUsage
from yarn.asks import ResourceRequest, UpdateContainerError, UpdateContainerRequest
from yarn.configuration import Configuration
from yarn.containers import ContainerStatus
from yarn.errors import YarnException
from yarn.faults import ConfigurationException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.resource import Resource, ResourceTypes, componentwise_min


class CapacityScheduler:
    """Hadoop's CapacityScheduler, driven by heartbeats.

    `cluster_timestamp` and every `now_ms` are ms of one clock, and time never goes back. What is given for a node,
    application or container that is not known any more is passed over, as in Hadoop: it has just gone.
    """

    __slots__ = ("_configuration", "_context", "_parallel", "_tracker", "_tree", "applications", "cluster_timestamp")

    def __init__(
        self, configuration: Configuration, *, cluster_timestamp: int, notify: Callable[[Notice], None]
    ) -> None:
        """Raises ConfigurationException with every fault of the configuration."""
        settings = CapacitySchedulerConfiguration.read(configuration)
        self._configuration = configuration
        self._context = SchedulerContext(settings, notify)
        self._context.now_ms = cluster_timestamp
        self._tracker = NodeTracker(self._context.nodes, settings.maximum_allocation, cluster_timestamp)
        self._tree = QueueTree(self._context)
        self._parallel = ParallelApplications(self._context)
        self.cluster_timestamp = cluster_timestamp
        self.applications: dict[ApplicationId, SchedulerApplication] = {}

    # Nodes

    def add_node(self, node_id: NodeId, rack: str, total: Resource, now_ms: int, *, http_address: str = "") -> None:
        """NODE_ADDED: an empty node joins. `http_address` is handed out with its containers."""
        context = self._at(now_ms)
        name = str(node_id) if context.settings.include_port_in_node_name else node_id.host
        total = self.resource_types.complete(total)
        node = SchedulerNode(node_id, name, rack, total, http_address)
        context.change_partition(node.partition, total)
        self._tracker.add(node)
        context.cluster_resource = context.cluster_resource + total
        self._tree.update_cluster_resource()

    def remove_node(self, node_id: NodeId, now_ms: int) -> None:
        """NODE_REMOVED: its containers are killed (-100, "Container released on a *lost* node")."""
        context = self._at(now_ms)
        node = context.nodes.get(node_id)
        if node is None:
            return
        context.change_partition(node.partition, -node.total)
        for container_id in hash_order(node.containers, container_hash):
            container = node.containers[container_id]
            self._complete(container, aborted_status(container_id, LOST_NODE), RMContainerEvent.KILL)
            node.release_container(container_id, by_node=True)
        reserved = node.reserved_container
        if reserved is not None:
            self._complete(reserved, aborted_status(reserved.id, LOST_NODE), RMContainerEvent.KILL)
        self._tracker.remove(node_id)
        context.cluster_resource = context.cluster_resource - node.total
        self._tree.update_cluster_resource()

    def update_node_resource(self, node_id: NodeId, total: Resource, now_ms: int) -> None:
        """NODE_RESOURCE_UPDATE: containers stay; a change takes the node's reservation away."""
        context = self._at(now_ms)
        node = context.nodes.get(node_id)
        if node is None:
            return
        total = self.resource_types.complete(total)
        change = total - node.total
        if not change.is_none():
            context.change_partition(node.partition, change)
            node.update_total(total)
            self._tracker.recount()
            context.cluster_resource = context.cluster_resource + change
        self._tree.update_cluster_resource()
        if change.is_none():
            return
        if node.reserved_container is not None:
            reserved = node.reserved_container
            self._complete(reserved, unreserved_status(reserved.id), RMContainerEvent.KILL)
        self._tree.update_cluster_resource()

    def node_update(
        self, node_id: NodeId, launched: Sequence[ContainerId], completed: Sequence[ContainerStatus], now_ms: int
    ) -> None:
        """NODE_UPDATE: notes what the NM reported, then places containers on the node."""
        context = self._at(now_ms)
        node = context.nodes.get(node_id)
        for container_id in launched:
            self._container_launched(container_id, node_id, node)
        for status in completed:
            container = self.container(status.container_id)
            if container is not None:
                self._complete(container, status, RMContainerEvent.FINISHED)
            if node is not None:
                node.release_container(status.container_id, by_node=True)
        if node is not None:
            allocate_containers_to_node(node, self._tree, self.applications, context)

    def _container_launched(self, container_id: ContainerId, node_id: NodeId, node: SchedulerNode | None) -> None:
        """The NM reports it for the first time; what nobody knows is to be ended."""
        context = self._context
        attempt = self._attempt_of(container_id.application_id)
        container = attempt.live_containers.get(container_id) if attempt is not None else None
        if container is None:
            context.notify(CleanUpContainer(node_id, container_id))
        elif container.allows(RMContainerEvent.LAUNCHED):
            container.handle(RMContainerEvent.LAUNCHED, None, context.now_ms)
        if attempt is not None and node is not None:
            node.container_launched(container_id)

    # Applications

    def add_application(self, application_id: ApplicationId, queue: str, user: str, priority: int, now_ms: int) -> None:
        """APP_ADDED: answered with ApplicationAccepted or ApplicationRejected."""
        context = self._at(now_ms)
        try:
            leaf = leaf_for(application_id, queue, user, tree=self._tree, context=context)
        except SubmissionRefused as refusal:
            context.notify(ApplicationRejected(application_id, str(refusal)))
            return
        leaf.parent.add_application()
        self.applications[application_id] = SchedulerApplication(leaf, user, priority)
        context.notify(ApplicationAccepted(application_id, leaf.path))

    def remove_application(self, application_id: ApplicationId, final_state_name: str) -> None:
        """APP_REMOVED."""
        application = self.applications.pop(application_id, None)
        if application is not None:
            application.leaf.finish_application(application_id, application.user)

    def move_application(self, application_id: ApplicationId, queue: str, now_ms: int) -> str:
        """Move a living application; returns the path of its new leaf. Raises YarnException, with nothing moved."""
        self._at(now_ms)
        application = self.applications.get(application_id)
        if application is None:
            raise YarnException(f"App to be moved {application_id} not found.")
        target = target_leaf(queue, self._tree)
        move(application_id, application, target)
        return target.path

    def update_priority(self, application_id: ApplicationId, priority: int, now_ms: int) -> None:
        """Another priority for the application's current attempt. Raises YarnException for an unknown one."""
        self._at(now_ms)
        application = self.applications.get(application_id)
        if application is None:
            raise YarnException(f"Application '{application_id}' is not present, hence could not change priority.")
        change_priority(application, priority)

    def add_attempt(
        self, attempt_id: ApplicationAttemptId, *, transfer: bool, am_resource: Resource | None, now_ms: int
    ) -> None:
        """APP_ATTEMPT_ADDED: answered with AttemptAdded.

        `transfer`: take over the containers of the last attempt. `am_resource`: the normalised size of the master, for
        the AM limits; None for an unmanaged one.
        """
        context = self._at(now_ms)
        application = self.applications.get(attempt_id.application_id)
        if application is None:
            return
        attempt = FiCaSchedulerApp(
            attempt_id,
            application.user,
            application.leaf,
            context,
            am_resource=am_resource,
            priority=application.priority,
        )
        if transfer and application.current_attempt is not None:
            attempt.transfer_from(application.current_attempt)
        application.current_attempt = attempt
        self._parallel.admit(attempt)
        application.leaf.submit_attempt(attempt)
        context.notify(AttemptAdded(attempt_id))

    def remove_attempt(
        self, attempt_id: ApplicationAttemptId, *, keep_containers: bool, final_state_name: str, now_ms: int
    ) -> None:
        """APP_ATTEMPT_REMOVED: its containers are killed, but for running ones if `keep_containers`."""
        self._at(now_ms)
        attempt = self._attempt_of(attempt_id.application_id)
        if attempt is None:
            return
        for container_id in hash_order(attempt.live_containers, container_hash):
            container = attempt.live_containers[container_id]
            if not (keep_containers and container.is_running):
                status = aborted_status(container_id, COMPLETED_APPLICATION)
                self._complete(container, status, RMContainerEvent.KILL)
        for reserved in attempt.reserved_containers:
            self._complete(reserved, aborted_status(reserved.id, APPLICATION_COMPLETE), RMContainerEvent.KILL)
        attempt.stop()
        attempt.leaf.finish_attempt(attempt)
        self._parallel.dismiss(attempt)

    # The AM's heartbeat

    def check_asks(self, queue: str, asks: Iterable[ResourceRequest]) -> None:
        """Raises InvalidResourceRequestException (or its label kind) for the first ask that cannot be."""
        allowed = self.maximum_allocation(queue)
        for ask in asks:
            check_capability(
                self.resource_types.complete(ask.capability), allowed, self._context.settings.maximum_allocation
            )
            check_label(ask, queue)

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
        """An AM's heartbeat: notes releases and asks (normalised here), hands over what was placed since the last.

        `updates` have passed `check_updates`.
        """
        context = self._at(now_ms)
        attempt = self._attempt_of(attempt_id.application_id)
        if attempt is None or attempt.attempt_id != attempt_id:
            return Allocation(headroom=context.none)
        found = ((update, self.container(update.container_id)) for update in updates)
        errors = apply_updates(attempt, [(update, container) for update, container in found if container is not None])
        for container_id in releases:
            container = self.container(container_id)
            if container is not None:
                self._complete(container, aborted_status(container_id, RELEASED_BY_AM), RMContainerEvent.RELEASED)
        normalized = [self._normalized(ask) for ask in asks]
        if attempt.is_stopped:
            return Allocation(headroom=context.none, update_errors=errors)
        demand_changed = attempt.asks.update(normalized)
        attempt.update_blacklist(blacklist_additions, blacklist_removals)
        containers = attempt.pull_allocated()
        updated = attempt.updates.pull()
        if demand_changed and not attempt.is_waiting_for_master:
            attempt.leaf.active.demand_changed(attempt)
        return Allocation(containers, attempt.headroom(), context.node_count, updated, errors)

    def check_updates(
        self, queue: str, updates: Sequence[UpdateContainerRequest]
    ) -> tuple[list[UpdateContainerRequest], list[UpdateContainerError]]:
        """Which changes of containers may go on, and why the others may not.

        Raises YARNFeatureNotEnabledException for a demotion.
        """
        allowed, smallest = self.maximum_allocation(queue), self._context.minimum_allocation

        def normalized(size: Resource) -> Resource | None:
            size = self.resource_types.complete(size)
            if not (0 <= size.memory_mb <= allowed.memory_mb and 0 <= size.vcores <= allowed.vcores):
                return None
            return self._context.calculator.normalize(size, smallest, allowed, smallest)

        return check_updates(updates, find=self.container, normalized=normalized)

    def release_temporary(self, container: RMContainer, now_ms: int) -> None:
        """RELEASE_CONTAINER: a temporary container gives back what it took over."""
        self._at(now_ms)
        self._complete(container, aborted_status(container.id, RELEASED_BY_AM), RMContainerEvent.RELEASED)

    def _normalized(self, ask: ResourceRequest) -> ResourceRequest:
        """The ask in whole multiples of the minimum, held under the largest container of the cluster."""
        smallest = self._context.minimum_allocation
        asked = self.resource_types.complete(ask.capability)
        size = self._context.calculator.normalize(asked, smallest, self.maximum_allocation(), smallest)
        return ask if size == ask.capability else replace(ask, capability=size)

    def mark_am_container(self, container_id: ContainerId) -> None:
        """The attempt of this container took it for its master."""
        attempt = self._attempt_of(container_id.application_id)
        if attempt is None:
            return
        attempt.has_master = True
        container = attempt.live_containers.get(container_id)
        if container is not None:
            container.is_am = True

    def expire_container(self, container_id: ContainerId, now_ms: int) -> None:
        """CONTAINER_EXPIRED: acquired and never launched in time."""
        self._at(now_ms)
        container = self.container(container_id)
        if container is not None and container.allows(RMContainerEvent.EXPIRE):
            self._complete(container, aborted_status(container_id, EXPIRED), RMContainerEvent.EXPIRE)

    # Sizes and names

    @property
    def resource_types(self) -> ResourceTypes:
        """The resource types of the cluster."""
        return self._context.settings.resource_types

    @property
    def minimum_allocation(self) -> Resource:
        """The smallest container, and the unit of all sizes."""
        return self._context.minimum_allocation

    @property
    def cluster_resource(self) -> Resource:
        """The sum of all nodes."""
        return self._context.cluster_resource

    def maximum_allocation(self, queue: str | None = None) -> Resource:
        """The largest container that can be had now, in a queue (a leaf's name or path) or anywhere."""
        largest = self._tracker.maximum_allocation(self._context.now_ms, self._context.settings.settle_ms)
        found = self._tree.get(queue) if queue is not None else None
        if isinstance(found, LeafQueue):
            return componentwise_min(found.configuration.maximum_allocation, largest)
        return largest

    def normalize_master_request(self, queue: str, capability: Resource) -> Resource:
        """The size of a master as submitted to `queue`, rounded up (RMAppManager). Raises as check_asks."""
        allowed = self.maximum_allocation(queue)
        capability = self.resource_types.complete(capability)
        check_capability(capability, allowed, self._context.settings.maximum_allocation)
        smallest = self._context.minimum_allocation
        return self._context.calculator.normalize(capability, smallest, allowed, smallest)

    def queue_path(self, queue: str) -> str:
        """The full path of a queue named by its path or unambiguous short name; the name as given if there is none."""
        found = self._tree.get(queue)
        return found.path if found is not None else queue

    def default_priority(self, queue: str) -> int:
        """The queue's default-application-priority; 0 for an unknown queue."""
        found = self._tree.get(queue)
        return found.configuration.default_application_priority if found is not None else 0

    def application_lifetime(self, queue: str, requested_s: int) -> int:
        """Seconds that an application of the queue may live that asks for `requested_s`, 0 for none; 0 = no end."""
        found = self._tree.get(queue)
        if isinstance(found, LeafQueue):
            requested_s = found.configuration.lifetime.of(requested_s)
        return max(requested_s, 0)

    # Configuration

    def reinitialize(
        self, configuration: Configuration, check: Callable[[CapacitySchedulerConfiguration], None] | None = None
    ) -> None:
        """refreshQueues: takes the configuration whole, or raises ConfigurationException with every fault.

        After a refusal the old one is applied anew, as Hadoop does; only the order of queues may show it. What was
        taken before there were nodes may not be taken now, and then nothing happens at all. `check` may refuse too.
        """
        try:
            settings = self._checked(configuration)
            if check is not None:
                check(settings)
        except ConfigurationException:
            with suppress(ConfigurationException):
                self._checked(self._configuration)
                self._tree.refresh()
            raise
        self._configuration = configuration
        self._context.settings = settings
        self._tracker.configured_maximum = settings.maximum_allocation
        self._tree.refresh()
        self._parallel.recheck(self._tree.root)

    def _checked(self, configuration: Configuration) -> CapacitySchedulerConfiguration:
        settings = CapacitySchedulerConfiguration.read(configuration, self._context.yardstick())
        self._tree.check(settings, configuration)
        return settings

    # For reports and checks: to be read, not changed

    @property
    def node_count(self) -> int:
        """Nodes that the scheduler knows."""
        return self._context.node_count

    @property
    def nodes(self) -> Mapping[NodeId, SchedulerNode]:
        """The nodes, in the order they came."""
        return self._context.nodes

    @property
    def queues(self) -> Mapping[str, CSQueue]:
        """The queues by path, parents before their children."""
        return self._tree.by_path

    @property
    def context(self) -> SchedulerContext:
        """What the parts share."""
        return self._context

    def queue(self, name: str) -> CSQueue | None:
        """The queue of a path or of an unambiguous short name."""
        return self._tree.get(name)

    def is_ambiguous(self, name: str) -> bool:
        """True for a short name that several queues have."""
        return self._tree.is_ambiguous(name)

    def container(self, container_id: ContainerId) -> RMContainer | None:
        """A live container of the application's current attempt; None if it is over, only reserved or unknown."""
        attempt = self._attempt_of(container_id.application_id)
        return attempt.live_containers.get(container_id) if attempt is not None else None

    def containers_of(self, application_id: ApplicationId) -> Mapping[ContainerId, RMContainer]:
        """The live containers of the application's current attempt, kept ones included."""
        attempt = self._attempt_of(application_id)
        return attempt.live_containers if attempt is not None else {}

    def explain(self, application_id: ApplicationId) -> list[Obstacle]:
        """Why the application has not got what it asks for; empty for one that is not known."""
        attempt = self._attempt_of(application_id)
        return obstacles_of(attempt) if attempt is not None else []

    def node_usage(self, node_id: NodeId) -> tuple[Resource, int]:
        """(allocated, containers) of a node; nothing for a node that the scheduler does not know."""
        node = self._context.nodes.get(node_id)
        return (node.allocated, len(node.containers)) if node is not None else (self._context.none, 0)

    def application_usage(self, application_id: ApplicationId) -> ApplicationResourceUsage | None:
        """What the application's current attempt holds and asks for; None if it has none. The core adds the seconds."""
        attempt = self._attempt_of(application_id)
        return usage_of(attempt, self._context) if attempt is not None else None

    # Helpers

    def _at(self, now_ms: int) -> SchedulerContext:
        self._context.now_ms = now_ms
        return self._context

    def _attempt_of(self, application_id: ApplicationId) -> FiCaSchedulerApp | None:
        application = self.applications.get(application_id)
        return application.current_attempt if application is not None else None

    def _complete(self, container: RMContainer, status: ContainerStatus, event: RMContainerEvent) -> None:
        """End a container or reservation; ask again for what its AM never saw (completedContainer)."""
        attempt = self._attempt_of(container.id.application_id)
        if attempt is None:
            return
        node = self._context.nodes.get(container.node_id)
        if node is not None:
            complete_in_queue(container, status, event, attempt, node)
            self._complete_reserved_update(status, event, node)
        if container.asks is not None and not attempt.is_stopped:
            attempt.asks.restore(container.key, container.asks)

    def _complete_reserved_update(self, status: ContainerStatus, event: RMContainerEvent, node: SchedulerNode) -> None:
        """What is reserved on the node for an increase of the container that is over goes with it."""
        reserved = node.reserved_container
        if reserved is None or reserved.key.container_id != status.container_id:
            return
        attempt = self._attempt_of(reserved.id.application_id)
        if attempt is not None:
            complete_in_queue(reserved, replace(status, container_id=reserved.id), event, attempt, node)
