"""Gantt charts: a bar for each container, in the row of its node or of its application, in the colour of its queue.

Needs matplotlib (the extra `report`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator

from yarnling.report.charts import PANEL, mark_times, picture, time_across
from yarnling.report.inline_svg import colour
from yarnling.report.page import Picture
from yarnling.report.spans import Span, SpanKind, SpanRow
from yarnling.report.wording import counted
from yarnling.run.wording import cut

ROWS_MAX = 40
SPANS_MAX = 8000
"""More rows and bars than this are left out: those with the least use."""
WIDTH = 1300
NARROW = PANEL[0]
_LANE, _ROW_MIN, _GAP, _EDGES = 5, 20, 7, 60
_NAME_MAX = 24


def gantt(
    name: str,
    title: str,
    rows: Sequence[SpanRow],
    roles: Mapping[str, str],
    until_ms: int,
    times_ms: Sequence[int] = (),
) -> Picture:
    """The chart. `name`: unique on the page; `roles`: {queue: the role of its colour}; `times_ms`: those to mark."""
    chosen = _chosen(rows)
    tops, height = _tops(chosen)
    spans = sum(len(row.spans) for row in chosen)
    preempted = sum(span.is_preempted for row in chosen for _, span in row.spans)

    def draw(axes: Axes, width: int) -> None:
        for row, top in zip(chosen, tops, strict=True):
            _draw_row(axes, row, top, roles)
        axes.set_xlim(0, max(1, until_ms))
        axes.set_ylim(height, 0)
        middles = [top + _height(row) / 2 for row, top in zip(chosen, tops, strict=True)]
        axes.yaxis.set_major_locator(FixedLocator(middles))
        axes.set_yticklabels([cut(row.name, _NAME_MAX) or "unknown" for row in chosen])
        axes.grid(visible=False, axis="y")
        time_across(axes, until_ms, width)
        mark_times(axes, times_ms)

    left_out = len(rows) - len(chosen)
    caption = f"{counted(left_out, 'row')} with less use left out." if left_out else ""
    alternative = f"{title}: {counted(spans, 'bar')} in {counted(len(chosen), 'row')}, {preempted} of them preempted"
    size = _EDGES + height
    wide, narrow = (picture(f"{name}-{width}", alternative, draw, (width, size)) for width in (WIDTH, NARROW))
    return Picture(title, wide, narrow, caption=caption)


def _chosen(rows: Sequence[SpanRow]) -> list[SpanRow]:
    """The busiest rows, in display order, as many as fit."""
    by_use = sorted(rows, key=lambda row: -sum(span.until_ms - span.from_ms for _, span in row.spans))
    kept: set[str] = set()
    left = SPANS_MAX
    for row in by_use[:ROWS_MAX]:
        if len(row.spans) <= left:
            kept.add(row.name)
            left -= len(row.spans)
    return [row for row in rows if row.name in kept]


def _height(row: SpanRow) -> int:
    return max(_ROW_MIN, _LANE * row.lanes)


def _tops(rows: Sequence[SpanRow]) -> tuple[list[int], int]:
    """The top of each row, and the height of all."""
    tops, top = [], _GAP
    for row in rows:
        tops.append(top)
        top += _height(row) + _GAP
    return tops, top


def _draw_row(axes: Axes, row: SpanRow, top: int, roles: Mapping[str, str]) -> None:
    lane_height = _height(row) / row.lanes
    groups: dict[tuple[str, SpanKind, bool], list[tuple[int, Span]]] = {}
    for lane, span in row.spans:
        groups.setdefault((roles[span.queue], span.kind, span.is_preempted), []).append((lane, span))
    for (role, kind, is_preempted), placed in groups.items():
        tops = [top + lane * lane_height for lane, _ in placed]
        starts = [span.from_ms for _, span in placed]
        lengths = [max(1, span.until_ms - span.from_ms) for _, span in placed]
        is_reserved = kind is SpanKind.RESERVATION
        axes.barh(
            tops,
            lengths,
            0.86 * lane_height,
            starts,
            align="edge",
            linewidth=0.6,
            color="none" if is_reserved else colour(role),
            edgecolor=colour("reserved" if is_reserved else "panel"),
            hatch="////" if is_reserved else None,
        )
        if is_preempted:
            ends = [span.until_ms for _, span in placed]
            axes.plot(ends, [one + 0.43 * lane_height for one in tops], "x", color=colour("maximum"), markersize=6)
