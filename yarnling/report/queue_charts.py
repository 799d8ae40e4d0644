"""Pictures of the use of queues over time. Needs matplotlib (the extra `report`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from yarnling.report.charts import amounts_up, in_two_widths, mark_times, picture, time_across
from yarnling.report.curves import OTHER_QUEUES, OTHERS, QueueSeries
from yarnling.report.inline_svg import QUEUE_COLOURS, colour
from yarnling.report.page import Picture
from yarnling.report.wording import amount

_FAR_MAXIMUM = 2.5
"""A maximum more than this many times as high as the rest of the picture is named instead of drawn."""


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


def queue_use(
    name: str,
    series: QueueSeries,
    measured: str,
    number: int,
    top: float | None = None,
    times_ms: Sequence[int] = (),
) -> Picture:
    """Draw a queue: used, reserved and pending on top of one another, with its guarantee and its maximum.

    `top`: the height of the picture; None: what `queue_top` says of this queue alone. `times_ms`: those to mark.
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
        mark_times(axes, times_ms)

    mean = sum(series.used) / len(series.used)
    values = (mean, max(series.used), series.guaranteed[-1], series.maximum[-1])
    average, peak, guaranteed, maximum = (amount(value, measured) for value in values)
    alternative = (
        f"Use of queue {name} over time: {average} on average, {peak} at its peak; guarantee {guaranteed}, "
        f"maximum {maximum}"
    )
    return Picture(name, picture(f"queue-{number}-use", alternative, draw))


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
