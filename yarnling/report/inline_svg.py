"""Pictures as inline SVG: small, sharp, with text that can be selected, in the colours of the page they are part of.

matplotlib draws with colours that stand for roles (`ROLES`); they are replaced by CSS variables, so that one picture
fits the light and the dark page. Text stays text, in the font of the page, and is never read as mathematics: names of
queues come from other users.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

QUEUE_COLOURS = 8
"""The number of colours for queues; further queues are drawn together."""
_FIXED_ROLES = (
    "ink",
    "muted",
    "grid",
    "panel",
    "used",
    "reserved",
    "pending",
    "headroom",
    "guarantee",
    "maximum",
    "before",
    "after",
)
ROLES = (*_FIXED_ROLES, *(f"queue-{number}" for number in range(1, QUEUE_COLOURS + 1)), "others")
_COLOURS = {role: f"#0000{number:02x}" for number, role in enumerate(ROLES, 1)}
# Any: matplotlib names the type of these keys in its stubs only.
_STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 12,
    "axes.labelsize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.linewidth": 0.8,
    "ytick.major.size": 0,
    "xtick.major.size": 3,
    "axes.xmargin": 0,
    "hatch.linewidth": 0.8,
    "lines.linewidth": 2,
}
_UNITS_AN_INCH = 72
"""matplotlib's SVG has 72 units an inch; a unit is about a pixel of the page."""


MARK = "mark-"
"""The beginning of the ids of lines that a page shows when it is asked to; they become classes."""


def colour(role: str) -> str:
    """The colour to draw with for a role; the page decides what it looks like."""
    return _COLOURS[role]


@contextmanager
def drawing(width: int, height: int) -> Iterator[tuple[Figure, Axes]]:
    """A figure of this size in pixels with one pair of axes, in the style of the report."""
    ink = {"text.color": "ink", "axes.labelcolor": "muted", "axes.edgecolor": "muted", "grid.color": "grid"}
    ticks = {"xtick.color": "muted", "ytick.color": "muted"}
    style: Any = {**_STYLE, **{key: colour(role) for key, role in {**ink, **ticks}.items()}}
    with mpl.rc_context(style):
        figure = Figure(figsize=(width / _UNITS_AN_INCH, height / _UNITS_AN_INCH), layout="constrained")
        figure.patch.set_alpha(0)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0)
        yield figure, axes


def inline_svg(figure: Figure, alternative: str, name: str) -> str:
    """The figure as an <svg> element. `alternative`: what it shows, for those who cannot see it; `name`: unique on the
    page, the prefix of the ids in it.
    """
    buffer = io.StringIO()
    no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with mpl.rc_context({"svg.hashsalt": name, **_STYLE}):
        figure.savefig(buffer, format="svg", metadata=no_metadata, transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' (?:width|height)="[\d.]+pt"', "", text, count=2)
    text = re.sub(r"<[^>]*>", lambda tag: _on_the_page(tag[0], name), text)
    return text.replace("<svg", f'<svg role="img" aria-label="{html.escape(alternative)}"', 1)


def _on_the_page(tag: str, name: str) -> str:
    """A tag with ids of its own picture, in the font and the colours of the page. What is between tags is text."""
    tag = re.sub(rf'\bid="{MARK}(\d+)"', rf'class="mark {MARK}\1"', tag)
    tag = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", tag)
    tag = re.sub(r'font: ?(\d+)[^;"]*', r"font-size: \1px", tag)
    for role, drawn in _COLOURS.items():
        tag = tag.replace(drawn, f"var(--{role})")
    return tag
