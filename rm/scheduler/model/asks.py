"""What one attempt asks for and has not got: Hadoop's AppSchedulingInfo with its LocalityAppPlacementAllocator.

Asks are grouped under a key (priority, allocation request id). Under a key there is a row for each resource name: a
host, a rack, `*`. A row says how many containers may be placed at that name; `*` says how many are wanted at all, so
only a change of the `*` row changes what is pending, and a key without one is never served. A container on a host
takes one off all three rows, one placed anywhere only off `*`: the AM is expected to send its rows anew.

A row for a name REPLACES the earlier one. A container that is lost before its AM has seen it is asked for again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from rm.scheduler.model.sorted_keys import SortedKeys
from rm.scheduler.model.usage import NO_LABEL, ResourceUsage
from yarn.asks import ANY, ResourceRequest
from yarn.ids import ApplicationId, ContainerId
from yarn.java.hash_order import hash_order, request_key_hash
from yarn.resource import Resource

if TYPE_CHECKING:
    from rm.scheduler.model.leaf_queue import LeafQueue


class NodeType(Enum):
    """How near to what was asked a container is."""

    NODE_LOCAL = "NODE_LOCAL"
    RACK_LOCAL = "RACK_LOCAL"
    OFF_SWITCH = "OFF_SWITCH"


class SchedulerKey(NamedTuple):
    """SchedulerRequestKey, in the order in which keys are served: keys of container updates come last."""

    is_update: bool
    priority: int
    allocation_request_id: int
    container_id: ContainerId | None = None

    @staticmethod
    def of(ask: ResourceRequest) -> SchedulerKey:
        return SchedulerKey(False, ask.priority, ask.allocation_request_id)


class AskTerms(NamedTuple):
    """What a row asks for, without the count; what a lost container is asked for again with."""

    resource_name: str
    capability: Resource
    relax_locality: bool
    label: str | None

    @property
    def partition(self) -> str:
        return self.label or NO_LABEL


class AskRow:
    """One resource name's row: `count` containers on these terms. `count` may be 0 in a row that was sent so."""

    __slots__ = ("count", "terms")

    def __init__(self, terms: AskTerms, count: int) -> None:
        self.terms = terms
        self.count = count


class KeyedAsks:
    """The rows of one key {resource name: row}. `partition` is that of the last `*` row."""

    __slots__ = ("partition", "rows")

    def __init__(self) -> None:
        self.rows: dict[str, AskRow] = {}
        self.partition = NO_LABEL

    def count(self, name: str) -> int:
        """Containers still wanted at `name`; 0 without a row."""
        row = self.rows.get(name)
        return row.count if row is not None else 0

    def may_relax(self, name: str) -> bool:
        """canDelayTo: no row for the name, or one that lets go of locality."""
        row = self.rows.get(name)
        return row is None or row.terms.relax_locality

    def put(self, terms: AskTerms, count: int) -> None:
        """Set a row; all rows of a key carry the label of its `*` row."""
        if terms.resource_name == ANY:
            previous = self.rows.get(ANY)
            if previous is None or previous.terms.label != terms.label:
                self._relabel(terms.label)
            self.partition = terms.partition
        else:
            any_row = self.rows.get(ANY)
            if any_row is not None and any_row.terms.label != terms.label:
                terms = terms._replace(label=any_row.terms.label)
        self.rows[terms.resource_name] = AskRow(terms, count)

    def take_one(self, name: str) -> AskTerms:
        """One container less at a host or rack; the row goes when it has none left."""
        row = self.rows[name]
        row.count -= 1
        if row.count == 0:
            del self.rows[name]
        return row.terms

    def _relabel(self, label: str | None) -> None:
        for name, row in self.rows.items():
            if name != ANY:
                row.terms = row.terms._replace(label=label)


class AppSchedulingInfo:
    """The asks of one attempt, kept in step with what its queue, its user and itself have pending.

    `keys` are those with a `*` row above 0, in the order in which they are served. `requested_partitions` are the
    labels of all `*` rows ever sent, those with count 0 too. `row_count` is the number of rows of all keys.
    """

    __slots__ = ("_application_id", "_keyed", "_usage", "_user", "keys", "leaf", "requested_partitions", "row_count")

    def __init__(self, application_id: ApplicationId, user: str, leaf: LeafQueue, usage: ResourceUsage) -> None:
        self._application_id = application_id
        self._user = user
        self._usage = usage
        self.leaf = leaf
        self.keys = SortedKeys()
        self.requested_partitions: dict[str, None] = {}
        self.row_count = 0
        self._keyed: dict[SchedulerKey, KeyedAsks] = {}

    def at(self, key: SchedulerKey) -> KeyedAsks | None:
        """The rows of a key; None if there are none left."""
        return self._keyed.get(key)

    def count(self, key: SchedulerKey, name: str = ANY) -> int:
        """Containers still wanted."""
        keyed = self._keyed.get(key)
        return keyed.count(name) if keyed is not None else 0

    def rows(self) -> Iterable[tuple[SchedulerKey, AskRow]]:
        """Every row with its key, for reports and moves."""
        return ((key, row) for key, keyed in self._keyed.items() for row in keyed.rows.values())

    def pending_on(self, partition: str, none: Resource) -> Resource:
        """What is wanted on a partition, added up from the asks (getTotalPendingRequestsPerPartition)."""
        total = none
        for key in self.keys:
            keyed = self._keyed[key]
            if keyed.partition == partition and ANY in keyed.rows:
                row = keyed.rows[ANY]
                total = total + row.terms.capability * max(row.count, 0)
        return total

    def update(self, asks: Sequence[ResourceRequest]) -> bool:
        """Replace rows; True if anything pending changed. In one call the last row for a name wins."""
        grouped: dict[SchedulerKey, dict[str, ResourceRequest]] = {}
        for ask in asks:
            grouped.setdefault(SchedulerKey.of(ask), {})[ask.resource_name] = ask
        changed = False
        for key in hash_order(grouped, key_hash):
            rows = [(_terms(ask), ask.count) for ask in grouped[key].values()]
            changed = self._put(key, rows) or changed
        return changed

    def put(self, key: SchedulerKey, rows: list[tuple[AskTerms, int]]) -> bool:
        """Replace rows of one key, such as that of a container's change; True if anything pending changed."""
        return self._put(key, rows)

    def restore(self, key: SchedulerKey, terms: Iterable[AskTerms]) -> None:
        """Ask again for a container that its AM never saw."""
        keyed = self._keyed.get(key)
        self._put(key, [(row, (keyed.count(row.resource_name) if keyed is not None else 0) + 1) for row in terms])

    def allocate(self, kind: NodeType, host: str, rack: str, key: SchedulerKey) -> tuple[AskTerms, ...]:
        """Take a placed container off its rows; returns what would ask for it again."""
        keyed = self._keyed[key]
        rows_before = len(keyed.rows)
        taken = self._take(kind, host, rack, key, keyed)
        self.row_count += len(keyed.rows) - rows_before
        return taken

    def move(self, target: LeafQueue) -> None:
        """What is pending counts in another leaf, and the user is active there instead (AppSchedulingInfo.move)."""
        for partition, amount in self._booked():
            self.leaf.change_pending(partition, -amount)
            target.change_pending(partition, amount)
        self.leaf.users.deactivate_application(self._user, self._application_id)
        if self.keys:
            target.users.activate_application(self._user, self._application_id)
        self.leaf = target

    def stop(self) -> None:
        """The attempt is over: nothing is pending any more. The user is not deactivated by this."""
        for partition, amount in self._booked():
            self.leaf.change_pending(partition, -amount)
        self.keys.clear()
        self._keyed.clear()
        self.row_count = 0

    def _booked(self) -> list[tuple[str, Resource]]:
        """What the queue has pending because of this attempt, by partition.

        Hadoop adds up the rows instead, which lack what negative counts have subtracted. The queues would keep that
        until the ResourceManager restarts: one call of an AM could stop the cluster from being served.
        """
        usage = self._usage
        return [(name, amount) for name in usage.partitions() if not (amount := usage.pending(name)).is_none()]

    def _put(self, key: SchedulerKey, rows: list[tuple[AskTerms, int]]) -> bool:
        keyed = self._keyed.get(key)
        if keyed is None:
            keyed = self._keyed[key] = KeyedAsks()
        rows_before = len(keyed.rows)
        changed: tuple[AskRow | None, AskTerms, int] | None = None
        for terms, count in rows:
            if count < 0:
                self.leaf.context.pending_miscounted = True
            last = keyed.rows.get(terms.resource_name)
            keyed.put(terms, count)
            if terms.resource_name == ANY:
                changed = (last, terms, count)
        self.row_count += len(keyed.rows) - rows_before
        if changed is None:
            return False
        last, terms, count = changed
        self.requested_partitions[terms.partition] = None
        self._change_keys(key, last.count if last is not None else 0, count)
        self._change_pending(last, terms, count)
        return True

    def _change_keys(self, key: SchedulerKey, last: int, count: int) -> None:
        """A key whose `*` row is gone is forgotten whole; one that comes alive makes its user active."""
        users = self.leaf.users
        if count <= 0:
            self.keys.discard(key)
            gone = self._keyed.pop(key, None)
            self.row_count -= len(gone.rows) if gone is not None else 0
            if not self.keys:
                users.deactivate_application(self._user, self._application_id)
        elif last <= 0:
            self.keys.add(key)
            users.activate_application(self._user, self._application_id)

    def _change_pending(self, last: AskRow | None, terms: AskTerms, count: int) -> None:
        """What the row had is taken off before what it has now is added: the sums may be cut in between."""
        if last is not None:
            self._book_pending(last.terms.partition, -(last.terms.capability * last.count))
        self._book_pending(terms.partition, terms.capability * count)

    def _book_pending(self, partition: str, amount: Resource) -> None:
        self.leaf.change_pending(partition, amount)
        self._usage.booked(partition).change_pending(amount)
        if self._application_id in self.leaf.active.asleep:
            self.leaf.active.wake(self._application_id)

    def _take(self, kind: NodeType, host: str, rack: str, key: SchedulerKey, keyed: KeyedAsks) -> tuple[AskTerms, ...]:
        if kind is NodeType.OFF_SWITCH:
            return (self._take_any(key, keyed),)
        if kind is NodeType.RACK_LOCAL:
            return keyed.take_one(rack), self._take_any(key, keyed)
        return keyed.take_one(host), keyed.take_one(rack), self._take_any(key, keyed)

    def _take_any(self, key: SchedulerKey, keyed: KeyedAsks) -> AskTerms:
        row = keyed.rows[ANY]
        row.count -= 1
        if row.count == 0:
            self.keys.discard(key)
            if not self.keys:
                self.leaf.users.deactivate_application(self._user, self._application_id)
            del keyed.rows[ANY]
            if not keyed.rows:
                del self._keyed[key]
        terms = row.terms
        self._book_pending(terms.label or NO_LABEL, -terms.capability)
        return terms


def _terms(ask: ResourceRequest) -> AskTerms:
    return AskTerms(ask.resource_name, ask.capability, ask.relax_locality, ask.label)


def key_hash(key: SchedulerKey) -> int:
    """SchedulerRequestKey.hashCode."""
    return request_key_hash(key.priority, key.allocation_request_id, key.container_id)
