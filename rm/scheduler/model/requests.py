"""The outstanding requests of one attempt: Hadoop's AppSchedulingInfo with its LocalityAppPlacementAllocator.

Requests are grouped by key (priority, allocation request id). A key has one row for each resource name: a host, a rack,
`*`. A row holds how many containers may be placed at that name; the `*` row holds how many are requested in total. So
only a change of the `*` row changes what is pending, and a key without that row is never served. A node-local container
is subtracted from all three rows, an off-switch one only from `*`: the AM is expected to send its other rows again.

A new row for a name REPLACES the earlier one. A container that is lost before its AM has seen it is requested again.

This module does not know about queues. Each method that changes requests returns the resulting changes of demand, in
order, and rm.scheduler.capacity.booking applies them to the queues and the user.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

from rm.scheduler.model.usage import ResourceUsage
from yarn.containers import ANY, ResourceRequest
from yarn.ids import ContainerId, container_hash
from yarn.java.hash_order import hash_order, long_hash
from yarn.nodes import NO_LABEL
from yarn.resource import Resource

CHUNK_MAX = 512
"""Keys in one chunk of SortedKeys; a chunk that grows larger is split in half."""


class NodeType(Enum):
    """The locality of a container: how close it is to the requested host."""

    NODE_LOCAL = "NODE_LOCAL"
    RACK_LOCAL = "RACK_LOCAL"
    OFF_SWITCH = "OFF_SWITCH"


class SchedulerKey(NamedTuple):
    """The key of a group of requests (SchedulerRequestKey).

    Keys sort in the order in which they are served; those of container updates come last.
    """

    is_update: bool
    priority: int
    allocation_request_id: int
    container_id: ContainerId | None = None

    @staticmethod
    def of(request: ResourceRequest) -> SchedulerKey:
        return SchedulerKey(False, request.priority, request.allocation_request_id)


class RequestTerms(NamedTuple):
    """The fields of a row except its count. A lost container is requested again with the same terms."""

    resource_name: str
    capability: Resource
    relax_locality: bool
    label: str | None

    @property
    def partition(self) -> str:
        return self.label or NO_LABEL


class RequestRow:
    """The row of one resource name: `count` containers with these terms; 0 if the AM sent the row with 0."""

    __slots__ = ("count", "terms")

    def __init__(self, terms: RequestTerms, count: int) -> None:
        self.terms = terms
        self.count = count


class RequestsOfKey:
    """The rows of one key {resource name: row}. `partition` is that of the last `*` row.

    `since_ms`: when the AM last sent a row with new terms. What was observed before says nothing about these rows.
    """

    __slots__ = ("partition", "rows", "since_ms")

    def __init__(self, since_ms: int = 0) -> None:
        self.rows: dict[str, RequestRow] = {}
        self.partition = NO_LABEL
        self.since_ms = since_ms

    def count(self, name: str) -> int:
        """Containers still requested at `name`; 0 without a row."""
        row = self.rows.get(name)
        return row.count if row is not None else 0

    def may_relax(self, name: str) -> bool:
        """True if the name has no row, or one that relaxes locality (canDelayTo)."""
        row = self.rows.get(name)
        return row is None or row.terms.relax_locality

    def put(self, terms: RequestTerms, count: int) -> None:
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
        self.rows[terms.resource_name] = RequestRow(terms, count)

    def take_one(self, name: str) -> RequestTerms:
        """Subtract one container at a host or rack; the row is removed when its count reaches 0."""
        row = self.rows[name]
        row.count -= 1
        if row.count == 0:
            del self.rows[name]
        return row.terms

    def _relabel(self, label: str | None) -> None:
        for name, row in self.rows.items():
            if name != ANY:
                row.terms = row.terms._replace(label=label)


class PendingChanged(NamedTuple):
    """The amount pending on a partition changed by `amount`."""

    partition: str
    amount: Resource


class DemandChange(Enum):
    """STARTED: one more key has pending requests. ENDED: no key has pending requests any more.

    NEGATIVE: an AM sent a negative count, after which Hadoop's totals of pending resources are wrong.
    """

    STARTED = "STARTED"
    ENDED = "ENDED"
    NEGATIVE = "NEGATIVE"


Change: TypeAlias = PendingChanged | DemandChange


class AppSchedulingInfo:
    """The requests of one attempt; its pending amounts are kept in `usage`.

    `keys` are those whose `*` row is above 0, in the order in which they are served. `requested_partitions` are the
    labels of all `*` rows ever sent, including those with count 0. `row_count` is the number of rows of all keys.
    """

    __slots__ = ("_by_key", "_usage", "keys", "requested_partitions", "row_count")

    def __init__(self, usage: ResourceUsage) -> None:
        self._usage = usage
        self.keys = SortedKeys()
        self.requested_partitions: dict[str, None] = {}
        self.row_count = 0
        self._by_key: dict[SchedulerKey, RequestsOfKey] = {}

    def at(self, key: SchedulerKey) -> RequestsOfKey | None:
        """The rows of a key; None if there are none left."""
        return self._by_key.get(key)

    def count(self, key: SchedulerKey, name: str = ANY) -> int:
        """Containers still requested at `name`; 0 without a row."""
        of_key = self._by_key.get(key)
        return of_key.count(name) if of_key is not None else 0

    def rows(self) -> Iterable[tuple[SchedulerKey, RequestRow]]:
        """Every row with its key, for reports and moves."""
        return ((key, row) for key, of_key in self._by_key.items() for row in of_key.rows.values())

    def pending_on(self, partition: str, none: Resource) -> Resource:
        """The amount requested on a partition, added up from the rows (getTotalPendingRequestsPerPartition)."""
        total = none
        for key in self.keys:
            of_key = self._by_key[key]
            if of_key.partition == partition and ANY in of_key.rows:
                row = of_key.rows[ANY]
                total = total + row.terms.capability * max(row.count, 0)
        return total

    def booked_pending(self) -> list[PendingChanged]:
        """The attempt's share of the pending amounts of its queue, by partition.

        Hadoop adds up the rows instead, which no longer contain what negative counts subtracted. The queues would then
        keep the difference until the RM restarts, and a single call of an AM could stop all placement in the cluster.
        """
        usage = self._usage
        amounts = ((name, usage.pending(name)) for name in usage.partitions())
        return [PendingChanged(name, amount) for name, amount in amounts if not amount.is_none()]

    def requested_since_ms(self) -> int:
        """The time at which the oldest pending request was sent; 0 if nothing is pending."""
        return min((self._by_key[key].since_ms for key in self.keys), default=0)

    def update(self, requests: Sequence[ResourceRequest], now_ms: int = 0) -> tuple[bool, list[Change]]:
        """Replace rows; returns (True if a `*` row was replaced, changes).

        If a call has two rows for a name, the last one counts.
        """
        grouped: dict[SchedulerKey, dict[str, ResourceRequest]] = {}
        for request in requests:
            grouped.setdefault(SchedulerKey.of(request), {})[request.resource_name] = request
        is_changed, changes = False, list[Change]()
        for key in hash_order(grouped, key_hash):
            rows = [(_terms(request), request.count) for request in grouped[key].values()]
            is_changed = self._put(key, rows, changes, now_ms) or is_changed
        return is_changed, changes

    def put(self, key: SchedulerKey, rows: list[tuple[RequestTerms, int]], now_ms: int = 0) -> list[Change]:
        """Replace rows of one key, for example that of a container update."""
        changes: list[Change] = []
        self._put(key, rows, changes, now_ms)
        return changes

    def restore(self, key: SchedulerKey, terms: Iterable[RequestTerms], now_ms: int = 0) -> list[Change]:
        """Request again a container that was lost before its AM saw it."""
        return self.put(key, [(row, self.count(key, row.resource_name) + 1) for row in terms], now_ms)

    def allocate(
        self, kind: NodeType, host: str, rack: str, key: SchedulerKey
    ) -> tuple[tuple[RequestTerms, ...], list[Change]]:
        """Subtract a placed container from its rows; returns (the terms to request it again if lost, changes)."""
        of_key = self._by_key[key]
        rows_before = len(of_key.rows)
        changes: list[Change] = []
        names = () if kind is NodeType.OFF_SWITCH else (rack,) if kind is NodeType.RACK_LOCAL else (host, rack)
        terms = [of_key.take_one(name) for name in names]
        terms.append(self._take_any(key, of_key, changes))
        self.row_count += len(of_key.rows) - rows_before
        return tuple(terms), changes

    def stop(self) -> list[PendingChanged]:
        """Stop an ended attempt; returns the pending amounts to subtract from its queues. `usage` is unchanged."""
        booked = self.booked_pending()
        self.keys.clear()
        self._by_key.clear()
        self.row_count = 0
        return booked

    def _put(self, key: SchedulerKey, rows: list[tuple[RequestTerms, int]], changes: list[Change], now_ms: int) -> bool:
        of_key = self._by_key.get(key)
        if of_key is None:
            of_key = self._by_key[key] = RequestsOfKey(now_ms)
        rows_before = len(of_key.rows)
        changed: tuple[RequestRow | None, RequestTerms, int] | None = None
        for terms, count in rows:
            if count < 0:
                changes.append(DemandChange.NEGATIVE)
            last = of_key.rows.get(terms.resource_name)
            if last is None or last.terms != terms:
                of_key.since_ms = now_ms
            of_key.put(terms, count)
            if terms.resource_name == ANY:
                changed = (last, terms, count)
        self.row_count += len(of_key.rows) - rows_before
        if changed is None:
            return False
        last, terms, count = changed
        self.requested_partitions[terms.partition] = None
        self._change_keys(key, last.count if last is not None else 0, count, changes)
        # Subtract the old row before adding the new one, as Hadoop does: a sum may be cut to 32 bits in between.
        if last is not None:
            self._change_pending(last.terms.partition, -(last.terms.capability * last.count), changes)
        self._change_pending(terms.partition, terms.capability * count, changes)
        return True

    def _change_keys(self, key: SchedulerKey, last: int, count: int, changes: list[Change]) -> None:
        """Update the set of served keys. If a key's `*` row reaches 0, all rows of the key are dropped."""
        if count <= 0:
            self.keys.discard(key)
            gone = self._by_key.pop(key, None)
            self.row_count -= len(gone.rows) if gone is not None else 0
            if not self.keys:
                changes.append(DemandChange.ENDED)
        elif last <= 0:
            self.keys.add(key)
            changes.append(DemandChange.STARTED)

    def _change_pending(self, partition: str, amount: Resource, changes: list[Change]) -> None:
        self._usage.booked(partition).change_pending(amount)
        changes.append(PendingChanged(partition, amount))

    def _take_any(self, key: SchedulerKey, of_key: RequestsOfKey, changes: list[Change]) -> RequestTerms:
        row = of_key.rows[ANY]
        row.count -= 1
        if row.count == 0:
            self.keys.discard(key)
            if not self.keys:
                changes.append(DemandChange.ENDED)
            del of_key.rows[ANY]
            if not of_key.rows:
                del self._by_key[key]
        terms = row.terms
        self._change_pending(terms.label or NO_LABEL, -terms.capability, changes)
        return terms


class SortedKeys:
    """A set of keys that iterates in order. Neither add nor discard may be called during an iteration.

    A single sorted list would move half of its entries for each key added or removed: 100,000 distinct priorities in
    one call took minutes. Here the keys are split into chunks of at most CHUNK_MAX keys: finding the chunk and the
    position in it costs O(log n) comparisons, and only the entries of that chunk move.
    """

    __slots__ = ("_chunks", "_count")

    def __init__(self) -> None:
        self._chunks: list[list[SchedulerKey]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[SchedulerKey]:
        return chain.from_iterable(self._chunks)

    def add(self, key: SchedulerKey) -> None:
        """Insert a key; a no-op for one that is in the set."""
        chunks = self._chunks
        if not chunks:
            chunks.append([key])
            self._count = 1
            return
        place = self._chunk_of(key)
        chunk = chunks[place]
        index = bisect_left(chunk, key)
        if index < len(chunk) and chunk[index] == key:
            return
        chunk.insert(index, key)
        self._count += 1
        if len(chunk) > CHUNK_MAX:
            middle = len(chunk) // 2
            chunks.insert(place + 1, chunk[middle:])
            del chunk[middle:]

    def discard(self, key: SchedulerKey) -> None:
        """Remove a key; a no-op for one that is not in the set."""
        if not self._chunks:
            return
        place = self._chunk_of(key)
        chunk = self._chunks[place]
        index = bisect_left(chunk, key)
        if index < len(chunk) and chunk[index] == key:
            del chunk[index]
            self._count -= 1
            if not chunk:
                del self._chunks[place]

    def clear(self) -> None:
        self._chunks.clear()
        self._count = 0

    def after(self, key: SchedulerKey | None, count: int) -> list[SchedulerKey]:
        """The first `count` keys after `key`, which need not be in the set; None: start with the first key."""
        if key is None or not self._chunks:
            return list(islice(self, count))
        place = self._chunk_of(key)
        chunk = self._chunks[place]
        rest = islice(chunk, bisect_right(chunk, key), None)
        return list(islice(chain(rest, chain.from_iterable(self._chunks[place + 1 :])), count))

    def _chunk_of(self, key: SchedulerKey) -> int:
        """The index of the last chunk that begins at or before the key; 0 if all begin after it."""
        return max(bisect_right(self._chunks, key, key=_first) - 1, 0)


def _first(chunk: list[SchedulerKey]) -> SchedulerKey:
    return chunk[0]


def _terms(request: ResourceRequest) -> RequestTerms:
    return RequestTerms(request.resource_name, request.capability, request.relax_locality, request.label)


def key_hash(key: SchedulerKey) -> int:
    """The hash code of a key (SchedulerRequestKey.hashCode)."""
    value = 31 * (517861 * 9511 + key.priority) + long_hash(key.allocation_request_id)
    return 31 * value + (container_hash(key.container_id) if key.container_id is not None else 0) & 0xFFFFFFFF
