"""Work that grows with the cluster, done in slices on the event loop: other calls are served between two of them."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable
from typing import TypeVar

from wire.bulky_replies import serve_others

SLICE_S = 0.004
"""Longer steps are made one at a time: an application takes 0.3 ms, a queue 0.5 ms."""
T = TypeVar("T")


async def in_slices(steps: Generator[None, None, T]) -> T:
    """Run the steps, with a pause for other tasks whenever they have run for long; returns their result."""
    pause_s = time.monotonic() + SLICE_S
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        if time.monotonic() >= pause_s:
            await serve_others()
            pause_s = time.monotonic() + SLICE_S


def collected(items: Iterable[T]) -> Generator[None, None, list[T]]:
    """Collect the items, one at each step, for `in_slices`."""
    found: list[T] = []
    for item in items:
        found.append(item)
        yield
    return found
