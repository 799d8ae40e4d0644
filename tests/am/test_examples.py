"""The examples run as their documentation prints them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def assert_says_hello_three_times(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "SUCCEEDED 3 ended, 0 failed"
    assert len(lines) == 4
    assert all(line.startswith("hello from 127.0.0.") for line in lines[1:])


@pytest.mark.cluster
@pytest.mark.slow
def test_the_minimal_am_says_hello_from_each_container() -> None:
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
    assert_says_hello_three_times(done)


NO_NETWORK = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "network")
"""npm's messages when its registry cannot be reached."""


def built_node_master(directory: Path) -> None:
    """Build the Node.js example. Skips the test, with the reason, if Node.js or its registry is not available."""
    missing = [program for program in ("node", "npm") if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)}: not installed")
    try:
        build = subprocess.run(
            [EXAMPLES / "node_master" / "build", directory], capture_output=True, text=True, timeout=100, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip("npm's registry does not answer in time")
    if build.returncode and any(sign in build.stderr for sign in NO_NETWORK):
        pytest.skip(f"npm's registry cannot be reached: {build.stderr.strip()[:200]}")
    assert build.returncode == 0, build.stderr


@pytest.mark.cluster
@pytest.mark.slow
def test_an_am_in_another_language_says_hello_from_each_container(tmp_path: Path) -> None:
    built_node_master(tmp_path / "built")
    done = subprocess.run(
        [sys.executable, EXAMPLES / "submit_node_master.py", tmp_path / "built", "3"],
        cwd=EXAMPLES.parent,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
        capture_output=True,
        text=True,
        timeout=80,
        check=False,
    )
    assert_says_hello_three_times(done)
