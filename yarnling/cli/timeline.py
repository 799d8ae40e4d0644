"""`yarnling timeline` and `yarnling plot`: pictures of a run."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from rich.text import Text

from yarn.errors import YarnException
from yarnling.cli.shared.arguments import UsageException, check_output_file, reading_arguments
from yarnling.cli.shared.output import terminal
from yarnling.report.escapes import shown
from yarnling.report.page import has_matplotlib
from yarnling.report.plot_page import plot_page, plot_svg
from yarnling.report.space_time_page import html_of
from yarnling.report.space_time_svg import svg_of
from yarnling.report.spans import Plot
from yarnling.run.reader import read_run
from yarnling.timeline.plot_data import MEASURED, plot_of_timeline
from yarnling.timeline.selection import Selection
from yarnling.whatif.figures import figures_of
from yarnling.whatif.result_file import RESULT_JSON, read_result
from yarnling.whatif.series import all_series, plot_of_result

PAGES = (".html", ".htm")
PICTURE = ".svg"


class TimelineOptions(Struct, frozen=True):
    """`page`, `svg`: where to write; None: not written."""

    run: Path
    page: Path | None
    svg: Path | None
    selection: Selection


def write_timeline(options: TimelineOptions) -> None:
    """Write the page, the SVG or both."""
    if options.page is None and options.svg is None:
        raise UsageException("say where to write: -o page.html, --svg picture.svg, or both")
    check_output_file(options.page, *PAGES)
    check_output_file(options.svg, PICTURE)
    with reading_arguments():
        timeline = options.selection.of(read_run(options.run))
    for path, writer in ((options.page, html_of), (options.svg, svg_of)):
        if path is not None:
            write(path, writer(timeline))


class PlotOptions(Struct, frozen=True):
    """`out`: where to write a page, or a picture if it ends with .svg."""

    run: Path
    out: Path


def write_plot(options: PlotOptions) -> None:
    """Write Gantt charts of the containers, and the use of the queues."""
    check_output_file(options.out, *PAGES, PICTURE)
    if not has_matplotlib():
        raise YarnException("plots need matplotlib: install yarnling[report]")
    with reading_arguments():
        plot, measured = _plot(options.run)
    is_picture = options.out.suffix.lower() == PICTURE
    write(options.out, (plot_svg if is_picture else plot_page)(plot, measured))


def _plot(run: Path) -> tuple[Plot, str]:
    """The data to plot, and what the curves of queues measure."""
    file = run / RESULT_JSON if run.is_dir() else run
    if not (file.is_file() and file.suffix == ".json"):
        return plot_of_timeline(read_run(run)), MEASURED
    result = read_result(file)
    figures = figures_of(result)
    return plot_of_result(result, list(all_series(result, figures).values())), figures.measured


def write(path: Path, text: str) -> None:
    """Write a file, and print that it is written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise YarnException(f"{path}: cannot be written: {error.strerror} (name another file)") from None
    terminal().print(Text(f"Written: {shown(str(path))} ({len(text) / 1e6:.1f} MB)"), soft_wrap=True)
