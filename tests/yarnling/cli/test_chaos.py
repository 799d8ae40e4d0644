"""yarnling chaos: a failing run names the command that tries its faults in virtual time."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from yarnling.cli import chaos
from yarnling.cli.options.cluster import ChaosOptions
from yarnling.faults.history import History
from yarnling.faults.plan_file import find_plan
from yarnling.faults.runner import ProcessRun
from yarnling.faults.schedule import schedule
from yarnling.faults.verdict import Judgement, RunVerdict


def summary(verdict: RunVerdict, directory: Path) -> str:
    plan = find_plan("flap")
    judgement = Judgement(verdict, (), () if verdict is RunVerdict.PASS else ("something is wrong",))
    run = ProcessRun(plan, 7, schedule(plan, 7), History(), judgement, directory)
    console = Console(record=True, width=200)
    chaos._print_summary(run, ChaosOptions(plan="flap", seed=7), console)
    return console.export_text()


def test_a_failing_run_says_how_to_try_it_in_virtual_time(tmp_path: Path) -> None:
    assert f"yarnling simulate {tmp_path}/plan.yaml --runs 100 --shrink" in summary(RunVerdict.FAIL, tmp_path)
    written, plan = find_plan(str(tmp_path / "plan.yaml")), find_plan("flap")
    assert [str(one) for one in schedule(written, 1)] == [str(one) for one in schedule(plan, 7)]
    assert written.seed == 7


def test_a_run_that_passes_does_not(tmp_path: Path) -> None:
    assert "simulate" not in summary(RunVerdict.PASS, tmp_path)
