"""What all parts of one scheduler share: the calculator, the settings, the cluster's size by partition."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from rm.scheduler.config.checks import CapacityComparator
from rm.scheduler.config.configuration import CapacitySchedulerConfiguration, make_calculator
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.node_labels import NodeLabels
from rm.scheduler.model.notices import Notice
from rm.scheduler.model.usage import ResourceUsage
from rm.scheduler.preemption.killable import KillableContainers
from yarn.ids import ApplicationId, NodeId
from yarn.java.hash_order import hash_order, node_hash

if TYPE_CHECKING:
    from rm.scheduler.model.application import SchedulerApplication
    from rm.scheduler.model.assignment import Proposal


class SchedulingMode(Enum):
    """Whose asks a visit of a node looks at: those for its partition, or those for none on a shared one."""

    RESPECT_PARTITION_EXCLUSIVITY = "RESPECT_PARTITION_EXCLUSIVITY"
    IGNORE_PARTITION_EXCLUSIVITY = "IGNORE_PARTITION_EXCLUSIVITY"


RESPECT = SchedulingMode.RESPECT_PARTITION_EXCLUSIVITY
IGNORE = SchedulingMode.IGNORE_PARTITION_EXCLUSIVITY


class SchedulerContext:
    """Shared by the queues, users and applications of one scheduler.

    `applications` are all that the scheduler knows. `nodes_peak`: how many `nodes` there ever were at once.
    `cluster_resource` is the sum of `nodes`; `partition_resource(p)`
    of those of one partition, which `labels` keeps and counts a node out of before the node's containers are ended.
    `root_usage` is the root queue's. `calculator` and `minimum_allocation` are fixed for the life of the
    scheduler, `settings` are those of the last start or refresh. `started_in_legacy_mode`: the queue mode of the
    start, which a refresh to the other one does not change everywhere
    (CapacitySchedulerQueueCapacityHandler.isLegacyQueueMode). `killables`: containers that end as soon as somebody
    needs their room.

    `revision` moves with everything that a visit of a node could see. A visit that leaves it where it was changed
    nothing and placed nothing, and would do so again: see `SchedulerNode.settled_at`.

    `epoch` counts the ResourceManagers that recovered from one store; it is part of the ids of containers. Nothing is
    placed until `placing_from_ms` has passed, if there is such a time: see `may_place`.

    `pending_miscounted`: an AM asked for a negative number of containers, or for more vcores than 32 bits hold. From
    then on what is pending does not add up, as in Hadoop.

    `watch` looks at what is booked, if somebody wants to know of mistakes (rm.scheduler.placement.commit_watch).
    """

    __slots__ = (
        "applications",
        "calculator",
        "cluster_resource",
        "epoch",
        "killables",
        "labels",
        "minimum_allocation",
        "nodes",
        "nodes_peak",
        "none",
        "notify",
        "now_ms",
        "partition_resource",
        "pending_miscounted",
        "placing_from_ms",
        "releases_remembered_until_ms",
        "revision",
        "root_usage",
        "settings",
        "started_in_legacy_mode",
        "watch",
    )

    def __init__(self, settings: CapacitySchedulerConfiguration, notify: Callable[[Notice], None]) -> None:
        self.settings = settings
        self.started_in_legacy_mode = settings.legacy_queue_mode
        self.notify = notify
        self.none = settings.resource_types.none
        self.minimum_allocation = settings.minimum_allocation
        self.calculator = make_calculator(settings.calculator, self.none)
        self.cluster_resource = self.none
        self.nodes: dict[NodeId, SchedulerNode] = {}
        self.nodes_peak = 0
        self.now_ms = 0
        self.epoch = 0
        self.placing_from_ms: int | None = None
        self.releases_remembered_until_ms = 0
        self.revision = 0
        self.pending_miscounted = False
        self.root_usage = ResourceUsage(self.none)
        self.watch: Callable[[Proposal], None] | None = None
        self.applications: dict[ApplicationId, SchedulerApplication] = {}
        self.killables = KillableContainers(self.applications, self.none)
        self.labels = NodeLabels(self.none, enabled=settings.node_labels_enabled)
        self.partition_resource = self.labels.resource_of

    def may_place(self) -> bool:
        """False while a restarted RM waits for nodes and masters (isSchedulerReadyForAllocatingContainers)."""
        if self.placing_from_ms is not None and self.now_ms > self.placing_from_ms:
            self.placing_from_ms = None
            self.revision += 1
        return self.placing_from_ms is None

    @property
    def node_count(self) -> int:
        """All nodes, of every partition."""
        return len(self.nodes)

    def nodes_in_hash_order(self) -> list[SchedulerNode]:
        """The nodes as Java's map gives them (ClusterNodeTracker.getAllNodes)."""
        return [self.nodes[node_id] for node_id in hash_order(self.nodes, node_hash, peak=self.nodes_peak)]

    def comparator(self) -> CapacityComparator:
        """How amounts of a new configuration are compared."""
        return CapacityComparator(self.calculator, self.cluster_resource, self.labels.resources())
