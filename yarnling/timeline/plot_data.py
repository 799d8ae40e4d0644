"""The data to plot of a recorded run: when each container ran or was reserved, and the use of queues over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from yarn.resource import MEMORY_MB
from yarnling.report.curves import POINTS_MAX, HeadroomSeries, QueueSeries
from yarnling.report.spans import MarkedTime, Plot, Span, SpanKind, ordered
from yarnling.run.moments import moments_of, opening
from yarnling.run.names import short
from yarnling.run.records import RecordedRun, Role, What

MARKS_MAX = 100
"""The number of moments of a plot: each is a line in each picture."""
_KILLED = "killed"
"""A preemption that is only requested may not happen."""


def plot_of_timeline(timeline: RecordedRun) -> Plot:
    """The containers of a trace or of event logs, as the scheduler decided about them."""
    from_ms = timeline.from_ms
    titles = {one.name: one.title for one in timeline.lifelines}
    names = _names(one.application for one in timeline.decisions)
    spans: list[Span] = []
    running: dict[tuple[SpanKind, str], Span] = {}
    for one in timeline.decisions:
        at_ms = one.at_ms - from_ms
        kind = SpanKind.RESERVATION if one.what in (What.RESERVED, What.UNRESERVED) else SpanKind.CONTAINER
        key = kind, one.container
        match one.what:
            case What.ALLOCATED | What.RESERVED:
                node = titles.get(one.node, one.node)
                running[key] = Span(kind, node, names[one.application], one.queue, at_ms, at_ms)
            case What.PREEMPTED if key in running and one.reason.startswith(_KILLED):
                running[key] = replace(running[key], is_preempted=True)
            case What.RELEASED | What.UNRESERVED if key in running:
                spans.append(replace(running.pop(key), until_ms=at_ms))
            case _:
                pass
    until_ms = timeline.until_ms - from_ms
    spans += [replace(span, until_ms=until_ms) for span in running.values()]
    return Plot(
        timeline.title, until_ms, ordered(spans), _series_of(timeline), _headrooms_of(timeline), _marks(timeline)
    )


def _marks(timeline: RecordedRun) -> tuple[MarkedTime, ...]:
    """The moments of the run; of many, the first ones."""
    titles = {one.name: one.title for one in timeline.lifelines if one.role is not Role.AM}
    found = moments_of(timeline, lambda name: titles.get(name) or short(name))[:MARKS_MAX]
    first = opening(found)
    return tuple(
        MarkedTime(max(0, one.at_ms - timeline.from_ms), one.kind.value, one.text, one is first) for one in found
    )


def _names(applications: Iterable[str]) -> dict[str, str]:
    """{id: a short name}. Ids of two starts of a ResourceManager can differ in their first number only."""
    names: dict[str, str] = {}
    taken = Counter[str]()
    for application in dict.fromkeys(applications):
        name = short(application)
        taken[name] += 1
        names[application] = f"{name} ({taken[name]})" if taken[name] > 1 else name
    return names


def _series_of(timeline: RecordedRun) -> tuple[QueueSeries, ...]:
    """The curves of the queues; where nothing changed, a queue has no sample."""
    by_queue: dict[str, list[tuple[int, ...]]] = {}
    for use in (one for one in timeline.samples if not one.application):
        values = (use.used_mb, use.reserved_mb, use.pending_mb, use.guaranteed_mb, use.limit_mb)
        by_queue.setdefault(use.queue, []).append((use.at_ms - timeline.from_ms, *values))
    until_ms = timeline.until_ms - timeline.from_ms
    found = []
    for queue, samples in by_queue.items():
        times, columns = _columns(samples, until_ms)
        found.append(QueueSeries(queue, "", times, *columns))
    return tuple(found)


def _headrooms_of(timeline: RecordedRun) -> tuple[HeadroomSeries, ...]:
    by_application: dict[tuple[str, str, str], list[tuple[int, ...]]] = {}
    decided, measured = timeline.decisions, [one for one in timeline.samples if one.application]
    names = _names([*(one.application for one in decided), *(one.application for one in measured)])
    for one in measured:
        values = (one.used_mb, one.user_used_mb, one.limit_mb, one.headroom_mb, one.guaranteed_mb)
        key = names[one.application], one.user, one.queue
        by_application.setdefault(key, []).append((one.at_ms - timeline.from_ms, *values))
    until_ms = timeline.until_ms - timeline.from_ms
    found = []
    for key, samples in by_application.items():
        times, columns = _columns(samples, until_ms)
        found.append(HeadroomSeries(*key, times, *columns))
    return tuple(found)


def _columns(samples: Sequence[tuple[int, ...]], until_ms: int) -> tuple[tuple[int, ...], list[tuple[float, ...]]]:
    """(times, the other columns) of at most `POINTS_MAX` samples; the last one holds until the end."""
    step = -(-len(samples) // POINTS_MAX)
    kept = [*samples[::step], *samples[-1:]]
    times, *columns = zip(*kept, (until_ms, *kept[-1][1:]), strict=True)
    return times, [tuple(map(float, column)) for column in columns]


MEASURED = MEMORY_MB
"""The measure of the curves of a trace."""
