"""`yarnling timeline` and `yarnling plot`: pictures of a run."""

from __future__ import annotations

from pathlib import Path

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


def write_timeline(run: Path, page: Path | None, svg: Path | None, selection: Selection) -> None:
    """Write the page, the SVG or both; None: not written."""
    if page is None and svg is None:
        raise UsageException("say where to write: -o page.html, --svg picture.svg, or both")
    check_output_file(page, *PAGES)
    check_output_file(svg, PICTURE)
    with reading_arguments():
        timeline = selection.of(read_run(run))
    for path, writer in ((page, html_of), (svg, svg_of)):
        if path is not None:
            write(path, writer(timeline))


def write_plot(run: Path, out: Path) -> None:
    """Write Gantt charts of the containers, and the use of the queues: a page, or a picture if `out` ends with .svg."""
    check_output_file(out, *PAGES, PICTURE)
    if not has_matplotlib():
        raise YarnException("plots need matplotlib: install yarnling[report]")
    with reading_arguments():
        plot, measured = _plot(run)
    is_picture = out.suffix.lower() == PICTURE
    write(out, (plot_svg if is_picture else plot_page)(plot, measured))


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
