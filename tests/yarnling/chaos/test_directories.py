"""Directories of runs: one that was killed leaves nothing for longer than until the next."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from yarnling.chaos.directories import RUNNER, new_directory, remove_orphans, settle


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def made_by_another(temporary: Path, then: str = "") -> Path:
    """A directory whose runner has ended without a word."""
    code = f"from yarnling.chaos import directories as d; p = d.new_directory(); print(p); {then}"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"TMPDIR": str(temporary)}
    )
    return Path(result.stdout.strip())


def test_what_a_runner_left_that_was_killed_is_removed(temporary: Path) -> None:
    left = made_by_another(temporary)
    (left / "cluster").mkdir()
    assert remove_orphans() == [left]
    assert not left.exists()


def test_what_was_left_for_people_stays(temporary: Path) -> None:
    settled = made_by_another(temporary, "d.settle(p)")
    somebodys = temporary / "yarnling-chaos-mine"
    somebodys.mkdir()
    assert remove_orphans() == []
    assert settled.exists()
    assert somebodys.exists()


def test_what_is_of_a_run_that_lasts_stays() -> None:
    own = new_directory()
    assert remove_orphans() == []
    settle(own)
    assert not (own / RUNNER).exists()
