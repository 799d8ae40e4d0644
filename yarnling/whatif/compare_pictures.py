"""The pictures of a comparison: waits before and after by queue, over time, preemption. Needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator
from msgspec import Struct

from yarn.times import SECOND_MS, duration
from yarnling.report.charts import PANEL, durations_up, in_two_widths, picture, time_across
from yarnling.report.inline_svg import colour
from yarnling.report.page import Picture
from yarnling.report.wording import count
from yarnling.whatif.compare import ChangeVerdict
from yarnling.whatif.measures import MEASURES, Value
from yarnling.whatif.pictures import NODES_HEIGHT, WAIT_TICKS_MS
from yarnling.whatif.series import Histogram
from yarnling.whatif.waits import Waits

LEGEND = (("before", "before"), ("after", "after"))
ROWS_MAX = 24
_ROW_HEIGHT = 30
_FRAME_HEIGHT = 66
_VERDICTS = {ChangeVerdict.BETTER: ("guarantee", "shorter"), ChangeVerdict.WORSE: ("maximum", "longer")}
"""{verdict on a wait: (role of the colour of its text, word)}; a wait that changed little has neither."""


class Moved(Struct, frozen=True):
    """A figure of a queue on both sides; None: nothing to measure, zero in a picture."""

    name: str
    before: Value | None
    after: Value | None
    verdict: ChangeVerdict = ChangeVerdict.SMALL

    @property
    def ends(self) -> tuple[float, float]:
        """The numbers before and after."""
        return self.before.number if self.before else 0, self.after.number if self.after else 0

    @property
    def change(self) -> float:
        """The amount of the change, without a sign."""
        return abs(self.ends[1] - self.ends[0])


def p95_by_queue(waits: Sequence[Moved]) -> Picture:
    """For each wait (of the containers, of the AMs of a queue) a line from its p95 before to that after, the first at
    the top.
    """
    rows = waits[::-1]

    def draw(axes: Axes, width: int) -> None:
        is_wide = width > PANEL[0]
        for row, each in enumerate(rows):
            before, after = (max(ms, SECOND_MS) for ms in each.ends)
            axes.plot([before, after], [row, row], color=colour("muted"), linewidth=1.5, zorder=1)
            axes.scatter([before], [row], s=60, marker="o", color=colour("before"), zorder=2)
            axes.scatter([after], [row], s=70, marker="D", color=colour("after"), zorder=3)
            role, word = _VERDICTS.get(each.verdict, ("muted", ""))
            text = f"{_before_and_after(each)}, {word}" if is_wide and word else _before_and_after(each)
            axes.text(1.01, row, text, transform=axes.get_yaxis_transform(), va="center", color=colour(role))
        axes.set_xscale("log")
        _queues_up(axes, rows)
        axes.set_xlim(*_decades(rows))
        axes.xaxis.set_major_locator(FixedLocator(WAIT_TICKS_MS))
        axes.xaxis.set_minor_locator(FixedLocator([]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda ms, _: duration(ms)))
        axes.set_xlabel("p95 wait, from request to allocation (logarithmic)" if is_wide else "p95 wait (logarithmic)")

    alternative = f"p95 waits by queue: {', '.join(f'{each.name} {_before_and_after(each)}' for each in waits)}"
    height = _FRAME_HEIGHT + _ROW_HEIGHT * len(rows)
    wide, narrow = in_two_widths("p95-by-queue", alternative, draw, height)
    legend = (("before", "before (circle)"), ("after", "after (diamond)"))
    return Picture("p95 waits of containers and of AMs, by queue", wide, narrow, legend)


def missed_by_queue(missed: Sequence[Moved]) -> Picture:
    """Draw for each queue with deadlines how many applications missed theirs, before and after."""
    rows = missed[::-1]

    def draw(axes: Axes, width: int) -> None:
        for row, each in enumerate(rows):
            for number, role, offset in zip(each.ends, ("before", "after"), (0.2, -0.2), strict=True):
                axes.barh(row + offset, number, 0.36, color=colour(role))
                axes.text(number, row + offset, f" {count(number)}", va="center", color=colour("ink"))
        _queues_up(axes, rows)
        axes.set_xlim(0, 1.15 * max(*(number for each in rows for number in each.ends), 1))
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("applications")

    told = ", ".join(f"{each.name} {count(each.ends[0])} to {count(each.ends[1])}" for each in missed)
    size = (PANEL[0], max(PANEL[1], _FRAME_HEIGHT + 2 * _ROW_HEIGHT * len(rows)))
    svg = picture("missed-by-queue", f"Applications that missed their deadline: {told}", draw, size)
    return Picture("Missed deadlines by queue", svg, legend=LEGEND)


def p95_over_time(before: Sequence[Waits], after: Sequence[Waits], span_ms: int, until_ms: int) -> Picture:
    """The p95 wait by the time of the request, before and after."""

    def draw(axes: Axes, width: int) -> None:
        for waits, role, style in ((before, "before", "--"), (after, "after", "-")):
            starts = [index * span_ms for index in range(len(waits) + 1)]
            heights = [_p95(each) if each.count else math.nan for each in waits]
            axes.step(starts, [*heights, *heights[-1:]], where="post", color=colour(role), linestyle=style)
        axes.set_ylim(0)
        axes.set_xlim(0, until_ms)
        durations_up(axes)
        time_across(axes, until_ms, width)
        axes.set_xlabel("time of the request")

    worst = [duration(max(map(_p95, waits), default=0)) for waits in (before, after)]
    alternative = f"p95 wait by the time of the request; highest {worst[0]} before, {worst[1]} after"
    title = f"p95 wait of all containers by time of request ({duration(span_ms)} each)"
    return Picture(title, picture("p95-over-time", alternative, draw), legend=LEGEND)


def nodes_over_time(before: tuple[Sequence[int], Sequence[int]], after: tuple[Sequence[int], Sequence[int]]) -> Picture:
    """The number of machines over time, before and after: (times in ms, numbers) of each side."""
    until_ms = max(before[0][-1], after[0][-1])

    def draw(axes: Axes, width: int) -> None:
        for (times_ms, counts), role, style in ((before, "before", "--"), (after, "after", "-")):
            axes.step(times_ms, counts, where="post", color=colour(role), linestyle=style)
        axes.set_ylim(0, max(*before[1], *after[1]) * 1.06 or 1)
        axes.set_xlim(0, until_ms)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        time_across(axes, until_ms, width)

    ranges = [f"{min(counts)} to {max(counts)}" for _, counts in (before, after)]
    alternative = f"Nodes over time: {ranges[0]} before, {ranges[1]} after"
    return Picture("Nodes", *in_two_widths("nodes-over-time", alternative, draw, NODES_HEIGHT), LEGEND)


def preemption_over_time(before: Histogram, after: Histogram, until_ms: int) -> Picture:
    """Draw the number of containers preempted so far, before and after."""
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


def most_changed(figures: Sequence[Moved]) -> list[Moved]:
    """The rows of a picture in their order: all if they fit, else those that changed, as many as fit."""
    if len(figures) <= ROWS_MAX:
        return list(figures)
    changed = [each for each in figures if each.verdict is not ChangeVerdict.SMALL]
    chosen = sorted(changed, key=lambda each: -each.change)[:ROWS_MAX]
    return [each for each in figures if each in chosen]


def _queues_up(axes: Axes, rows: Sequence[Moved]) -> None:
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.yaxis.set_major_locator(FixedLocator(range(len(rows))))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda row, _: rows[int(row)].name))


def _decades(rows: Sequence[Moved]) -> tuple[float, float]:
    """The ends of the axis of waits: a tick below the shortest, and some room beyond the longest."""
    ends = [max(ms, SECOND_MS) for each in rows for ms in each.ends]
    return max(tick for tick in WAIT_TICKS_MS if tick <= min(ends)) / 1.3, max(*ends, 10 * min(ends)) * 1.3


def _before_and_after(each: Moved) -> str:
    written = MEASURES["p95 wait"].written
    return f"{written(each.before)} \u2192 {written(each.after)}"
