"""The report of a comparison: one page, with what differs, who gains and who pays, and both sides side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wire.files.full_disk import full_disk_named
from yarn.settings.scheduler import ROOT
from yarn.times import HOUR_MS, duration
from yarnling.report.curves import QUEUE_LEGEND
from yarnling.report.page import PICTURES_EXTRA, Notes, Page, Picture, PictureGroup, Table, has_matplotlib, html_of
from yarnling.report.wording import count
from yarnling.whatif.changes import about_changes, changes_of
from yarnling.whatif.compare import (
    Balance,
    ChangeVerdict,
    Comparison,
    Difference,
    ParentBalance,
    ends_of,
    nodes_differ,
)
from yarnling.whatif.compare_words import findings, headline, labels_of, tiles
from yarnling.whatif.error_margins import margin_of, with_margin
from yarnling.whatif.expectations import Checked, median_of
from yarnling.whatif.figures import Figures, GroupFigures
from yarnling.whatif.measures import MEASURES, Scope, Value, value_of
from yarnling.whatif.report import REPORT_HTML, subject_of
from yarnling.whatif.report_tables import ROWS_MAX, table_of
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.series import nodes_over_time, preemptions, span_ms, waits_over_time, whole_series
from yarnling.workload.calibration import Calibration

if TYPE_CHECKING:
    from yarnling.whatif.compare_pictures import Moved  # Needs matplotlib.

COMPARE_HTML = "compare.html"
PAIRS_MAX = 12
"""The most queues that are drawn side by side. If there are more, only queues that changed are."""
BROKEN_MAX = 3
"""The most expectations that are written above the pictures; the table has all."""
SIDES = ("before", "after")
"""The directories of the reports of both sides, below that of the comparison."""
WHY = "main reason of the longer wait"
ABOUT_REASONS = (
    "Main reason: the share of the waiting time, on the side where it is longer, and one wait as an example."
)


def write_comparison(
    comparison: Comparison, runs: tuple[WhatIfResult, WhatIfResult], checked: Sequence[Checked], directory: Path
) -> Path:
    """Write compare.html into the directory, which is made if it is missing; returns its path. `runs`: one run of each
    side, from which the pictures are made.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / COMPARE_HTML
    with full_disk_named(path):
        path.write_text(html_of(comparison_page(comparison, runs, checked)), encoding="utf-8")
    return path


def comparison_page(
    comparison: Comparison, runs: tuple[WhatIfResult, WhatIfResult], checked: Sequence[Checked]
) -> Page:
    """The page of a comparison, in the directory in which the reports of both sides are."""
    before, after = runs
    drawn = has_matplotlib()
    seeds = len(comparison.after)
    tables = (
        _expectations(checked),
        _differences(comparison),
        _parents(comparison),
        *_balances(comparison),
        _all(comparison),
    )
    return Page(
        title=f"{after.title}: before and after",
        subject=f"{after.workload} under {before.configuration} (before) and {after.configuration} (after)",
        headline=headline(comparison),
        findings=(*_broken(checked), *_doubts(checked), *findings(comparison)),
        tiles=tiles(comparison),
        pictures=_pictures(comparison, runs) if drawn else (),
        tables=tuple(table for table in tables if table.rows),
        notes=_notes(runs),
        notice="" if drawn else PICTURES_EXTRA,
        footer=f"{count(seeds)} {'run' if seeds == 1 else 'runs with different seeds'} of each configuration.",
        changes=_changes(before, after),
        links=tuple((f"{side}/{REPORT_HTML}", f"Report {side} the change") for side in SIDES),
    )


def _broken(checked: Sequence[Checked]) -> tuple[str, ...]:
    broken = [each for each in checked if not each.holds]
    if len(broken) > BROKEN_MAX:
        return (f"{len(broken)} of {len(checked)} expectations do not hold",)
    return tuple(f"Does not hold: {each.text} ({each.value})" for each in broken)


def _doubts(checked: Sequence[Checked]) -> tuple[str, ...]:
    """Sentences about expectations that hold, but could not be checked completely."""
    return tuple(
        f"Holds, as far as it could be checked: {each.text}: {each.warning}"
        for each in checked
        if each.holds and each.warning
    )


def _measured(checked: Checked) -> str:
    return f"{checked.value}; warning: {checked.warning}" if checked.warning else checked.value


def _changes(before: WhatIfResult, after: WhatIfResult) -> Table:
    """The table of changes between the sides."""
    rows = tuple((each.what, each.before, each.after) for each in changes_of(before, after))
    note = about_changes(before, after)
    return Table("What was changed", ("", "before", "after"), rows, note, text_columns=3)


def _expectations(checked: Sequence[Checked]) -> Table:
    rows = tuple((each.text, "holds" if each.holds else "does not hold", _measured(each)) for each in checked)
    return Table("Expectations", ("expectation", "", "measured"), rows, text_columns=3)


def _differences(comparison: Comparison) -> Table:
    note = "Most important first; medians over the seeds." if len(comparison.after) > 1 else "Most important first."
    rows = (
        (
            str(each.scope),
            each.measure.name,
            "" if each.verdict is ChangeVerdict.OTHER else each.verdict.value,
            _why(comparison, each),
            each.measure.written(each.before),
            each.after_text,
        )
        for each in (*comparison.differences, *comparison.noise)
    )
    columns = ("of", "measure", "", WHY, "before", "after")
    return table_of("What differs", columns, rows, f"{note} {ABOUT_REASONS}", texts=4)


def _why(comparison: Comparison, changed: Difference | Balance | ParentBalance) -> str:
    reason = comparison.reason(changed)
    return reason.long() if reason else ""


def _balances(comparison: Comparison) -> tuple[Table, ...]:
    """The tables of the queues or users that pay, and of those that gain."""
    tables = []
    for kind in ("queue", "user"):
        balances = [each for each in comparison.balances if each.scope.kind == kind]
        rows = (
            (
                each.scope.name,
                "pays" if each.change_ms > 0 else "gains",
                _why(comparison, each),
                duration(each.before_ms),
                each.after_text,
                count(each.containers),
                f"{each.total_ms / HOUR_MS:+,.1f}",
            )
            for each in ends_of(balances, ROWS_MAX)
        )
        columns = (kind, "", WHY, "mean wait before", "after", "containers", "container-hours of waiting")
        note = f"Those who wait longer than before come first. {ABOUT_REASONS}"
        if len(balances) > ROWS_MAX:
            note += f" {len(balances) - ROWS_MAX} {kind}s between them are left out."
        tables.append(table_of(f"Who gains and who pays, by {kind}", columns, rows, note, texts=3))
    return tuple(tables)


def _parents(comparison: Comparison) -> Table:
    """A table of the parent queues that pay or gain, a line each; none if few queues do."""
    rows = tuple(
        (each.parent, _why(comparison, each), str(each.paying), str(each.gaining), f"{each.total_ms / HOUR_MS:+,.1f}")
        for each in comparison.parents()
    )
    columns = ("parent", WHY, "queues that pay", "queues that gain", "container-hours of waiting")
    note = "The sums of the queues below each parent whose waits changed; those that pay most come first."
    return table_of("Who gains and who pays, by parent queue", columns, rows, note, texts=2)


def _all(comparison: Comparison) -> Table:
    """The main figures of all queues on both sides."""
    rows = []
    sides = [{queue.name: queue for queue in runs[0].queues} for runs in (comparison.before, comparison.after)]
    for name in dict.fromkeys((*sides[0], *sides[1])):
        cells = []
        for side, calibration in zip(sides, (None, comparison.calibration), strict=True):
            queue = side.get(name)
            cells.append((_p95(queue, calibration), count(queue.lost.containers)) if queue else ("-", "-"))
        rows.append((name, *(cell for pair in zip(*cells, strict=True) for cell in pair)))
    columns = ("queue", "p95 wait before", "after", "preempted before", "after")
    return table_of("All queues", columns, rows, "Of the first seed.")


def _p95(queue: GroupFigures, calibration: Calibration | None) -> str:
    """The p95 wait of a queue, with its error if there is a calibration."""
    measure, scope = MEASURES["p95 wait"], Scope("queue", queue.name)
    wait = queue.waits.p95
    value = None if wait is None else Value(wait.ms, wait.at_least)
    return with_margin(measure, value, margin_of(measure, scope, value, calibration))


def warnings_of(runs: tuple[WhatIfResult, WhatIfResult]) -> tuple[str, ...]:
    """The warnings of both sides, each once."""
    before, after = runs
    return tuple(dict.fromkeys((*before.warnings, *after.warnings)))


def _notes(runs: tuple[WhatIfResult, WhatIfResult]) -> tuple[Notes, ...]:
    before, after = runs
    lines = (f"Before: {subject_of(before)}", f"After: {subject_of(after)}")
    assumptions = tuple(dict.fromkeys((*before.assumptions, *after.assumptions)))
    found = (Notes("Compared", lines), Notes("Warnings", warnings_of(runs)), Notes("Assumptions", assumptions))
    return tuple(notes for notes in found if notes.lines)


def _pictures(comparison: Comparison, runs: tuple[WhatIfResult, WhatIfResult]) -> tuple[PictureGroup, ...]:
    groups = (_waits(comparison, runs), _nodes(comparison, runs), *_use(comparison, runs))
    return tuple(group for group in groups if group.pictures)


def _waits(comparison: Comparison, runs: tuple[WhatIfResult, WhatIfResult]) -> PictureGroup:
    from yarnling.whatif import compare_pictures as pictures

    until_ms = max(run.until_ms for run in runs)
    drawn: list[Picture] = []
    waits = pictures.most_changed(_moved(comparison, {"p95 wait": "{}", "p95 AM wait": "{} AMs"}))
    missed = pictures.most_changed(_moved(comparison, {"missed deadlines": "{}"}))
    if waits:
        drawn.append(pictures.p95_by_queue(waits))
    if missed:
        drawn.append(pictures.missed_by_queue(missed))
    if comparison.after[0].cluster.containers:
        (_, first), (_, second) = (waits_over_time(run, until_ms) for run in runs)
        drawn.append(pictures.p95_over_time(first, second, span_ms(until_ms), until_ms))
    lost = [preemptions(run, until_ms) for run in runs]
    if lost[0].counts or lost[1].counts:
        drawn.append(pictures.preemption_over_time(lost[0], lost[1], until_ms))
    title = "Waits, deadlines and preemption" if missed else "Waits and preemption"
    return PictureGroup(title, tuple(drawn), "Times since the start of the workload.")


def _nodes(comparison: Comparison, runs: tuple[WhatIfResult, WhatIfResult]) -> PictureGroup:
    from yarnling.whatif import compare_pictures as pictures

    before, after = runs
    if not nodes_differ((*comparison.before, *comparison.after)):
        return PictureGroup("Nodes over time", ())
    drawn = pictures.nodes_over_time(nodes_over_time(before), nodes_over_time(after))
    return PictureGroup("Nodes over time", (drawn,), "A node counts from its order until it is lost or decommissioned.")


def _moved(comparison: Comparison, measures: dict[str, str]) -> list[Moved]:
    """The measures of the queues that both sides have, as the headline says them: medians over the seeds, and what was
    found to differ. `measures`: {measure: the name of its row, with {} for the queue}. Without those that are zero.
    """
    from yarnling.whatif.compare_pictures import Moved

    names, verdicts = labels_of(comparison), {(each.scope, each.measure.name): each for each in comparison.differences}
    first, second = ([queue.name for queue in runs[0].queues] for runs in (comparison.before, comparison.after))
    found = []
    for scope in (Scope("queue", path) for path in first if path in second):
        for name, row in measures.items():
            sides = (comparison.before, comparison.after)
            before, after = (median_of([value_of(MEASURES[name], scope, run) for run in runs]) for runs in sides)
            differs = verdicts.get((scope, name))
            verdict = differs.verdict if differs else ChangeVerdict.SMALL
            moved = Moved(row.format(names[scope.name]), before, after, verdict)
            if any(moved.ends):
                found.append(moved)
    return found


def _use(comparison: Comparison, runs: tuple[WhatIfResult, WhatIfResult]) -> list[PictureGroup]:
    """Both sides side by side: the cluster, then the queues, each pair with the same height."""
    from yarnling.report import queue_charts

    names = labels_of(comparison)
    figures = (comparison.before[0], comparison.after[0])
    series = [whole_series(run, each) for run, each in zip(runs, figures, strict=True)]
    if not all(ROOT in each for each in series):
        return []
    leaves = [
        [queue.name for queue in each.queues if queue.name in curves]
        for each, curves in zip(figures, series, strict=True)
    ]
    roles = queue_charts.queue_roles(
        [names[path] for path in dict.fromkeys((*leaves[0], *leaves[1]))], _weights(figures, names)
    )
    measured = figures[1].measured
    cluster = tuple(
        queue_charts.cluster_use(curves[ROOT], {names[path]: curves[path] for path in paths}, roles, measured, when)
        for curves, paths, when in zip(series, leaves, ("before", "after"), strict=True)
    )
    both = [path for path in leaves[0] if path in leaves[1]]
    chosen = both if len(both) <= PAIRS_MAX else _most_changed(comparison, both)
    panels = []
    for number, path in enumerate(path for path in both if path in chosen):
        pair = [each[path] for each in series]
        top = queue_charts.queue_top(pair)
        for index, (curves, when) in enumerate(zip(pair, ("before", "after"), strict=True)):
            panels.append(queue_charts.queue_use(f"{names[path]} {when}", curves, measured, 2 * number + index, top))
    left_out = len(both) - len(chosen)
    note = f"{left_out} queues that changed less, or not at all, are left out." if left_out else ""
    return [
        PictureGroup("The cluster over time", cluster, is_paired=True),
        PictureGroup("Queues over time", tuple(panels), note, QUEUE_LEGEND, is_paired=True),
    ]


def _weights(figures: tuple[Figures, Figures], names: dict[str, str]) -> dict[str, float]:
    uses = (use for each in figures for use in each.use_by_queue.values())
    return {names[use.queue]: use.average for use in uses if use.queue in names}


def _most_changed(comparison: Comparison, paths: Sequence[str]) -> list[str]:
    """As many of the queues as are drawn: those with the most important differences."""
    changed = dict.fromkeys(each.scope.name for each in comparison.differences if each.scope.kind == "queue")
    return [path for path in changed if path in paths][:PAIRS_MAX]
