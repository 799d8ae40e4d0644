"""A page of a report: what it consists of, and its HTML, one file that needs no network.

Everything in it is quoted by the template, except the SVG of pictures, in which texts are already quoted, and control
characters are escaped: the names of queues, users and applications come from others.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from msgspec import Struct

from yarnling.report.escapes import shown
from yarnling.report.spans import MarkedTime

TEMPLATES = Path(__file__).with_name("templates")
ROWS_OPEN_MAX = 12
"""A table with more rows is folded, so that what follows it is found."""
PICTURES_EXTRA = "Pictures need matplotlib: install yarnling[report] and write the report again."


class Tile(Struct, frozen=True):
    """A large number with its meaning. `is_bad`: it wants attention."""

    value: str
    label: str
    note: str = ""
    is_bad: bool = False


class Picture(Struct, frozen=True):
    """A picture with its title. `wide` and `narrow` are SVG; `narrow`, if any, is for narrow pages. `legend`: (role of
    the colour, text).
    """

    title: str
    wide: str
    narrow: str = ""
    legend: tuple[tuple[str, str], ...] = ()
    caption: str = ""


class PictureGroup(Struct, frozen=True):
    """Pictures that belong together, with the legend that they share."""

    title: str
    pictures: tuple[Picture, ...]
    note: str = ""
    legend: tuple[tuple[str, str], ...] = ()
    is_paired: bool = False
    """The pictures are pairs, side by side on a wide page."""


class Table(Struct, frozen=True):
    """A table of a page.

    `text_columns`: how many of the columns, from the left, are texts; the others are numbers. Without rows it is
    only its note.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    text_columns: int = 1

    @property
    def is_folded(self) -> bool:
        """True if its rows are seen only after a click, because there are many."""
        return len(self.rows) > ROWS_OPEN_MAX


class Notes(Struct, frozen=True):
    title: str
    lines: tuple[str, ...]


class Page(Struct, frozen=True):
    """The content of a page.

    `subject`: what was simulated; `headline`: the answer; `notice`: what to know before the pictures. `changes`:
    what was changed, before the answer. `links`: (address, text) of pages about the same. `marks`: moments, each with a
    line in the pictures that is seen once the moment is chosen.
    """

    title: str
    subject: str
    headline: str
    findings: tuple[str, ...]
    tiles: tuple[Tile, ...]
    pictures: tuple[PictureGroup, ...]
    tables: tuple[Table, ...]
    notes: tuple[Notes, ...] = ()
    notice: str = ""
    footer: str = ""
    changes: Table | None = None
    links: tuple[tuple[str, str], ...] = ()
    marks: tuple[MarkedTime, ...] = ()


class Fragment(Struct, frozen=True):
    """A part of a page that is not ours, such as a notebook."""

    headline: str
    lines: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()


def has_matplotlib() -> bool:
    """True if pictures can be drawn."""
    return importlib.util.find_spec("matplotlib") is not None


def html_of(page: Page) -> str:
    """The page as one HTML document."""
    return _rendered("page.html", page=page)


def html_of_fragment(fragment: Fragment) -> str:
    """The fragment as one element."""
    return _rendered("fragment.html", fragment=fragment)


def _rendered(template: str, **content: Page | Fragment) -> str:
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
    return shown(environment.get_template(template).render(content))
