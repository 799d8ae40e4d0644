"""Java's PriorityQueue: a binary heap.

The order of equal elements depends on the heap's algorithm, and affects the scheduler's decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class JavaPriorityQueue(Generic[T]):
    """A queue that returns the least element first, by `compare` (negative, 0, positive).

    The sort order of elements must not change while they are in the queue.
    """

    __slots__ = ("_compare", "_heap")

    def __init__(self, compare: Callable[[T, T], int]) -> None:
        self._compare = compare
        self._heap: list[T] = []

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[T]:
        """Iterate in the order of the heap's array, like Java's iterator."""
        return iter(self._heap)

    def add(self, element: T) -> None:
        heap, at = self._heap, len(self._heap)
        heap.append(element)
        while at > 0:
            parent = (at - 1) >> 1
            if self._compare(element, heap[parent]) >= 0:
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = element

    def peek(self) -> T | None:
        """The least element, None if there is none."""
        return self._heap[0] if self._heap else None

    def pop(self) -> T:
        """Remove and return the least element."""
        heap = self._heap
        least, last = heap[0], heap.pop()
        if heap:
            self._sift_down(last)
        return least

    def _sift_down(self, element: T) -> None:
        heap, compare, at = self._heap, self._compare, 0
        half = len(heap) >> 1
        while at < half:
            child = 2 * at + 1
            if child + 1 < len(heap) and compare(heap[child], heap[child + 1]) > 0:
                child += 1
            if compare(element, heap[child]) <= 0:
                break
            heap[at] = heap[child]
            at = child
        heap[at] = element
