"""The Pythons that benchmarks compare: the checkout's sources, and its compiled modules in .venv-compiled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from yarnling.cli.version import scheduler_is_compiled

ROOT = Path(__file__).resolve().parent.parent
COMPILED_VENV = ROOT / ".venv-compiled"

INTERPRETED = "interpreted"
COMPILED = "compiled"


class SideMissing(Exception):
    """A side cannot be measured here; the message says why."""


def interpreted_python() -> Path:
    """This Python. Raises SideMissing if it has the compiled modules."""
    if scheduler_is_compiled():
        raise SideMissing("this Python has the compiled modules (run scripts/bench without YARNLING_VENV)")
    return Path(sys.executable)


def compiled_python() -> Path:
    """The Python of the compiled environment, which is built again if a source has changed. Raises SideMissing."""
    python = COMPILED_VENV / "bin" / "python"
    if not python.exists():
        raise SideMissing(f"{COMPILED_VENV.name} does not exist (scripts/install --compiled makes it)")
    install: list[str | Path] = [sys.executable, ROOT / "scripts" / "install.py", "--run", "--venv", COMPILED_VENV]
    if subprocess.run(install, stdin=subprocess.DEVNULL, check=False).returncode != 0:
        raise SideMissing("scripts/install.py failed")
    return python
