"""The core does what Hadoop's own ResourceManager did, step by step, in the recordings that are kept here."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.comparison import compare_file

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.jsonl.gz"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.partition(".")[0])
def test_same_as_hadoop(path: Path) -> None:
    outcome = compare_file(path)
    assert outcome.same, outcome.differences[0]


def test_there_are_recordings() -> None:
    assert len(RECORDINGS) >= 6


def test_a_difference_is_found_and_named(tmp_path: Path) -> None:
    """A recording in which Hadoop had said something else at one step differs there, by that key."""
    with gzip.open(RECORDINGS[0], "rt") as file:
        lines = [json.loads(line) for line in file]
    changed = next(number for number, line in enumerate(lines) if number > 20 and line["delta"])
    key = next(iter(lines[changed]["delta"]))
    lines[changed]["delta"][key] = "something else"
    forged = tmp_path / "forged.jsonl.gz"
    with gzip.open(forged, "wt") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    outcome = compare_file(forged)
    assert (outcome.differences[0].step, outcome.differences[0].key) == (changed, key)
    assert outcome.differences[0].hadoop == "something else"


def test_what_is_no_recording_is_a_difference_and_no_crash(tmp_path: Path) -> None:
    forged = tmp_path / "forged.jsonl.gz"
    forged.write_text("no gzip")
    assert not compare_file(forged).same


@pytest.mark.parametrize(("arguments", "status"), [([], 0), (["--json"], 0)])
def test_the_command_counts(arguments: list[str], status: int) -> None:
    command = [sys.executable, "-m", "tests.conformance", *map(str, RECORDINGS[:2]), *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == status, ended.stderr
    if arguments:
        assert json.loads(ended.stdout)["passed"] == 2
    else:
        assert ended.stdout.splitlines()[-1] == "2 passed, 0 failed"
