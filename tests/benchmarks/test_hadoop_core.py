"""scripts/bench hadoop_core: both schedulers run the same cases, and their figures are put side by side."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import sides
from benchmarks.core_driver import queues
from benchmarks.hadoop.cases import CASES, Case
from benchmarks.hadoop.jvm import Hadoop, HadoopPasses, read_passes
from benchmarks.hadoop.yarnling import run
from benchmarks.hadoop_core import Measured, figures_of, measure, medians, table
from benchmarks.reject import limited_queues
from tests.hadoop import toolchain
from yarn.resource import Resource

PLACING = Case(3, Resource(65_536, 64), 2, 4, 10, queues(2))
REJECTING = Case(2, Resource(1_048_576, 1_024), 4, 8, 1_000, limited_queues(4), heartbeats=20, stirred=True)
HADOOP = Measured(
    {"hadoop_first": 10.0, "hadoop_warm": 20.0, "hadoop_hot": 40.0, "hadoop_warm_process": 15.0},
    [(1, 1, 0), (1, 2, 1)],
)


def test_a_case_is_the_shape_of_the_other_benchmarks() -> None:
    case = CASES["containers_per_s_1000_with_100_applications"]
    assert (case.nodes, case.queues, case.applications, case.work) == (1_000, 10, 100, 10_000)
    assert CASES["heartbeats_per_s_40_queues_stirred"].stirred


def test_heartbeats_to_the_scheduler_place_as_those_through_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = run(PLACING)
    assert len(passes["containers"]) == PLACING.work + PLACING.applications
    assert len(passes["core_cpu_s"]) == len(passes["scheduler_cpu_s"]) > 0
    # With the order of the two ways exchanged, the containers are those of the scheduler only.
    monkeypatch.setattr("benchmarks.hadoop.yarnling.WAYS", (True, False))
    assert run(PLACING)["containers"] == passes["containers"]


def test_ratios_are_those_of_a_round() -> None:
    figures = figures_of({"hadoop": HADOOP, "compiled": Measured({"compiled": 30.0}, [(1, 1, 0), (1, 2, 1)])})
    assert figures["compiled_to_first"] == 3
    assert figures["compiled_to_warm"] == 1.5
    assert figures["compiled_to_hot"] == 0.75
    assert medians([figures, {**figures, "compiled_to_warm": 2.0}, {**figures, "compiled_to_warm": 9.0}]) == {
        **figures,
        "compiled_to_warm": 2.0,
    }


@pytest.mark.parametrize(
    ("containers", "elsewhere"),
    [
        ([(1, 1, 0), (1, 2, 1)], 0),
        ([(1, 1, 0), (1, 2, 2)], 1),
        ([(1, 1, 0)], 1),
        ([(1, 1, 0), (1, 2, 1), (2, 1, 1)], 1),
    ],
)
def test_containers_on_other_nodes_are_counted(containers: list[tuple[int, int, int]], elsewhere: int) -> None:
    figures = figures_of({"hadoop": HADOOP, "interpreted": Measured({"interpreted": 1.0}, containers)})
    assert (figures["containers"], figures["containers_elsewhere"]) == (2, elsewhere)


def test_a_table_has_a_row_for_each_case_and_leaves_out_what_is_missing() -> None:
    both = figures_of({"hadoop": HADOOP, "compiled": Measured({"compiled": 30.0}, [(1, 1, 0)])})
    alone = figures_of({"interpreted": Measured({"interpreted": 1234.0}, [(1, 1, 0)])})
    console = Console(width=200, record=True)
    figures = {f"both.{name}": value for name, value in both.items()} | {
        f"alone.{name}": value for name, value in alone.items()
    }
    console.print(table(figures))
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in console.export_text().splitlines()]
    rows = [row for row in rows if row]
    assert rows == [
        ["both", "10", "20", "40", "-", "30 (1.50)", "-", "-", "2, 1 elsewhere"],
        ["alone", "-", "-", "-", "1,234", "-", "-", "-", "1"],
    ]


def test_what_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_java(_: str) -> Path:
        raise toolchain.JavaMissing("no Java 11+ found (apt-get install ...)")

    monkeypatch.setattr(toolchain, "jars", no_java)
    monkeypatch.setattr(sides, "COMPILED_VENV", tmp_path / ".venv-compiled")
    monkeypatch.setenv("HADOOP_CORE_CASES", "")
    assert measure(lambda _: None) == {}
    assert capsys.readouterr().err == (
        "hadoop_core: hadoop is not measured: no Java 11+ found (apt-get install ...)\n"
        "hadoop_core: compiled is not measured: .venv-compiled does not exist (scripts/install --compiled makes it)\n"
    )


def test_the_output_of_the_java_program_is_read() -> None:
    output = "pass 0.5 0.75\ncontainer 2 1 0\ncontainer 1 1 3\npass 0.25 0.5\n"
    assert read_passes(output) == HadoopPasses([0.5, 0.25], [0.75, 0.5], [(1, 1, 3), (2, 1, 0)])
    with pytest.raises(RuntimeError, match="printed 'something else'"):
        read_passes("something else\n")


@pytest.mark.soak
@pytest.mark.hadoop
@pytest.mark.parametrize("case", [PLACING, REJECTING], ids=["placing", "rejecting"])
def test_hadoop_places_the_same_containers_on_the_same_nodes(case: Case, tmp_path: Path) -> None:
    try:
        hadoop = Hadoop(tmp_path)
    except toolchain.JavaMissing as missing:
        pytest.skip(str(missing))
    passes = hadoop.run(case, passes=2)
    assert len(passes.cpu_s) == 2
    assert passes.containers == run(case)["containers"]
