"""Ctrl-C while the command line is still loading."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

INTERRUPTED_LOADING = """\
import os, signal, sys


class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)


sys.meta_path.insert(0, Interrupted())
from yarnling.cli import main
main()
"""


def test_an_interrupt_while_modules_load_shows_no_traceback() -> None:
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", INTERRUPTED_LOADING, "version"]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == -signal.SIGINT
    assert ended.stderr == ""
