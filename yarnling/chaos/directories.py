"""Where the files of a run are: made for it, and removed for one whose runner was killed before it could."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from yarnling.cluster.processes import ProcessIdentity, kill, those_that_name

PREFIX = "yarnling-chaos-"
RUNNER = "runner"
"""Tells whose run it is while it lasts: the process id and its start."""


def new_directory() -> Path:
    """One of this process's own, until `settle`."""
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    runner = ProcessIdentity.of(os.getpid())
    (directory / RUNNER).write_text(f"{runner.pid} {runner.started}")
    return directory


def settle(directory: Path) -> None:
    """Its run is over and it stays: for people, who remove it."""
    (directory / RUNNER).unlink(missing_ok=True)


def remove_orphans() -> list[Path]:
    """Remove what runs left whose runner was killed, their processes among it; what was removed."""
    orphans = [path for path in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")) if _is_orphan(path)]
    for process in those_that_name(*orphans) if orphans else []:
        kill(process)
    for path in orphans:
        shutil.rmtree(path, ignore_errors=True)
    return orphans


def _is_orphan(directory: Path) -> bool:
    """Not while its runner lives, nor if it says nothing of one: then its run is over, or somebody made it."""
    try:
        pid, started = (directory / RUNNER).read_text().split()
        return ProcessIdentity(int(pid), float(started)).process() is None
    except (OSError, ValueError):
        return False
