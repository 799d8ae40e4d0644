"""The state that the selectors of one round share: copies of the queues, what may still be preempted, the victims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from msgspec import Struct

from rm.scheduler.capacity.managed_queues import ManagedParentQueue
from rm.scheduler.config.monitors import PreemptionSettings
from rm.scheduler.model.application import ApplicationTable
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.preemption.temp_queue_per_partition import TempQueuePerPartition, clone_tree
from yarn.ids import ApplicationAttemptId, ContainerId, attempt_hash, container_hash
from yarn.java.hash_order import hash_order, string_hash
from yarn.nodes import NO_LABEL
from yarn.protocols.inspection import QueueInRound
from yarn.resource import Resource
from yarn.resource_calculator import ResourceCalculator, multiplied
from yarn.settings.scheduler import ROOT

YARN_RUNTIME_EXCEPTION = "org.apache.hadoop.yarn.exceptions.YarnRuntimeException"


class PreemptionRoundFailed(Exception):
    """The round ends where Hadoop's throws `java_class`. Reservations that were dropped before are not restored."""

    def __init__(self, java_class: str, message: str) -> None:
        super().__init__(message)
        self.java_class = java_class


class PreemptionReason(Enum):
    """Why a victim was chosen; each selector has its own reason."""

    GUARANTEE = "its queue uses more than it is entitled to"
    BALANCE = "queues above their guarantees are being balanced"
    RESERVATION = "a reservation on its node is waiting for the resources"
    QUEUE_PRIORITY = "a reservation of a queue of higher priority is waiting for the resources"
    INTRA_QUEUE = "another application of its queue has precedence"


class Victim(Struct, frozen=True):
    """A container to preempt. `serves`: the path of the queue that is to get the resources; "" if not known."""

    container: RMContainer
    reason: PreemptionReason
    serves: str


class Victims:
    """Victims by the attempt for which their container was allocated, each once."""

    __slots__ = ("_by_attempt",)

    def __init__(self) -> None:
        self._by_attempt: dict[ApplicationAttemptId, dict[ContainerId, Victim]] = {}

    def __contains__(self, container: RMContainer) -> bool:
        return container.id in self._by_attempt.get(container.attempt_id, ())

    def __iter__(self) -> Iterator[Victim]:
        """Iterate in the order of Hadoop's HashMap of HashSets."""
        for attempt_id in hash_order(self._by_attempt, attempt_hash):
            chosen = self._by_attempt[attempt_id]
            for container_id in hash_order(chosen, container_hash):
                yield chosen[container_id]

    @property
    def is_empty(self) -> bool:
        return not self._by_attempt

    def of_attempt(self, attempt_id: ApplicationAttemptId) -> Iterable[Victim]:
        """The victims of one attempt."""
        return self._by_attempt.get(attempt_id, {}).values()

    def add(self, victim: Victim) -> None:
        container = victim.container
        self._by_attempt.setdefault(container.attempt_id, {})[container.id] = victim


class PreemptionRound:
    """The state of one round.

    `allowed`: what the selectors may still preempt in total. `killable_ids`: containers that need not be chosen again,
    because they are killed as soon as their resources are needed (lazy preemption). `reserved_to_kill`: reservations to
    drop before the next selector runs. `under_served` {partition: paths of queues that want more than they should
    have}, in the order they were found. `figures` {victim: its queue and the queue that it serves, as they were when it
    was chosen}.
    """

    __slots__ = (
        "_queues",
        "allowed",
        "applications",
        "calculator",
        "cluster",
        "context",
        "figures",
        "killable_ids",
        "leaf_paths",
        "none",
        "partitions",
        "reserved_to_kill",
        "settings",
        "under_served",
        "victims",
    )

    def __init__(
        self,
        context: SchedulerContext,
        root: CSQueue,
        applications: ApplicationTable,
        *,
        killable: dict[str, dict[str, Resource]],
        killable_ids: frozenset[ContainerId],
    ) -> None:
        self.context = context
        self.applications = applications
        self.settings: PreemptionSettings = context.settings.preemption
        self.calculator: ResourceCalculator = context.calculator
        self.none = context.none
        self.cluster = context.cluster_resource
        self.killable_ids = killable_ids
        labels = [label.name for label in context.labels.cluster_labels()]
        self.partitions = hash_order([*labels, NO_LABEL], string_hash)
        self._queues: dict[str, dict[str, TempQueuePerPartition]] = {}
        for partition in self.partitions:
            self._note(clone_tree(root, partition, context, killable))
        passes_over = context.settings.release.passes_over_childless_parents
        self.leaf_paths = _leaf_paths(self.queue_at(ROOT, NO_LABEL), with_managed_parents=not passes_over)
        self.allowed = multiplied(self.cluster, self.settings.total_per_round)
        self.under_served: dict[str, dict[str, None]] = {}
        self.victims = Victims()
        self.figures: dict[ContainerId, tuple[QueueInRound, QueueInRound | None]] = {}
        self.reserved_to_kill: list[RMContainer] = []

    def queue_at(self, path: str, partition: str) -> TempQueuePerPartition:
        """The round's copy of a queue on a partition."""
        return self._queues[path][partition]

    def find_queue(self, path: str, partition: str) -> TempQueuePerPartition | None:
        """Like queue_at; None for a queue or partition that the round does not know."""
        return self._queues.get(path, {}).get(partition)

    def known_queue(self, name: str, partition: str) -> TempQueuePerPartition:
        """Like queue_at, for the queue name in a container, which may be a short name."""
        queue = self.find_queue(name, partition)
        if queue is None:
            text = f"This shouldn't happen, cannot find TempQueuePerPartition for queueName={name}"
            raise PreemptionRoundFailed(YARN_RUNTIME_EXCEPTION, text)
        return queue

    def partitions_of(self, path: str) -> Iterable[TempQueuePerPartition]:
        """A queue's copies on all partitions."""
        return self._queues[path].values()

    def note_under_served(self, queue: TempQueuePerPartition) -> None:
        """Record that the queue wants more than it should have."""
        self.under_served.setdefault(queue.partition, {})[queue.path] = None

    def most_in_need(self, partition: str) -> str:
        """The path of the most under-served leaf on the partition, which plain victims serve; "" if there is none."""
        lacking = [
            queue
            for path in self.under_served.get(partition, ())
            if (queue := self.queue_at(path, partition)).leaf is not None
            and self.calculator.greater(queue.whole, queue.ideal, queue.used)
        ]
        return lacking[0].path if lacking else ""

    def partition_of(self, container: RMContainer) -> str:
        """The partition of the container's node."""
        return self.context.nodes[container.node_id].partition

    def obtainable(self, path: str) -> dict[str, Resource]:
        """{partition: the amount to preempt in a leaf} (getResToObtainByPartitionForLeafQueue)."""
        return {
            leaf.partition: leaf.to_obtain
            for leaf in self.partitions_of(path)
            if not leaf.is_protected and self.calculator.is_some(self.cluster, leaf.to_obtain)
        }

    def deduct_victims(self) -> None:
        """Subtract what earlier selectors chose (deductPreemptableResourcesBasedSelectedCandidates)."""
        for victim in self.victims:
            container = victim.container
            node = self.context.nodes.get(container.node_id)
            if node is None:
                continue
            queue = self.known_queue(container.queue, node.partition)
            queue.deduct(self.calculator, container.resource)
            for application in queue.apps:
                application.deduct(self.calculator, queue.whole, container.resource)

    def try_take(self, victim: Victim, wanted: dict[str, Resource], chosen: Victims, *, conservative: bool) -> bool:
        """Choose the container, and reduce `wanted` {partition: resource} and `allowed`, if it contributes; True if so.

        `conservative`: only while every resource type is wanted. A container may be larger than what is still wanted.
        Source: tryPreemptContainerAndDeductResToObtain.
        """
        container = victim.container
        partition = self.partition_of(container)
        if container in self.victims or partition not in wanted:
            return False
        # -1, because a type of which nothing is wanted must not count as satisfied.
        lacking = wanted[partition]
        lacking = wanted[partition] = lacking.with_values(value or -1 for value in lacking.values())
        calculator, size = self.calculator, container.resource
        if not (calculator.is_any_above_zero(lacking) and calculator.fits_in(size, self.allowed)):
            return False
        if conservative:
            helps = not calculator.is_any_zero_or_negative(lacking)
        else:
            before, after = self._positive(lacking), self._positive(lacking - size)
            helps = calculator.less(self.cluster, after, before)
        if not helps:
            return False
        wanted[partition] = lacking - size
        self.allowed = self.allowed - size
        if calculator.less_or_equal(self.cluster, wanted[partition], self.none):
            del wanted[partition]
        self.choose(victim, chosen)
        return True

    def choose(self, victim: Victim, chosen: Victims) -> None:
        """Add a victim to the victims of its selector and to those of the round."""
        self.victims.add(victim)
        chosen.add(victim)
        self._note_figures(victim)

    def _note_figures(self, victim: Victim) -> None:
        """Keep the numbers of the moment: later selectors of the round compute their own."""
        container = victim.container
        partition = self.partition_of(container)
        lost = self.find_queue(container.queue, partition)
        served = self.find_queue(victim.serves, partition)
        if lost is not None:
            self.figures[container.id] = (
                lost.figures(),
                served.figures() if served is not None and served is not lost else None,
            )

    def _positive(self, resource: Resource) -> Resource:
        return resource.with_values(max(value, 0) for value in resource.values())

    def _note(self, queue: TempQueuePerPartition) -> None:
        for child in queue.children:
            self._note(child)
        self._queues.setdefault(queue.path, {})[queue.partition] = queue


def _leaf_paths(root: TempQueuePerPartition, *, with_managed_parents: bool) -> list[str]:
    """The paths of the leaves, in the order in which Hadoop's nested hash sets iterate (getLeafQueueNames).

    `with_managed_parents`: a managed parent without leaves counts as a leaf, on which the round then fails.
    """
    if root.leaf is not None or (with_managed_parents and _is_childless_managed_parent(root)):
        return [root.path]
    paths = [path for child in root.children for path in _leaf_paths(child, with_managed_parents=with_managed_parents)]
    return hash_order(paths, string_hash)


def _is_childless_managed_parent(queue: TempQueuePerPartition) -> bool:
    return not queue.children and isinstance(queue.queue, ManagedParentQueue)
