"""Measures what explanations cost while containers are placed: the notes of refusals, of placements and of ended
containers.

The notes have no switch, because they are always kept. So the same work is done with them and without them, in turn in
one process, and the seconds of CPU of each pair are compared. Nothing but explanations reads the notes.
"""

from __future__ import annotations

import contextlib
import gc
import statistics
from collections.abc import Callable, Iterator
from unittest.mock import patch

from benchmarks.core_driver import CoreDriver, cpu_s, queues
from benchmarks.reject import rejecting_cluster
from rm.scheduler.model.ended_containers import EndedContainers
from rm.scheduler.model.last_refusals import Refusals
from rm.scheduler.placement import commit
from yarn.resource import Resource

PAIRS = 9
CONTAINERS = 10_000
HEARTBEATS = 1_000
_NODE = Resource(65_536, 64)


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"percent_<work>": what the notes add to the CPU of this work, the median of PAIRS}."""
    works = {"placing": _placing, "refusing": _refusing}
    figures: dict[str, float] = {}
    for name, work in works.items():
        ratios = []
        for number in range(PAIRS):
            progress(f"{name}, pair {number + 1} of {PAIRS}")
            # The order within a pair alternates, so that neither side is always the warmer one.
            order = (True, False) if number % 2 else (False, True)
            spent = {with_notes: _cpu_of(work, with_notes=with_notes) for with_notes in order}
            ratios.append(spent[True] / spent[False])
        ratios.sort()
        figures[f"percent_{name}"] = round(100 * (statistics.median(ratios) - 1), 1)
        figures[f"percent_{name}_least"], figures[f"percent_{name}_most"] = (
            round(100 * (ratio - 1), 1) for ratio in (ratios[0], ratios[-1])
        )
    return figures


def _cpu_of(work: Callable[[], float], *, with_notes: bool) -> float:
    gc.collect()
    with contextlib.nullcontext() if with_notes else _without_notes():
        return work()


@contextlib.contextmanager
def _without_notes() -> Iterator[None]:
    with (
        patch.object(Refusals, "note", lambda *_, **__: None),
        patch.object(EndedContainers, "add", lambda *_, **__: None),
        patch.object(commit, "origin_of", lambda *_: None),
    ):
        yield


def _placing() -> float:
    """Seconds of CPU for CONTAINERS containers of 100 applications on 1,000 nodes."""
    cluster = CoreDriver(1_000, queues(10), _NODE)
    for number in range(100):
        cluster.run_application(number + 1, f"root.q{number % 10}", "user", 0)
    for attempt_id in cluster.attempts:
        cluster.request(attempt_id, CONTAINERS // 100)
    return cpu_s(lambda: cluster.beat_until_placed(CONTAINERS))


def _refusing() -> float:
    """Seconds of CPU for HEARTBEATS heartbeats that refuse 100 applications in 40 queues; each could place something,
    because an application has changed its requests before.
    """
    cluster = rejecting_cluster(40, 100)
    spent = 0.0
    for number in range(HEARTBEATS):
        cluster.request(cluster.attempts[number % 100], 50 + number % 7)
        spent += cpu_s(cluster.beat, sweep=False)
    return spent
