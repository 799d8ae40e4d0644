"""The picture of a search: each configuration by two figures, with the limits of the goals. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter
from msgspec import Struct

from yarn.times import SECOND_MS, duration
from yarnling.report.charts import in_two_widths
from yarnling.report.inline_svg import colour
from yarnling.report.page import Picture
from yarnling.whatif.pictures import WAIT_TICKS_MS

LEGEND = (
    ("before", "as it is (circle)"),
    ("after", "the best (diamond)"),
    ("muted", "others; the lines are the goals"),
)
_HEIGHT = 320
_CAPTION = "The figures of the worst seed; of the first, where that was already worse than another configuration."


class FigureOfTrials(Struct, frozen=True):
    """A figure of each configuration: its `name`, its numbers, and the limit of the goal, None without one."""

    name: str
    numbers: tuple[float, ...]
    limit: float | None
    is_duration: bool


def tried(across: FigureOfTrials, up: FigureOfTrials, best: int) -> Picture:
    """Draw the configurations by two figures: the first is that before the search, `best` the position of the best."""

    def draw(axes: Axes, width: int) -> None:
        first, second = (_shown(each) for each in (across, up))
        axes.scatter(first, second, s=22, color=colour("muted"), zorder=1)
        for position, role, marker in ((0, "before", "o"), (best, "after", "D")):
            axes.scatter(first[position], second[position], s=70, color=colour(role), marker=marker, zorder=3)
        if across.is_duration:
            axes.set_xscale("log")
            _durations(axes.xaxis, across)
        if up.is_duration:
            axes.set_yscale("log")
            _durations(axes.yaxis, up)
        if across.limit is not None:
            axes.axvline(_at_least_a_second(across.limit, across), color=colour("maximum"), linestyle="--")
        if up.limit is not None:
            axes.axhline(_at_least_a_second(up.limit, up), color=colour("maximum"), linestyle="--")
        axes.margins(0.04)
        axes.set_xlabel(across.name)
        axes.set_ylabel(up.name)

    alternative = f"{len(across.numbers)} configurations by {across.name} and {up.name}"
    wide, narrow = in_two_widths("tried", alternative, draw, _HEIGHT)
    return Picture(f"All configurations: {across.name} and {up.name}", wide, narrow, LEGEND, _CAPTION)


def _shown(figure: FigureOfTrials) -> list[float]:
    return [_at_least_a_second(number, figure) for number in figure.numbers]


def _at_least_a_second(number: float, figure: FigureOfTrials) -> float:
    return max(number, SECOND_MS) if figure.is_duration else number


def _durations(axis: Axis, figure: FigureOfTrials) -> None:
    axis.set_major_locator(FixedLocator(_ticks(_shown(figure))))
    axis.set_minor_locator(FixedLocator([]))
    axis.set_major_formatter(FuncFormatter(lambda ms, _: duration(ms)))


def _ticks(numbers: Sequence[float]) -> list[float]:
    """The ticks of a logarithmic scale; finer ones where the figures are within one decade."""
    if max(numbers) > 10 * min(numbers):
        return list(map(float, WAIT_TICKS_MS))
    return sorted({float(tick * part) for tick in WAIT_TICKS_MS for part in (1, 2, 3, 4, 5, 6)})
