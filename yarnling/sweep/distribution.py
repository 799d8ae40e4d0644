"""Spreads the runs of a sweep over Dask's workers, and hands back their results as they come.

Dask does everything that makes a cluster of computers hard: it moves batches from busy workers to idle ones, gives the
batches of a lost worker to another, and starts a local worker anew. Runs go in batches, because a run takes a second
and a task of Dask's some milliseconds; but an interruption loses the batches that have begun, so the first are of one
run and the next twice as large: a sweep that is interrupted after half a minute has something to show.
"""

from __future__ import annotations

import logging
import math
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from dask import config  # pyright: ignore[reportPrivateImportUsage]
from distributed import Client, LocalCluster, Security, WorkerPlugin, as_completed

from yarn.errors import YarnException
from yarnling.sweep.runs import Inputs, RunResult, SweepRun
from yarnling.sweep.work import run_batch

BATCH_MAX = 20
"""Runs of plans in one task: some ten seconds of work, which is what an interruption may lose on each worker."""
BATCHES_A_WORKER = 8
"""A small sweep has smaller batches, so that all workers end at nearly the same time."""
START_S = 120
"""The time a local cluster may take to start its workers."""
ANSWER_S = 30
"""The time the scheduler of another cluster may take to answer."""
WORKER_DEATHS_MAX = 5
"""A batch that was on so many workers when they died is given up: it is probably what kills them."""
_LOOPBACK = "127.0.0.1"
_ANY_PORT = f"{_LOOPBACK}:0"
SETTINGS = {
    "distributed.scheduler.allowed-failures": WORKER_DEATHS_MAX,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.comm.timeouts.connect": f"{START_S}s",
}
"""Of a local cluster. It serves no pages."""


class IgnoreCtrlC(WorkerPlugin):
    """Lets this process decide what Ctrl-C means: a terminal sends it to the workers too, also to replaced ones."""

    name = "ignore-ctrl-c"

    def setup(self, worker: object) -> None:
        """Called once in each worker, in the main thread of its process."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)


class BatchLost(Exception):
    """A batch has no results. `runs`: what was in it; the message says why."""

    def __init__(self, runs: Sequence[SweepRun], reason: str) -> None:
        super().__init__(reason)
        self.runs = tuple(runs)


@contextmanager
def local_cluster(workers: int) -> Iterator[Client]:
    """A Dask cluster of this many processes on this machine, which ends with the context.

    It listens on loopback only. Its connections are encrypted with certificates made for this cluster, because whoever
    reaches a Dask scheduler may run any code.
    """
    with (
        config.set(SETTINGS),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host=_LOOPBACK,
            dashboard_address=_ANY_PORT,
            worker_dashboard_address=_ANY_PORT,
            security=Security.temporary(),
            silence_logs=logging.CRITICAL,
            memory_limit=0,
        ) as cluster,
        Client(cluster, timeout=START_S) as client,
    ):
        client.register_plugin(IgnoreCtrlC())
        yield client


@contextmanager
def remote_cluster(address: str) -> Iterator[Client]:
    """The Dask cluster whose scheduler listens at `address`. Raises YarnException if there is none."""
    try:
        client = Client(address, timeout=ANSWER_S)
    except (OSError, ValueError, TimeoutError) as error:
        raise YarnException(
            f"{address}: no Dask scheduler answers: {error} (start one with `dask scheduler`)"
        ) from None
    with client:
        if not client.ncores():
            raise YarnException(f"{address}: the Dask scheduler has no workers (start some with `dask worker`)")
        yield client


def results(client: Client, inputs: Inputs, runs: Sequence[SweepRun]) -> Iterator[list[RunResult] | BatchLost]:
    """The results of the runs, a batch at a time, in the order in which the batches end."""
    shared = client.scatter(inputs, broadcast=True)
    batches = list(batches_of(runs, cores_of(client)))
    futures = {client.submit(run_batch, shared, batch, pure=False): batch for batch in batches}
    for future, result in as_completed(futures, with_results=True, raise_errors=False):
        batch = futures.pop(future)
        if future.status == "finished":
            yield result
        else:
            yield BatchLost(batch, _reason(future.exception()))
        future.release()


def batches_of(runs: Sequence[SweepRun], workers: int) -> Iterator[tuple[SweepRun, ...]]:
    """Runs of plans in batches that grow; a workload takes minutes, so each of its runs is a batch.

    Each worker has one batch of each size, 1, 2, 4..., then batches of the largest. Two workers and 180 runs:
    1, 1, 2, 2, 4, 4, 8, 8, 12, 12...
    """
    plans = [run for run in runs if run.plan]
    workers = max(workers, 1)
    size_max = max(1, min(BATCH_MAX, math.ceil(len(plans) / workers / BATCHES_A_WORKER)))
    yield from ((run,) for run in runs if not run.plan)
    start = 0
    for number in count():
        if start >= len(plans):
            return
        size = min(size_max, 2 ** (number // workers))
        yield tuple(plans[start : start + size])
        start += size


def _reason(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {error}" if error is not None else "the batch was cancelled"


def cores_of(client: Client) -> int:
    """The number of tasks that the workers run at a time."""
    threads: dict[str, int] = client.ncores()  # pyright: ignore[reportAssignmentType]
    return sum(threads.values())
