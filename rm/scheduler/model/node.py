"""A node as the scheduler sees it: its resources, its containers, and its reservation (FiCaSchedulerNode).

A container's resources become free on the node when its NM reports its end, or at once if the NM never reported its
start. So when an AM releases a running container, the queue gets the resources back at once, the node later.
"""

from __future__ import annotations

from rm.scheduler.model.rm_container import RMContainer
from yarn.ids import ContainerId, NodeId, container_hash
from yarn.java.hash_order import hash_order
from yarn.nodes import NO_LABEL
from yarn.resource import Resource


class SchedulerNode:
    """A node. `allocated` + `unallocated` == `total`; `unallocated` can be negative after the total was reduced.

    `name`: its name in resource requests, host or host:port. `reserved_container` is RESERVED and not in `containers`.
    `is_running`: False while the node is being decommissioned; nothing is booked on it then. `killable`: containers
    that are killed as soon as another queue needs their resources; until then they stay in `containers`. `heard_ms`:
    the time of the last heartbeat, only for asynchronous scheduling. `over_commit_ends_ms`: from this time on
    containers are killed if the node has less than they use; None: they run to their end. `watch`: the node adds its
    id to it whenever its next visit may do more than the last one.
    """

    __slots__ = (
        "_containers_peak",
        "_killable_peak",
        "_launched",
        "allocated",
        "containers",
        "heard_ms",
        "http_address",
        "is_running",
        "killable",
        "name",
        "node_id",
        "over_commit_ends_ms",
        "partition",
        "rack",
        "reserved_container",
        "total",
        "total_killable",
        "unallocated",
        "watch",
    )

    def __init__(self, node_id: NodeId, name: str, rack: str, total: Resource, http_address: str) -> None:
        self.node_id = node_id
        self.name = name
        self.rack = rack
        self.http_address = http_address
        self.total = total
        self.allocated = total - total
        self.unallocated = total
        self.partition = NO_LABEL
        self.is_running = True
        self.heard_ms = 0
        self.over_commit_ends_ms: int | None = None
        self.reserved_container: RMContainer | None = None
        self.containers: dict[ContainerId, RMContainer] = {}
        self._containers_peak = 0
        self._launched: set[ContainerId] = set()
        self.killable: dict[ContainerId, RMContainer] = {}
        self._killable_peak = 0
        self.total_killable = total - total
        self.watch: dict[NodeId, None] | None = None

    def allocate_container(self, container: RMContainer) -> None:
        """Add a container; its size is charged to the node unless it is opportunistic."""
        if not container.is_opportunistic:
            size = container.container.resource
            self.unallocated = self.unallocated - size
            self.allocated = self.allocated + size
        self.containers[container.id] = container
        if len(self.containers) > self._containers_peak:
            self._containers_peak = len(self.containers)

    def containers_in_hash_order(self) -> list[RMContainer]:
        """The containers in the order of Java's map (getCopiedListOfRunningContainers)."""
        ids = hash_order(self.containers, container_hash, peak=self._containers_peak)
        return [self.containers[container_id] for container_id in ids]

    def containers_to_kill(self) -> list[RMContainer]:
        """The containers in the order in which they are killed if the node is too small (getContainersToKill)."""
        return sorted(
            self.containers_in_hash_order(), key=lambda one: (one.is_am, not one.is_opportunistic, -one.started_ms)
        )

    def container_launched(self, container_id: ContainerId) -> None:
        """Note that the NM reported the container: its resources become free only when the NM reports its end."""
        if container_id in self.containers:
            self._launched.add(container_id)

    def release_container(self, container_id: ContainerId, *, by_node: bool) -> None:
        """Remove a container, unless the NM still has to report its end."""
        if container_id not in self.containers or (not by_node and container_id in self._launched):
            return
        container = self.containers.pop(container_id)
        size = container.resource
        self._launched.discard(container_id)
        if self.killable and self.killable.pop(container_id, None) is not None:
            self.total_killable = self.total_killable - size
        if not container.is_opportunistic:
            self.unallocated = self.unallocated + size
            self.allocated = self.allocated - size
        self.note_change()

    @property
    def within_reach(self) -> Resource:
        """The free amount, with that of all killable containers."""
        return self.unallocated + self.total_killable if self.killable else self.unallocated

    def mark_killable(self, container_id: ContainerId) -> None:
        """Mark a container to be killed as soon as another queue needs its resources (markContainerToKillable)."""
        container = self.containers.get(container_id)
        if container is not None and container_id not in self.killable:
            self.killable[container_id] = container
            self._killable_peak = max(self._killable_peak, len(self.killable))
            self.total_killable = self.total_killable + container.resource
            self.note_change()

    def killable_in_hash_order(self) -> list[RMContainer]:
        """The killable containers in the order of Java's map."""
        ids = hash_order(self.killable, container_hash, peak=self._killable_peak)
        return [self.killable[container_id] for container_id in ids]

    def update_partition(self, partition: str) -> None:
        """Change the node's partition; its containers stay."""
        self.partition = partition
        self.note_change()

    def update_total(self, total: Resource) -> None:
        """Change the node's size; its containers stay."""
        self.total = total
        self.unallocated = total - self.allocated
        self.note_change()

    def note_change(self) -> None:
        """Note that more may be placed on the node than before, or that a reservation was moved to it."""
        if self.watch is not None:
            self.watch[self.node_id] = None


class NodeTracker:
    """All nodes, and the largest container that fits on some node (ClusterNodeTracker).

    The maximum of each resource type is taken separately: memory may be from one node, vcores from another. These
    maximums limit the configured maximum allocation once the ResourceManager has been up for `settle_ms`, so that nodes
    have had time to join.
    """

    __slots__ = ("_largest", "_settled", "configured_maximum", "nodes", "started_ms")

    def __init__(self, nodes: dict[NodeId, SchedulerNode], configured_maximum: Resource, started_ms: int) -> None:
        """`nodes` is shared: only the tracker changes it."""
        self.nodes = nodes
        self.configured_maximum = configured_maximum
        self.started_ms = started_ms
        self._largest: tuple[int, ...] | None = None
        self._settled = False

    def add(self, node: SchedulerNode) -> None:
        self.nodes[node.node_id] = node
        self._count_in(node)

    def remove(self, node_id: NodeId) -> None:
        del self.nodes[node_id]
        self.recount()

    def recount(self) -> None:
        """Recompute the largest amounts."""
        self._largest = None
        for node in self.nodes.values():
            self._count_in(node)

    def maximum_allocation(self, now_ms: int, settle_ms: int) -> Resource:
        """The configured maximum, capped by the largest amounts once `settle_ms` has passed since the start."""
        self._settled = self._settled or now_ms - self.started_ms > settle_ms
        if not self._settled or self._largest is None:
            return self.configured_maximum
        return self.configured_maximum.with_values(map(min, self.configured_maximum.values(), self._largest))

    def _count_in(self, node: SchedulerNode) -> None:
        values = node.total.values()
        self._largest = values if self._largest is None else tuple(map(max, self._largest, values))
