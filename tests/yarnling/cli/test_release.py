"""--release: the rules of another release of Hadoop, from the command line to the result."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.yarnling.whatif.small_clusters import TWO_QUEUES, application, group, nodes
from wire.files.hadoop_xml import to_xml
from yarn.settings.release import RELEASE
from yarnling.cli.app import app
from yarnling.cli.options.cluster import UpOptions
from yarnling.whatif.changes import ChangedInput, changes_of
from yarnling.whatif.result_file import read_result
from yarnling.workload.model import Workload, WorkloadNodes
from yarnling.workload.nodes_file import write_nodes
from yarnling.workload.workload_file import write_workload


def run(*arguments: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, list(arguments))
    return answer.exit_code, answer.output


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    """A workload of ten tasks and two nodes."""
    workload, machines = tmp_path / "day.jsonl", tmp_path / "nodes.yaml"
    write_workload(Workload((application(group(10, 20, memory_mb=512), name="job"),)), workload)
    write_nodes(WorkloadNodes(nodes()), machines)
    return ["--workload", str(workload), "--nodes", str(machines), "--until", "10m"]


@pytest.mark.parametrize(
    "command",
    [["up"], ["config"], ["simulate", "kill-node"], ["simulate", "step"], ["simulate", "compare", "a", "b"]],
    ids=" ".join,
)
def test_an_unknown_release_is_refused_with_the_known_ones(command: list[str]) -> None:
    option = "--release-after" if "compare" in command else "--release"
    status, printed = run(*command, option, "3.3.6")
    words = re.sub(r"[\s│]+", " ", printed)
    assert status == 2
    assert "'3.3.6' is not one of 3.4.1, 3.4.2, 3.4.3 or 3.5.0" in words
    assert "Dataproc 3.0 on 3.5.0" in words


def test_config_shows_the_defaults_of_the_release() -> None:
    key = "yarn.scheduler.capacity.schedule-asynchronously.enable"
    assert f"{key}=false\t" in run("config", "--all")[1]
    assert f"{key}=true\t" in run("config", "--all", "--release", "3.5.0")[1]


def test_a_cluster_is_started_with_the_release() -> None:
    assert UpOptions(release="3.4.2").settings[RELEASE.key] == "3.4.2"
    assert RELEASE.key not in UpOptions().settings


def test_a_plan_is_replayed_with_its_release() -> None:
    status, printed = run("simulate", "kill-node", "--seed", "7", "--release", "3.5.0", "--json")
    assert status == 0
    assert "--seed 7 --release 3.5.0" in printed


def test_the_release_is_in_the_result_and_in_the_report(inputs: list[str], tmp_path: Path) -> None:
    out, settings = tmp_path / "out", [text for pair in TWO_QUEUES.items() for text in ("-D", "=".join(pair))]
    status, printed = run("simulate", *inputs, *settings, "--release", "3.5.0", "-o", str(out))
    assert status == 0
    assert ", by the rules of Hadoop 3.5.0" in printed
    assert read_result(out / "result.json").release == "3.5.0"
    assert "by the rules of Hadoop 3.5.0." in (out / "report.html").read_text()


def test_an_upgrade_is_compared_with_unchanged_files(inputs: list[str], tmp_path: Path) -> None:
    """3.5.0 schedules asynchronously by default, which is among the changes."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/capacity-scheduler.xml").write_text(to_xml(TWO_QUEUES))
    sides, out = [str(tmp_path / "conf")] * 2, tmp_path / "out"
    releases = ["--release-before", "3.4.2", "--release-after", "3.5.0"]
    status, printed = run("simulate", "compare", *sides, *releases, *inputs, "-o", str(out), "--json")
    assert status == 0
    before, after = (read_result(out / side / "result.json") for side in ("before", "after"))
    assert (before.release, after.release) == ("3.4.2", "3.5.0")
    assert after.configuration == f"{sides[0]} (Hadoop 3.5.0)"
    key = "yarn.scheduler.capacity.schedule-asynchronously.enable"
    assert changes_of(before, after) == (
        ChangedInput("release of Hadoop", "3.4.2", "3.5.0"),
        ChangedInput(f"default of {key}", "false", "true"),
    )
    assert json.loads(printed[printed.index("{") :])["changes"][0]["what"] == "release of Hadoop"
    again = CliRunner().invoke(app, ["simulate", "compare", str(out / "before"), sides[1], *releases, *inputs])
    assert "--release-before:" in str(again.exception)
    assert "was simulated already" in str(again.exception)
