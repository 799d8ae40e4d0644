"""Runs Python programs in their own process, because they change the process permanently."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent


def run_apart(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a new Python process. It must exit with 0."""
    command = [sys.executable, "-P", "-c", program, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def output(program: str, *arguments: str) -> str:
    """The standard output of the program."""
    return run_apart(program, *arguments).stdout
