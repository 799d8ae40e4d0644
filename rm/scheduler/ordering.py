"""The order in which a leaf's applications are offered a node, and in which waiting ones are activated.

A policy is a sorted list with the key each application had when it was put in. Looking at a node walks the list as
it is: nothing is put in or taken out during a walk, since a placement is booked only when the walk is over.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rm.scheduler.application import FiCaSchedulerApp

OrderKey: TypeAlias = tuple[bool, int, int, int, int, int]


class FifoOrderingPolicy:
    """Higher priority first, then the older application. `recovering_first`: as waiting applications are ordered."""

    __slots__ = ("_entries", "_keys", "_recovering_first")

    def __init__(self, *, recovering_first: bool = False) -> None:
        self._recovering_first = recovering_first
        self._entries: list[tuple[OrderKey, FiCaSchedulerApp]] = []
        self._keys: dict[int, OrderKey] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[FiCaSchedulerApp]:
        for _, application in self._entries:
            yield application

    def __contains__(self, application: object) -> bool:
        return id(application) in self._keys

    def add(self, application: FiCaSchedulerApp) -> None:
        """Put it in its place by what it is now; once in, always once."""
        if id(application) in self._keys:
            return
        key = self._key(application)
        self._keys[id(application)] = key
        insort(self._entries, (key, application), key=_first)

    def remove(self, application: FiCaSchedulerApp) -> bool:
        """Take it out; False if it is not in."""
        key = self._keys.pop(id(application), None)
        if key is None:
            return False
        index = bisect_left(self._entries, key, key=_first)
        while self._entries[index][1] is not application:
            index += 1
        del self._entries[index]
        return True

    def _key(self, application: FiCaSchedulerApp) -> OrderKey:
        attempt_id = application.attempt_id
        app = attempt_id.application_id
        late = self._recovering_first and not application.is_recovering
        return (late, -application.priority, app.cluster_timestamp, app.id, application.started_ms, attempt_id.attempt)


def _first(entry: tuple[OrderKey, FiCaSchedulerApp]) -> OrderKey:
    return entry[0]
