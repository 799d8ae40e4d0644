"""Records a true run as `yarnling record` would have.

The times of allocations, ends and requests are those of Hadoop. Surplus containers have no times there, so they are
left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.hadoop.truth.recording import AM_GROUP, rows_of
from tests.hadoop.truth.runs import RECORDINGS, TrueRun, workload_of
from yarnling.whatif.recorded_run import ReportedApplication, ReportedContainer, application_id, record_run
from yarnling.workload.model import WorkloadApplication


def reported_applications(run: TrueRun, number: int) -> dict[str, ReportedApplication]:
    """{id: application} of the recording of a run with this number."""
    directory = RECORDINGS / f"{run.name}-{number}"
    found = {int(row["application"]): row for row in rows_of(directory / "applications.csv.gz")}
    containers: dict[int, list[ReportedContainer]] = {position: [] for position in found}
    applications = workload_of(run).applications
    for row in rows_of(directory / "containers.csv.gz"):
        if row["group"] != AM_GROUP and row["ended"]:
            group = applications[int(row["application"])].groups[int(row["group"])]
            times = int(row["placed"]), int(row["ended"]), int(row["mb"])
            each = ReportedContainer(*times, group.resource.vcores, group.priority, int(row["asked"]))
            containers[int(row["application"])].append(each)
    return {each.id: each for each in _applications(found, containers, applications)}


def _applications(
    found: dict[int, dict[str, str]],
    containers: dict[int, list[ReportedContainer]],
    applications: tuple[WorkloadApplication, ...],
) -> Iterator[ReportedApplication]:
    for position, row in found.items():
        work = applications[position]
        placed, finished = int(row["am_placed"]), int(row["finished"])
        am = ReportedContainer(placed, finished, work.am_resource.memory_mb, work.am_resource.vcores, 0, placed)
        yield ReportedApplication(
            application_id(position),
            work,
            int(row["submitted"]),
            int(row["am_started"]),
            int(row["registered"]),
            finished,
            [am, *sorted(containers[position], key=lambda each: each.placed_ms)],
        )


def record_true_run(run: TrueRun, directory: Path, *, every_ms: int, number: int = 1) -> dict[str, ReportedApplication]:
    """Record a run into the directory; returns what happened in it."""
    applications = reported_applications(run, number)
    record_run(applications, directory, every_ms=every_ms, nodes=run.nodes, release=run.release)
    return applications
