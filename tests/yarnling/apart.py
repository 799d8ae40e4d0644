"""Python programs that need a process of their own: what they change of it would stay."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent


def run_apart(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python process of its own that runs this program and ends well."""
    command = [sys.executable, "-P", "-c", program, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def output(program: str, *arguments: str) -> str:
    """What it prints."""
    return run_apart(program, *arguments).stdout
