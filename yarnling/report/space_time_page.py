"""The page of a timeline: one HTML file that needs no network.

Texts of the run are only in the title and in sections, which the template escapes, and in the data, which the script
shows as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from yarnling.report.page import Picture
from yarnling.report.space_time_data import OpensAt, embedded, page_data
from yarnling.run.moments import opening
from yarnling.run.names import Names
from yarnling.run.records import RecordedRun

SCRIPTS = ("model.js", "picture.js", "controls.js")


class TextSection(Struct, frozen=True):
    """A text above the diagram, which the reader can open and close. `columns` and `rows`: a table below it, if any.

    `plain`: a text below it with its own line breaks.
    """

    title: str
    paragraphs: tuple[str, ...]
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    plain: str = ""
    is_open: bool = False


def html_of(
    timeline: RecordedRun,
    sections: Sequence[TextSection] = (),
    pictures: Sequence[Picture] = (),
    names: Names | None = None,
    opens_at: OpensAt = opening,
) -> str:
    """The page as one HTML document. `pictures`: above the diagram, with the first section.

    `names`: what applications and containers are called, instead of ids in short. `opens_at`: chooses the moment at
    which the page opens.
    """
    environment = Environment(
        loader=PackageLoader("yarnling.report", "space_time"), autoescape=True, undefined=StrictUndefined
    )
    data = page_data(timeline, names, opens_at)
    return environment.get_template("page.html").render(
        title=timeline.title,
        sections=sections,
        pictures=pictures,
        style=Markup(_asset("page.css") + (_asset("pictures.css") if pictures else "")),
        script=Markup("\n".join(map(_asset, SCRIPTS)).replace('"use strict";\n', "")),
        data=Markup(embedded(data)),
    )


def _asset(name: str) -> str:
    return resources.files("yarnling.report").joinpath("space_time", name).read_text(encoding="utf-8")
