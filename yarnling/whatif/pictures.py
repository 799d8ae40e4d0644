"""The pictures of waits and of preemption in a report. Needs matplotlib (the extra `report`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from yarn.times import HOUR_MS, MINUTE_MS, SECOND_MS, duration
from yarnling.report.charts import durations_up, in_two_widths, picture, time_across
from yarnling.report.curves import OTHER_QUEUES, OTHERS
from yarnling.report.inline_svg import QUEUE_COLOURS, colour
from yarnling.report.page import Picture
from yarnling.whatif.series import Histogram
from yarnling.whatif.waits import Waits, WaitTimes

_LINES = ("-", "--", "-.", ":")
_CURVE_POINTS = 200
NODES_HEIGHT = 180
WAIT_TICKS_MS = (SECOND_MS, 10 * SECOND_MS, MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, 10 * HOUR_MS)


def waits_over_time(waits: Sequence[Waits], span_ms: int, until_ms: int) -> Picture:
    """The median and the p95 of the waits of containers, by when they were requested."""
    starts = [index * span_ms for index in range(len(waits))]

    def draw(axes: Axes, width: int) -> None:
        for name, role in (("p95", "pending"), ("p50", "used")):
            values = [getattr(each, name) for each in waits]
            heights = [0 if value is None else value.ms for value in values]
            axes.bar(starts, heights, width=span_ms * 0.92, align="edge", color=colour(role))
        axes.set_xlim(0, until_ms)
        durations_up(axes)
        time_across(axes, until_ms, width)

    worst = max((each.p95.ms for each in waits if each.p95), default=0)
    alternative = f"Waits of containers by the time of their request; the highest p95 is {duration(worst)}"
    legend = (("used", "median"), ("pending", "p95"))
    title = f"Waits by time of request ({duration(span_ms)} each)"
    return Picture(title, picture("waits-over-time", alternative, draw), legend=legend)


def wait_distribution(waits: Mapping[str, WaitTimes], roles: Mapping[str, str]) -> Picture:
    """Draw for each queue the cumulative distribution of its waits. `waits`: {name: its waits}."""
    ordered = [name for name in waits if roles[name] != OTHERS]

    def draw(axes: Axes, width: int) -> None:
        for index, name in enumerate(ordered):
            times, number = sorted(waits[name].exact), len(waits[name])
            ranks = [*range(0, len(times), max(1, len(times) // _CURVE_POINTS)), *range(len(times))[-1:]]
            xs, ys = [max(times[rank], SECOND_MS) for rank in ranks], [(rank + 1) / number for rank in ranks]
            axes.step(xs, ys, where="post", color=colour(roles[name]), linestyle=_LINES[index % len(_LINES)])
        axes.set_xscale("log")
        axes.set_xlabel("wait (logarithmic)")
        axes.set_xlim(SECOND_MS)
        axes.set_ylim(0, 1.02)
        axes.xaxis.set_major_locator(FixedLocator(WAIT_TICKS_MS))
        axes.xaxis.set_minor_locator(FixedLocator([]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda ms, _: duration(ms)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.0f} %"))

    alternative = "Share of containers that waited at most so long, one curve for each queue"
    legend = tuple((roles[name], name) for name in ordered)
    caption = "Left is better. A curve that ends below 100 %: the rest was never allocated."
    svg = picture("wait-distribution", alternative, draw)
    return Picture("Share of containers that waited at most so long", svg, legend=legend, caption=caption)


def nodes_over_time(times_ms: Sequence[int], counts: Sequence[int]) -> Picture:
    """The number of machines over time."""

    def draw(axes: Axes, width: int) -> None:
        axes.fill_between(times_ms, counts, step="post", color=colour("used"), linewidth=0)
        axes.set_xlim(0, times_ms[-1])
        axes.set_ylim(0, max(counts) * 1.06 or 1)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        time_across(axes, times_ms[-1], width)

    alternative = f"Nodes over time: {min(counts)} to {max(counts)}, {counts[-1]} at the end"
    return Picture("Nodes", *in_two_widths("nodes-over-time", alternative, draw, NODES_HEIGHT))


def preemption(histogram: Histogram, roles: Mapping[str, str], until_ms: int) -> Picture:
    """Draw the containers preempted in each span of time, by the queue that lost them. `histogram`: by name."""
    names = sorted(histogram.counts, key=lambda name: -sum(histogram.counts[name]))

    def draw(axes: Axes, width: int) -> None:
        floor = [0] * len(histogram.counts[names[0]])
        starts = [index * histogram.span_ms for index in range(len(floor))]
        for name in names:
            heights = histogram.counts[name]
            axes.bar(starts, heights, histogram.span_ms * 0.92, floor, align="edge", color=colour(roles[name]))
            floor = [below + height for below, height in zip(floor, heights, strict=True)]
        axes.set_xlim(0, until_ms)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        time_across(axes, until_ms, width)

    totals = ", ".join(f"{name} {sum(histogram.counts[name])}" for name in names[:QUEUE_COLOURS])
    legend = {roles[name]: OTHER_QUEUES if roles[name] == OTHERS else name for name in names}
    title = f"Containers preempted ({duration(histogram.span_ms)} each)"
    svg = picture("preemption", f"Containers preempted over time, by queue: {totals}", draw)
    return Picture(title, svg, legend=tuple(legend.items()))
