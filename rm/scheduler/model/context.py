"""State shared by all parts of one scheduler: the calculator, the settings, the cluster's size by partition."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from rm.scheduler.config.checks import CapacityComparator
from rm.scheduler.config.configuration import CapacitySchedulerConfiguration, make_calculator
from rm.scheduler.model.ended_containers import EndedContainers
from rm.scheduler.model.health import SchedulerHealth
from rm.scheduler.model.killable import KillableContainers
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.node_labels import NodeLabels
from rm.scheduler.model.notices import Notice
from rm.scheduler.model.requests import SchedulerKey
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.model.usage import ResourceUsage
from yarn.ids import ContainerId, NodeId, node_hash
from yarn.java.hash_order import hash_order
from yarn.resource import Resource


class SchedulingMode(Enum):
    """Which requests a node visit serves: those for its partition, or, on a shared partition, those without a label."""

    RESPECT_PARTITION_EXCLUSIVITY = "RESPECT_PARTITION_EXCLUSIVITY"
    IGNORE_PARTITION_EXCLUSIVITY = "IGNORE_PARTITION_EXCLUSIVITY"


RESPECT = SchedulingMode.RESPECT_PARTITION_EXCLUSIVITY
IGNORE = SchedulingMode.IGNORE_PARTITION_EXCLUSIVITY


class RepeatedCounts:
    """The counts of applications that a walk over the nodes has raised without an effect; each is given as
    {key: count} and the key.

    If the walk changed nothing else, the next one would raise them as often.
    """

    __slots__ = ("_below", "_raised", "_restarted")

    def __init__(self) -> None:
        # All by the id of the counts and the key. `_below`: the next decision needs a count of at least this.
        self._raised: dict[tuple[int, SchedulerKey], tuple[dict[SchedulerKey, int], SchedulerKey, int]] = {}
        self._below: dict[tuple[int, SchedulerKey], int] = {}
        self._restarted: set[tuple[int, SchedulerKey]] = set()

    def note_raised(self, counts: dict[SchedulerKey, int], key: SchedulerKey, below: int | None) -> None:
        """Note that a count was raised by 1. No decision depends on it below `below`; None: no decision ever does."""
        place = (id(counts), key)
        known = self._raised.get(place)
        self._raised[place] = (counts, key, known[2] + 1 if known is not None else 1)
        if below is not None:
            self._below[place] = below

    def note_restarted(self, counts: dict[SchedulerKey, int], key: SchedulerKey) -> None:
        """Note that a count was set to 0, so it is the same after each walk."""
        self._restarted.add((id(counts), key))

    def walks_without_effect(self) -> int | None:
        """The number of further walks after which a count may be high enough for a decision; None = never."""
        left: int | None = None
        for place, below in self._below.items():
            counts, key, times = self._raised[place]
            walks = max(0, (below - 1 - counts.get(key, 0)) // times)
            left = walks if left is None else min(left, walks)
        return left

    def raise_again(self, walks: int) -> None:
        """Raise the counts as this many further walks would."""
        for place, (counts, key, times) in self._raised.items():
            if key in counts and place not in self._restarted:
                counts[key] += times * walks

    def clear(self) -> None:
        self._raised.clear()
        self._below.clear()
        self._restarted.clear()


class SchedulerContext:
    """State shared by the queues, users and applications of one scheduler.

    `nodes_peak`: the largest number of `nodes` so far. `cluster_resource`: the sum of `nodes`. `root_usage`: the root
    queue's usage. `calculator` and `minimum_allocation` never change; `settings` are those of the last start or
    refresh. `started_in_legacy_mode`: the queue mode at the start, which some computations keep after
    a refresh to the other mode (CapacitySchedulerQueueCapacityHandler.isLegacyQueueMode). `killables`: containers to
    kill as soon as another queue needs their resources. `temporaries`: temporary containers whose update is done, until
    they are released.

    `change_count` counts every change that could affect a node visit. If it stays the same during a visit, the visit
    placed nothing and changed nothing (rm.scheduler.placement.memo relies on that). `confined_count` counts those of
    them that affect offers to one leaf only (CSQueue.note_change). `repeated`, only with asynchronous scheduling: the
    counts that the last walk has raised without an effect; `repeated_count`: the number of all changes that the next
    walk would repeat without an effect. `stored_limit_count` counts changes of limits that are stored for the headroom,
    AM limits and reports, on which no visit depends. `node_check_count` counts the checks that depended on the node
    which was offered, and not only on its partition.

    `epoch` is the number of ResourceManagers that recovered from one store; it is part of container ids. If
    `placing_from_ms` is set, nothing is placed until that time has passed: see `may_place`.

    `pending_miscounted`: an AM requested a negative number of containers, or more vcores than 32 bits hold. From then
    on the pending amounts are wrong, as in Hadoop. `containers_miscounted`: a container was made smaller, or
    killed while its application was moved. From then on queues count too few containers, as in Hadoop.

    `health`: None unless reports need it. `ended`: the last containers that ended, for explanations.
    """

    __slots__ = (
        "calculator",
        "change_count",
        "cluster_resource",
        "confined_count",
        "containers_miscounted",
        "ended",
        "epoch",
        "health",
        "killables",
        "labels",
        "minimum_allocation",
        "node_check_count",
        "nodes",
        "nodes_peak",
        "none",
        "notify",
        "now_ms",
        "pending_miscounted",
        "placing_from_ms",
        "releases_remembered_until_ms",
        "repeated",
        "repeated_count",
        "root_usage",
        "settings",
        "started_in_legacy_mode",
        "stored_limit_count",
        "temporaries",
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
        self.ended = EndedContainers()
        self.health: SchedulerHealth | None = None
        self.placing_from_ms: int | None = None
        self.releases_remembered_until_ms = 0
        self.change_count = 0
        self.confined_count = 0
        self.node_check_count = 0
        self.repeated: RepeatedCounts | None = None
        self.repeated_count = 0
        self.stored_limit_count = 0
        self.pending_miscounted = False
        self.containers_miscounted = False
        self.root_usage = ResourceUsage(self.none)
        self.killables = KillableContainers(self.none)
        self.temporaries: dict[ContainerId, RMContainer] = {}
        self.labels = NodeLabels(self.none, enabled=settings.node_labels_enabled)

    def partition_resource(self, partition: str) -> Resource:
        """The sum of the partition's nodes; one that is removed is subtracted before its containers are ended."""
        return self.labels.resource_of(partition)

    def note_change(self) -> None:
        """Count a change that could affect a node visit, and offers to any leaf."""
        self.change_count += 1

    @property
    def shared_change_count(self) -> int:
        """The number of changes that could affect offers to any leaf."""
        return self.change_count - self.confined_count

    def note_node_check(self) -> None:
        """Count a check whose outcome may be another one for another node of the partition."""
        self.node_check_count += 1

    def note_repeated(self, counts: dict[SchedulerKey, int], key: SchedulerKey, below: int | None = None) -> None:
        """Note that the last change raised a count, which has no effect while it is less than `below`, if that is
        given.
        """
        assert self.repeated is not None
        self.repeated.note_raised(counts, key, below)
        self.repeated_count += 1

    @property
    def progress(self) -> int:
        """The number of changes on which a decision may depend."""
        return self.change_count - self.repeated_count

    def may_place(self) -> bool:
        """False while a restarted RM waits for nodes and AMs (isSchedulerReadyForAllocatingContainers)."""
        if self.placing_from_ms is not None and self.now_ms > self.placing_from_ms:
            self.placing_from_ms = None
            self.note_change()
        return self.placing_from_ms is None

    @property
    def node_count(self) -> int:
        """The number of nodes in all partitions."""
        return len(self.nodes)

    def nodes_in_hash_order(self) -> list[SchedulerNode]:
        """The nodes in the order of Java's map (ClusterNodeTracker.getAllNodes)."""
        return [self.nodes[node_id] for node_id in hash_order(self.nodes, node_hash, peak=self.nodes_peak)]

    def comparator(self) -> CapacityComparator:
        """Compares the amounts of a new configuration, by the present size of the cluster."""
        return CapacityComparator(self.calculator, self.cluster_resource, self.labels.resources())
