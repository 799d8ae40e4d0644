"""Tests that take long do not run unless they are asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILE = """
import pytest

def test_quick():
    pass

@pytest.mark.slow
@pytest.mark.soak
def test_long():
    pass
"""


@pytest.mark.parametrize(
    ("arguments", "run"),
    [
        ((), {"test_quick"}),
        (("-m", "slow or not slow"), {"test_quick"}),
        (("-m", "soak"), {"test_long"}),
        (("-m", "slow and soak or not slow"), {"test_quick", "test_long"}),
    ],
)
def test_a_soak_runs_only_if_it_is_named(tmp_path: Path, arguments: tuple[str, ...], run: set[str]) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "test_some.py").write_text(FILE)
    markers = ["-o", "markers=slow\nsoak", "-o", "addopts=", "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *markers, *arguments, str(tmp_path)]
    listed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert {line.partition("::")[2] for line in listed.splitlines() if "::" in line} == run
