"""The example with two leaves of one name: their paths are found, the name alone is ambiguous."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "examples/queue-names"


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    files = ["--conf", FOLDER, "--workload", f"{FOLDER}/workload.yaml", "--nodes", f"{FOLDER}/nodes.yaml"]
    return subprocess.run(
        [sys.executable, "-m", "yarnling", "simulate", *files, "--until", "2m", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_two_leaves_of_one_name_are_found_by_their_paths() -> None:
    ended = simulate()
    assert ended.returncode == 0, ended.stderr
    queues = [line.split()[:2] for line in ended.stdout.splitlines() if line.startswith("root.")]
    assert queues == [["root.adhoc.dev", "1"], ["root.workflow.dev", "1"], ["root.workflow.test", "1"]]


def test_the_name_alone_is_ambiguous() -> None:
    ended = simulate("--queue-map", "test=dev")
    assert ended.returncode == 2
    assert "queue dev is ambiguous without its full path" in ended.stderr
