"""The pictures of a comparison: waits before and after by queue, over time, preemption. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from yarnling.whatif.page import Picture
from yarnling.whatif.pictures import WAIT_TICKS_MS, durations_up, picture, time_across
from yarnling.whatif.series import Histogram
from yarnling.whatif.svg import colour
from yarnling.whatif.waits import Waits
from yarnling.whatif.wording import SECOND_MS, duration

LEGEND = (("before", "before"), ("after", "after"))
ROWS_MAX = 24
_ROW_HEIGHT = 26
_FRAME_HEIGHT = 44


def p95_by_queue(waits: Mapping[str, tuple[Waits, Waits]]) -> Picture:
    """For each queue an arrow from its p95 wait before to that after. `waits`: {name: (before, after)}."""
    moved = {name: (_p95(before), _p95(after)) for name, (before, after) in waits.items()}
    rows = sorted(moved, key=lambda name: -abs(moved[name][1] - moved[name][0]))[:ROWS_MAX]
    rows = [name for name in moved if name in rows][::-1]

    def draw(axes: Axes, width: int) -> None:
        for row, name in enumerate(rows):
            before, after = (max(ms, SECOND_MS) for ms in moved[name])
            axes.plot([before, after], [row, row], color=colour("muted"), linewidth=1.5, zorder=1)
            axes.scatter([before], [row], s=60, marker="o", color=colour("before"), zorder=2)
            axes.scatter([after], [row], s=70, marker="D", color=colour("after"), zorder=3)
        axes.set_xscale("log")
        axes.set_ylim(-0.6, len(rows) - 0.4)
        low, high = axes.get_xlim()
        axes.set_xlim(min(low, SECOND_MS), high * 1.2)
        axes.xaxis.set_major_locator(FixedLocator(WAIT_TICKS_MS))
        axes.xaxis.set_minor_locator(FixedLocator([]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda ms, _: duration(ms)))
        axes.yaxis.set_major_locator(FixedLocator(range(len(rows))))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda row, _: _shortened(rows[int(row)])))

    told = ", ".join(f"{name} {duration(before)} to {duration(after)}" for name, (before, after) in moved.items())
    svg = picture("p95-by-queue", f"p95 wait of queues: {told}", draw, (440, _FRAME_HEIGHT + _ROW_HEIGHT * len(rows)))
    return Picture("p95 wait by queue", svg, legend=(("before", "before (circle)"), ("after", "after (diamond)")))


def p95_over_time(before: Sequence[Waits], after: Sequence[Waits], span_ms: int, until_ms: int) -> Picture:
    """The p95 wait by the time of the request, before and after."""

    def draw(axes: Axes, width: int) -> None:
        for waits, role, style in ((before, "before", "--"), (after, "after", "-")):
            starts = [index * span_ms for index in range(len(waits) + 1)]
            heights = list(map(_p95, waits))
            axes.step(starts, [*heights, *heights[-1:]], where="post", color=colour(role), linestyle=style)
        axes.set_ylim(0)
        axes.set_xlim(0, until_ms)
        durations_up(axes)
        time_across(axes, until_ms, width)

    worst = [duration(max(map(_p95, waits), default=0)) for waits in (before, after)]
    alternative = f"p95 wait by the time of the request; highest {worst[0]} before, {worst[1]} after"
    title = f"p95 wait by time of request ({duration(span_ms)} each)"
    return Picture(title, picture("p95-over-time", alternative, draw), legend=LEGEND)


def preemption_over_time(before: Histogram, after: Histogram, until_ms: int) -> Picture:
    """How many containers had been preempted until when, before and after."""
    span_ms = before.span_ms

    def draw(axes: Axes, width: int) -> None:
        for histogram, role, style in ((before, "before", "--"), (after, "after", "-")):
            totals = _running(histogram)
            starts = [index * span_ms for index in range(len(totals))]
            axes.step([*starts, until_ms], [*totals, *totals[-1:]], where="post", color=colour(role), linestyle=style)
        axes.set_ylim(0)
        axes.set_xlim(0, until_ms)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        time_across(axes, until_ms, width)

    totals = [_running(histogram)[-1] for histogram in (before, after)]
    alternative = f"Containers preempted since the start: {totals[0]} at the end before, {totals[1]} after"
    return Picture("Containers preempted since the start", picture("preempted", alternative, draw), legend=LEGEND)


def _running(histogram: Histogram) -> list[int]:
    bins: Sequence[int] = [sum(column) for column in zip(*histogram.counts.values(), strict=True)]
    return [sum(bins[: index + 1]) for index in range(len(bins))] or [0]


def _p95(waits: Waits) -> int:
    return waits.p95.ms if waits.p95 else 0


def _shortened(name: str) -> str:
    return name if len(name) <= 18 else f"{name[:16]}\u2026"
