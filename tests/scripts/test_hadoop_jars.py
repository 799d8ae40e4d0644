"""scripts/hadoop-jars: jars are fetched once, and a failure is one line. A script in place of Maven."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "hadoop-jars"


class Maven:
    """A directory on the PATH with an `mvn` that runs these lines of shell; `$target` is where jars belong."""

    def __init__(self, directory: Path, *lines: str) -> None:
        self.home = directory / "jars"
        self.calls = directory / "calls"
        path = directory / "bin"
        path.mkdir()
        body = ["#!/bin/sh", f"echo called >> {self.calls}", 'target="${8#-DoutputDirectory=}"', *lines]
        (path / "mvn").write_text("\n".join(body) + "\n")
        (path / "mvn").chmod(0o755)
        self._path = f"{path}:{os.environ['PATH']}"

    def fetch(self, *arguments: str, seconds: int = 60) -> subprocess.CompletedProcess[str]:
        settings = {"YARNLING_HADOOP_JARS": str(self.home), "HADOOP_JARS_SECONDS": str(seconds), "PATH": self._path}
        command = [SCRIPT, *arguments]
        return subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False)


def test_jars_are_fetched_once(tmp_path: Path) -> None:
    maven = Maven(tmp_path, 'mkdir -p "$target" && touch "$target/a.jar"')
    assert maven.fetch("client", "--offline").returncode == 1
    first, second = maven.fetch("client"), maven.fetch("client", "--offline")
    assert (first.stdout, first.returncode) == (second.stdout, second.returncode) == (f"{maven.home}/client\n", 0)
    assert (maven.home / "client" / "a.jar").exists()
    assert maven.calls.read_text().splitlines() == ["called"]


def test_a_failure_is_one_line_and_is_tried_again(tmp_path: Path) -> None:
    maven = Maven(tmp_path, 'mkdir -p "$target"', "echo '[ERROR] no route to the repository'", "exit 1")
    for _ in range(2):
        failed = maven.fetch("client")
        assert failed.returncode == 1
        expected = "Hadoop's jars could not be fetched: no route to the repository"
        assert failed.stderr.splitlines()[-1] == expected
    assert len(maven.calls.read_text().splitlines()) == 2


def test_a_maven_that_hangs_is_ended(tmp_path: Path) -> None:
    maven = Maven(tmp_path, "exec sleep 60")
    failed = maven.fetch("client", seconds=1)
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1].endswith("Maven had not finished after 1 s (HADOOP_JARS_SECONDS)")


@pytest.mark.parametrize("name", ["", "everything"])
def test_an_unknown_set_is_refused(name: str) -> None:
    refused = subprocess.run([SCRIPT, name], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "choose from" in refused.stderr
