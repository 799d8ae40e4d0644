"""Switches off Python's cyclic garbage collection, or makes it rare, while many objects are made that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Suspend automatic garbage collection while the context is open."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


DAEMON_THRESHOLDS = (5_000, 50, 10)
"""For gc.set_threshold in a ResourceManager, NodeManager or AM. Their cores leave no reference cycles, and a call at
most five small objects, a megabyte in all between two collections. A collection visits everything that recent calls
left, and no call is served meanwhile. With Python's defaults it took 5 % of the ResourceManager's CPU with ten thousand
nodes, and delayed calls by 50 ms every two seconds; and a tenth of an AM's with a thousand containers."""


def collect_less_often() -> None:
    """Let Python collect garbage in this process after 5,000 new objects, instead of 700."""
    gc.set_threshold(*DAEMON_THRESHOLDS)


YOUNG_OBJECTS = 200_000
"""So many objects are made before Python looks for cyclic garbage among them: 20 ms, and at most about 50 MB."""
COLLECTIONS_OF_OLDER = 4
"""After so many collections of young objects those that survived them are looked at too."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Collect garbage only after 200,000 new objects, instead of Python's 700, while the context is open.

    A simulation makes many objects that stay. Looking at them again and again takes up to a fifth of its time. Of
    several such blocks in threads the first one decides.
    """
    before = gc.get_threshold()
    if before[0] == YOUNG_OBJECTS:
        yield
        return
    gc.set_threshold(YOUNG_OBJECTS, COLLECTIONS_OF_OLDER, COLLECTIONS_OF_OLDER)
    try:
        yield
    finally:
        gc.set_threshold(*before)
