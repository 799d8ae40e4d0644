"""Scheduler keys in their order, for attempts with few keys and with very many.

One list, sorted, would move half of its entries with each key that comes or goes: 100,000 distinct priorities in one
call took minutes. Here the order is cut into chunks of at most CHUNK_MAX keys; to find a chunk and a place in it costs
O(log n) comparisons, and only that chunk moves.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rm.scheduler.model.asks import SchedulerKey

CHUNK_MAX = 512
"""Keys of one chunk; a chunk that grows beyond is cut in half."""


class SortedKeys:
    """A set of keys that iterates in order. Neither add nor discard may be called during an iteration."""

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
        """The first `count` keys behind `key`, which need not be in the set; None: from the first one on."""
        if key is None or not self._chunks:
            return list(islice(self, count))
        place = self._chunk_of(key)
        chunk = self._chunks[place]
        rest = islice(chunk, bisect_right(chunk, key), None)
        return list(islice(chain(rest, chain.from_iterable(self._chunks[place + 1 :])), count))

    def _chunk_of(self, key: SchedulerKey) -> int:
        """The place of the last chunk that begins at or before the key; 0 if all begin behind it."""
        return max(bisect_right(self._chunks, key, key=_first) - 1, 0)


def _first(chunk: list[SchedulerKey]) -> SchedulerKey:
    return chunk[0]
