"""Why an application does not get its containers, and which settings could change that.

An obstacle is the last refusal on a node, by the application or one of its queues. Its remedies are the configuration
keys behind the refusal, with their current values. If a queue's limit comes from a queue above it, the key of the queue
above is returned. If the size of the cluster is the limit, no setting is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from msgspec import Struct

from rm.core.explain.turn import Figure, Precedence
from rm.scheduler.capacity_scheduler import CapacityScheduler
from rm.scheduler.config.checks import capacity_key
from rm.scheduler.config.queue_templates import LEAF_TEMPLATE, QUEUE_CREATION
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.last_refusals import REFUSALS_MAX
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.refusals import Reason, Refusal
from yarn.configuration import Configuration
from yarn.ids import ApplicationId, NodeId
from yarn.nodes import NO_LABEL
from yarn.protocols.inspection import SettingInForce
from yarn.resource import MEMORY_MB, VCORES, Resource
from yarn.resource_calculator import DefaultResourceCalculator
from yarn.settings.scheduler import PREFIX, ROOT, queue_key

_SATISFIED = frozenset({Reason.QUEUE_SATISFIED, Reason.APPLICATION_SATISFIED})


class Obstacle(Struct, frozen=True):
    """The obstacle to an allocation. `subject`: an attempt's id or a queue's path; `node_id` None: on all nodes."""

    subject: str
    node_id: NodeId | None
    refusal: Refusal

    def __str__(self) -> str:
        place = "everywhere" if self.node_id is None else f"on {self.node_id.host}"
        return f"{self.subject} {place}: {self.refusal}"


def obstacles(scheduler: CapacityScheduler, application_id: ApplicationId) -> list[Obstacle]:
    """The obstacles of an application's current attempt; none for an unknown application."""
    attempt = scheduler.attempt_of(application_id)
    return obstacles_of(attempt, scheduler.nodes.values()) if attempt is not None else []


def obstacles_of(attempt: FiCaSchedulerApp, nodes: Iterable[SchedulerNode]) -> list[Obstacle]:
    """The obstacles of an attempt.

    First comes why the application or its AM may not start; then the refusals of each node, by the attempt and by its
    queues; last those of `nodes` that are reserved for other applications. A check that a node's last heartbeat did not
    reach is reported with the time of an older heartbeat.

    Refusals that say nothing of the present are left out:
    - of the attempt: that nothing is requested; that a node is blacklisted, if it no longer is;
    - of its queues: on nodes whose partition the application does not request;
    - any that are older than the application's requests.
    """
    subject = str(attempt.attempt_id)
    since_ms, served = attempt.requests.requested_since_ms(), _served_nodes(attempt, nodes)
    leaf = LeafQueue.of(attempt)
    am_refusal = leaf.am_refusal(attempt)
    obstacles = [] if am_refusal is None else [Obstacle(subject, None, am_refusal)]
    if not attempt.is_runnable:
        obstacles.append(Obstacle(subject, None, Refusal(Reason.PARALLEL_LIMIT, attempt.started_ms)))
    for node_id, refusal in leaf.last_refusals(attempt).items():
        if not _is_former_blacklisting(attempt, refusal, served.get(node_id)):
            obstacles += _kept(subject, node_id, refusal, since_ms)
    for queue in attempt.leaf.and_above():
        for node_id, refusal in queue.refusals.by_node().items():
            if node_id in served:
                obstacles += _kept(queue.path, node_id, refusal, since_ms)
    if attempt.requests.keys:
        obstacles += islice(_reserved_for_others(attempt, served.values()), REFUSALS_MAX)
    return obstacles


def _is_former_blacklisting(attempt: FiCaSchedulerApp, refusal: Refusal, node: SchedulerNode | None) -> bool:
    """True if the node was refused because it was blacklisted, and no longer is."""
    if refusal.reason is not Reason.NODE_BLACKLISTED or node is None:
        return False
    return not attempt.is_blacklisted(node.name, node.rack)


def serves(node: SchedulerNode, partition: str, context: SchedulerContext) -> bool:
    """True if requests for the partition may be placed on the node."""
    return node.partition == partition or (partition == NO_LABEL and context.labels.is_shared(node.partition))


def counted_types(context: SchedulerContext) -> tuple[str, ...]:
    """The resource types that the scheduler compares: memory alone with the DefaultResourceCalculator, else all."""
    if isinstance(context.calculator, DefaultResourceCalculator):
        return (MEMORY_MB,)
    return (MEMORY_MB, VCORES, *context.settings.resource_types.extra_names)


def _served_nodes(attempt: FiCaSchedulerApp, nodes: Iterable[SchedulerNode]) -> dict[NodeId, SchedulerNode]:
    """The nodes on which some pending request of the attempt may be placed."""
    requests, context = attempt.requests, attempt.leaf.context
    partitions = {of_key.partition for key in requests.keys if (of_key := requests.at(key)) is not None}
    return {node.node_id: node for node in nodes if any(serves(node, partition, context) for partition in partitions)}


def _reserved_for_others(attempt: FiCaSchedulerApp, nodes: Iterable[SchedulerNode]) -> Iterator[Obstacle]:
    """Obstacles for nodes that are reserved for other applications.

    On such a node only the reservation is considered, so the scheduler records no refusal there.
    """
    for node in nodes:
        container = node.reserved_container
        if container is not None and container.id.application_id != attempt.attempt_id.application_id:
            refusal = Refusal(Reason.QUEUE_NODE_RESERVED, container.started_ms, asked=container.resource)
            yield Obstacle(ROOT, node.node_id, refusal)


def _kept(subject: str, node_id: NodeId, refusal: Refusal, since_ms: int) -> list[Obstacle]:
    if refusal.reason in _SATISFIED or refusal.at_ms < since_ms:
        return []
    return [Obstacle(subject, node_id, refusal)]


PERCENT = " %"
NOT_SET = "not set"
"""The value of a setting that has to be set."""
_NODE_KEYS = {
    MEMORY_MB: "yarn.nodemanager.resource.memory-mb",
    VCORES: "yarn.nodemanager.resource.cpu-vcores",
}


class Remedies:
    """The settings behind the refusals of one application."""

    def __init__(self, application: FiCaSchedulerApp, context: SchedulerContext) -> None:
        self._application = application
        self._context = context
        self._of_reason: dict[Reason, Callable[[Refusal, CSQueue, str], Iterator[SettingInForce]]] = {
            Reason.QUEUE_MAXIMUM: self._maximum,
            Reason.QUEUE_HEADROOM: self._maximum,
            Reason.COMMIT_QUEUE_MAXIMUM: self._maximum,
            Reason.USER_LIMIT: self._user_limit,
            Reason.COMMIT_USER_LIMIT: self._user_limit,
            Reason.AM_QUEUE_LIMIT: self._am_limit,
            Reason.AM_USER_LIMIT: self._am_user_limit,
            Reason.PARALLEL_LIMIT: self._parallel,
            Reason.NO_ACCESS: self._labels,
            Reason.NODE_OFF_SWITCH_DELAY: self._locality_delay,
            Reason.NODE_TOTAL_TOO_SMALL: self._node_size,
            Reason.REQUEST_RESERVED_ENOUGH: self._continue_looking,
            Reason.QUEUE_FIFO: self._ordering,
            Reason.REQUEST_AM_ON_SHARED_LABEL: self._am_on_shared_label,
        }

    def of(self, refusal: Refusal, queue: CSQueue, partition: str) -> tuple[SettingInForce, ...]:
        """The settings behind a refusal by `queue`, or by the application in it, on a node of the partition."""
        find = self._of_reason.get(refusal.reason)
        return tuple(find(refusal, queue, partition)) if find is not None else ()

    def of_order(self, order: Precedence, partition: str) -> tuple[SettingInForce, ...]:
        """The settings that put the application's queue after another one, or the application after others in it."""
        queue = next((one for one in self._application.leaf.and_above() if one.path == order.second), None)
        if queue is None:
            return tuple(self._ordering(Refusal(Reason.QUEUE_FIFO, 0), self._application.leaf, partition))
        if order.figure in (Figure.BELOW_GUARANTEE, Figure.QUEUE_PRIORITY):
            return (self._own(queue, "priority", "0"),)
        name = capacity_key(queue.path, partition, "")[len(queue_key(queue.path, "")) :]
        return (self._own(queue, name, "0", unit=PERCENT),)

    def _maximum(self, refusal: Refusal, queue: CSQueue, partition: str) -> Iterator[SettingInForce]:
        if partition not in queue.configuration.capacities and queue.effective_maximum(partition).is_none():
            # QueueNodeLabelsSettings: on a label for which the queue has no key, the default maximum has no effect.
            yield self._own(queue, f"accessible-node-labels.{partition}.capacity", NOT_SET)
            return
        binding = self._binding(refusal, queue, partition)
        if binding.path != ROOT:
            name = capacity_key(binding.path, partition, "maximum-")[len(queue_key(binding.path, "")) :]
            yield self._own(binding, name, "100", unit=PERCENT)

    def _binding(self, refusal: Refusal, queue: CSQueue, partition: str) -> CSQueue:
        """The queue whose maximum is the limit: the queue itself, or the fullest one above.

        If a queue's maximum is all of its parent's, then the parent's is the limit.
        """
        maximum, bound = queue.effective_maximum(partition), refusal.bound
        if bound is not None and bound not in (maximum, maximum - in_use(queue, partition)):
            above = [found for found in queue.and_above() if found is not queue]
            queue = max(above, key=lambda found: _fullness(found, partition), default=queue)
        while queue.parent is not None and queue.parent.effective_maximum(partition) == queue.effective_maximum(
            partition
        ):
            queue = queue.parent
        return queue

    def _user_limit(self, refusal: Refusal, queue: CSQueue, partition: str) -> Iterator[SettingInForce]:
        leaf = self._application.leaf
        yield self._own(leaf, "user-limit-factor", "1", common=True)
        yield self._own(leaf, "minimum-user-limit-percent", "100", common=True, unit=PERCENT)

    def _am_limit(self, refusal: Refusal, queue: CSQueue, partition: str) -> Iterator[SettingInForce]:
        yield self._own(self._application.leaf, "maximum-am-resource-percent", "0.1", common=True)

    def _am_user_limit(self, refusal: Refusal, queue: CSQueue, partition: str) -> Iterator[SettingInForce]:
        yield from self._am_limit(refusal, queue, partition)
        yield from self._user_limit(refusal, queue, partition)

    def _parallel(self, refusal: Refusal, queue: CSQueue, partition: str) -> Iterator[SettingInForce]:
        full = [
            found
            for found in self._application.leaf.and_above()
            if found.runnable_total() >= found.configuration.max_parallel_apps
        ]
        for found in full:
            limit = str(found.configuration.max_parallel_apps)
            yield self._own(found, "max-parallel-apps", limit, common=True)
        if not full:
            user = self._application.user
            own = f"{PREFIX}user.{user}.max-parallel-apps"
            key = own if own in self._context.settings.source else f"{PREFIX}user.max-parallel-apps"
            yield SettingInForce(key, str(self._context.settings.user_max_parallel_apps(user)))

    def _labels(self, refusal: Refusal, queue: CSQueue, partition: str) -> Iterator[SettingInForce]:
        labels = ",".join(queue.configuration.accessible_labels)
        yield SettingInForce(queue_key(queue.path, "accessible-node-labels"), labels)

    def _locality_delay(self, refusal: Refusal, queue: CSQueue, partition: str) -> Iterator[SettingInForce]:
        settings = self._context.settings
        yield SettingInForce(f"{PREFIX}node-locality-delay", str(settings.node_locality_delay))
        additional = settings.rack_locality_additional_delay
        if additional > -1:
            yield SettingInForce(f"{PREFIX}rack-locality-additional-delay", str(additional))

    def _node_size(self, refusal: Refusal, queue: CSQueue, partition: str) -> Iterator[SettingInForce]:
        """The size that the node registered with; the key is in the node's own configuration."""
        has = {} if refusal.bound is None else refusal.bound.amounts()
        asked = {} if refusal.asked is None else refusal.asked.amounts()
        for name in counted_types(self._context):
            if name in _NODE_KEYS and asked.get(name, 0) > has.get(name, 0):
                yield SettingInForce(_NODE_KEYS[name], str(has.get(name, 0)))

    def _continue_looking(self, refusal: Refusal, queue: CSQueue, partition: str) -> Iterator[SettingInForce]:
        value = "true" if self._context.settings.reservations_continue_looking else "false"
        yield SettingInForce(f"{PREFIX}reservations-continue-look-all-nodes", value)

    def _ordering(self, refusal: Refusal, queue: CSQueue, partition: str) -> Iterator[SettingInForce]:
        yield self._own(self._application.leaf, "ordering-policy", "fifo")

    def _am_on_shared_label(self, refusal: Refusal, queue: CSQueue, partition: str) -> Iterator[SettingInForce]:
        yield SettingInForce("yarn.resourcemanager.node-labels.am.allow-non-exclusive-allocation", "false")

    def _own(self, queue: CSQueue, name: str, default: str, *, common: bool = False, unit: str = "") -> SettingInForce:
        """The queue's key, or with `common` the key for all queues if only that is set; see `_key_of`."""
        source = self._context.settings.source
        key = _key_of(queue, name, source)
        if common and key not in source and f"{PREFIX}{name}" in source:
            key = f"{PREFIX}{name}"
        value = source.get_trimmed(key, default)
        is_number = value.replace(".", "", 1).isdigit()
        return SettingInForce(key, value + unit if is_number else value)


def application_limits(leaf: LeafQueue) -> tuple[SettingInForce, ...]:
    """The settings behind the limits on the number of applications in a leaf, with the values in force."""
    source, most = leaf.context.settings.source, leaf.maximum_applications
    own = _key_of(leaf, "maximum-applications", source)
    settings = [SettingInForce(own if own in source else f"{PREFIX}maximum-applications", str(most))]
    if leaf.maximum_applications_per_user < most:
        for name, value in (
            ("minimum-user-limit-percent", leaf.shape.user_limit),
            ("user-limit-factor", leaf.shape.user_limit_factor),
        ):
            settings.append(SettingInForce(_key_of(leaf, name, source), f"{value:g}"))
    return tuple(settings)


def _key_of(queue: CSQueue, name: str, source: Configuration) -> str:
    """The key of the queue's property; for a queue created on demand, in its parent's template."""
    if not queue.configuration.is_dynamic and not queue.configuration.is_auto_created:
        return queue_key(queue.path, name)
    parent = queue.path.rpartition(".")[0]
    if queue.configuration.is_auto_created:
        return queue_key(parent, f"{LEAF_TEMPLATE}{name}")
    own = f"{QUEUE_CREATION}{'leaf' if queue.configuration.is_leaf else 'parent'}-template.{name}"
    return queue_key(parent, own if queue_key(parent, own) in source else f"{QUEUE_CREATION}template.{name}")


def _fullness(queue: CSQueue, partition: str) -> float:
    """The largest used fraction of the queue's maximum, over the resource types."""
    used, maximum = in_use(queue, partition).values(), queue.effective_maximum(partition).values()
    return max((part / whole for part, whole in zip(used, maximum, strict=True) if whole > 0), default=0.0)


def in_use(queue: CSQueue, partition: str) -> Resource:
    """The usage as the queue's own check counts it: without containers that lazy preemption can kill."""
    used = queue.usage.used(partition)
    return used - queue.context.killables.resource(queue.path, partition) if isinstance(queue, ParentQueue) else used
