"""yarnling simulate: exit status, the hash as the last line, JSON, and the command that replays a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from yarnling.cli.app import app, main
from yarnling.simulation.state_store import StateStore

PLAN = """
about: One node fails.
cluster: {nodes: 2}
work:
  - {program: batch, tasks: 2, seconds: 0.5, users: ann, may_fail: true}
faults:
  - {fault: kill-rm, at: 0.2, for: 0.5}
lasts: 1
"""


@pytest.fixture
def plan(tmp_path: Path) -> str:
    path = tmp_path / "one.yaml"
    path.write_text(PLAN)
    return str(path)


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["simulate", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_a_run_that_passes_ends_with_its_hash(plan: str) -> None:
    status, out, _ = invoke(plan, "--seed", "4", "--hash")
    *_, verdict, digest = out.strip().splitlines()
    assert status == 0
    assert verdict.startswith("pass: one, seed 4")
    assert len(digest) == 64
    assert invoke(plan, "--seed", "4", "--hash")[1] == out


def test_a_run_that_fails_prints_the_command_that_replays_it(plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StateStore, "write", lambda self, effects: None)
    status, out, _ = invoke(plan, "--seed", "4", "--no-encode")
    assert status == 1
    assert f"Run it again: yarnling simulate {plan} --seed 4 --no-encode" in out
    assert "no acknowledged application is lost" in out


def test_several_runs_as_json(plan: str) -> None:
    status, out, _ = invoke(plan, "--seed", "4", "--runs", "2", "--json", "--hash")
    runs = json.loads(out)
    assert status == 0
    assert [(run["seed"], run["verdict"]) for run in runs] == [(4, "pass"), (5, "pass")]
    assert all(len(run["hash"]) == 64 and run["virtual_s"] > 1 for run in runs)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("full-disk",), "the fault full-disk is not modelled"),
        (("no-such-plan",), "neither a file nor a ready-made plan"),
        ((), "give a plan or --random"),
    ],
)
def test_what_cannot_be_simulated_is_a_wrong_argument(
    arguments: tuple[str, ...], problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["yarnling", "simulate", *arguments, "--seed", "1"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert problem in " ".join(capsys.readouterr().err.split())
