"""scripts/bench lives: full clusters are full, and the sides of a round are put side by side."""

from __future__ import annotations

import pytest
from rich.console import Console

from benchmarks.lives import Full, Measured, figures_of, full_workload, inputs, measure, run, table
from yarnling.whatif.run import RunOptions, run_what_if


def test_a_run_counts_the_lives_of_all_containers_and_hashes_its_result() -> None:
    case = Full(nodes=4, minutes=0.5, container_s=5)
    first, again = run(case), run(case)
    tasks = [each for application in full_workload(case).applications for each in application.groups[0].durations_ms]
    assert first["lives"] >= len(tasks) > 0
    assert (first["result"], first["events"]) == (again["result"], again["events"])
    assert run(case._replace(minutes=1))["result"] != first["result"]


def test_a_full_cluster_is_full_after_20_seconds() -> None:
    case = Full(nodes=60, minutes=0.5)
    conf, workload, nodes, until_ms = inputs(case)
    result = run_what_if(conf, workload, nodes, RunOptions(1, until_ms))
    used = [
        sample.used.memory_mb / (case.nodes * 65_536)
        for sample in result.samples
        if sample.queue == "root" and 20_000 <= sample.time_ms <= 30_000
    ]
    assert min(used) > 0.95


def test_the_median_of_a_ratio_is_taken_over_the_rounds() -> None:
    rounds = [
        {"interpreted": _measured(10, "a"), "compiled": _measured(5, "a")},
        {"interpreted": _measured(40, "a"), "compiled": _measured(10, "a")},
        {"interpreted": _measured(20, "a"), "compiled": _measured(1, "b")},
    ]
    figures = figures_of(["interpreted", "compiled"], rounds)
    assert (figures["interpreted"], figures["compiled"], figures["compiled_ratio"]) == (50, 200, 4)
    assert figures["results"] == 2
    console = Console(width=200, record=True)
    console.print(table({f"full.{name}": value for name, value in figures.items()}))
    assert "50 (1.00) 100 MB" in console.export_text(clear=False)
    assert "200 (4.00) 100 MB" in console.export_text(clear=False)
    assert "2 different" in console.export_text()


def test_an_unknown_case_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIVES_CASES", "full_3")
    with pytest.raises(SystemExit, match=r"unknown case full_3 \(known: full_200, "):
        measure(lambda _: None)


def _measured(cpu_s: float, result: str) -> Measured:
    return Measured(cpu_s=cpu_s, lives=1000, events=1, peak_mb=100, result=result, is_compiled=False)
