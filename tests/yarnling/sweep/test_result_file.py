"""The file of results: complete batches, of one set of inputs."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.yarnling.whatif.small_clusters import application, group, run
from yarn.errors import YarnException
from yarnling.faults.verdict import RunVerdict
from yarnling.sweep.result_file import SweptCluster, open_results
from yarnling.sweep.runs import Inputs, RunResult, Sweep, SweepRun
from yarnling.whatif.figures import NodeFigures, figures_of

RUNS = tuple(SweepRun("storm", seed=seed) for seed in (1, 2, 3))
SWEEP = Sweep(RUNS, Inputs({}), {"storm": "digest-1"})
ROWS = [
    RunResult(RUNS[0], RunVerdict.PASS, "", 10, 1.5, "abc", wall_s=0.5, worker="host"),
    RunResult(RUNS[2], RunVerdict.FAIL, "lost\nmore"),
]


def test_results_are_kept(tmp_path: Path) -> None:
    for _ in range(2):
        with open_results(tmp_path / "r.sqlite") as file:
            file.prepare(SWEEP)
            file.add(ROWS)
    with open_results(tmp_path / "r.sqlite") as file:
        assert file.done() == {RUNS[0], RUNS[2]}
        assert file.verdicts() == {"storm": {"pass": 1, "fail": 1}}
        assert file.not_passed(9) == [(RUNS[2], "fail", "lost\nmore")]
        assert file.wall_s() == 0.5


def test_a_batch_is_added_whole_or_not_at_all(tmp_path: Path) -> None:
    broken = replace(ROWS[1], reasons=None)  # type: ignore[arg-type]
    with open_results(tmp_path / "r.sqlite") as file:
        with pytest.raises(sqlite3.IntegrityError):
            file.add([ROWS[0], broken])
        assert file.done() == set()


def test_results_of_another_plan_are_not_mixed(tmp_path: Path) -> None:
    with open_results(tmp_path / "r.sqlite") as file:
        file.prepare(SWEEP)
        file.prepare(replace(SWEEP, digests={"flap": "digest-2"}))
        with pytest.raises(YarnException, match="its results are of another storm than this sweep's"):
            file.prepare(replace(SWEEP, digests={"storm": "digest-2"}))
        with pytest.raises(YarnException, match="of another encode"):
            file.prepare(replace(SWEEP, inputs=Inputs({}, encode=False)))


def test_another_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("important " * 100)
    with sqlite3.connect(tmp_path / "other.sqlite") as database:
        database.execute("CREATE TABLE mine (x)")
    database.close()
    for name in ("text", "other.sqlite", "no/such/place"):
        with pytest.raises(YarnException, match="name another file"), open_results(tmp_path / name):
            pass
    assert (tmp_path / "text").read_text().startswith("important")


def test_a_file_may_be_created_by_several_at_once(tmp_path: Path) -> None:
    def create(path: Path) -> int:
        with open_results(path) as file:
            return len(file.done())

    with ThreadPoolExecutor(8) as threads:
        for number in range(20):
            assert set(threads.map(create, [tmp_path / f"{number}.sqlite"] * 8)) == {0}


def test_what_the_machines_cost_is_kept_for_each_configuration(tmp_path: Path) -> None:
    cluster = figures_of(run(application(group(1, 1)))).cluster
    scaled = [
        RunResult(
            SweepRun("", "now", "day", seed=seed),
            RunVerdict.PASS,
            cluster=replace(cluster, node_ms=node_ms, mean_run_ms=20_000.0),
            nodes=NodeFigures(node_ms, least, 5),
        )
        for seed, node_ms, least in ((1, 3_000, 2), (2, 5_000, 3))
    ]
    with open_results(tmp_path / "r.sqlite") as file:
        file.add([*ROWS, *scaled])
        assert file.clusters() == [SweptCluster("now", "day", 1.0, 2, 20_000.0, 4_000, 2, 5, 0)]
        assert file.clusters()[0].changes


def test_a_file_of_an_earlier_version_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with open_results(path) as file:
        file.prepare(SWEEP)
        file.add(ROWS)
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE clusters")
        database.execute("DELETE FROM inputs WHERE name = 'release'")
    database.close()
    with open_results(path) as file:
        assert file.clusters() == []
        with pytest.raises(YarnException, match="of another release than this sweep's"):
            file.prepare(replace(SWEEP, inputs=Inputs({}, release="3.5.0")))
        file.prepare(SWEEP)
