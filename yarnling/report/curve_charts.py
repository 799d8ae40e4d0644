"""Pictures of values over time, and of values beside one another. Needs matplotlib (the extra `report`)."""

from __future__ import annotations

from matplotlib.axes import Axes

from yarn.times import short_number
from yarnling.report.charts import in_two_widths, time_across
from yarnling.report.curves import OTHERS, Bars, Curves
from yarnling.report.inline_svg import QUEUE_COLOURS, colour
from yarnling.report.page import Picture

_DASHED = (0, (5, 3))
_BAR_HEIGHT = 30
_AXIS_HEIGHT = 40


def curves_picture(curves: Curves, number: int) -> Picture:
    """Draw all curves in one picture, as areas on top of one another or as lines. `number`: unique on the page."""
    roles = [_role(index) for index in range(len(curves.curves))]

    def draw(axes: Axes, width: int) -> None:
        colours = [colour(role) for role in roles]
        if curves.is_stacked:
            layers = [each.values for each in curves.curves]
            axes.stackplot(curves.times_ms, *layers, colors=colours, step="post", linewidth=0)
        else:
            _lines(axes, curves, colours)
        axes.set_xlim(0, curves.times_ms[-1])
        axes.set_ylim(0, 1.06 * _top(curves))
        for index, mark in enumerate(curves.marks, 1):
            axes.axvline(mark.at_ms, color=colour("muted"), linewidth=1, linestyle=":")
            axes.annotate(
                str(index), (mark.at_ms, 1), xycoords=axes.get_xaxis_transform(), xytext=(2, -2),
                textcoords="offset points", va="top", size=11, color=colour("muted"),
            )  # fmt: skip
        axes.set_ylabel(curves.unit)
        time_across(axes, curves.times_ms[-1], width)

    figures = (f"{each.name} at most {short_number(max(each.values))} {curves.unit}" for each in curves.curves)
    legend = tuple(zip(roles, (each.name for each in curves.curves), strict=True))
    caption = "; ".join(f"{index}: {mark.text}" for index, mark in enumerate(curves.marks, 1))
    pictures = in_two_widths(f"curves-{number}", f"{curves.title}: {', '.join(figures)}", draw)
    return Picture(curves.title, *pictures, legend, caption)


def bars_picture(bars: Bars, number: int) -> Picture:
    """Draw a horizontal bar for each value, from top to bottom. `number`: unique on the page."""
    names = [each.name for each in bars.bars]

    def draw(axes: Axes, _: int) -> None:
        places = range(len(bars.bars))
        drawn = axes.barh(places, [each.value for each in bars.bars], height=0.6, color=colour("used"))
        axes.bar_label(drawn, [f"{short_number(each.value)} {bars.unit}" for each in bars.bars], padding=4)
        for place, each in enumerate(bars.bars):
            if each.bound:
                axes.vlines(each.bound, place - 0.4, place + 0.4, color=colour("guarantee"), linewidth=2)
        axes.set_yticks(places, names)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.18 * bars.top)
        axes.grid(visible=False, axis="y")

    figures = (f"{each.name} {short_number(each.value)} {bars.unit}" for each in bars.bars)
    height = _BAR_HEIGHT * len(bars.bars) + _AXIS_HEIGHT
    pictures = in_two_widths(f"bars-{number}", f"{bars.title}: {', '.join(figures)}", draw, height)
    return Picture(bars.title, *pictures)


def _lines(axes: Axes, curves: Curves, colours: list[str]) -> None:
    for each, drawn in zip(curves.curves, colours, strict=True):
        axes.step(curves.times_ms, each.values, where="post", color=drawn)
        if each.bound:
            axes.axhline(each.bound, color=drawn, linewidth=1.2, linestyle=_DASHED)


def _top(curves: Curves) -> float:
    if not curves.is_stacked:
        return curves.top
    return max(map(sum, zip(*(each.values for each in curves.curves), strict=True))) or 1.0


def _role(index: int) -> str:
    return f"queue-{index + 1}" if index < QUEUE_COLOURS else OTHERS
