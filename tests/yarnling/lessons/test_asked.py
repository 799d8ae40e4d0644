"""Lesson 22: a node is full by what was requested (mission case H2), also on processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from yarnling.lessons.catalogue import find_lesson

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "asked" / "run.py"


@pytest.mark.parametrize(("asked", "running", "allocated_gb"), [(10, 1, 10.5), (5, 2, 10.75), (3, 3, 9.75)])
def test_as_many_run_as_fit_by_their_requests(asked: int, running: int, allocated_gb: float) -> None:
    measured = find_lesson("asked").play(asked).measured
    assert (measured["running"], measured["allocated_gb"], measured["used_gb"]) == (running, allocated_gb, running)


def test_smaller_requests_end_sooner() -> None:
    lesson = find_lesson("asked")
    ends = [float(lesson.play(asked).measured["over_s"]) for asked in (10, 5, 3)]
    assert ends == sorted(ends, reverse=True)
    assert len(set(ends)) == 3


@pytest.mark.cluster
@pytest.mark.slow
def test_the_example_shows_requested_and_used_memory_of_processes() -> None:
    """The containers request 10 GB and take 32 MB. Requests of 5 GB: tests/cluster/test_nodes_and_use.py."""
    command = [sys.executable, str(EXAMPLE), "--used=32", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout, done.stderr
    seen = json.loads(done.stdout)
    assert seen["faults"] == []
    assert done.returncode == 0
    assert [each["runs"] for each in seen["containers"]] == [True, False]
    assert seen["offered_mb"]["nothing configured"] == 8192, "whatever the machine has"
    assert seen["offered_mb"]["configured"] == 11 * 1024
    assert 0 < seen["offered_mb"]["detect-hardware-capabilities"] < seen["machine_mb"]
    assert seen["allocated_mb"] == 10 * 1024 + 2 * 128
    assert 32 <= seen["containers"][0]["in_proc_mb"] < 1024
    assert 32 <= seen["reported_mb"] < 1024
    assert "10240 needed" in seen["containers"][1]["waits"]
    assert seen["runs_afterwards"], "bob's container, once ann's had ended"
