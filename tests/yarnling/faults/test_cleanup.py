"""Directories of runs: the next run removes what a killed one left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from yarnling.faults.cleanup import RUNNER_FILE, keep_directory, new_directory, remove_orphans


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def made_by_another(temporary: Path, then: str = "") -> Path:
    """A directory whose runner has exited."""
    code = f"from yarnling.faults import cleanup as d; p = d.new_directory(); print(p); {then}"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"TMPDIR": str(temporary)}
    )
    return Path(result.stdout.strip())


def test_the_directory_of_a_killed_runner_is_removed(temporary: Path) -> None:
    left = made_by_another(temporary)
    (left / "cluster").mkdir()
    assert remove_orphans() == [left]
    assert not left.exists()


def test_kept_directories_and_those_of_people_stay(temporary: Path) -> None:
    kept = made_by_another(temporary, "d.keep_directory(p)")
    personal = temporary / "yarnling-chaos-mine"
    personal.mkdir()
    assert remove_orphans() == []
    assert kept.exists()
    assert personal.exists()


def test_the_directory_of_a_current_run_stays() -> None:
    own = new_directory()
    assert remove_orphans() == []
    keep_directory(own)
    assert not (own / RUNNER_FILE).exists()
