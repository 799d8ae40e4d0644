"""One round of the policy: the copies of all queues, what may still be taken, what was chosen (its shared state)."""

from __future__ import annotations

from collections.abc import Iterable

from rm.scheduler.config.queue_keys import ROOT
from rm.scheduler.model.application import ApplicationTable
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.resource_calculator import ResourceCalculator, multiplied
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.model.usage import NO_LABEL
from rm.scheduler.preemption.configuration import PreemptionSettings
from rm.scheduler.preemption.temp_queue import TempQueue, clone_tree
from rm.scheduler.preemption.victims import Victim, Victims
from yarn.ids import ContainerId
from yarn.java.hash_order import hash_order, string_hash
from yarn.resource import Resource

YARN_RUNTIME_EXCEPTION = "org.apache.hadoop.yarn.exceptions.YarnRuntimeException"


class PreemptionRoundFailed(Exception):
    """The round breaks off where Hadoop's throws; what it had ordered before is carried out.

    `java_class`: what Hadoop throws.
    """

    def __init__(self, java_class: str, message: str) -> None:
        super().__init__(message)
        self.java_class = java_class


class PreemptionRound:
    """`allowed`: what the selectors may still take together. `killable_ids`: containers that need not be chosen
    again, for they end as soon as somebody needs the room. `reserved_to_kill` are reservations to be dropped
    before the next selector runs.

    `under_served` {partition: paths of queues that want more than they should have}, in the order they were found.
    """

    __slots__ = (
        "_queues",
        "allowed",
        "applications",
        "calculator",
        "cluster",
        "context",
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
        self._queues: dict[str, dict[str, TempQueue]] = {}
        for partition in self.partitions:
            self._note(clone_tree(root, partition, killable=killable))
        self.leaf_paths = _leaf_paths(self.queue_at(ROOT, NO_LABEL))
        self.allowed = multiplied(self.cluster, self.settings.total_per_round)
        self.under_served: dict[str, dict[str, None]] = {}
        self.victims = Victims()
        self.reserved_to_kill: list[RMContainer] = []

    def queue_at(self, path: str, partition: str) -> TempQueue:
        """A queue's copy on a partition."""
        return self._queues[path][partition]

    def find_queue(self, path: str, partition: str) -> TempQueue | None:
        """The same; None for a queue or partition that the round does not know."""
        return self._queues.get(path, {}).get(partition)

    def known_queue(self, name: str, partition: str) -> TempQueue:
        """The same, by the name that a container or application has of its queue, which may be too short."""
        queue = self.find_queue(name, partition)
        if queue is None:
            text = f"This shouldn't happen, cannot find TempQueuePerPartition for queueName={name}"
            raise PreemptionRoundFailed(YARN_RUNTIME_EXCEPTION, text)
        return queue

    def partitions_of(self, path: str) -> Iterable[TempQueue]:
        """A queue's copies on all partitions."""
        return self._queues[path].values()

    def note_under_served(self, queue: TempQueue) -> None:
        """The queue wants more than it should have."""
        self.under_served.setdefault(queue.partition, {})[queue.path] = None

    def most_in_need(self, partition: str) -> str:
        """The path of the leaf that misses most on the partition: whom plain victims serve; "" if none does."""
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

    # What of a leaf is to be had

    def obtainable(self, path: str) -> dict[str, Resource]:
        """{partition: what is to be taken of a leaf} (getResToObtainByPartitionForLeafQueue)."""
        return {
            leaf.partition: leaf.to_obtain
            for leaf in self.partitions_of(path)
            if not leaf.is_protected and self.calculator.is_some(self.cluster, leaf.to_obtain)
        }

    def deduct_victims(self) -> None:
        """What earlier selectors chose need not be taken again (deductPreemptableResourcesBasedSelectedCandidates)."""
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
        """Choose the container if that brings what is `wanted` {partition: resource} nearer, and lower both bounds.

        `conservative`: only while every type is wanted (tryPreemptContainerAndDeductResToObtain). A container may be
        larger than what is still wanted.
        """
        container = victim.container
        partition = self.partition_of(container)
        if container in self.victims or partition not in wanted:
            return False
        # A type of which nothing is wanted must not pass for one that is satisfied.
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
        """Note a victim, for its selector and for the round."""
        self.victims.add(victim)
        chosen.add(victim)

    def _positive(self, resource: Resource) -> Resource:
        return resource.with_values(max(value, 0) for value in resource.values())

    def _note(self, queue: TempQueue) -> None:
        for child in queue.children:
            self._note(child)
        self._queues.setdefault(queue.path, {})[queue.partition] = queue


def _leaf_paths(root: TempQueue) -> list[str]:
    """The leaves in the order of Java's hash sets, one in another up the tree (getLeafQueueNames)."""
    if not root.children and not isinstance(root.queue, ParentQueue):
        return [root.path]
    return hash_order([path for child in root.children for path in _leaf_paths(child)], string_hash)
