"""A recorded true run: two small tables, of its applications and of its containers, and how it was recorded.

Times are ms since the start of the workload; an empty field is not known.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.hadoop.truth.runs import RECORDINGS, TrueRun
from yarnling.workload.model import Workload
from yarnling.workload.run_times import ALL_QUEUES, ApplicationTimes, RunTimes, Span, UseOverTime

APPLICATION_COLUMNS = (
    "application",
    "queue",
    "submitted",
    "accepted",
    "am_placed",
    "am_started",
    "registered",
    "unregistered",
    "finished",
    "state",
    "surplus",
)
CONTAINER_COLUMNS = (
    "application",
    "group",
    "number",
    "asked",
    "placed",
    "seen",
    "started",
    "ended",
    "done",
    "mb",
    "node",
    "exit",
)
"""`group`, `number`: of the task; an AM has none. `asked`: when its AM requested it. `placed`: when the scheduler
created the container. `seen`: when its AM got it. `done`: when its AM heard of its end."""
AM_GROUP = "am"

Rows = list[dict[str, Any]]


def directories(run: TrueRun) -> list[Path]:
    """The recordings of a run, in order."""
    return sorted(path for path in RECORDINGS.glob(f"{run.name}-*") if path.name.removeprefix(f"{run.name}-").isdigit())


def write_recording(directory: Path, events: Iterable[Mapping[str, Any]], about: Mapping[str, Any]) -> None:
    """Write what the journal of a true run says."""
    applications, containers = _rows(events)
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory / "applications.csv.gz", APPLICATION_COLUMNS, applications)
    _write(directory / "containers.csv.gz", CONTAINER_COLUMNS, containers)
    (directory / "run.json").write_text(json.dumps({**about, "containers": len(containers)}, indent=1) + "\n")


def _rows(events: Iterable[Mapping[str, Any]]) -> tuple[Rows, Rows]:
    applications: dict[int, dict[str, Any]] = defaultdict(lambda: {"surplus": 0})
    tasks: dict[str, dict[str, Any]] = {}
    ams: Rows = []
    for event in events:
        number = event.get("application")
        match event["event"]:
            case "submitted":
                found = {"queue": event["queue"], "submitted": event["at"], "accepted": event["accepted"]}
                applications[event["application"]] |= {"application": number, **found}
            case "am":
                applications[event["application"]].setdefault("am_placed", event["placed"])
                applications[event["application"]].setdefault("am_started", event["started"])
            case "registered" | "unregistered" as kind:
                applications[event["application"]].setdefault(kind, event["at"])
            case "surplus":
                applications[event["application"]]["surplus"] += 1
            case "application":
                applications[event["application"]] |= {"finished": event["finished"], "state": event["state"]}
            case "task":
                tasks[event["container"]] = {
                    name: event[name] for name in ("application", "group", "number", "asked", "placed", "seen", "node")
                }
            case "end" if event["am"]:
                ams.append({**event, "group": AM_GROUP})
            case "end" if event["container"] in tasks:
                tasks[event["container"]] |= {name: event[name] for name in ("started", "ended", "mb", "exit")}
            case "done" if event["container"] in tasks:
                tasks[event["container"]] |= {"done": event["at"], "exit": event["exit"]}
            case _:
                pass
    return [applications[number] for number in sorted(applications)], [*ams, *tasks.values()]


def _write(path: Path, columns: Sequence[str], rows: Rows) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a table of a recording, {column: text} each."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def surplus_of(directory: Path) -> int:
    """The number of containers that AMs got and released unused."""
    return sum(int(row["surplus"] or 0) for row in rows_of(directory / "applications.csv.gz"))


def recorded_times(directory: Path, workload: Workload, cluster_mb: int) -> RunTimes:
    """The times of a recorded run, as those of a simulated one."""
    applications, containers = (rows_of(directory / f"{name}.csv.gz") for name in ("applications", "containers"))
    queues = {int(row["application"]): f"root.{row['queue'].removeprefix('root.')}" for row in applications}
    spans: dict[str, list[Span]] = defaultdict(list)
    held_mb_ms: dict[int, int] = defaultdict(int)
    waits: dict[int, list[int]] = defaultdict(list)
    for row in containers:
        number = int(row["application"])
        if row["group"] != AM_GROUP:
            waits[number].append(int(row["placed"]) - int(row["asked"]))
        if row["ended"]:
            span = int(row["placed"]), int(row["ended"]), int(row["mb"])
            spans[ALL_QUEUES].append(span)
            spans[queues[number]].append(span)
            held_mb_ms[number] += (span[1] - span[0]) * span[2]
    times = tuple(
        ApplicationTimes(
            name=workload.applications[number].name,
            queue=queues[number],
            submitted_ms=int(row["submitted"]),
            am_allocated_ms=_known(row["am_placed"]),
            am_started_ms=_known(row["registered"]),
            ended_ms=_known(row["finished"]),
            mb_ms=held_mb_ms[number],
            task_waits_ms=tuple(waits[number]),
        )
        for row in applications
        for number in (int(row["application"]),)
    )
    use = {queue: UseOverTime.of_containers(held) for queue, held in spans.items()}
    return RunTimes(times, use, cluster_mb)


def _known(text: str) -> int | None:
    return int(text) if text else None
