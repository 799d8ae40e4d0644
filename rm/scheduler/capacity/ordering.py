"""The order in which a leaf's applications are offered a node, and in which waiting ones are activated.

A policy is a sorted list with the key each application had when it was put in. Looking at a node walks the list as
it is: nothing is put in or taken out during a walk, since a placement is booked only when the walk is over.

The fair policy orders by what an application held when it was last put in its place, not by what it holds. Whoever
got or gave back a container since is put in its place anew when the next walk begins.

Of many applications few ask for anything at a time. Those that do not fall asleep when a walk has looked at them and
come to nothing, and wake when they ask again. Only the first application of each user stays awake for good: to look
at it renews the user's limit, which is the one trace that looking at the others would leave.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from math import log, log1p
from typing import TYPE_CHECKING, TypeAlias

from rm.scheduler.config.queue_configuration import (
    FAIR,
    FIFO_FOR_PENDING,
    FIFO_WITH_PARTITIONS,
    QueueConfiguration,
)

if TYPE_CHECKING:
    from rm.scheduler.model.application import FiCaSchedulerApp
    from yarn.ids import ApplicationId

OrderKey: TypeAlias = tuple[bool | int | float, ...]
Entry: TypeAlias = "tuple[OrderKey, FiCaSchedulerApp]"


class FifoOrderingPolicy:
    """Higher priority first, then the older application. `recovering_first`: as waiting applications are ordered.

    `asleep` {application: its attempt}; `_of_user` {user: the user's entries}.
    """

    __slots__ = ("_awake", "_entries", "_keys", "_of_user", "_recovering_first", "asleep")

    def __init__(self, *, recovering_first: bool = False) -> None:
        self._recovering_first = recovering_first
        self._entries: list[Entry] = []
        self._awake: list[Entry] = []
        self._of_user: dict[str, list[Entry]] = {}
        self._keys: dict[int, OrderKey] = {}
        self.asleep: dict[ApplicationId, FiCaSchedulerApp] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[FiCaSchedulerApp]:
        for _, application in self._entries:
            yield application

    def __contains__(self, application: object) -> bool:
        return id(application) in self._keys

    def offers(self, partition: str) -> Iterator[FiCaSchedulerApp]:
        """The applications in the order in which a node of the partition is offered to them (getAssignmentIterator)."""
        return iter(self)

    def key_of(self, application: FiCaSchedulerApp) -> OrderKey:
        """Where the application belongs by what it is now."""
        return self._key(application)

    def last_first(self) -> Iterator[FiCaSchedulerApp]:
        """All applications in the order in which containers are taken from them (getPreemptionIterator)."""
        return reversed(list(self))

    def awake(self, partition: str) -> Iterator[FiCaSchedulerApp]:
        """The offers without the sleeping ones. Nobody may be put to sleep before the walk is over."""
        for _, application in self._awake:
            yield application

    def put_to_sleep(self, application: FiCaSchedulerApp) -> None:
        """It asks for nothing, and a walk has seen that. Of no effect for the first of its user."""
        if self._of_user[application.user][0][1] is not application:
            _take(self._awake, self._keys[id(application)], application)
            self.asleep[application.attempt_id.application_id] = application

    def wake(self, application_id: ApplicationId) -> None:
        """It asks again."""
        application = self.asleep.pop(application_id, None)
        if application is not None:
            insort(self._awake, (self._keys[id(application)], application), key=_first)

    def wake_all_of(self, user: str) -> None:
        """The user's entry is a new one: each application has to be looked at."""
        for _, application in self._of_user.get(user, ()):
            self.wake(application.attempt_id.application_id)

    def add(self, application: FiCaSchedulerApp) -> None:
        """Put it in its place by what it is now; once in, always once."""
        if id(application) in self._keys:
            return
        key = self._key(application)
        self._keys[id(application)] = key
        entry = (key, application)
        insort(self._entries, entry, key=_first)
        insort(self._awake, entry, key=_first)
        insort(self._of_user.setdefault(application.user, []), entry, key=_first)

    def remove(self, application: FiCaSchedulerApp) -> bool:
        """Take it out; False if it is not in."""
        key = self._keys.pop(id(application), None)
        if key is None:
            return False
        _take(self._entries, key, application)
        if self.asleep.get(application.attempt_id.application_id) is application:
            del self.asleep[application.attempt_id.application_id]
        else:
            _take(self._awake, key, application)
        of_user = self._of_user[application.user]
        _take(of_user, key, application)
        if of_user:
            self.wake(of_user[0][1].attempt_id.application_id)
        else:
            del self._of_user[application.user]
        return True

    def usage_changed(self, application: FiCaSchedulerApp) -> None:
        """A container of it was booked or given back (containerAllocated, containerReleased): no matter here."""

    def demand_changed(self, application: FiCaSchedulerApp) -> None:
        """What it asks for has changed (demandUpdated): no matter here."""

    def _key(self, application: FiCaSchedulerApp) -> OrderKey:
        attempt_id = application.attempt_id
        app = attempt_id.application_id
        late = self._recovering_first and not application.is_recovering
        return (late, -application.priority, app.cluster_timestamp, app.id, application.started_ms, attempt_id.attempt)


class FairOrderingPolicy(FifoOrderingPolicy):
    """Whoever holds least memory first; priorities do not matter (FairOrderingPolicy).

    `by_size`: what is held is divided by the logarithm of all that is wanted, so that large applications may hold
    more. `_changed` {application: its attempt} are those to be put in their places anew.
    """

    __slots__ = ("_by_size", "_changed")

    def __init__(self, *, by_size: bool) -> None:
        super().__init__()
        self._by_size = by_size
        self._changed: dict[ApplicationId, FiCaSchedulerApp] = {}

    def offers(self, partition: str) -> Iterator[FiCaSchedulerApp]:
        """Those that have changed are put in their places first, even one that was taken out since it did."""
        self._reorder()
        return super().offers(partition)

    def awake(self, partition: str) -> Iterator[FiCaSchedulerApp]:
        """As offers."""
        self._reorder()
        return super().awake(partition)

    def last_first(self) -> Iterator[FiCaSchedulerApp]:
        """As offers."""
        self._reorder()
        return super().last_first()

    def _reorder(self) -> None:
        for application in self._changed.values():
            self._take_out(application)
            application.note_ordered_usage()
            self.add(application)
        self._changed.clear()

    def remove(self, application: FiCaSchedulerApp) -> bool:
        """Take it out; a change that was noted is forgotten."""
        self._changed.pop(application.attempt_id.application_id, None)
        return self._take_out(application)

    def usage_changed(self, application: FiCaSchedulerApp) -> None:
        """Its place is looked for anew before the next walk."""
        self._changed[application.attempt_id.application_id] = application

    def demand_changed(self, application: FiCaSchedulerApp) -> None:
        """Matters only if sizes do."""
        if self._by_size:
            self.usage_changed(application)

    def _take_out(self, application: FiCaSchedulerApp) -> bool:
        return super().remove(application)

    def _key(self, application: FiCaSchedulerApp) -> OrderKey:
        attempt_id = application.attempt_id
        app = attempt_id.application_id
        wanted_mb = application.ordered_used_mb + application.ordered_pending_mb
        magnitude: float = application.ordered_used_mb
        if self._by_size and magnitude != 0 and (weight := log1p(wanted_mb) / log(2)) != 0:
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
    """Applications that were submitted with a label of `exclusive` are offered nodes of that partition alone, and they
    alone are offered those (FifoOrderingPolicyWithExclusivePartitions)."""

    __slots__ = ("_exclusive",)

    def __init__(self, exclusive: Iterable[str]) -> None:
        super().__init__()
        self._exclusive = frozenset(exclusive)

    def offers(self, partition: str) -> Iterator[FiCaSchedulerApp]:
        """Those on the partition's list."""
        listed = self._list_of(partition)
        return (application for application in self if self._list_of(application.label) == listed)

    def awake(self, partition: str) -> Iterator[FiCaSchedulerApp]:
        """As offers: each list would need a first application of each user, so nobody sleeps here."""
        return self.offers(partition)

    def put_to_sleep(self, application: FiCaSchedulerApp) -> None:
        """Nobody sleeps."""

    def _list_of(self, label: str) -> str | None:
        return label if label in self._exclusive else None


def ordering_policy(configuration: QueueConfiguration) -> FifoOrderingPolicy:
    """The policy that a leaf is configured to have, empty."""
    if configuration.ordering_policy == FAIR:
        return FairOrderingPolicy(by_size=configuration.fair_by_size)
    if configuration.ordering_policy == FIFO_WITH_PARTITIONS:
        return PartitionedFifoOrderingPolicy(configuration.exclusive_partitions)
    return FifoOrderingPolicy(recovering_first=configuration.ordering_policy == FIFO_FOR_PENDING)


def _take(entries: list[Entry], key: OrderKey, application: FiCaSchedulerApp) -> None:
    index = bisect_left(entries, key, key=_first)
    while entries[index][1] is not application:
        index += 1
    del entries[index]


def _first(entry: Entry) -> OrderKey:
    return entry[0]
