"""The examples run as they are printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.cluster
@pytest.mark.slow
def test_the_minimal_master_says_hello_from_each_container() -> None:
    command = [sys.executable, EXAMPLES / "submit_minimal_master.py", "3"]
    done = subprocess.run(
        command,
        cwd=EXAMPLES.parent,
        env={"PYTHONPATH": str(EXAMPLES.parent), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "SUCCEEDED 3 ended, 0 failed"
    assert len(lines) == 4
    assert all(line.startswith("hello from 127.0.0.") for line in lines[1:])
