"""The headroom of an application over time, above what its user uses, with the user's limit and the queue's guarantee.

Where the top of the areas is the line of the limit, the user's limit decides what the application may still get; where
it is below, the queue's maximum or the free memory of the cluster does. Needs matplotlib (the extra `report`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes

from yarn.resource import MEMORY_MB
from yarnling.report.charts import PANEL, amounts_up, mark_times, picture, time_across
from yarnling.report.curves import HeadroomSeries
from yarnling.report.inline_svg import colour
from yarnling.report.page import Picture
from yarnling.report.wording import amount

HEADROOM_ROLE = "headroom"
_OTHERS = "reserved"
_PANEL = (PANEL[0], 260)
_FAR_LIMIT = 2.5
"""A limit more than so many times as high as the rest is cut off."""


def headroom_legend(drawn: Iterable[HeadroomSeries]) -> tuple[tuple[str, str], ...]:
    """(role of the colour, text) for what is in these pictures."""
    has_others = any(one.used != one.user_used for one in drawn)
    return (
        ("used", "used by the application"),
        *([(_OTHERS, "used by its user's other applications")] if has_others else []),
        (HEADROOM_ROLE, "headroom"),
        ("maximum", "limit of its user"),
        ("guarantee", "guarantee of its queue"),
    )


def headroom_picture(series: HeadroomSeries, number: int, times_ms: Sequence[int] = ()) -> Picture:
    """A panel. `number`: unique on the page; `times_ms`: those to mark."""
    others = [max(0.0, all_ - own) for all_, own in zip(series.user_used, series.used, strict=True)]
    tops = [used + headroom for used, headroom in zip(series.user_used, series.headroom, strict=True)]
    needed = max(*tops, *series.guaranteed, 1.0)
    top = 1.06 * min(max(needed, *series.limit), _FAR_LIMIT * needed)

    def draw(axes: Axes, width: int) -> None:
        roles = [colour(role) for role in ("used", _OTHERS, HEADROOM_ROLE)]
        layers = (series.used, others, series.headroom)
        axes.stackplot(series.times_ms, *layers, colors=roles, step="post", linewidth=0)
        axes.step(series.times_ms, series.limit, where="post", color=colour("maximum"), linewidth=1.5)
        dashed = (0, (5, 3))
        guarantee = colour("guarantee")
        axes.step(series.times_ms, series.guaranteed, where="post", color=guarantee, linewidth=1.8, linestyle=dashed)
        axes.set_xlim(0, series.times_ms[-1])
        axes.set_ylim(0, top)
        amounts_up(axes, MEMORY_MB)
        time_across(axes, series.times_ms[-1], width)
        mark_times(axes, times_ms)

    peaks = (max(values) for values in (series.user_used, series.limit, series.headroom))
    used, limit, headroom = (amount(peak, MEMORY_MB) for peak in peaks)
    title = f"{series.application}: {series.user} in {series.queue}"
    alternative = f"Headroom of {title} over time: at most {headroom}; use at most {used}; limit at most {limit}"
    return Picture(title, picture(f"headroom-{number}", alternative, draw, _PANEL))
