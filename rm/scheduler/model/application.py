"""One attempt as the scheduler sees it: what it holds, what is reserved for it, how often it was passed over.

Hadoop's FiCaSchedulerApp. `SchedulerApplication` is the application over its attempts. With kept containers the next
attempt takes over the very dictionary of live containers, what they use, and the headroom provider.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rm.scheduler.container_updates import ContainerUpdates
from rm.scheduler.context import SchedulerContext
from rm.scheduler.model.asks import AppSchedulingInfo, SchedulerKey, key_hash
from rm.scheduler.model.rm_container import RMContainer, RMContainerAcquired
from rm.scheduler.model.usage import NO_LABEL, ResourceUsage
from rm.scheduler.view.reasons import Reason, Refusal, Refusals
from yarn.asks import ANY, UNDEFINED_PRIORITY, Preemption, ResourceRequest
from yarn.containers import Container
from yarn.ids import EPOCH_BITS, ApplicationAttemptId, ContainerId, NodeId
from yarn.java.binary32 import ceiled
from yarn.java.hash_order import container_hash, hash_order, node_hash
from yarn.resource import Resource

if TYPE_CHECKING:
    from rm.scheduler.capacity.headroom import HeadroomProvider
    from rm.scheduler.model.leaf_queue import LeafQueue


class FiCaSchedulerApp:
    """An attempt in a leaf queue.

    `live_containers` are its own and, with kept containers, those of attempts before, without reserved ones.
    `newly_allocated` wait to be handed out; `updates` are changes of containers under way.
    `usage.used` does not include reservations. `reserved` {key: {node: reserved container}}. `opportunities` {key:
    nodes offered since the last local placement}, `missed_non_partitioned` {key: visits since one on a node without
    label}, `re_reservations` {key: how often its reserved nodes were still too full}. `passed_keys` {node: the last key
    that its visit passed over, of an application with more keys than a visit looks at}.
    `am_refusal` tells why it is not active yet. `ordered_used_mb` and `ordered_pending_mb`: what it held and asked for
    on all partitions when the fair policy last put it in its place. `is_runnable`: not parked by a limit on
    applications at once. `to_preempt`: containers that are to go, of which its master has not been told yet. `label` is
    what the application was submitted with; `am_partition` that of its master's ask, later of its master's node.
    `pending_release`: what its master gave back and the scheduler does not know, while it may still be recovered.
    `recovered`: containers of earlier attempts that were taken up after a restart and its master was not told of.
    """

    __slots__ = (
        "_container_count",
        "_context",
        "_live_peak",
        "_reserved_peak",
        "am_partition",
        "am_resource",
        "asks",
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
        "reserved",
        "started_ms",
        "system_blacklist",
        "to_preempt",
        "unmanaged",
        "updates",
        "usage",
        "user",
    )

    def __init__(
        self,
        attempt_id: ApplicationAttemptId,
        user: str,
        leaf: LeafQueue,
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
        self.asks = AppSchedulingInfo(attempt_id.application_id, user, leaf, self.usage)
        self.live_containers: dict[ContainerId, RMContainer] = {}
        self._live_peak = 0
        self.updates = ContainerUpdates(self, context)
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
        self.is_recovering = False
        self.is_runnable = True
        self._container_count = 0
        self.ordered_used_mb = 0
        self.ordered_pending_mb = 0
        self.refusals = Refusals()

    def __str__(self) -> str:
        return str(self.attempt_id)

    # What it is

    @property
    def is_waiting_for_master(self) -> bool:
        """True until the ResourceManager has taken the container for its master."""
        return not self.has_master and not self.unmanaged

    @property
    def reserved_containers(self) -> list[RMContainer]:
        """All that is reserved for it."""
        return [container for by_node in self.reserved.values() for container in by_node.values()]

    def reserved_in_hash_order(self) -> list[RMContainer]:
        """All that is reserved for it, as Java's maps give it."""
        keys = hash_order(self.reserved, key_hash)
        return [
            self.reserved[key][node_id]
            for key in keys
            for node_id in hash_order(self.reserved[key], node_hash, peak=self._reserved_peak[key])
        ]

    def is_blacklisted(self, host: str, rack: str) -> bool:
        """The system's list holds for the master, the AM's own for everything else."""
        places = self.system_blacklist if self.is_waiting_for_master else self.blacklist
        return bool(places) and (host in places or rack in places)

    @property
    def am_refusal(self) -> Refusal | None:
        """Why it has not been activated; None if it does not wait for that."""
        return self.leaf.pending.refusal_of(self)

    def am_used(self, partition: str) -> Resource:
        """What its master counts with on the partition, before it has one too (getAMResource)."""
        return self.usage.am_used(partition)

    def headroom(self) -> Resource:
        """What it could still get; nothing before the first visit looked at it."""
        return self.headroom_provider.headroom() if self.headroom_provider is not None else self._context.none

    def last_refusals(self) -> dict[NodeId, Refusal]:
        """{node: why it was last refused there}, oldest first; its user's refusals are its own while it asks."""
        own = self.refusals.by_node()
        user = self.leaf.users.users.get(self.user)
        if user is not None and self.usage.is_pending():
            for node_id, refusal in user.refusals.by_node().items():
                last = own.get(node_id)
                if last is None or last.reason is Reason.APPLICATION_SATISFIED or last.at_ms < refusal.at_ms:
                    own[node_id] = refusal
        return dict(sorted(own.items(), key=lambda entry: entry[1].at_ms))

    def live_in_hash_order(self) -> list[RMContainer]:
        """The live containers as Java's map gives them (getLiveContainers)."""
        ids = hash_order(self.live_containers, container_hash, peak=self._live_peak, concurrent=True)
        return [self.live_containers[container_id] for container_id in ids]

    # What it does

    def hold(self, container_id: ContainerId, container: RMContainer) -> None:
        """A container is live, under its own id or that of its change."""
        self.live_containers[container_id] = container
        if len(self.live_containers) > self._live_peak:
            self._live_peak = len(self.live_containers)

    def transfer_from(self, previous: FiCaSchedulerApp) -> None:
        """Take over the containers that the attempt before leaves (transferStateFromPreviousAttempt)."""
        self.live_containers, self._live_peak = previous.live_containers, previous._live_peak
        self.usage.copy_used(previous.usage)
        self.blacklist = previous.blacklist
        self.headroom_provider = previous.headroom_provider

    def update_blacklist(self, additions: Iterable[str], removals: Iterable[str]) -> None:
        """Hosts and racks to keep away from, from now on."""
        places = self.system_blacklist if self.is_waiting_for_master else self.blacklist
        places.update(additions)
        places.difference_update(removals)

    def note_ordered_usage(self) -> None:
        """Take over what it holds and asks for as what it is ordered by."""
        partitions = list(self.usage.partitions())
        self.ordered_used_mb = sum(self.usage.used(partition).memory_mb for partition in partitions)
        self.ordered_pending_mb = sum(self.usage.pending(partition).memory_mb for partition in partitions)

    def pull_allocated(self) -> tuple[Container, ...]:
        """What was placed since the last pull, acquired by this one; in the order of placement."""
        placed = tuple(self.newly_allocated.values())
        self.newly_allocated.clear()
        for container in placed:
            container.handle(RMContainerAcquired(), self._context.now_ms)
        return tuple(container.container for container in placed)

    def mark_for_preemption(self, container_id: ContainerId) -> None:
        """The container is to go: its master is told with the next heartbeat (markContainerForPreemption)."""
        if container_id in self.live_containers:
            self.to_preempt[container_id] = None

    def pull_preemption(self) -> Preemption | None:
        """What its master is to be told of containers that are to go; None if there is nothing new.

        Named are the containers, and what giving back other ones would have to come to, in containers of the least
        size (FiCaSchedulerApp.getAllocation).
        """
        if not self.to_preempt:
            return None
        context = self._context
        named, self.to_preempt = tuple(self.to_preempt), {}
        total = sum((self.live_containers[name].resource for name in named), start=context.none)
        count = context.calculator.divide(context.cluster_resource, total, context.minimum_allocation)
        ask = ResourceRequest(UNDEFINED_PRIORITY, ANY, context.minimum_allocation, ceiled(count))
        return Preemption(negotiable=named, asks=(ask,))

    def next_container_id(self) -> ContainerId:
        """Drawn when a placement or reservation is booked, so that refused ones leave no gap."""
        self._container_count += 1
        return ContainerId(self.attempt_id, self._context.epoch << EPOCH_BITS | self._container_count)

    def note_recovered(self, container: RMContainer) -> None:
        """A container of before a restart is its own again; one of an earlier attempt is news to its master."""
        self.hold(container.id, container)
        if container.attempt_id != self.attempt_id:
            self.recovered[container.id] = container

    def pull_recovered(self) -> tuple[Container, ...]:
        """Containers of earlier attempts since the last pull."""
        containers = tuple(container.container for container in self.recovered.values())
        self.recovered.clear()
        return containers

    def add_missed_non_partitioned(self, key: SchedulerKey) -> int:
        """One more visit of a key that wants no label; returns the count."""
        missed = self.missed_non_partitioned[key] = self.missed_non_partitioned.get(key, 0) + 1
        return missed

    def note_passed(self, node_id: NodeId, key: SchedulerKey) -> None:
        """The node's next visit begins behind this key. Nodes that are gone are forgotten with all others."""
        if len(self.passed_keys) > self._context.node_count:
            self.passed_keys.clear()
        self.passed_keys[node_id] = key
        self._context.revision += 1

    def reserve(self, key: SchedulerKey, container: RMContainer, partition: str) -> None:
        """A reservation is new; of the container's size and for its node."""
        part = self.usage.booked(partition)
        part.reserved = part.reserved + container.resource
        self.re_reservations.pop(key, None)
        by_node = self.reserved.setdefault(key, {})
        by_node[container.node_id] = container
        self._reserved_peak[key] = max(self._reserved_peak.get(key, 0), len(by_node))

    def unreserve(self, key: SchedulerKey, node_id: NodeId, partition: str) -> bool:
        """Give a reservation up; False if there is none."""
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
        """The first reservation of the key, in the order of Java's map, that is worth at least `amount`."""
        by_node = self.reserved.get(key)
        if not by_node:
            return None
        fits_in = self._context.calculator.fits_in
        for node_id in hash_order(by_node, node_hash, peak=self._reserved_peak[key]):
            if fits_in(amount, by_node[node_id].resource):
                return by_node[node_id]
        return None

    def stop(self) -> None:
        """The attempt is over: it asks for nothing and gets nothing."""
        self.is_stopped = True
        self.asks.stop()


class SchedulerApplication:
    """An application: its leaf, and the attempt that runs or ran last."""

    __slots__ = ("current_attempt", "leaf", "priority", "user")

    def __init__(self, leaf: LeafQueue, user: str, priority: int) -> None:
        self.leaf = leaf
        self.user = user
        self.priority = priority
        self.current_attempt: FiCaSchedulerApp | None = None

    @property
    def queue(self) -> str:
        """The path of its leaf."""
        return self.leaf.path
