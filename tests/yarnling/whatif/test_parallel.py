"""Simulations of a comparison in processes of their own: none outlives the command, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.processes import HEARING, running
from tests.yarnling.whatif.small_clusters import CS, write_configuration

pytestmark = pytest.mark.slow
HANG_S = 100.0


@contextmanager
def comparing(directory: Path) -> Iterator[subprocess.Popen[Any]]:
    """`yarnling simulate compare` of two equal configurations, with a workload that takes minutes."""
    for name in ("before", "after"):
        write_configuration(directory / name, {f"{CS}root.queues": "default", f"{CS}root.default.capacity": 100})
    (directory / "nodes.yaml").write_text("nodes: [{host: w, memory_mb: 8192, vcores: 8, count: 2}]")
    tasks = "tasks: [{containers: 20, memory: 1GB, duration: 30s}]"
    (directory / "workload.yaml").write_text(
        f"lasts: 100h\nqueues: [{{queue: default, users: ann, per_hour: 60, applications: [{{{tasks}}}]}}]"
    )
    files = ["--workload", "workload.yaml", "--nodes", "nodes.yaml", "--until", "100h"]
    command = [*HEARING, sys.executable, "-m", "yarnling", "simulate", "compare", "before", "after", *files]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    with running(*command, cwd=directory, process_group=0, env=environment, **pipes) as process:
        yield process


def simulations(command: subprocess.Popen[Any]) -> list[psutil.Process]:
    """The processes of the simulations; the tracker of shared resources is the only other child."""
    children = psutil.Process(command.pid).children(recursive=True)
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline, "it has not come true"
        time.sleep(0.02)


def ignores_ctrl_c(process: psutil.Process) -> bool:
    """Its set-up is done (proc(5), SigIgn)."""
    (line,) = [line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "SigIgn" in line]
    return bool(int(line.split()[1], 16) & 1 << signal.SIGINT - 1)


def ended(command: subprocess.Popen[Any], children: list[psutil.Process]) -> str:
    """What the command printed on standard error; no process is left."""
    try:
        _, stderr = command.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        os.killpg(command.pid, signal.SIGABRT)  # Python then says where it is
        pytest.fail(f"it has not ended: {command.communicate()}")
    assert psutil.wait_procs(children, timeout=HANG_S)[1] == []
    return str(stderr)


@pytest.mark.parametrize("is_set_up", [False, True], ids=["while they start", "while they run"])
def test_ctrl_c_ends_the_simulations(tmp_path: Path, is_set_up: bool) -> None:
    with comparing(tmp_path) as command:
        wait_for(lambda: len(simulations(command)) == 2)
        children = simulations(command)
        if is_set_up:
            wait_for(lambda: all(map(ignores_ctrl_c, children)))
        os.killpg(command.pid, signal.SIGINT)  # as a terminal does: to the simulations too
        stderr = ended(command, children)
        assert command.returncode == 130, stderr
        assert "Traceback" not in stderr


def test_a_simulation_that_is_killed_ends_the_command_with_the_likely_cause(tmp_path: Path) -> None:
    with comparing(tmp_path) as command:
        wait_for(lambda: len(simulations(command)) == 2)
        children = simulations(command)
        wait_for(lambda: all(map(ignores_ctrl_c, children)))
        max(children, key=psutil.Process.create_time).kill()  # the one that a pool may overlook
        stderr = ended(command, children)
        assert command.returncode == 3, stderr
        assert "the process of a simulation was killed (it may need more memory)" in stderr
