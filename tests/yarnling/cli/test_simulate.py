"""yarnling simulate: exit status, the hash as the last line, JSON, and the command that replays a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from yarnling.cli.app import app, main
from yarnling.cli.shared.arguments import UsageException
from yarnling.faults.plan import Plan
from yarnling.faults.plan_file import find_plan, parse_plan
from yarnling.faults.schedule import random_plan
from yarnling.simulation.runner import Options, SimulatedRun, simulate
from yarnling.simulation.state_store import SimulatedStore

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
    monkeypatch.setattr(SimulatedStore, "write", lambda self, effects: None)
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
        (("no-such-plan",), "neither a file nor a ready-made plan"),
        ((), "give a plan or --random"),
        (("kill-rm", "--random"), "kill-rm --random: a plan and --random exclude each other (give only one of them)"),
        (("kill-rm", "--all-faults"), "--all-faults: only random plans have more faults with it (leave it out, or"),
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


def test_a_plan_may_be_named_as_a_command(plan: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Path(plan).rename(tmp_path / "plan")
    monkeypatch.chdir(tmp_path)
    assert invoke("./plan", "--seed", "4")[0] == 0
    assert invoke("plan", "./plan", "--seed", "4")[0] == 0


def test_help_lists_the_commands_and_their_options() -> None:
    status, out, _ = invoke("--help")
    assert status == 0
    assert "Run a chaos plan" in out
    assert "--random" in invoke("plan", "--help")[1]


def test_random_plans_have_all_faults_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulate(parse_plan(PLAN, "one", "one"), 4)
    drawn: list[Plan] = []

    def note(plan: Plan, seed: int, options: Options) -> SimulatedRun:
        drawn.append(plan)
        return run

    monkeypatch.setattr("yarnling.cli.simulate.simulate", note)
    invoke("--random", "--seed", "4")
    invoke("--random", "--seed", "4", "--all-faults")
    assert drawn == [random_plan(4), random_plan(4, all_faults=True)]


def test_seeds_are_within_the_bound_of_plans() -> None:
    with pytest.raises(UsageException, match=r"the last seed would be 4294967297: at most 4294967296"):
        CliRunner().invoke(
            app, ["simulate", "kill-node", "--seed", str((1 << 32) - 1), "--runs", "3"], catch_exceptions=False
        )


def test_it_says_that_there_is_nothing_to_shrink(plan: str, tmp_path: Path) -> None:
    status, out, _ = invoke(plan, "--seed", "4", "--no-encode", "--shrink", "-o", str(tmp_path))
    assert (status, list(tmp_path.glob("shrunk*"))) == (0, [])
    assert "There is nothing to shrink: no run failed." in out


@pytest.mark.slow
def test_a_failing_run_is_shrunk_to_a_plan_and_a_test(
    plan: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(SimulatedStore, "write", lambda self, effects: None)
    status, out, _ = invoke(plan, "--seed", "4", "--no-encode", "--shrink", "-o", str(tmp_path / "found"))
    assert status == 1
    shrunk = tmp_path / "found" / "shrunk_one_4.yaml"
    assert f"To replay it: yarnling simulate {shrunk} --seed 4 --no-encode\n" in out
    assert find_plan(str(shrunk)).seed == 4
    test: dict[str, Any] = {}
    exec((tmp_path / "found" / "test_shrunk_one_4.py").read_text(), test)
    with pytest.raises(AssertionError):
        test["test_shrunk_one_4"]()
    monkeypatch.undo()
    assert invoke(str(shrunk))[0] == 0, "without the bug the shrunk plan passes"
    test["test_shrunk_one_4"]()
