"""The tables of a report. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from yarn.times import HOUR_MS, duration
from yarnling.report.page import Table
from yarnling.report.wording import amount, clock, count, share
from yarnling.whatif.figures import Figures, GroupFigures, LostWork

ROWS_MAX = 200
"""The most rows of a table on the page; the CSV files have all of them."""
NONE = "-"
LOWER_BOUNDS = (
    "A wait is the time from the request of a container until its allocation. "
    "\u2265: a lower bound, because some of these containers were never allocated."
)


def tables_of(figures: Figures) -> tuple[Table, ...]:
    """All tables that have rows."""
    groups = (*figures.queues, *figures.parents)
    found = (
        _longest(figures),
        _waits("Waits by queue", "queue", (*groups, figures.cluster), LOWER_BOUNDS),
        _waits("Waits by user", "user", figures.users),
        _hours(figures),
        _use(figures),
        _work("Preemption and work by queue", "queue", (*groups, figures.cluster)),
        _applications("Applications and limits by queue", "queue", (*groups, figures.cluster)),
        _applications("Applications and limits by user", "user", figures.users),
        _locality(figures),
    )
    return tuple(table for table in found if table.rows)


def table_of(
    title: str, columns: tuple[str, ...], rows: Iterable[tuple[object, ...]], note: str = "", texts: int = 1
) -> Table:
    """A table with as many of the rows as a page has, and a note if there are more. `texts`: see Table."""
    cells = [tuple(NONE if cell is None else str(cell) for cell in row) for row in rows]
    if len(cells) > ROWS_MAX:
        note = f"{note} The first {ROWS_MAX} of {len(cells)} rows.".strip()
    return Table(title, columns, tuple(cells[:ROWS_MAX]), note, texts)


def _waits(title: str, kind: str, groups: Iterable[GroupFigures], note: str = "") -> Table:
    columns = (kind, "containers", "never allocated", "median", "p95", "p99", "longest", "AM median", "AM p95")
    rows = (
        (
            each.name, count(each.containers), count(each.waits.unfinished), each.waits.p50, each.waits.p95,
            each.waits.p99, each.waits.longest, each.am_waits.p50, each.am_waits.p95,
        )
        for each in groups
        if each.containers
    )  # fmt: skip
    return table_of(title, columns, rows, note)


def _hours(figures: Figures) -> Table:
    columns = ("from", "containers requested", "median", "p95", "p99", "preempted")
    rows = (
        (
            clock(each.hour * HOUR_MS),
            count(each.waits.count),
            each.waits.p50,
            each.waits.p95,
            each.waits.p99,
            count(each.preempted),
        )
        for each in figures.hours
    )
    return table_of("Waits by hour of the request", columns, rows, "Hours since the start of the workload.")


def _use(figures: Figures) -> Table:
    measured = figures.measured
    columns = (
        "queue",
        "average",
        "peak",
        "guarantee",
        "maximum",
        "above guarantee",
        "at maximum",
        "pending",
        "peak pending",
    )
    rows = (
        (
            each.name, amount(each.average, measured), amount(each.peak, measured), amount(each.guaranteed, measured),
            amount(each.maximum, measured), share(each.above_guarantee), share(each.at_maximum),
            amount(each.pending, measured), amount(each.pending_peak, measured),
        )
        for each in figures.uses
    )  # fmt: skip
    note = "Means over time, and shares of the time. At maximum: at least 95 % of it is used."
    return table_of("Use of queues", columns, rows, note)


def _work(title: str, kind: str, groups: Iterable[GroupFigures]) -> Table:
    groups = [each for each in groups if each.containers]
    lost = ("lost container-seconds", "lost MB-seconds")
    columns: tuple[str, ...] = (kind, "completed", "failed", "preempted", *lost, "done GB-hours", "surplus")
    rows: list[tuple[str, ...]] = [
        (
            each.name, count(each.completed), count(each.failed), *_lost(each.lost),
            count(each.done_mb_ms / 1024 / HOUR_MS), count(each.surplus),
        )
        for each in groups
    ]  # fmt: skip
    note = "Lost: what preempted containers had run until then. Surplus: containers allocated and released unused."
    if any(each.lost_with_nodes.containers for each in groups):
        columns = (*columns, "lost with nodes", *lost)
        rows = [(*row, *_lost(each.lost_with_nodes)) for row, each in zip(rows, groups, strict=True)]
        note += " Lost with nodes: their node, or that of their AM, was lost or decommissioned (with the last columns)."
    return table_of(title, columns, rows, note)


def _lost(work: LostWork) -> tuple[str, ...]:
    return count(work.containers), count(work.container_ms / 1000), count(work.mb_ms / 1000)


def _applications(title: str, kind: str, groups: Iterable[GroupFigures]) -> Table:
    columns = (
        kind,
        "applications",
        "finished",
        "with deadline",
        "missed",
        "waited for AM limit",
        "waited for user limit",
    )
    rows = (
        (
            each.name, count(each.applications), count(each.finished), count(each.with_deadline), count(each.missed),
            duration(each.am_limit_wait_ms), duration(each.user_limit_wait_ms),
        )
        for each in groups
        if each.applications
    )  # fmt: skip
    return table_of(title, columns, rows, "Waits for limits: the sum over applications, as far as samples show.")


def _locality(figures: Figures) -> Table:
    names = [*dict.fromkeys(name for group in figures.queues for name in group.locality)]
    rows = (
        (each.name, *(share(each.locality.get(name, 0) / sum(each.locality.values())) for name in names))
        for each in (*figures.queues, figures.cluster)
        if each.locality
    )
    return table_of("Locality", ("queue", *names), rows, "Of containers that were wanted on certain hosts.")


def _longest(figures: Figures) -> Table:
    columns = ("application", "queue", "user", "why", "requested at", "wait")
    rows = (
        (
            each.application + (" (AM)" if each.is_am else ""), each.queue, each.user, each.explanation or NONE,
            clock(each.requested_ms), each.wait,
        )
        for each in figures.longest
    )  # fmt: skip
    return table_of("The longest waits, and why", columns, rows, texts=4)
