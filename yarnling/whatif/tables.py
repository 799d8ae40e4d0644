"""The CSV files of a result, for spreadsheets and other programs: waits, applications, samples of queues.

Times are milliseconds since the start of the workload; an empty cell is a time that did not come.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from wire.files.full_disk import full_disk_named
from yarn.resource import Resource
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.waits import wait_of

_FORMULA = re.compile(r"[=+\-@\t\r]")
"""The beginning of a text that spreadsheets take for a formula."""
Row = Iterable[object]

WAITS_COLUMNS = (
    "application", "user", "queue", "is_am", "requested_ms", "allocated_ms", "withdrawn_ms", "wait_ms",
    "wait_is_lower_bound", "ended_ms", "end", "memory_mb", "vcores", "locality", "host",
)  # fmt: skip
APPLICATIONS_COLUMNS = (
    "application", "user", "queue", "submitted_ms", "am_started_ms", "ended_ms", "state", "deadline_ms",
    "am_limit_wait_ms", "user_limit_wait_ms", "diagnostics",
)  # fmt: skip
_AMOUNTS = ("used", "reserved", "pending", "guaranteed", "maximum")
QUEUES_COLUMNS = (
    "time_ms", "queue", "label", *(f"{name}_{unit}" for name in _AMOUNTS for unit in ("memory_mb", "vcores")),
    "running_applications", "pending_applications",
)  # fmt: skip
NODES_CSV = "nodes.csv"
NODES_COLUMNS = ("time_ms", "nodes")


def write_tables(result: WhatIfResult, directory: Path) -> None:
    """Write waits.csv, applications.csv and queues.csv, and nodes.csv if the number of nodes changes."""
    _write(directory / "waits.csv", WAITS_COLUMNS, _waits(result))
    _write(directory / "applications.csv", APPLICATIONS_COLUMNS, _applications(result))
    _write(directory / "queues.csv", QUEUES_COLUMNS, _queues(result))
    if len(result.node_counts) > 1:
        _write(directory / NODES_CSV, NODES_COLUMNS, ((each.time_ms, each.nodes) for each in result.node_counts))
    else:
        (directory / NODES_CSV).unlink(missing_ok=True)


def _write(path: Path, columns: tuple[str, ...], rows: Iterable[Row]) -> None:
    with full_disk_named(path), path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(map(_cell, row) for row in rows)


def _cell(value: object) -> object:
    """A text that a spreadsheet would run as a formula is quoted: names come from other users."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def _waits(result: WhatIfResult) -> Iterator[Row]:
    for each in result.containers:
        app, wait = result.applications[each.application], wait_of(each, result.until_ms)
        yield (
            app.name, app.user, app.queue, each.is_am, each.requested_ms, each.allocated_ms, each.withdrawn_ms,
            wait.ms, wait.at_least, each.ended_ms, each.end.value if each.end else "", *_two(each.resource),
            each.locality, each.host,
        )  # fmt: skip


def _applications(result: WhatIfResult) -> Iterator[Row]:
    for app in result.applications:
        yield (
            app.name, app.user, app.queue, app.submitted_ms, app.am_started_ms, app.ended_ms, app.state,
            app.deadline_ms, app.am_limit_wait_ms, app.user_limit_wait_ms, app.diagnostics,
        )  # fmt: skip


def _queues(result: WhatIfResult) -> Iterator[Row]:
    for each in result.samples:
        amounts = [amount for name in _AMOUNTS for amount in _two(getattr(each, name))]
        yield each.time_ms, each.queue, each.label, *amounts, each.running_applications, each.pending_applications


def _two(resource: Resource) -> tuple[int, int]:
    return resource.memory_mb, resource.vcores
