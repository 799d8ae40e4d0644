"""Scenarios and recordings on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.conformance.oracle.__main__ import app as oracle
from tests.conformance.scenario import Scenario, of_json, read, read_lines, write_lines
from wire.files.hadoop_xml import to_xml

SCENARIO = Scenario(
    "small",
    {"yarn.scheduler.capacity.root.queues": "a"},
    [
        {"op": "register_node", "node": "h1", "resource": {"memory": 1024, "vcores": 1}},
        {"op": "heartbeat", "node": "h1"},
    ],
    {"features": ["percent"]},
)


def _lines(scenario: Scenario) -> list[dict[str, object]]:
    answers = [{"step": step, "reply": {}, "delta": {}} for step in scenario.steps]
    return [{**scenario.header, "ready": True, "delta": {}}, *answers]


def test_the_scenario_comes_back_out_of_its_recording(tmp_path: Path) -> None:
    path = tmp_path / "small.jsonl.gz"
    write_lines(path, _lines(SCENARIO))
    assert read(path) == SCENARIO


def test_a_configuration_file_is_a_start_a_node_and_a_refresh(tmp_path: Path) -> None:
    conf = {"yarn.scheduler.capacity.root.queues": "a", "yarn.cluster.max-application-priority": "3"}
    (tmp_path / "found.xml").write_text(to_xml(conf))
    scenario = read(tmp_path / "found.xml")
    assert (scenario.name, scenario.configuration) == ("found", conf)
    assert [step["op"] for step in scenario.steps] == ["register_node", "refresh_queues"]
    assert scenario.steps[1]["properties"] == {"yarn.scheduler.capacity.root.queues": "a"}


def test_the_step_from_which_hadoop_did_not_come_to_rest_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "small.jsonl.gz"
    write_lines(path, [*_lines(SCENARIO)[:-1], {"hang": True, "at": SCENARIO.steps[-1]}])
    assert read(path) == SCENARIO


def test_a_scenario_comes_back_out_of_json(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SCENARIO.as_json()))
    assert read(path) == SCENARIO


def test_the_same_lines_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "one.jsonl.gz", tmp_path / "other.jsonl.gz"
    for path in (first, second):
        write_lines(path, _lines(SCENARIO))
    assert first.read_bytes() == second.read_bytes()
    assert read_lines(first) == _lines(SCENARIO)


def test_a_file_that_is_not_a_scenario_is_refused() -> None:
    with pytest.raises(ValueError, match="this has name, about"):
        of_json({"name": "x", "about": "y"})


@pytest.mark.parametrize(("left_out", "whole"), [(0, False), (1, True)])
def test_steps_about_what_was_never_named_do_not_hang_together(left_out: int, whole: bool) -> None:
    steps = [step for number, step in enumerate(SCENARIO.steps) if number != left_out]
    assert SCENARIO.with_steps(steps).hangs_together is whole


def test_the_oracle_shows_a_recording_and_names_files_that_are_none(tmp_path: Path) -> None:
    path, other = tmp_path / "small.jsonl.gz", tmp_path / "other.jsonl.gz"
    write_lines(path, _lines(SCENARIO))
    other.write_text("{}\n")
    runner = CliRunner()
    shown = runner.invoke(oracle, ["show", str(path)])
    assert (shown.exit_code, shown.output.splitlines()[2]) == (0, '   2 {"op": "heartbeat", "node": "h1"}')
    for wrong, said in ((tmp_path / "missing", "does not exist"), (other, "is not a recording")):
        refused = runner.invoke(oracle, ["show", str(wrong)])
        assert refused.exit_code == 2
        assert said in " ".join(refused.output.replace("│", " ").split())
