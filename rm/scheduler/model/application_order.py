"""The order in which a leaf's applications are offered a node, and in which waiting ones are activated.

A policy is a list sorted by the key that each application had when it was inserted. The list does not change during an
iteration: a placement is booked only after the iteration has ended.

The fair policy orders by the usage that an application had when it was last inserted, not by its present usage. An
application that got or released a container since then is inserted again before the next iteration.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import log, log1p
from typing import ClassVar, TypeAlias

from rm.scheduler.config.queue_configuration import (
    FAIR,
    FIFO_FOR_PENDING,
    FIFO_WITH_PARTITIONS,
    QueueConfiguration,
)
from rm.scheduler.model.application import FiCaSchedulerApp
from yarn.ids import ApplicationId

OrderKey: TypeAlias = tuple[bool | int | float, ...]
Entry: TypeAlias = tuple[OrderKey, FiCaSchedulerApp]

_LAST = 1 << 62
"""The place of an application that has not been ordered yet."""


class OrderListener:
    """Receives changes that affect an iteration over the applications. This base class ignores them."""

    __slots__ = ()

    def added(self, entry: Entry) -> None:
        """Note that an application was added."""

    def removed(self, entry: Entry) -> None:
        """Note that an application was removed."""

    def requests_changed(self, application_id: ApplicationId) -> None:
        """Note that the application's requests have changed."""

    def user_renewed(self, user: str) -> None:
        """Note that the user's entry was dropped and created again."""


class FifoOrderingPolicy:
    """Higher priority first, then the older application. `recovering_first`: the order of waiting applications."""

    __slots__ = ("_entries", "_keys", "_recovering_first", "listener")

    is_same_for_all_partitions: ClassVar[bool] = True
    """True if nodes of all partitions are offered to the same applications."""

    def __init__(self, *, recovering_first: bool = False) -> None:
        self._recovering_first = recovering_first
        self._entries: list[Entry] = []
        self._keys: dict[FiCaSchedulerApp, OrderKey] = {}
        self.listener = OrderListener()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[FiCaSchedulerApp]:
        for _, application in self._entries:
            yield application

    def __contains__(self, application: object) -> bool:
        return application in self._keys

    @property
    def entries(self) -> Iterable[Entry]:
        """The applications with their keys, in order."""
        return self._entries

    def entry_of(self, application: FiCaSchedulerApp) -> Entry:
        """The entry of an application in the list."""
        return self._keys[application], application

    def key_of(self, application: FiCaSchedulerApp) -> OrderKey:
        """The application's sort key in its present state."""
        return self._key(application)

    def prepare(self) -> None:
        """Reinsert applications whose key has changed, before an iteration."""

    def offers(self, partition: str) -> Iterator[FiCaSchedulerApp]:
        """The applications in the order in which they are offered a node of the partition (getAssignmentIterator)."""
        self.prepare()
        return iter(self)

    def last_first(self) -> Iterator[FiCaSchedulerApp]:
        """All applications in the order in which their containers are preempted (getPreemptionIterator)."""
        self.prepare()
        return reversed(list(self))

    def add(self, application: FiCaSchedulerApp) -> None:
        """Insert an application by its current key; adding twice is a no-op."""
        if application in self._keys:
            return
        key = self._key(application)
        self._keys[application] = key
        entry = (key, application)
        insort(self._entries, entry, key=entry_key)
        self.listener.added(entry)

    def remove(self, application: FiCaSchedulerApp) -> bool:
        """Remove an application; False if it is not in the list."""
        key = self._keys.pop(application, None)
        if key is None:
            return False
        entry = (key, application)
        take_out(self._entries, entry)
        self.listener.removed(entry)
        return True

    def usage_changed(self, application: FiCaSchedulerApp) -> None:
        """Note that a container was booked or released (containerAllocated, containerReleased): no effect here."""

    def demand_changed(self, application: FiCaSchedulerApp) -> None:
        """Note that the application's requests have changed (demandUpdated): no effect on this order."""

    def _key(self, application: FiCaSchedulerApp) -> OrderKey:
        attempt_id = application.attempt_id
        app = attempt_id.application_id
        late = self._recovering_first and not application.is_recovering
        return (late, -application.priority, app.cluster_timestamp, app.id, application.started_ms, attempt_id.attempt)


class FairOrderingPolicy(FifoOrderingPolicy):
    """The application that uses the least memory comes first; priorities do not count (FairOrderingPolicy).

    `by_size`: the memory used is divided by the logarithm of all memory requested, so that large applications may use
    more. `_changed` {application: its attempt}: those to be reinserted.
    """

    __slots__ = ("_by_size", "_changed")

    def __init__(self, *, by_size: bool) -> None:
        super().__init__()
        self._by_size = by_size
        self._changed: dict[ApplicationId, FiCaSchedulerApp] = {}

    def prepare(self) -> None:
        """Reinsert applications that have changed, also those that were removed after the change."""
        for application in self._changed.values():
            self._take_out(application)
            application.note_ordered_usage()
            self.add(application)
        self._changed.clear()

    def remove(self, application: FiCaSchedulerApp) -> bool:
        """Remove an application, and its recorded change; False if it is not in the list."""
        self._changed.pop(application.attempt_id.application_id, None)
        return self._take_out(application)

    def usage_changed(self, application: FiCaSchedulerApp) -> None:
        """Reinsert the application before the next iteration."""
        self._changed[application.attempt_id.application_id] = application

    def demand_changed(self, application: FiCaSchedulerApp) -> None:
        """Reinsert the application before the next iteration if `by_size` is set."""
        if self._by_size:
            self.usage_changed(application)

    def _take_out(self, application: FiCaSchedulerApp) -> bool:
        return super().remove(application)

    def _key(self, application: FiCaSchedulerApp) -> OrderKey:
        attempt_id = application.attempt_id
        app = attempt_id.application_id
        wanted_mb = application.ordered_used_mb + application.ordered_pending_mb
        magnitude = float(application.ordered_used_mb)
        if self._by_size and wanted_mb < 0:
            # Less than nothing in use (I-06). Java's logarithm is not a number then, and Hadoop's comparison takes it
            # for equal to everything.
            magnitude = 0.0
        elif self._by_size and magnitude != 0 and (weight := log1p(wanted_mb) / log(2)) != 0:
            magnitude /= weight
        return (
            magnitude,
            application.started_ms,
            wanted_mb == 0,
            app.cluster_timestamp,
            app.id,
            attempt_id.attempt,
        )


class PartitionedFifoOrderingPolicy(FifoOrderingPolicy):
    """Applications submitted with a label of `exclusive` are offered only nodes of that partition, and those nodes are
    offered only to them (FifoOrderingPolicyWithExclusivePartitions)."""

    __slots__ = ("_exclusive",)

    is_same_for_all_partitions: ClassVar[bool] = False

    def __init__(self, exclusive: Iterable[str]) -> None:
        super().__init__()
        self._exclusive = frozenset(exclusive)

    def offers(self, partition: str) -> Iterator[FiCaSchedulerApp]:
        """The applications on the partition's list."""
        listed = self._list_of(partition)
        return (application for application in self if self._list_of(application.label) == listed)

    def _list_of(self, label: str) -> str | None:
        return label if label in self._exclusive else None


class GivenOrderingPolicy(FifoOrderingPolicy):
    """The order in which `order` returns the applications; it gets them in the order of their submission.

    It must return each application once, and depend on nothing but what a leaf's applications are, hold and request:
    an offer that did nothing is not repeated while these stay the same (rm.scheduler.placement.memo). An application
    that was added since the last iteration comes last. `_places` {application: its place in the last order}.
    """

    __slots__ = ("_order", "_places")

    def __init__(self, order: Callable[[Sequence[FiCaSchedulerApp]], Sequence[FiCaSchedulerApp]]) -> None:
        super().__init__()
        self._order = order
        self._places: dict[FiCaSchedulerApp, int] = {}

    def prepare(self) -> None:
        """Order all applications again, and reinsert those whose place has changed."""
        ordered = self._order(sorted(self._keys, key=_age))
        assert len(ordered) == len(self), "the order has each application once"
        for place, application in enumerate(ordered):
            if self._places.get(application) != place:
                super().remove(application)
                self._places[application] = place
                self.add(application)

    def remove(self, application: FiCaSchedulerApp) -> bool:
        """Remove an application; False if it is not in the list."""
        self._places.pop(application, None)
        return super().remove(application)

    def _key(self, application: FiCaSchedulerApp) -> OrderKey:
        return (self._places.get(application, _LAST),)


def ordering_policy(configuration: QueueConfiguration) -> FifoOrderingPolicy:
    """The configured policy of a leaf, without applications."""
    if configuration.ordering_policy == FAIR:
        return FairOrderingPolicy(by_size=configuration.fair_by_size)
    if configuration.ordering_policy == FIFO_WITH_PARTITIONS:
        return PartitionedFifoOrderingPolicy(configuration.exclusive_partitions)
    return FifoOrderingPolicy(recovering_first=configuration.ordering_policy == FIFO_FOR_PENDING)


def take_out(entries: list[Entry], entry: Entry) -> None:
    """Remove the entry from a sorted list."""
    index = bisect_left(entries, entry[0], key=entry_key)
    while entries[index][1] is not entry[1]:
        index += 1
    del entries[index]


def entry_key(entry: Entry) -> OrderKey:
    return entry[0]


def _age(application: FiCaSchedulerApp) -> tuple[int, int]:
    application_id = application.attempt_id.application_id
    return application_id.cluster_timestamp, application_id.id
