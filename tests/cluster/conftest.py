"""Clusters of real processes for the tests in this folder, and how to wait for conditions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from tests.cluster import command_line
from yarnling.cluster.blocking import BlockingCluster
from yarnling.cluster.conditions import until_blocking
from yarnling.cluster.local_cluster import LocalCluster

WAIT_S = 120.0
"""Only guards against hangs: so long may a condition take to become true on a busy machine."""
EXPIRY_MS = 3000
"""Node expiry in these clusters, after the time factor: as short as a loaded machine allows."""
SOON_LOST_S = 27.0
"""Far above that, and below the half minute that Hadoop's default expiry is after the time factor."""

# The time factor makes a twentieth of them.
QUICK = {
    "yarn.nm.liveness-monitor.expiry-interval-ms": str(EXPIRY_MS * 20),
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9",
}


PROJECT = Path(__file__).resolve().parent.parent.parent
COMMAND = [sys.executable, "-m", "yarnling"]
DEFINITIONS = [part for key, value in QUICK.items() for part in ("-D", f"{key}={value}")]

T = TypeVar("T")
Yarnling = Callable[..., subprocess.CompletedProcess[str]]


def eventually(condition: Callable[[], T], timeout_s: float = WAIT_S) -> T:
    """Wait for the first true value of a condition; the WaitTimeout contains the last value."""
    return until_blocking(condition, timeout_s)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def names(directory: Path) -> list[psutil.Process]:
    """Processes whose command line or environment names the directory."""
    from yarnling.cluster.processes import those_that_name

    return those_that_name(directory)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of commands, with a separate directory for state files."""
    home = tmp_path_factory.mktemp("state")
    return {**os.environ, "XDG_RUNTIME_DIR": str(home), "PYTHONPATH": str(PROJECT)}


def commands_in(environment: dict[str, str]) -> Yarnling:
    """A function that runs a command line to its end: `up` and `down` as processes, all others within this one."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        if arguments[:1] in (("up",), ("down",)):
            command = [*COMMAND, *arguments]
            return subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=170)
        return command_line.run(*arguments, environment=environment)

    return run


@pytest.fixture(scope="module")
def yarnling(environment: dict[str, str]) -> Yarnling:
    """Runs a command line and waits for its end."""
    return commands_in(environment)


@pytest.fixture(scope="module")
def cluster() -> Iterator[BlockingCluster]:
    """Four nodes that the tests of a file share; a test that kills one of them starts it again.

    Idle it takes a sixth of a core, so it does not run beside the tests of other files.
    """
    with LocalCluster(4, memory_mb=4096, vcores=8, settings=QUICK, fast=True) as cluster:
        yield cluster
