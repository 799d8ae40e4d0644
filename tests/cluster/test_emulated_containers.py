"""Clusters with emulated containers; the examples in docs/emulated-containers.md work as they are printed there."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from am.programs.distributed_shell.client import parse
from nm.emulation.table_file import parse_table
from yarn.faults import ConfigurationException
from yarn.states import FinalApplicationStatus
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "emulated-containers.md").read_text()
TIMEOUT_S = 250

pytestmark = pytest.mark.cluster


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def python(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=TIMEOUT_S,
        check=False,
        capture_output=True,
        text=True,
    )


def test_the_example_prints_the_output_on_its_page(tmp_path: Path) -> None:
    (code,) = blocks("python")
    (tmp_path / "table.yaml").write_text(blocks("yaml")[0])
    done = python(tmp_path, "-c", code)
    (promised,) = re.findall(r"^prints `(.*?)`", PAGE, re.MULTILINE)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{promised}\n", "")


def test_every_table_of_the_page_can_be_read() -> None:
    assert [len(parse_table(text).rules) for text in blocks("yaml")] == [3, 3, 2]


@pytest.fixture
def name(tmp_path: Path) -> Iterator[str]:
    """A name for a cluster that the command line starts; it is stopped at the end of the test."""
    chosen = f"emulated-{os.getpid()}"
    yield chosen
    python(tmp_path, "-m", "yarnling", "down", "--name", chosen)


def test_the_command_line_emulates_containers_by_a_table_in_the_working_directory(tmp_path: Path, name: str) -> None:
    (tmp_path / "table.yaml").write_text("rules: [{match: {kind: task}, stages: [{lasts: 10ms, exit: 3}]}]")
    up = python(tmp_path, "-m", "yarnling", "up", "--fast", "--detach", "--name", name, "--emulate", "table.yaml")
    assert up.returncode == 0, up.stderr
    assert "Containers are emulated by the table table.yaml: commands do not run." in up.stderr
    arguments = ("distributed-shell", "-shell_command", "true", "-num_containers", "2")
    done = python(tmp_path, "-m", "yarnling", "submit", "--name", name, *arguments)
    assert done.returncode != 0
    assert "failed = 2" in done.stdout + done.stderr
    shown = python(tmp_path, "-m", "yarnling", "config", "--name", name)
    assert f"yarn.yarnling.emulation.table={tmp_path / 'table.yaml'}\tread\t" in shown.stdout


def test_faults_of_a_table_are_reported_with_those_of_settings_before_the_cluster_starts(tmp_path: Path) -> None:
    table = tmp_path / "table.yaml"
    table.write_text("rules:\n  - stages: [{lasts: 3}]\n  - {run: maybe}\n")
    cluster = LocalCluster(
        settings={"yarn.nodemanager.resource.cpu-vcores": "x"}, options=ClusterOptions(emulated=table)
    )
    with pytest.raises(ConfigurationException) as refused, cluster:
        pass
    keys = [fault.key for fault in refused.value.faults]
    assert keys == ["yarn.nodemanager.resource.cpu-vcores", "rules[1].stages[1].lasts", "rules[2].run"]


def test_the_ready_made_table_runs_ams_and_emulates_tasks() -> None:
    with LocalCluster(fast=True, options=ClusterOptions(emulated=True)) as cluster:
        started = cluster.client.start(parse(["-shell_command", "no-such-command", "-num_containers", "3"]))
        report = cluster.client.wait(started.application_id, timeout_s=60)
        assert report.final_status is FinalApplicationStatus.SUCCEEDED
        (am,) = {str(log.container_id) for log in cluster.client.logs(started.application_id)}
        assert am.endswith("_01_000001")
