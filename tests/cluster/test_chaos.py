"""`yarnling chaos` on real processes: runs that pass, fail, or are inconclusive."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec.structs import replace

from tests.cluster import command_line
from tests.processes import HEARING, running
from yarnling.cluster.processes import those_that_name
from yarnling.faults.history import ProcessRole
from yarnling.faults.kinds import KINDS
from yarnling.faults.notes import SCRIPT, ProcessNotes
from yarnling.faults.plan_file import find_plan, parse_plan, plan_names
from yarnling.faults.runner import INTERRUPTED, run_plan
from yarnling.faults.schedule import random_plan
from yarnling.faults.verdict import RunVerdict
from yarnling.simulation.runner import simulate

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).resolve().parents[2]
QUICK = """
about: The shortest useful plan.
cluster: {nodes: 2}
work:
  - {program: batch, tasks: 2, seconds: 0.5}
faults:
  - {fault: pause-node, node: 2, at: 0.2, for: 0.3}
lasts: 0.6
"""
STUBBORN = """
cluster: {nodes: 2}
work:
  - {program: service, tasks: 2, ignores_term: true, killed_after: 3}
lasts: 0.5
"""
ALWAYS = ("kill-node", "kill-master", "kill-rm", "partition-replies")
"""A fault each for nodes, ApplicationMasters, the ResourceManager and the network; the others run only as a soak."""


@pytest.fixture(autouse=True)
def runs_are_in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the directories of runs that do not pass among the test's temporary files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def chaos(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command within this process."""
    return command_line.run("chaos", *arguments, environment=os.environ)


def printed(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    (run,) = json.loads(result.stdout)
    return dict(run)


def write(directory: Path, text: str) -> Path:
    path = directory / "plan.yaml"
    path.write_text(text)
    return path


def is_for_processes(name: str) -> bool:
    return name not in ALWAYS and not find_plan(name).only_simulated


OTHERS = [name for name in plan_names() if is_for_processes(name)]


@pytest.mark.case("I5")
@pytest.mark.parametrize("name", ALWAYS)
async def test_ready_made_plans_pass(name: str) -> None:
    run = await run_plan(find_plan(name), 1)
    assert run.judgement.verdict is RunVerdict.PASS, run.judgement.reasons


# I2: nodes, I3: AMs, I4: the ResourceManager, I5: all the rest.
@pytest.mark.case("I2", "I3", "I4", "I5")
@pytest.mark.soak
@pytest.mark.parametrize("name", OTHERS)
def test_all_ready_made_plans_pass(name: str) -> None:
    """Each plan runs in its own process, because some of them mount file systems."""
    command = [sys.executable, "-m", "yarnling", "chaos", name, "--seed", "1", "--json"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0 or "cannot mount a small disk" in result.stdout, (result.stdout, result.stderr)


@pytest.mark.case("I5")
@pytest.mark.soak
async def test_random_plans_pass(seed: int) -> None:

    run = await run_plan(random_plan(seed), seed)
    assert run.judgement.verdict is not RunVerdict.FAIL, (run.judgement.reasons, run.directory)


async def test_a_run_that_passes_leaves_nothing_behind(tmp_path: Path) -> None:
    plan = replace(find_plan(str(write(tmp_path, QUICK))), name="quick")
    run = await run_plan(plan, 1)
    assert (run.judgement.verdict, run.directory) == (RunVerdict.PASS, None), run.judgement.reasons
    assert [path.name for path in tmp_path.iterdir()] == ["plan.yaml"]
    assert those_that_name(tmp_path) == []


async def test_users_kill_applications_whose_processes_ignore_sigterm() -> None:
    run = await run_plan(parse_plan(STUBBORN, "stubborn", "stubborn"), 1)
    assert run.judgement.verdict is RunVerdict.PASS, run.judgement.reasons
    (submitted,) = run.history.submissions
    assert "Killed by its user" in run.history.outcomes[submitted.application_id].diagnostics
    spans = run.history.spans_of(submitted.application_id, ProcessRole.CONTAINER)
    assert [span.status for span in spans] == [None, None]


def test_a_failed_expectation_fails_the_run_and_keeps_its_logs(tmp_path: Path) -> None:
    result = chaos(str(write(tmp_path, QUICK + "expect: {nodes_lost: 1}")), "--json", "--keep", str(tmp_path / "kept"))
    run = printed(result)
    assert (result.returncode, run["verdict"]) == (1, "fail"), run
    assert run["reasons"] == ["nodes lost as expected: 0, expected 1"]
    assert run["command"] == f"yarnling chaos {tmp_path}/plan.yaml --seed {run['seed']}"
    directory = Path(run["directory"])
    assert (directory / "cluster" / "logs" / "rm.log").stat().st_size
    assert (directory / "events" / "resourcemanager.jsonl").stat().st_size
    assert list((directory / "notes").iterdir())


async def test_a_workload_that_skips_containers_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workload is broken on purpose: every second container exits with 0 without having run."""
    lossy = tmp_path / "lossy.sh"
    lossy.write_text(f'case "$2$CONTAINER_ID" in container*[02468]) exit 0;; esac\n. {SCRIPT}\n')
    monkeypatch.setattr("yarnling.faults.notes.SCRIPT", lossy)
    run = await run_plan(find_plan(str(write(tmp_path, QUICK))), 1, keep=tmp_path / "kept")
    assert run.judgement.verdict is RunVerdict.FAIL
    (reason,) = run.judgement.reasons
    assert reason.startswith("successful work is complete: application_")
    assert reason.endswith("succeeded with 1 of 2 containers done")


async def test_a_fault_without_a_target_is_inconclusive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only application is submitted after the fault has stopped waiting."""
    monkeypatch.setattr("yarnling.faults.phases.WAIT_S", 0.5)
    text = QUICK.replace("seconds: 0.5}", "seconds: 0.5, at: 2.5}")
    text = text.replace("{fault: pause-node, node: 2, at: 0.2, for: 0.3}", "{fault: kill-master, at: 0}")
    text += "begins: at once\n"
    judgement = (await run_plan(find_plan(str(write(tmp_path, text))), 1)).judgement
    assert judgement.verdict is RunVerdict.CANNOT_TELL
    assert list(judgement.reasons) == ["0.0 s kill-master could not be injected: no ApplicationMaster is running"]


def test_a_cluster_that_does_not_start_is_inconclusive(tmp_path: Path) -> None:
    text = QUICK.replace("{nodes: 2}", "{nodes: 2, settings: {yarn.resourcemanager.address: 192.0.2.1:1}}")
    result = chaos(str(write(tmp_path, text)), "--json")
    assert (result.returncode, printed(result)["verdict"]) == (3, "cannot tell"), result.stdout


def test_all_mistakes_of_a_plan_are_reported(tmp_path: Path) -> None:
    result = chaos(str(write(tmp_path, "wrok: []\nlasts: soon")))
    assert result.returncode == 2
    assert "plan.yaml:1: wrok: is not a valid key (did you mean work?" in result.stderr
    assert "plan.yaml:2: lasts = 'soon': is not a number" in result.stderr
    nothing = chaos()
    assert (nothing.returncode, "give a plan or --random" in nothing.stderr) == (2, True)


def test_an_interrupted_run_leaves_nothing_behind(tmp_path: Path) -> None:
    command = (*HEARING, sys.executable, "-m", "yarnling", "chaos", "kill-node", "--json")
    with running(*command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "working" not in process.stderr.readline():
            pass
        below = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    (run,) = json.loads(output)
    assert (process.returncode, run["verdict"]) == (3, "cannot tell"), errors
    assert any(INTERRUPTED in reason for reason in run["reasons"])
    psutil.wait_procs(below, timeout=60)
    assert those_that_name(tmp_path) == []


def test_a_schedule_is_printed_and_not_run() -> None:
    first, again = chaos("storm", "--schedule", "--seed", "7"), chaos("storm", "--schedule", "--seed", "7")
    assert first.returncode == 0
    assert first.stdout == again.stdout
    assert "kill-rm" in first.stdout
    assert chaos("storm", "--schedule", "--seed", "8").stdout != first.stdout


def test_the_examples_of_the_documentation(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "chaos.md").read_text()
    plan, shrunk = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (printed,) = re.findall(r"prints\n\n```\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert chaos("flap", "--schedule", "--seed", "7").stdout == printed
    assert chaos("kill-node", "--schedule", "--seed", "7").returncode == 0
    result = chaos(str(write(tmp_path, plan)), "--json")
    assert result.returncode == 0, (result.stdout, result.stderr)
    assert simulate(parse_plan(shrunk, "shrunk", "shrunk"), 1).judgement.verdict is RunVerdict.PASS


def test_the_documentation_lists_every_fault() -> None:
    text = (ROOT / "docs" / "chaos.md").read_text()
    assert [name for name in KINDS if f"`{name}`" not in text] == []


def test_the_list_has_every_plan() -> None:
    listed = chaos("--list").stdout
    assert all(name in listed for name in plan_names())
    assert [entry["name"] for entry in json.loads(chaos("--list", "--json").stdout)] == plan_names()


def test_notes_are_in_the_kept_directory(tmp_path: Path) -> None:
    result = chaos(str(write(tmp_path, QUICK)), "--seed", "1", "--keep", str(tmp_path / "kept"), "--json")
    assert result.returncode == 0, result.stdout
    spans = ProcessNotes(tmp_path / "kept" / "plan-1" / "notes").read()
    assert {span.role for span in spans} == {ProcessRole.MASTER, ProcessRole.CONTAINER}
