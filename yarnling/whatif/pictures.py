"""The pictures of a report: use of the cluster and of each queue over time, waits, preemption.

Needs matplotlib (the extra `report`). A wide picture is drawn twice, for wide and for narrow pages, so that its text
has the same size on both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from yarn.resource import MEMORY_MB
from yarn.times import HOUR_MS, MINUTE_MS, SECOND_MS, duration
from yarnling.whatif.page import Picture
from yarnling.whatif.series import Histogram, QueueSeries
from yarnling.whatif.svg import QUEUE_COLOURS, colour, drawing, inline_svg
from yarnling.whatif.waits import Wait, Waits
from yarnling.whatif.wording import amount, clock

OTHERS = "others"
"""The role of the colour of queues that have no colour of their own."""
OTHER_QUEUES = "other queues"
_LINES = ("-", "--", "-.", ":")
_CURVE_POINTS = 200
_GB_MB = 1024
PANEL = (440, 210)
WIDE = (1300, 300)
_TICK_STEPS_MS = (
    *(seconds * SECOND_MS for seconds in (1, 2, 5, 10, 15, 30)),
    *(minutes * MINUTE_MS for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720, 1440)),
)
WAIT_TICKS_MS = (SECOND_MS, 10 * SECOND_MS, MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, 10 * HOUR_MS)
_FAR_MAXIMUM = 2.5
"""A maximum more than this many times as high as the rest of the picture is named instead of drawn."""


Draw = Callable[[Axes, int], None]
"""Draws into axes of a picture of this width."""


def picture(name: str, alternative: str, draw: Draw, size: tuple[int, int] = PANEL) -> str:
    """Draw an SVG. `name` must be unique on the page."""
    with drawing(*size) as (figure, axes):
        draw(axes, size[0])
        return inline_svg(figure, alternative, name)


def in_two_widths(name: str, alternative: str, draw: Draw, height: int = 0) -> tuple[str, str]:
    """Draw a picture for wide and for narrow pages. `height`: that of both, if it depends on what is drawn."""
    wide, narrow = (WIDE[0], height or WIDE[1]), (PANEL[0], height or 260)
    return picture(f"{name}-w", alternative, draw, wide), picture(f"{name}-n", alternative, draw, narrow)


def queue_roles(names: Sequence[str], weights: Mapping[str, float]) -> dict[str, str]:
    """{name of a queue: the role of its colour}, the same in all pictures; the heaviest have one of their own."""
    largest = sorted(names, key=lambda name: -weights.get(name, 0))[:QUEUE_COLOURS]
    numbered = enumerate((name for name in names if name in largest), 1)
    return {**dict.fromkeys(names, OTHERS), **{name: f"queue-{number}" for number, name in numbered}}


def cluster_use(
    root: QueueSeries, leaves: Mapping[str, QueueSeries], roles: Mapping[str, str], measured: str, title: str = ""
) -> Picture:
    """The use of all queues on top of one another. `leaves`: {name: curves}, in the order of the tree.

    With a `title` it is one of two pictures side by side, in one size.
    """
    layers = {name: leaves[name].used for name in leaves if roles[name] != OTHERS}
    layer_roles = [roles[name] for name in layers]
    others = [series.used for name, series in leaves.items() if roles[name] == OTHERS]
    if others:
        layers[OTHER_QUEUES] = tuple(map(sum, zip(*others, strict=True)))
        layer_roles.append(OTHERS)

    def draw(axes: Axes, width: int) -> None:
        colours = [colour(role) for role in layer_roles]
        axes.stackplot(root.times_ms, *layers.values(), colors=colours, step="post", linewidth=0)
        axes.step(root.times_ms, root.maximum, where="post", color=colour("maximum"), linewidth=1.5)
        axes.set_ylim(0, _top(max(root.maximum) * 1.06))
        amounts_up(axes, measured)
        time_across(axes, root.times_ms[-1], width)

    alternative = f"Use of the cluster over time, by queue: {', '.join(layers)}"
    legend = (*zip(layer_roles, layers, strict=True), ("maximum", "capacity of the cluster"))
    if title:
        return Picture(title, picture(f"cluster-{title}", alternative, draw), legend=legend)
    return Picture("The cluster", *in_two_widths("cluster-use", alternative, draw), legend)


def queue_use(name: str, series: QueueSeries, measured: str, number: int, top: float | None = None) -> Picture:
    """Draw a queue: used, reserved and pending on top of one another, with its guarantee and its maximum.

    `top`: the height of the picture; None: what `queue_top` says of this queue alone.
    """
    top = queue_top([series]) if top is None else top
    far = "" if max(series.maximum) <= top else f"maximum {amount(max(series.maximum), measured)}"
    filled = [tuple(map(sum, zip(series.used, series.reserved, strict=True)))]
    pending = [max(0.0, min(more, top - below)) for more, below in zip(series.pending, filled[0], strict=True)]

    def draw(axes: Axes, width: int) -> None:
        roles = [colour(role) for role in ("used", "reserved", "pending")]
        axes.stackplot(series.times_ms, series.used, series.reserved, pending, colors=roles, step="post", linewidth=0)
        _bounds(axes, series)
        axes.set_ylim(0, top)
        if far:
            axes.text(
                1,
                1,
                f"{far} \u2191",
                transform=axes.transAxes,
                ha="right",
                va="bottom",
                color=colour("maximum"),
                size=11,
            )
        amounts_up(axes, measured)
        time_across(axes, series.times_ms[-1], width)

    mean = sum(series.used) / len(series.used)
    values = (mean, max(series.used), series.guaranteed[-1], series.maximum[-1])
    average, peak, guaranteed, maximum = (amount(value, measured) for value in values)
    alternative = (
        f"Use of queue {name} over time: {average} on average, {peak} at its peak; guarantee {guaranteed}, "
        f"maximum {maximum}"
    )
    return Picture(name, picture(f"queue-{number}-use", alternative, draw))


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


def wait_distribution(waits: Mapping[str, Sequence[Wait]], roles: Mapping[str, str]) -> Picture:
    """For each queue, which share of its containers waited at most how long. `waits`: {name: its waits, in order}."""
    ordered = [name for name in waits if roles[name] != OTHERS]

    def draw(axes: Axes, width: int) -> None:
        for index, name in enumerate(ordered):
            times = [max(wait.ms, SECOND_MS) for wait in waits[name] if not wait.at_least]
            shares = [(rank + 1) / len(waits[name]) for rank in range(len(times))]
            every = max(1, len(times) // _CURVE_POINTS)
            xs, ys = [*times[::every], *times[-1:]], [*shares[::every], *shares[-1:]]
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


# Axes


def queue_top(curves: Sequence[QueueSeries]) -> float:
    """The height of the picture of a queue: its use and guarantee fit, its maximum too unless that is far above."""
    needed = max(max(*each.used, *each.guaranteed) for each in curves)
    maximum = max(max(each.maximum) for each in curves)
    wanted = max(max(map(sum, zip(each.used, each.reserved, each.pending, strict=True))) for each in curves)
    needed = max(needed, min(wanted, maximum / _FAR_MAXIMUM))
    return _top(1.06 * (maximum if maximum <= _FAR_MAXIMUM * needed else 1.1 * needed))


def _top(value: float) -> float:
    return value or 1.0


def _bounds(axes: Axes, series: QueueSeries) -> None:
    axes.step(series.times_ms, series.maximum, where="post", color=colour("maximum"), linewidth=1.5)
    axes.step(
        series.times_ms,
        series.guaranteed,
        where="post",
        color=colour("guarantee"),
        linewidth=1.8,
        linestyle=(0, (5, 3)),
    )


def time_across(axes: Axes, until_ms: int, width: int) -> None:
    """Hours and minutes since the start of the workload, as many ticks as fit; in a short run seconds and minutes."""
    ticks_max = width // 70
    step = next((step for step in _TICK_STEPS_MS if until_ms <= step * ticks_max), -(-until_ms // ticks_max))
    axes.xaxis.set_major_locator(FixedLocator(list(range(0, until_ms + 1, step))))
    text = duration if step < MINUTE_MS else clock
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ms, _: text(round(ms))))
    axes.grid(visible=False, axis="x")


def amounts_up(axes: Axes, measured: str) -> None:
    """At most five ticks at round amounts of the measured resource type."""
    unit = _GB_MB if measured == MEMORY_MB and axes.get_ylim()[1] > _GB_MB else 1
    _ticks_up(axes, [unit * factor * 10**power for power in range(8) for factor in (1, 2, 5)])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: amount(value, measured) if value else "0"))


def durations_up(axes: Axes) -> None:
    _ticks_up(axes, [unit * factor for unit in (SECOND_MS, MINUTE_MS, HOUR_MS) for factor in (1, 2, 5, 10, 15, 20, 30)])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: duration(ms)))


def _ticks_up(axes: Axes, steps: Sequence[int]) -> None:
    """At most five ticks, at multiples of the smallest step that allows it."""
    top = axes.get_ylim()[1]
    step = next((step for step in sorted(steps) if top <= 5 * step), top / 4)
    axes.yaxis.set_major_locator(FixedLocator([index * step for index in range(int(top // step) + 1)]))
