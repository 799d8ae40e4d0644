"""Charts: a picture in one or two widths, and axes of times, durations and amounts.

Needs matplotlib (the extra `report`). A wide picture is drawn twice, for wide and for narrow pages, so that its text
has the same size on both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter

from yarn.resource import MEMORY_MB
from yarn.times import HOUR_MS, MINUTE_MS, SECOND_MS, duration
from yarnling.report.inline_svg import MARK, colour, drawing, inline_svg
from yarnling.report.wording import amount, clock

_GB_MB = 1024
PANEL = (440, 210)
WIDE = (1300, 300)
_TICK_STEPS_MS = (
    *(seconds * SECOND_MS for seconds in (1, 2, 5, 10, 15, 30)),
    *(minutes * MINUTE_MS for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720, 1440)),
)

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


def time_across(axes: Axes, until_ms: int, width: int) -> None:
    """Hours and minutes since the start of the workload, as many ticks as fit; in a short run seconds and minutes."""
    ticks_max = width // 70
    step = next((step for step in _TICK_STEPS_MS if until_ms <= step * ticks_max), -(-until_ms // ticks_max))
    axes.xaxis.set_major_locator(FixedLocator(list(range(0, until_ms + 1, step))))
    text = duration if step < MINUTE_MS else clock
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ms, _: text(round(ms))))
    axes.grid(visible=False, axis="x")


def mark_times(axes: Axes, times_ms: Sequence[int]) -> None:
    """Draw a line at each of these times, which the page shows when its number is chosen."""
    for number, at_ms in enumerate(times_ms):
        axes.axvline(at_ms, color=colour("ink"), linewidth=1.4, gid=f"{MARK}{number}")


def amounts_up(axes: Axes, measured: str) -> None:
    """Set at most five ticks, at round amounts of the measured resource type."""
    unit = _GB_MB if measured == MEMORY_MB and axes.get_ylim()[1] > _GB_MB else 1
    _ticks_up(axes, [unit * factor * 10**power for power in range(8) for factor in (1, 2, 5)])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: amount(value, measured) if value else "0"))


def durations_up(axes: Axes) -> None:
    _ticks_up(axes, [unit * factor for unit in (SECOND_MS, MINUTE_MS, HOUR_MS) for factor in (1, 2, 5, 10, 15, 20, 30)])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: duration(ms)))


def _ticks_up(axes: Axes, steps: Sequence[int]) -> None:
    """Set at most five ticks, at multiples of the smallest step for which five suffice."""
    top = axes.get_ylim()[1]
    step = next((step for step in sorted(steps) if top <= 5 * step), top / 4)
    axes.yaxis.set_major_locator(FixedLocator([index * step for index in range(int(top // step) + 1)]))
