"""`yarnling simulate sweep`, through the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("distributed")
pytest.importorskip("cryptography")

from tests.processes import output_at_end
from yarnling.cli.app import app
from yarnling.cli.shared.arguments import UsageException
from yarnling.sweep.result_file import open_results

PLAN = "cluster: {nodes: 1}\nwork: [{program: batch, tasks: 1, seconds: 0.2}]\nlasts: 0.5\n"
MACHINES = (("a", "RUNNING"), ("b", "LOST"))


def sweep(*words: str | Path) -> tuple[int, str]:
    """(exit status, what is printed)."""
    result = CliRunner().invoke(app, ["simulate", "sweep", *map(str, words)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def write(tmp_path: Path, seeds: int, plan: str = PLAN) -> Path:
    (tmp_path / "plan.yaml").write_text(plan)
    (tmp_path / "sweep.yaml").write_text(f"seeds: {seeds}\nplans: [plan.yaml]\n")
    return tmp_path / "sweep.yaml"


@pytest.mark.slow
def test_a_sweep_prints_its_verdicts(tmp_path: Path) -> None:
    spec, out = write(tmp_path, 2), tmp_path / "r.sqlite"
    status, text = sweep(spec, "-o", out, "--workers", "1")
    assert status == 0
    assert "plan.yaml  2     2" in text
    status, text = sweep(spec, "-o", out, "--json")
    assert status == 0
    assert json.loads(text)["verdicts"] == {"plan.yaml": {"pass": 2}}


def test_the_summary_says_what_the_inputs_assume_and_what_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yarnling.cli.sweep._run", lambda *_: ((), False))
    machines = [{"id": f"{host}:1", "nodeHostName": host, "rack": "/r", "state": state} for host, state in MACHINES]
    size = {"memory": 65_536, "vCores": 32}
    nodes = {"nodes": {"node": [{**machine, "totalResource": size} for machine in machines]}}
    (tmp_path / "nodes.json").write_text(json.dumps(nodes))
    example = Path("examples/what-if/move-capacity").absolute()
    (tmp_path / "new").mkdir()
    text = (example / "before" / "capacity-scheduler.xml").read_text()
    key = "yarn.scheduler.capacity.multi-node-placement-enabled"
    placement = f"<property><name>{key}</name><value>true</value></property></configuration>"
    (tmp_path / "new" / "capacity-scheduler.xml").write_text(text.replace("</configuration>", placement))
    spec = tmp_path / "sweep.yaml"
    spec.write_text(
        f"seeds: 1\nworkloads: {{night: {example}/workload.yaml}}\nnodes: nodes.json\n"
        f"configurations: {{old: {example}/before, new: new}}\n"
    )
    _, text = sweep(spec, "-o", tmp_path / "r.sqlite")
    assert "night: 1 of 2 nodes are left out: 1 LOST." in text
    answer = json.loads(sweep(spec, "-o", tmp_path / "r.sqlite", "--json")[1])
    assert answer["assumptions"][-1] == "night: 1 of 2 nodes are left out: 1 LOST."
    [warning] = answer["warnings"]
    assert warning.startswith("new: ")
    assert key in warning
    assert "Warnings\n  new: " in text


def test_a_wrong_sweep_starts_nothing(tmp_path: Path) -> None:
    spec = write(tmp_path, 2)
    (tmp_path / "r.sqlite").write_text("not a database, but something that matters")
    with pytest.raises(UsageException, match="is not a file of results"):
        sweep(spec, "-o", tmp_path / "r.sqlite")
    spec.write_text("seeds: 0\nplans: [plan.yaml]\n")
    with pytest.raises(UsageException, match="not a valid range of seeds"):
        sweep(spec, "-o", tmp_path / "new.sqlite")
    assert not (tmp_path / "new.sqlite").exists()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ctrl_c_leaves_a_valid_file(tmp_path: Path) -> None:
    spec, out = write(tmp_path, 500), tmp_path / "r.sqlite"
    command = [sys.executable, "-m", "yarnling", "simulate", "sweep", str(spec), "-o", str(out), "--workers", "2"]
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0, env=environment
    ) as process:
        deadline = time.monotonic() + 120
        while not _results(out) and time.monotonic() < deadline:
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
        stdout, stderr = output_at_end(process, 100)
    assert process.returncode == 130, stderr
    done = _results(out)
    assert 0 < done < 500
    assert f"interrupted: {500 - done} of 500 runs are left; the same command continues" in stderr
    assert "Traceback" not in stderr
    assert f"plan.yaml  {done}" in stdout


def _results(path: Path) -> int:
    if not path.exists():
        return 0
    with open_results(path) as file:
        return len(file.done())
