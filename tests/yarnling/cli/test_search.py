"""`yarnling simulate search`, through the command line, on a small workload of which the best is known."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("optuna")

from tests.yarnling.whatif.small_clusters import CS, TWO_QUEUES, application, group, write_configuration
from yarnling.cli.app import app
from yarnling.cli.shared.arguments import UsageException
from yarnling.workload.model import Workload
from yarnling.workload.workload_file import write_workload

GOALS = """
goals: [queue etl: p95 wait < 10 s]
change: [{queue: [etl, adhoc], key: capacity, from: 20, to: 80, step: 10}]
"""


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    """Each application of etl needs 8 of 10 GB, and a user gets one container more than the capacity of the queue."""
    settings = {**TWO_QUEUES, f"{CS}root.etl.user-limit-factor": "1", f"{CS}maximum-am-resource-percent": "1"}
    write_configuration(tmp_path / "now", settings)
    one_a_minute = (application(group(7, 45), name=f"a{minute}", at_s=60 * minute) for minute in range(3))
    write_workload(Workload(tuple(one_a_minute)), tmp_path / "day.jsonl")
    (tmp_path / "nodes.yaml").write_text("nodes: [{host: w, memory: 10GB, vcores: 20}]")
    (tmp_path / "goals.yaml").write_text(GOALS)
    names = {"--conf": "now", "--workload": "day.jsonl", "--nodes": "nodes.yaml", "--goals": "goals.yaml", "-o": "out"}
    return [word for option, name in names.items() for word in (option, str(tmp_path / name))]


def search(*words: str) -> tuple[int, str]:
    """(exit status, what is printed)."""
    result = CliRunner().invoke(app, ["simulate", "search", *words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def test_the_smallest_change_is_found_and_written(inputs: list[str], tmp_path: Path) -> None:
    status, text = search(*inputs, "--seeds", "2", "--workers", "1", "--trials", "20")
    assert status == 0, text
    assert "2 changes meet all goals: root.etl.capacity 50 -> 70, root.adhoc.capacity 50 -> 30." in text
    changed = (tmp_path / "out" / "conf" / "capacity-scheduler.xml").read_text()
    assert f"<name>{CS}root.etl.capacity</name><value>70</value>" in changed
    diff = (tmp_path / "out" / "change.diff").read_text()
    assert f"+++ {tmp_path}/out/conf/capacity-scheduler.xml" in diff
    sides = f"{tmp_path}/now {tmp_path}/out/conf --workload {tmp_path}/day.jsonl --nodes {tmp_path}/nodes.yaml"
    options = f"--until 24h --seed 1 --seeds 2 -o {tmp_path}/out/compare"
    assert f"Compare in full: yarnling simulate compare {sides} {options}" in text.splitlines()
    answer = json.loads(search(*inputs, "--seeds", "2", "--workers", "1", "--trials", "20", "--json")[1])
    assert answer["runs"] == 0
    assert answer["is_exhausted"]
    assert {change["what"]: change["after"] for change in answer["changes"]} == {
        "root.etl.capacity": "70",
        "root.adhoc.capacity": "30",
    }


@pytest.mark.slow
def test_runs_in_processes_give_the_same_answer(inputs: list[str]) -> None:
    status, text = search(*inputs, "--seeds", "2", "--workers", "2")
    assert status == 0, text
    assert "2 changes meet all goals: root.etl.capacity 50 -> 70, root.adhoc.capacity 50 -> 30." in text


def test_a_goal_that_cannot_be_met_has_its_reason(inputs: list[str], tmp_path: Path) -> None:
    (tmp_path / "goals.yaml").write_text(GOALS.replace("to: 80", "to: 60").replace("from: 20", "from: 40"))
    status, text = search(*inputs, "--seeds", "1", "--workers", "1")
    assert status == 1
    assert "No configuration within the bounds meets queue etl: p95 wait < 10 s." in text
    assert "main reason of the waits then" in text
    assert "queue root.etl is at its user limit" in text, text


def test_faults_of_all_inputs_are_reported_together(inputs: list[str], tmp_path: Path) -> None:
    (tmp_path / "day.jsonl").write_text("never")
    with pytest.raises(UsageException) as refused:
        search(*inputs, "--until", "soon", "--time", "later")
    assert "--until soon" in refused.value.message
    assert "--time later" in refused.value.message
    assert "day.jsonl" in refused.value.message


def test_a_key_that_is_set_on_the_command_line_cannot_change(inputs: list[str]) -> None:
    with pytest.raises(UsageException, match="is set with -D"):
        search(*inputs, "-D", f"{CS}root.etl.capacity=50")


def test_without_optuna_the_extra_is_named(inputs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("yarnling.search", "yarnling.cli.search"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UsageException, match=r"pip install 'yarnling\[search\]'"):
        search(*inputs)
