"""Runs a sweep, or what is left of it, and writes its results as they come."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from distributed import Client
from msgspec import Struct

from yarnling.sweep.distribution import BatchLost, local_cluster, remote_cluster, results
from yarnling.sweep.result_file import ResultFile, open_results
from yarnling.sweep.runs import Sweep, SweepRun


class Place(Struct, frozen=True):
    """The place of a sweep: the Dask scheduler of this address, or so many processes of this machine (0: one for
    each core).
    """

    scheduler: str = ""
    workers: int = 0


class Progress(Struct, frozen=True):
    """The number of runs that have results, of how many. `lost`: runs of batches that were given up, and why."""

    done: int
    total: int
    lost: tuple[tuple[SweepRun, str], ...] = ()


def run_sweep(sweep: Sweep, path: Path, place: Place, report: Callable[[Progress], None]) -> Progress:
    """Do the runs whose results the file lacks. `report` is called after each batch.

    An interruption, even SIGKILL, leaves a valid file, from which the next call continues. Raises YarnException if the
    file is not this sweep's, or no cluster can be reached.
    """
    with open_results(path) as file:
        file.prepare(sweep)
        done = file.done()
        left = [run for run in sweep.runs if run not in done]
        progress = Progress(len(sweep.runs) - len(left), len(sweep.runs))
        report(progress)
        if left:
            with _cluster(place, len(left)) as client:
                progress = _run(client, sweep, left, file, progress, report)
        return progress


def _run(  # what one call of run_sweep needs
    client: Client,
    sweep: Sweep,
    left: list[SweepRun],
    file: ResultFile,
    progress: Progress,
    report: Callable[[Progress], None],
) -> Progress:
    for result in results(client, sweep.inputs, left):
        if isinstance(result, BatchLost):
            lost = (*progress.lost, *((run, str(result)) for run in result.runs))
            progress = Progress(progress.done, progress.total, lost)
        else:
            file.add(result)
            progress = Progress(progress.done + len(result), progress.total, progress.lost)
        report(progress)
    return progress


def _cluster(place: Place, runs: int) -> AbstractContextManager[Client]:
    if place.scheduler:
        return remote_cluster(place.scheduler)
    return local_cluster(min(place.workers or len(os.sched_getaffinity(0)), runs))
