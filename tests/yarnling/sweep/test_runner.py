"""Sweeps on a Dask cluster of local processes: whatever happens to its workers, the results are the same."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

pytest.importorskip("distributed")
pytest.importorskip("cryptography")

import dask
from distributed import LocalCluster

from yarn.errors import YarnException
from yarnling.sweep import distribution
from yarnling.sweep.distribution import local_cluster
from yarnling.sweep.runner import Place, Progress, run_sweep
from yarnling.sweep.runs import Sweep, SweepRun
from yarnling.sweep.spec_file import read_sweep

PLAN = """
cluster: {nodes: 1}
work: [{program: batch, tasks: 1, seconds: 0.2}]
lasts: 0.5
faults: [{fault: kill-node, at: 0.2, for: 0.1}]
"""

pytestmark = [
    pytest.mark.slow,
    # Dask leaves the sockets and the event loop of a cluster whose worker was killed to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def sweep_of(tmp_path: Path, seeds: int) -> Sweep:
    (tmp_path / "plan.yaml").write_text(PLAN)
    (tmp_path / "sweep.yaml").write_text(f"seeds: {seeds}\nplans: [plan.yaml]\nhash: true\n")
    return read_sweep(tmp_path / "sweep.yaml")


def run(sweep: Sweep, path: Path, workers: int, report: Callable[[Progress], None] = lambda _: None) -> Progress:
    return run_sweep(sweep, path, Place(workers=workers), report)


def table(path: Path) -> list[tuple[object, ...]]:
    database = sqlite3.connect(path)
    try:
        return database.execute("SELECT * FROM runs ORDER BY plan, seed").fetchall()
    finally:
        database.close()


def worker_processes() -> list[psutil.Process]:
    """The processes of Dask's workers; the tracker of shared resources is the only other child."""
    children = psutil.Process().children(recursive=True)
    running = [each for each in children if each.status() != psutil.STATUS_ZOMBIE]
    return [each for each in running if "--multiprocessing-fork" in each.cmdline()]


def test_one_and_two_workers_give_the_same_table(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, 6)
    assert run(sweep, tmp_path / "1.sqlite", 1) == Progress(6, 6)
    assert run(sweep, tmp_path / "2.sqlite", 2) == Progress(6, 6)
    rows = table(tmp_path / "1.sqlite")
    assert table(tmp_path / "2.sqlite") == rows
    assert len({row[-1] for row in rows}) == 6


def test_the_first_batches_are_of_one_run_and_later_ones_larger() -> None:
    """So that an interruption after some seconds leaves some runs, and a long sweep has few tasks."""
    plans = [SweepRun(plan="storm", seed=seed) for seed in range(180)]
    batches = list(distribution.batches_of(plans, workers=2))
    sizes = [len(batch) for batch in batches]
    assert sizes[:6] == [1, 1, 2, 2, 4, 4]
    assert sizes[:-1] == sorted(sizes[:-1])
    assert max(sizes) == 12
    assert [run for batch in batches for run in batch] == plans


def test_a_small_sweep_has_batches_of_one_run_and_a_workload_is_always_one() -> None:
    plans = [SweepRun(plan="storm", seed=seed) for seed in range(12)]
    workloads = [SweepRun(workload="day", seed=seed) for seed in range(50)]
    assert {len(batch) for batch in distribution.batches_of([*plans, *workloads], workers=2)} == {1}


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, 12)
    killed: list[int] = []

    def kill_one(progress: Progress) -> None:
        if progress.done and not killed:
            victim = worker_processes()[0].pid
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    assert run(sweep, tmp_path / "killed.sqlite", 2, kill_one) == Progress(12, 12)
    assert killed
    assert [row[4] for row in table(tmp_path / "killed.sqlite")] == list(range(1, 13))


def test_a_sweep_continues_where_it_was_interrupted(tmp_path: Path) -> None:
    sweep, path = sweep_of(tmp_path, 8), tmp_path / "r.sqlite"

    def interrupt(progress: Progress) -> None:
        if progress.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(sweep, path, 2, interrupt)
    first = table(path)
    assert 0 < len(first) < 8
    starts: list[int] = []
    assert run(sweep, path, 2, lambda progress: starts.append(progress.done)) == Progress(8, 8)
    assert starts[0] == len(first)
    assert set(first) < set(table(path))
    assert run(sweep, path, 2) == Progress(8, 8)
    assert worker_processes() == []


def test_a_local_cluster_listens_on_loopback_only() -> None:
    with local_cluster(2):
        processes = [psutil.Process(), *worker_processes()]
        listening = [each.laddr.ip for one in processes for each in one.net_connections() if each.status == "LISTEN"]
    assert set(listening) == {"127.0.0.1"}
    assert len(listening) >= 3


def test_a_sweep_runs_on_another_dask_cluster(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, 2)
    loopback = "127.0.0.1:0"
    with (
        dask.config.set(distribution.SETTINGS),
        LocalCluster(n_workers=1, processes=False, protocol="tcp", dashboard_address=loopback) as cluster,
    ):
        place = Place(scheduler=cluster.scheduler_address)
        assert run_sweep(sweep, tmp_path / "r.sqlite", place, lambda _: None) == Progress(2, 2)
    assert len(table(tmp_path / "r.sqlite")) == 2


def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distribution, "ANSWER_S", 1)
    place = Place(scheduler="tcp://127.0.0.1:1")
    with pytest.raises(YarnException, match=r"tcp://127\.0\.0\.1:1: no Dask scheduler answers"):
        run_sweep(sweep_of(tmp_path, 1), tmp_path / "r.sqlite", place, lambda _: None)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_hundred_seeds_give_the_same_table_on_one_and_on_eight_workers(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, 100)
    assert run(sweep, tmp_path / "1.sqlite", 1) == Progress(100, 100)
    assert run(sweep, tmp_path / "8.sqlite", 8) == Progress(100, 100)
    assert table(tmp_path / "1.sqlite") == table(tmp_path / "8.sqlite")
