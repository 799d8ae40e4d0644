"""The core does what Hadoop's own ResourceManager did, step by step, in the recordings that are kept here."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.comparison import compare_file

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.jsonl.gz"))
ONE = next(path for path in RECORDINGS if path.name.startswith("basic"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.partition(".")[0])
def test_same_as_hadoop(path: Path) -> None:
    outcome = compare_file(path)
    assert outcome.same, outcome.differences[0]


def test_there_are_recordings() -> None:
    assert len(RECORDINGS) >= 6


def test_the_readme_has_the_number_of_recordings_and_steps() -> None:
    steps = 0
    for path in RECORDINGS:
        with gzip.open(path, "rt") as file:
            steps += sum(1 for line in file if line.startswith('{"step"'))
    count, readme = len(RECORDINGS), (ROOT / "README.md").read_text()
    assert f"| {count} of {count} recordings of Hadoop's own ResourceManager ({steps:,} steps) are replayed" in readme


def forged(tmp_path: Path, change: Callable[[list[Any]], None]) -> Path:
    """A recording with something changed in its lines."""
    with gzip.open(ONE, "rt") as file:
        lines = [json.loads(line) for line in file]
    change(lines)
    path = tmp_path / "forged.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return path


def test_a_difference_is_found_and_named(tmp_path: Path) -> None:
    """A recording in which Hadoop had said something else at one step differs there, by that key."""
    found: list[tuple[int, str]] = []

    def say_something_else(lines: list[Any]) -> None:
        number = next(number for number, line in enumerate(lines) if number > 20 and line["delta"])
        key = next(iter(lines[number]["delta"]))
        lines[number]["delta"][key] = "something else"
        found.append((number, key))

    path = forged(tmp_path, say_something_else)
    outcome = compare_file(path)
    first = outcome.differences[0]
    assert [(first.step, first.key)] == found
    assert first.hadoop == "something else"
    ended = conform(str(RECORDINGS[1]), str(path))
    assert ended.returncode == 1
    assert f"  {first.key}: Hadoop something else, ours " in ended.stdout
    assert ended.stdout.splitlines()[-1] == "1 passed, 1 failed"
    ended = conform("--json", str(path))
    assert ended.returncode == 1
    assert json.loads(ended.stdout)["recordings"][0]["difference"]["key"] == first.key


def test_a_step_without_an_event_is_a_difference(tmp_path: Path) -> None:
    outcome = compare_file(forged(tmp_path, lambda lines: lines[5]["step"].update(op="dance")))
    assert (outcome.differences[0].step, outcome.differences[0].ours) == (5, "unsupported op dance")


def test_a_broken_invariant_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps are audited, so a recording holds us to more than what Hadoop's view of it shows."""
    monkeypatch.setattr("rm.core.invariants.violations", lambda _: ["I-01: n1: 1 + 1 != 3"])
    first = compare_file(ONE).differences[0]
    assert "I-01: n1: 1 + 1 != 3" in str(first.ours)


def test_where_hadoop_does_not_come_to_rest_ours_has_to(tmp_path: Path) -> None:
    """The step is gone through without anything to compare it with: a crash of ours or no end differs."""

    def hang_at(op: str) -> Path:
        def cut(lines: list[Any]) -> None:
            lines[6:] = [{"hang": True, "at": {**lines[6]["step"], "op": op}}]

        return forged(tmp_path, cut)

    assert compare_file(hang_at("heartbeat")).same
    assert not compare_file(hang_at("dance")).same


def test_a_refused_start_is_compared_too(tmp_path: Path) -> None:
    """Hadoop started, and we refuse a configuration that Hadoop's recording has taken."""
    outcome = compare_file(
        forged(tmp_path, lambda lines: lines[0]["conf"].update({"yarn.scheduler.capacity.root.queues": "nosuch"}))
    )
    assert (outcome.differences[0].step, outcome.differences[0].key) == (0, "start")


def test_a_file_that_is_not_a_recording_is_a_difference(tmp_path: Path) -> None:
    forged = tmp_path / "forged.jsonl.gz"
    forged.write_text("no gzip")
    assert not compare_file(forged).same


def test_the_command_counts_what_is_the_same() -> None:
    ended = conform(*map(str, RECORDINGS[:2]))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "2 passed, 0 failed"


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    ended = conform(str(tmp_path / "nowhere.jsonl.gz"))
    assert ended.returncode == 2
    assert "no such recording" in ended.stderr


def conform(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.conformance", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
