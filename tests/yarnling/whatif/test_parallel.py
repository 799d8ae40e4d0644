"""Simulations of a comparison in processes of their own: none outlives the command, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.processes import HEARING, output_at_end, running
from tests.yarnling.whatif.small_clusters import CS, write_configuration, write_workload_of_a_queue
from yarnling.cluster.conditions import until_blocking

pytestmark = pytest.mark.slow
HANG_S = 100.0


@contextmanager
def comparing(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """`yarnling simulate compare` of two equal configurations, with a workload that takes minutes."""
    for name in ("before", "after"):
        write_configuration(directory / name, {f"{CS}root.queues": "default", f"{CS}root.default.capacity": 100})
    files = [*write_workload_of_a_queue(directory, "100h"), "--until", "100h"]
    command = [*HEARING, sys.executable, "-m", "yarnling", "simulate", "compare", "before", "after", *files]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    with running(*command, cwd=directory, process_group=0, env=environment, **pipes) as process:
        yield process


def simulations(command: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes of the simulations; the tracker of shared resources is the only other child."""
    children = psutil.Process(command.pid).children(recursive=True)
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def ignores_ctrl_c(process: psutil.Process) -> bool:
    """Its set-up is done (proc(5), SigIgn)."""
    (line,) = [line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "SigIgn" in line]
    return bool(int(line.split()[1], 16) & 1 << signal.SIGINT - 1)


def started(command: subprocess.Popen[str], *, is_set_up: bool) -> list[psutil.Process]:
    """The processes of both simulations, as soon as they exist, or when their set-up is done."""
    until_blocking(lambda: len(simulations(command)) == 2, HANG_S)
    children = simulations(command)
    if is_set_up:
        until_blocking(lambda: all(map(ignores_ctrl_c, children)), HANG_S)
    return children


def ended(command: subprocess.Popen[str], children: list[psutil.Process]) -> str:
    """The output of the command on standard error; no process is left."""
    _, stderr = output_at_end(command, HANG_S)
    assert psutil.wait_procs(children, timeout=HANG_S)[1] == []
    return stderr


@pytest.mark.parametrize("is_set_up", [False, True], ids=["while they start", "while they run"])
def test_ctrl_c_ends_the_simulations(tmp_path: Path, is_set_up: bool) -> None:
    with comparing(tmp_path) as command:
        children = started(command, is_set_up=is_set_up)
        os.killpg(command.pid, signal.SIGINT)  # as a terminal does: to the simulations too
        stderr = ended(command, children)
        assert command.returncode == 130, stderr
        assert "Traceback" not in stderr


@pytest.mark.parametrize("is_set_up", [False, True], ids=["while they start", "while they run"])
def test_the_simulations_of_a_killed_command_end(tmp_path: Path, is_set_up: bool) -> None:
    with comparing(tmp_path) as command:
        children = started(command, is_set_up=is_set_up)
        command.kill()
        ended(command, children)


def test_a_simulation_that_is_killed_ends_the_command_with_the_likely_cause(tmp_path: Path) -> None:
    with comparing(tmp_path) as command:
        children = started(command, is_set_up=True)
        max(children, key=psutil.Process.create_time).kill()  # the one that a pool may overlook
        stderr = ended(command, children)
        assert command.returncode == 3, stderr
        assert "the process of a simulation was killed (it may need more memory)" in stderr
