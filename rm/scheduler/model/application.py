"""An attempt as the scheduler sees it: its containers, reservations, and how often it was skipped (FiCaSchedulerApp).

`SchedulerApplication` is the application across its attempts. If containers are kept across attempts, the next attempt
takes over the same dictionary of live containers, their usage, and its predecessor's headroom provider.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.last_refusals import Refusals
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.requests import AppSchedulingInfo, SchedulerKey, key_hash
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.model.rm_container_events import RMContainerAcquired
from rm.scheduler.model.usage import ResourceUsage
from rm.scheduler.model.users import User
from yarn.containers import ANY, UNDEFINED_PRIORITY, Container, Preemption, ResourceRequest, UpdateContainerError
from yarn.ids import EPOCH_BITS, ApplicationAttemptId, ApplicationId, ContainerId, NodeId, container_hash, node_hash
from yarn.java.binary32 import ceiled
from yarn.java.hash_order import hash_order
from yarn.nodes import NO_LABEL
from yarn.resource import Resource

Place: TypeAlias = tuple[tuple[int, ...], NodeId]
"""The size that a container is to grow by, and its node."""


class ContainerUpdates:
    """Container updates in progress of an attempt (ContainerUpdateContext); see placement/container_updates.py.

    `increases` {key: {place: number still requested}}; `decreases` {container: its new size}. `increased` and
    `promoted` {container: its temporary container} have been placed and take effect at the AM's next call; `decreased`
    and `demoted` ones take effect with the reply to the call that requests them. `to_release` are temporary containers
    that no update needs. `refused` updates are reported with the next reply.
    """

    __slots__ = (
        "decreased",
        "decreases",
        "demoted",
        "increased",
        "increases",
        "promoted",
        "refused",
        "to_release",
    )

    def __init__(self) -> None:
        self.increases: dict[SchedulerKey, dict[Place, bool]] = {}
        self.decreases: dict[ContainerId, Resource] = {}
        self.increased: dict[ContainerId, RMContainer] = {}
        self.decreased: dict[ContainerId, RMContainer] = {}
        self.promoted: dict[ContainerId, RMContainer] = {}
        self.demoted: dict[ContainerId, RMContainer] = {}
        self.to_release: list[RMContainer] = []
        self.refused: list[UpdateContainerError] = []

    @property
    def are_waiting(self) -> bool:
        """True if the AM's next call returns updates, or releases temporary containers."""
        done = self.increased or self.decreased or self.promoted or self.demoted
        return bool(done or self.to_release or self.refused)


class FiCaSchedulerApp:
    """An attempt in a leaf queue (`leaf`; LeafQueue.of gives it with its own type).

    `live_containers` are its own and, with kept containers, those of earlier attempts, without reserved ones.
    `newly_allocated` wait for the AM's next call. `usage.used` does not include reservations.
    `reserved` {key: {node: reserved container}}. `opportunities` {key: nodes offered since the last local placement},
    `missed_non_partitioned` {key: visits since the last placement on a node without a label}, `re_reservations` {key:
    how often its reserved nodes were still too full}. `passed_keys` {node: the last key that the node's visit looked
    at}, only for applications with more keys than one visit looks at.
    `ordered_used_mb` and `ordered_pending_mb`: what it held and requested on all partitions when the fair policy last
    ordered it. `is_runnable`: not held back by max-parallel-apps. `to_preempt`: containers to be preempted that its AM
    has not been notified of. `label`: the label with which the application was submitted. `am_partition`: at first that
    of the AM's request, then that of the AM's node. `pending_release`: containers released by the AM but unknown to the
    scheduler, as long as they may still be recovered. `recovered`: containers of earlier attempts, recovered after a
    restart and not yet reported to its AM. `vcores_cut`: the most vcores of a request that were cut to fewer, 0 if none
    were. `watch`, if set: the attempt adds its id when it has news for its AM, or looks up another limit for its
    headroom.
    """

    __slots__ = (
        "_container_count",
        "_context",
        "_live_peak",
        "_reserved_peak",
        "am_partition",
        "am_resource",
        "attempt_id",
        "blacklist",
        "has_master",
        "headroom_provider",
        "is_recovering",
        "is_runnable",
        "is_stopped",
        "label",
        "leaf",
        "live_containers",
        "missed_non_partitioned",
        "newly_allocated",
        "opportunities",
        "ordered_pending_mb",
        "ordered_used_mb",
        "passed_keys",
        "pending_release",
        "priority",
        "re_reservations",
        "recovered",
        "refusals",
        "requests",
        "reserved",
        "started_ms",
        "system_blacklist",
        "to_preempt",
        "unmanaged",
        "updates",
        "usage",
        "user",
        "vcores_cut",
        "watch",
    )

    def __init__(
        self,
        attempt_id: ApplicationAttemptId,
        user: str,
        leaf: CSQueue,
        context: SchedulerContext,
        *,
        am_resource: Resource | None,
        am_label: str | None = None,
        label: str | None = None,
        priority: int,
    ) -> None:
        self._context = context
        self.attempt_id = attempt_id
        self.user = user
        self.leaf = leaf
        self.priority = priority
        self.started_ms = context.now_ms
        self.unmanaged = am_resource is None
        self.am_resource = context.minimum_allocation if am_resource is None else am_resource
        self.am_partition = am_label or NO_LABEL
        self.label = label or NO_LABEL
        self.usage = ResourceUsage(context.none)
        self.usage.booked(self.am_partition).am_used = self.am_resource
        self.requests = AppSchedulingInfo(self.usage)
        self.live_containers: dict[ContainerId, RMContainer] = {}
        self._live_peak = 0
        self.updates = ContainerUpdates()
        self.newly_allocated: dict[ContainerId, RMContainer] = {}
        self.reserved: dict[SchedulerKey, dict[NodeId, RMContainer]] = {}
        self._reserved_peak: dict[SchedulerKey, int] = {}
        self.re_reservations: dict[SchedulerKey, int] = {}
        self.opportunities: dict[SchedulerKey, int] = {}
        self.missed_non_partitioned: dict[SchedulerKey, int] = {}
        self.passed_keys: dict[NodeId, SchedulerKey] = {}
        self.blacklist: set[str] = set()
        self.system_blacklist: set[str] = set()
        self.to_preempt: dict[ContainerId, None] = {}
        self.pending_release: dict[ContainerId, None] = {}
        self.recovered: dict[ContainerId, RMContainer] = {}
        self.headroom_provider: HeadroomProvider | None = None
        self.has_master = False
        self.is_stopped = False
        self.watch: dict[ApplicationAttemptId, None] | None = None
        self.is_recovering = False
        self.is_runnable = True
        self._container_count = 0
        self.ordered_used_mb = 0
        self.ordered_pending_mb = 0
        self.refusals = Refusals()
        self.vcores_cut = 0

    def __str__(self) -> str:
        return str(self.attempt_id)

    @property
    def is_waiting_for_master(self) -> bool:
        """True until the ResourceManager has acquired the container of the attempt's AM."""
        return not self.has_master and not self.unmanaged

    @property
    def reserved_containers(self) -> list[RMContainer]:
        """All reserved containers of the attempt."""
        return [container for by_node in self.reserved.values() for container in by_node.values()]

    def reserved_in_hash_order(self) -> list[RMContainer]:
        """All reserved containers of the attempt, in the order of Java's maps."""
        keys = hash_order(self.reserved, key_hash)
        return [
            self.reserved[key][node_id]
            for key in keys
            for node_id in hash_order(self.reserved[key], node_hash, peak=self._reserved_peak[key])
        ]

    def is_blacklisted(self, host: str, rack: str) -> bool:
        """True if the host or rack is blacklisted: by the RM for the AM's container, by the AM for all others."""
        places = self.system_blacklist if self.is_waiting_for_master else self.blacklist
        return bool(places) and (host in places or rack in places)

    def am_used(self, partition: str) -> Resource:
        """The resources that count towards the AM limit on the partition, also before the AM runs (getAMResource)."""
        return self.usage.am_used(partition)

    def live_in_hash_order(self) -> list[RMContainer]:
        """The live containers in the order of Java's map (getLiveContainers)."""
        ids = hash_order(self.live_containers, container_hash, peak=self._live_peak, concurrent=True)
        return [self.live_containers[container_id] for container_id in ids]

    def hold(self, container_id: ContainerId, container: RMContainer) -> None:
        """Add a live container, under its own id or under the id of its temporary container."""
        self.live_containers[container_id] = container
        if len(self.live_containers) > self._live_peak:
            self._live_peak = len(self.live_containers)

    def transfer_from(self, previous: FiCaSchedulerApp) -> None:
        """Take over the containers of the previous attempt (transferStateFromPreviousAttempt)."""
        self.live_containers, self._live_peak = previous.live_containers, previous._live_peak
        self.usage.copy_used(previous.usage)
        self.blacklist = previous.blacklist
        self.headroom_provider = previous.headroom_provider

    def update_blacklist(self, additions: Iterable[str], removals: Iterable[str]) -> None:
        """Change the hosts and racks to avoid."""
        places = self.system_blacklist if self.is_waiting_for_master else self.blacklist
        places.update(additions)
        places.difference_update(removals)

    def note_ordered_usage(self) -> None:
        """Store the amounts that the attempt holds and requests now; the fair policy orders by them."""
        partitions = list(self.usage.partitions())
        self.ordered_used_mb = sum(self.usage.used(partition).memory_mb for partition in partitions)
        self.ordered_pending_mb = sum(self.usage.pending(partition).memory_mb for partition in partitions)

    def note_news(self) -> None:
        """Note that the AM's next call may do more than the last one."""
        if self.watch is not None:
            self.watch[self.attempt_id] = None

    def pull_allocated(self) -> tuple[Container, ...]:
        """Return the containers placed since the last call, in the order of placement; they are ACQUIRED now."""
        placed = tuple(self.newly_allocated.values())
        self.newly_allocated.clear()
        for container in placed:
            container.handle(RMContainerAcquired(), self._context.now_ms)
        return tuple(container.container for container in placed)

    def mark_for_preemption(self, container_id: ContainerId) -> None:
        """Note that the container is to be preempted; the AM is notified with its next reply
        (markContainerForPreemption).
        """
        if container_id in self.live_containers:
            self.to_preempt[container_id] = None
            self.note_news()

    def pull_preemption(self) -> Preemption | None:
        """The preemption message for the AM; None if there is nothing new.

        The message names the containers, and the amount that the AM could release instead, in containers of the minimum
        allocation (FiCaSchedulerApp.getAllocation).
        """
        if not self.to_preempt:
            return None
        context = self._context
        named, self.to_preempt = tuple(self.to_preempt), {}
        total = sum((self.live_containers[name].resource for name in named), start=context.none)
        count = context.calculator.divide(context.cluster_resource, total, context.minimum_allocation)
        request = ResourceRequest(UNDEFINED_PRIORITY, ANY, context.minimum_allocation, ceiled(count))
        return Preemption(negotiable=named, asks=(request,))

    def next_container_id(self) -> ContainerId:
        """The id of a new container.

        It is taken only when a placement or reservation is booked, so that refused proposals leave no gaps.
        """
        self._container_count += 1
        return ContainerId(self.attempt_id, self._context.epoch << EPOCH_BITS | self._container_count)

    def note_recovered(self, container: RMContainer) -> None:
        """Add a recovered container; the AM gets a report of those that belong to earlier attempts."""
        self.hold(container.id, container)
        if container.attempt_id != self.attempt_id:
            self.recovered[container.id] = container
            self.note_news()

    def pull_recovered(self) -> tuple[Container, ...]:
        """Containers of earlier attempts, recovered since the last call."""
        containers = tuple(container.container for container in self.recovered.values())
        self.recovered.clear()
        return containers

    def add_missed_non_partitioned(self, key: SchedulerKey) -> int:
        """Count a visit for a key that requests no label; returns the count."""
        missed = self.missed_non_partitioned[key] = self.missed_non_partitioned.get(key, 0) + 1
        self.leaf.note_change()
        context = self._context
        if context.repeated is not None and (missed > context.node_count or not context.labels.any_shared):
            context.note_repeated(self.missed_non_partitioned, key)
        return missed

    def restart_missed_non_partitioned(self, key: SchedulerKey) -> None:
        self.missed_non_partitioned.pop(key, None)
        if self._context.repeated is not None:
            self._context.repeated.note_restarted(self.missed_non_partitioned, key)

    def count_opportunity(self, key: SchedulerKey, *, may_wait: bool) -> None:
        """Count the offer of a node to the key (addSchedulingOpportunity). No delay is longer than the number of nodes.

        `may_wait`: the key also requests hosts or racks. Requests for any node never wait for one.
        """
        count = self.opportunities[key] = self.opportunities.get(key, 0) + 1
        self.leaf.note_change()
        context = self._context
        if context.repeated is not None and (count > context.node_count or not may_wait):
            context.note_repeated(self.opportunities, key)

    def restart_opportunities(self, key: SchedulerKey) -> None:
        self.opportunities.pop(key, None)
        if self._context.repeated is not None:
            self._context.repeated.note_restarted(self.opportunities, key)

    def capture_headroom(self, user: User) -> None:
        """Start to compute the headroom from the attempt's present leaf and this user entry."""
        self.headroom_provider = HeadroomProvider(user, self.leaf, self)
        self.leaf.note_change()
        self.note_news()

    def note_passed(self, node_id: NodeId, key: SchedulerKey) -> None:
        """Start the node's next visit to this application after `key`.

        With more entries than nodes, some of removed nodes, all entries are cleared first.
        """
        if len(self.passed_keys) > self._context.node_count:
            self.passed_keys.clear()
        self.passed_keys[node_id] = key
        self.leaf.note_change()

    def forget_passed(self, node_id: NodeId) -> None:
        """Make the node's next visit start with the first key."""
        if self.passed_keys.pop(node_id, None) is not None:
            self.leaf.note_change()

    def reserve(self, key: SchedulerKey, container: RMContainer, partition: str) -> None:
        """Add a reservation of the container's size on its node."""
        part = self.usage.booked(partition)
        part.reserved = part.reserved + container.resource
        self.re_reservations.pop(key, None)
        by_node = self.reserved.setdefault(key, {})
        by_node[container.node_id] = container
        self._reserved_peak[key] = max(self._reserved_peak.get(key, 0), len(by_node))

    def unreserve(self, key: SchedulerKey, node_id: NodeId, partition: str) -> bool:
        """Remove a reservation; False if there is none."""
        by_node = self.reserved.get(key)
        container = by_node.pop(node_id, None) if by_node is not None else None
        if by_node is None or container is None:
            return False
        if not by_node:
            del self.reserved[key]
            del self._reserved_peak[key]
        self.re_reservations.pop(key, None)
        part = self.usage.booked(partition)
        part.reserved = part.reserved - container.resource
        return True

    def reservation_to_give_up(self, key: SchedulerKey, amount: Resource) -> RMContainer | None:
        """The key's first reservation of at least `amount`, in the order of Java's map; None if there is none."""
        by_node = self.reserved.get(key)
        if not by_node:
            return None
        fits_in = self._context.calculator.fits_in
        for node_id in hash_order(by_node, node_hash, peak=self._reserved_peak[key]):
            if fits_in(amount, by_node[node_id].resource):
                return by_node[node_id]
        return None


class HeadroomProvider(NamedTuple):
    """The leaf, user entry and attempt from which a headroom is computed (CapacityHeadroomProvider).

    It is captured when a node visit considers the attempt, and kept until the next such visit. After a move, or after
    the user's entry was dropped and created again, the headroom is therefore still computed from the old ones.
    """

    user: User
    leaf: CSQueue
    application: FiCaSchedulerApp


class SchedulerApplication:
    """An application: its leaf queue, and its current or last attempt."""

    __slots__ = ("current_attempt", "leaf", "priority", "user")

    def __init__(self, leaf: CSQueue, user: str, priority: int) -> None:
        self.leaf = leaf
        self.user = user
        self.priority = priority
        self.current_attempt: FiCaSchedulerApp | None = None

    @property
    def queue(self) -> str:
        """The path of the application's leaf queue."""
        return self.leaf.path


class ApplicationTable:
    """The applications by id, in the order they were added, and the containers of their current attempts."""

    __slots__ = ("by_id",)

    def __init__(self) -> None:
        self.by_id: dict[ApplicationId, SchedulerApplication] = {}

    def attempt_of(self, application_id: ApplicationId) -> FiCaSchedulerApp | None:
        """The application's current attempt."""
        application = self.by_id.get(application_id)
        return application.current_attempt if application is not None else None

    def container(self, container_id: ContainerId) -> RMContainer | None:
        """A live container of the application's current attempt; None if it has ended, is only reserved or unknown."""
        attempt = self.attempt_of(container_id.application_id)
        return attempt.live_containers.get(container_id) if attempt is not None else None

    def containers_of(self, application_id: ApplicationId) -> Mapping[ContainerId, RMContainer]:
        """The live containers of the application's current attempt, kept ones included."""
        attempt = self.attempt_of(application_id)
        return attempt.live_containers if attempt is not None else {}
