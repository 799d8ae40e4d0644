"""The report of a simulated workload: report.html for people, result.json and CSV files for programs.

    figures = write_report(result, Path("out"))

The page has its pictures if matplotlib is installed (the extra `report`), and its tables in any case.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from wire.files.full_disk import full_disk_named
from yarn.errors import YarnException
from yarn.settings.scheduler import ROOT
from yarn.times import duration
from yarnling.report.curves import PANELS_MAX, QUEUE_LEGEND
from yarnling.report.page import PICTURES_EXTRA, Notes, Page, PictureGroup, has_matplotlib, html_of
from yarnling.report.wording import count, labels, short_names
from yarnling.whatif.changes import machines
from yarnling.whatif.figures import Figures, figures_of
from yarnling.whatif.headlines import findings, headline, tiles
from yarnling.whatif.report_tables import tables_of
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.result_file import RESULT_JSON, write_result
from yarnling.whatif.series import (
    Histogram,
    all_series,
    nodes_over_time,
    preemptions,
    waits_by_queue,
    waits_over_time,
    whole_series,
)
from yarnling.whatif.tables import write_tables

REPORT_HTML = "report.html"


def make_directory(directory: Path) -> None:
    """Make the directory of a report before the simulation, which may take long. Raises YarnException if there cannot
    be one, or if no file can be written into it.
    """
    remedy = "name another directory for the report"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        in_the_way = next(path for path in (directory, *directory.parents) if path.exists())
        raise YarnException(f"{in_the_way}: this is a file, not a directory ({remedy})") from None
    except OSError as error:
        raise YarnException(f"{directory}: cannot be made: {error.strerror} ({remedy})") from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise YarnException(f"{directory}: must be a directory that you may write to ({remedy})")


def write_report(result: WhatIfResult, directory: Path) -> Figures:
    """Write all files of the report into the directory, which is made if it is missing; returns the figures.

    If that fails midway, no earlier report is left beside the new result.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / REPORT_HTML).unlink(missing_ok=True)
    with full_disk_named(directory / RESULT_JSON):
        write_result(result, directory / RESULT_JSON)
    write_tables(result, directory)
    figures = figures_of(result)
    with full_disk_named(directory / REPORT_HTML):
        (directory / REPORT_HTML).write_text(html_of(report_page(result, figures)), encoding="utf-8")
    return figures


def report_page(result: WhatIfResult, figures: Figures) -> Page:
    """The page of one run."""
    drawn = has_matplotlib()
    return Page(
        title=f"{result.title}: what if",
        subject=subject_of(result),
        headline=headline(figures),
        findings=findings(figures),
        tiles=tiles(figures),
        pictures=_pictures(result, figures) if drawn else (),
        tables=tables_of(figures),
        notes=notes_of(result),
        notice=" ".join(_notices(result, drawn=drawn)),
        footer=f"Seed {result.seed}; {count(result.events)} events simulated in {duration(result.wall_s * 1000)}, "
        f"by the rules of Hadoop {result.release}.",
    )


def _notices(result: WhatIfResult, *, drawn: bool) -> Iterator[str]:
    if not result.is_complete:
        yield f"Incomplete: the simulation was interrupted after {duration(result.until_ms)}."
    if not drawn:
        yield PICTURES_EXTRA


def subject_of(result: WhatIfResult) -> str:
    """The simulated cluster, workload and configuration, in one line."""
    return (
        f"{result.title}: {result.workload} under {result.configuration}; {machines(result)}, "
        f"{duration(result.until_ms)} simulated"
    )


def notes_of(result: WhatIfResult) -> tuple[Notes, ...]:
    """Limits of the result: warnings of the configuration, assumptions of the workload."""
    found = (Notes("Warnings", result.warnings), Notes("Assumptions", result.assumptions))
    return tuple(notes for notes in found if notes.lines)


def _pictures(result: WhatIfResult, figures: Figures) -> tuple[PictureGroup, ...]:
    from yarnling.report.queue_charts import queue_roles

    names = short_names(queue.name for queue in figures.queues)
    short = labels(names.values())
    names = {path: short[name] for path, name in names.items()}
    uses = figures.use_by_queue
    weights = {name: uses[queue].average + uses[queue].pending for queue, name in names.items() if queue in uses}
    roles = queue_roles(tuple(names.values()), weights)
    groups = [
        *_use_pictures(result, figures, names, roles),
        *_node_pictures(result, figures),
        *_wait_pictures(result, figures, names, roles),
    ]
    return tuple(group for group in groups if group.pictures)


def _use_pictures(
    result: WhatIfResult, figures: Figures, names: dict[str, str], roles: dict[str, str]
) -> list[PictureGroup]:
    from yarnling.report import queue_charts

    series, whole = all_series(result, figures), whole_series(result, figures)
    if ROOT not in whole:
        return []
    stack = {name: whole[queue] for queue, name in names.items() if queue in whole}
    leaves = [use for use in figures.uses if use.queue in names]
    chosen = sorted(leaves, key=lambda use: -(use.average + use.pending))[:PANELS_MAX]
    panels = tuple(
        queue_charts.queue_use(use.name_of(names[use.queue]), series[use.queue, use.label], figures.measured, number)
        for number, use in enumerate(leaves)
        if use in chosen
    )
    left_out = len(leaves) - len(panels)
    note = f"{left_out} queues with less use are left out." if left_out else ""
    cluster = queue_charts.cluster_use(whole[ROOT], stack, roles, figures.measured)
    return [
        PictureGroup("Use over time", (cluster,), "Times are hours and minutes since the start of the workload."),
        PictureGroup("Each queue against its guarantee and maximum", panels, note, QUEUE_LEGEND),
    ]


def _node_pictures(result: WhatIfResult, figures: Figures) -> list[PictureGroup]:
    from yarnling.whatif import pictures

    if not figures.nodes.changes:
        return []
    note = "A node counts from its order until it is lost or decommissioned."
    return [PictureGroup("Nodes over time", (pictures.nodes_over_time(*nodes_over_time(result)),), note)]


def _wait_pictures(
    result: WhatIfResult, figures: Figures, names: dict[str, str], roles: dict[str, str]
) -> list[PictureGroup]:
    from yarnling.whatif import pictures

    drawn = []
    if figures.cluster.containers:
        span_ms, over_time = waits_over_time(result)
        by_queue = waits_by_queue(result)
        named = {name: by_queue[queue] for queue, name in names.items() if queue in by_queue}
        drawn.append(pictures.waits_over_time(over_time, span_ms, result.until_ms))
        drawn.append(pictures.wait_distribution(named, roles))
    lost = preemptions(result)
    if lost.counts:
        by_name = Histogram(lost.span_ms, {names[queue]: counts for queue, counts in lost.counts.items()})
        drawn.append(pictures.preemption(by_name, roles, result.until_ms))
    return [PictureGroup("Waits and preemption", tuple(drawn))]
