"""The data of a Gantt chart: when each container ran or was reserved, and on which node, for traces and for results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from yarn.resource import MEMORY_MB
from yarnling.report.curves import POINTS_MAX, QueueSeries
from yarnling.run.names import short
from yarnling.run.records import RecordedRun, What
from yarnling.whatif.result import End, WhatIfResult

_KILLED = "killed"
"""A preemption that is only requested may not happen."""


class Kind(Enum):
    """The subject of a bar."""

    CONTAINER = "container"
    RESERVATION = "reservation"


class Span(Struct, frozen=True):
    """A container, from its allocation to its end, or a reservation. Times are since the start of the run.

    `node`: "" if it is not known.
    """

    kind: Kind
    node: str
    application: str
    queue: str
    from_ms: int
    until_ms: int
    is_preempted: bool = False


class HeadroomSeries(Struct, frozen=True):
    """The curves of an application, all of the same length, in MB: what its user uses, the application's own part of
    that (`used`), its user's limit, the headroom that the application learns, and the guarantee of its queue.
    """

    application: str
    user: str
    queue: str
    times_ms: tuple[int, ...]
    used: tuple[float, ...]
    user_used: tuple[float, ...]
    limit: tuple[float, ...]
    headroom: tuple[float, ...]
    guaranteed: tuple[float, ...]


class Plot(Struct, frozen=True):
    """The data of one run to plot. `queues`: the curves of each queue, parents first. `headrooms`: those of each
    application, by its first appearance.
    """

    title: str
    until_ms: int
    spans: tuple[Span, ...]
    queues: tuple[QueueSeries, ...]
    headrooms: tuple[HeadroomSeries, ...] = ()


class Row(Struct, frozen=True):
    """A node or one application: its spans, each with the lane in which it does not overlap another one."""

    name: str
    spans: tuple[tuple[int, Span], ...]
    lanes: int


def plot_of_timeline(timeline: RecordedRun) -> Plot:
    """The containers of a trace or of event logs, as the scheduler decided about them."""
    from_ms = timeline.from_ms
    titles = {one.name: one.title for one in timeline.lifelines}
    names = _names(one.application for one in timeline.decisions)
    spans: list[Span] = []
    running: dict[tuple[Kind, str], Span] = {}
    for one in timeline.decisions:
        at_ms = one.at_ms - from_ms
        kind = Kind.RESERVATION if one.what in (What.RESERVED, What.UNRESERVED) else Kind.CONTAINER
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
    return Plot(timeline.title, until_ms, _ordered(spans), _series_of(timeline), _headrooms_of(timeline))


def _names(applications: Iterable[str]) -> dict[str, str]:
    """{id: a short name}. Ids of two starts of a ResourceManager can differ in their first number only."""
    names: dict[str, str] = {}
    taken = Counter[str]()
    for application in dict.fromkeys(applications):
        name = short(application)
        taken[name] += 1
        names[application] = f"{name} ({taken[name]})" if taken[name] > 1 else name
    return names


def plot_of_result(result: WhatIfResult, queues: Sequence[QueueSeries]) -> Plot:
    """The containers of a simulated workload. It has no reservations of single containers, only their amounts."""
    spans = []
    for one in result.containers:
        if one.allocated_ms is not None:
            application = result.applications[one.application]
            until_ms = result.until_ms if one.ended_ms is None else one.ended_ms
            is_preempted = one.end is End.PREEMPTED
            name, queue, node = application.name, application.queue, one.host
            spans.append(Span(Kind.CONTAINER, node, name, queue, one.allocated_ms, until_ms, is_preempted))
    return Plot(result.title, result.until_ms, _ordered(spans), tuple(queues))


def rows_of(spans: Iterable[Span], name_of: Callable[[Span], str]) -> list[Row]:
    """A row for each name, in the order of its first span; spans must be in the order of their start."""
    by_name: dict[str, list[Span]] = {}
    for span in spans:
        by_name.setdefault(name_of(span), []).append(span)
    return [_row(name, own) for name, own in by_name.items()]


def _row(name: str, spans: Sequence[Span]) -> Row:
    free_at_ms: list[int] = []
    placed = []
    for span in spans:
        lane = next((lane for lane, at_ms in enumerate(free_at_ms) if at_ms <= span.from_ms), len(free_at_ms))
        if lane == len(free_at_ms):
            free_at_ms.append(0)
        free_at_ms[lane] = span.until_ms
        placed.append((lane, span))
    return Row(name, tuple(placed), len(free_at_ms))


def _ordered(spans: Iterable[Span]) -> tuple[Span, ...]:
    return tuple(sorted(spans, key=lambda span: (span.from_ms, span.until_ms, span.node, span.application)))


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
