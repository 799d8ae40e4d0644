"""The data of a plot: when each container ran or was reserved, and on which node; the curves of queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from msgspec import Struct

from yarnling.report.curves import HeadroomSeries, QueueSeries


class SpanKind(Enum):
    """The subject of a bar."""

    CONTAINER = "container"
    RESERVATION = "reservation"


class Span(Struct, frozen=True):
    """A container, from its allocation to its end, or a reservation. Times are since the start of the run.

    `node`: "" if it is not known.
    """

    kind: SpanKind
    node: str
    application: str
    queue: str
    from_ms: int
    until_ms: int
    is_preempted: bool = False


class MarkedTime(Struct, frozen=True):
    """A moment of the run, since its start. `is_opening`: marked in the pictures until another one is chosen."""

    at_ms: int
    kind: str
    text: str
    is_opening: bool = False


class Plot(Struct, frozen=True):
    """The data of one run to plot. `queues`: the curves of each queue, parents first. `headrooms`: those of each
    application, by its first appearance.
    """

    title: str
    until_ms: int
    spans: tuple[Span, ...]
    queues: tuple[QueueSeries, ...]
    headrooms: tuple[HeadroomSeries, ...] = ()
    marks: tuple[MarkedTime, ...] = ()


class SpanRow(Struct, frozen=True):
    """A node or one application: its spans, each with the lane in which it does not overlap another one."""

    name: str
    spans: tuple[tuple[int, Span], ...]
    lanes: int


def rows_of(spans: Iterable[Span], name_of: Callable[[Span], str]) -> list[SpanRow]:
    """A row for each name, in the order of its first span; spans must be in the order of their start."""
    by_name: dict[str, list[Span]] = {}
    for span in spans:
        by_name.setdefault(name_of(span), []).append(span)
    return [_row(name, own) for name, own in by_name.items()]


def _row(name: str, spans: Sequence[Span]) -> SpanRow:
    free_at_ms: list[int] = []
    placed = []
    for span in spans:
        lane = next((lane for lane, at_ms in enumerate(free_at_ms) if at_ms <= span.from_ms), len(free_at_ms))
        if lane == len(free_at_ms):
            free_at_ms.append(0)
        free_at_ms[lane] = span.until_ms
        placed.append((lane, span))
    return SpanRow(name, tuple(placed), len(free_at_ms))


def ordered(spans: Iterable[Span]) -> tuple[Span, ...]:
    return tuple(sorted(spans, key=lambda span: (span.from_ms, span.until_ms, span.node, span.application)))
