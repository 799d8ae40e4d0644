"""Tests that run Hadoop's own classes in a JVM. Where that cannot be, each is skipped with one line that says why."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hadoop import toolchain

Shared = Callable[[str, Callable[[Path], None]], Path]


@pytest.fixture(scope="session")
def client_jars() -> Path:
    return toolchain.jars_or_skip("client")


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """Makes a directory once, whichever of pytest's parallel processes asks first: `shared(name, make)`."""
    base = tmp_path_factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name: str, make: Callable[[Path], None]) -> Path:
        directory = root / f"hadoop-{name}"
        with (root / f"hadoop-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not directory.exists():
                directory.mkdir()
                make(directory)
                (directory / "made").touch()
        if not (directory / "made").exists():
            pytest.fail(f"{name} failed in another test; see {directory}")
        return directory

    return made
