"""Curves for pictures: what a result says at a few hundred points of time. Pure.

A result may have many thousands of samples, more than a picture has pixels. They are averaged over equal spans.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from msgspec import Struct

from yarn.times import HOUR_MS, MINUTE_MS
from yarnling.report.curves import POINTS_MAX, QueueSeries
from yarnling.report.spans import Plot, Span, SpanKind, ordered
from yarnling.whatif.containers import End
from yarnling.whatif.figures import Figures
from yarnling.whatif.queue_use import samples_by_queue, whole_samples
from yarnling.whatif.result import NodeCount, QueueSample, WhatIfResult
from yarnling.whatif.waits import Waits, WaitTimes, summarize, wait_of

BARS_MAX = 48
"""The most spans of time in a histogram over time."""
_SPANS_MS = tuple(MINUTE_MS * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440))


class Histogram(Struct, frozen=True):
    """Values for equal spans of time. `counts`: {queue: one number for each span}."""

    span_ms: int
    counts: dict[str, tuple[int, ...]]


def all_series(result: WhatIfResult, figures: Figures) -> dict[tuple[str, str], QueueSeries]:
    """{(queue, partition): its curves}, for every queue with figures of its use."""
    by_queue = samples_by_queue(result)
    return {
        (use.queue, use.label): _averaged(by_queue[use.queue, use.label], figures.measured, result.until_ms)
        for use in figures.uses
    }


def whole_series(result: WhatIfResult, figures: Figures) -> dict[str, QueueSeries]:
    """{queue: its curves, of all partitions together}."""
    by_queue = whole_samples(samples_by_queue(result)).items()
    return {queue: _averaged(samples, figures.measured, result.until_ms) for queue, samples in by_queue}


def span_ms(until_ms: int) -> int:
    """The span of a bar of a histogram over time: a round number of minutes."""
    return next(
        (span for span in _SPANS_MS if until_ms <= span * BARS_MAX), -(-until_ms // BARS_MAX // HOUR_MS) * HOUR_MS
    )


def preemptions(result: WhatIfResult, until_ms: int | None = None) -> Histogram:
    """The number of containers of each queue that were preempted in each span. `until_ms`: the end of the picture, by
    default that of the simulation.
    """
    until_ms = result.until_ms if until_ms is None else until_ms
    span = span_ms(until_ms)
    bars = until_ms // span + 1
    found: dict[str, Counter[int]] = defaultdict(Counter)
    for each in result.containers:
        if each.end is End.PREEMPTED and each.ended_ms is not None:
            found[result.applications[each.application].queue][each.ended_ms // span] += 1
    return Histogram(span, {queue: tuple(bins[bar] for bar in range(bars)) for queue, bins in sorted(found.items())})


def nodes_over_time(result: WhatIfResult) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(times in ms, the number of machines from each of them on); the last time is the end of the simulation."""
    counts = result.node_counts or (NodeCount(0, result.nodes),)
    times = (*(each.time_ms for each in counts), max(result.until_ms, counts[-1].time_ms))
    return times, (*(each.nodes for each in counts), counts[-1].nodes)


def waits_over_time(result: WhatIfResult, until_ms: int | None = None) -> tuple[int, tuple[Waits, ...]]:
    """(the span in ms, the waits of the containers requested in each span). `until_ms`: as in `preemptions`."""
    until_ms = result.until_ms if until_ms is None else until_ms
    span = span_ms(until_ms)
    bins = [WaitTimes() for _ in range(until_ms // span + 1)]
    for each in result.containers:
        bins[min(each.requested_ms // span, len(bins) - 1)].add(wait_of(each, result.until_ms))
    return span, tuple(map(summarize, bins))


def waits_by_queue(result: WhatIfResult) -> dict[str, WaitTimes]:
    """{queue: the waits of its containers}."""
    found: dict[str, WaitTimes] = defaultdict(WaitTimes)
    for each in result.containers:
        queue = result.applications[each.application].queue
        found[queue].add(wait_of(each, result.until_ms))
    return found


def plot_of_result(result: WhatIfResult, queues: Sequence[QueueSeries]) -> Plot:
    """The containers of a simulated workload. It has no reservations of single containers, only their amounts."""
    spans = []
    for one in result.containers:
        if one.allocated_ms is not None:
            application = result.applications[one.application]
            until_ms = result.until_ms if one.ended_ms is None else one.ended_ms
            is_preempted = one.end is End.PREEMPTED
            name, queue, node = application.name, application.queue, one.host
            spans.append(Span(SpanKind.CONTAINER, node, name, queue, one.allocated_ms, until_ms, is_preempted))
    return Plot(result.title, result.until_ms, ordered(spans), tuple(queues))


def _averaged(samples: list[QueueSample], measured: str, until_ms: int) -> QueueSeries:
    width = max(1, -(-len(samples) // POINTS_MAX))
    spans = [samples[start : start + width] for start in range(0, len(samples), width)]

    def curve(field: str) -> tuple[float, ...]:
        values = [sum(getattr(each, field).amounts().get(measured, 0) for each in span) / len(span) for span in spans]
        return (*values, *values[-1:])

    times = (*(span[0].time_ms for span in spans), max(until_ms, samples[-1].time_ms))
    return QueueSeries(
        samples[0].queue,
        samples[0].label,
        times,
        curve("used"),
        curve("reserved"),
        curve("pending"),
        curve("guaranteed"),
        curve("maximum"),
    )
