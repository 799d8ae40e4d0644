"""The iteration order of Java's hash maps, where Hadoop's decisions depend on it.

Hadoop iterates over a HashMap when it looks for a reservation to give up, when it rebuilds the list of a queue's
children, and in a few sums of floats. The order follows from the keys' hash codes, so it can be computed: buckets in
ascending order, insertion order within a bucket, and as many buckets as the map has ever needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

K = TypeVar("K")

_LOAD_FACTOR = 0.75
_SMALLEST_TABLE = 16


def hash_order(keys: Iterable[K], hash_of: Callable[[K], int], *, peak: int = 0, concurrent: bool = False) -> list[K]:
    """The keys, given in insertion order, in the order in which a HashMap iterates.

    `peak`: the most entries that the map ever had. `concurrent`: the order of a ConcurrentHashMap, which grows one
    entry earlier. Keys in the same bucket of a ConcurrentHashMap may change their order when it grows; that is not
    reproduced.
    """
    entries = list(keys)
    if len(entries) < 2:
        return entries
    most = max(peak, len(entries)) + concurrent
    buckets = _SMALLEST_TABLE
    while buckets * _LOAD_FACTOR < most:
        buckets *= 2
    return sorted(entries, key=lambda key: _spread(hash_of(key)) & (buckets - 1))


@lru_cache(maxsize=4096)
def string_hash(text: str) -> int:
    """The hash code of a text (String.hashCode)."""
    value = 0
    for unit in _utf16(text):
        value = value * 31 + unit & 0xFFFFFFFF
    return value


def long_hash(number: int) -> int:
    """The hash code of a long: `(int) (number ^ (number >>> 32))`."""
    bits = number & 0xFFFFFFFFFFFFFFFF
    return (bits ^ bits >> 32) & 0xFFFFFFFF


def _utf16(text: str) -> Iterable[int]:
    if text.isascii():
        return text.encode("ascii")
    raw = text.encode("utf-16-be")
    return [raw[i] << 8 | raw[i + 1] for i in range(0, len(raw), 2)]


def _spread(value: int) -> int:
    bits = value & 0xFFFFFFFF
    return bits ^ bits >> 16
