"""Finds what a chaos run has left behind (directories, processes, ports, files), and removes what killed runs left."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

import psutil

from yarnling.cluster.client import Client
from yarnling.cluster.nodes import Node
from yarnling.cluster.processes import ProcessIdentity, kill, those_that_name
from yarnling.faults.notes import now_s

POLL_S = 0.1
PREFIX = "yarnling-chaos-"
RUNNER_FILE = "runner"
"""The file in a run's directory that contains the process id and start time of the runner while the run lasts."""


def new_directory() -> Path:
    """Make the directory of a run. This process owns the directory until it calls `keep_directory` or removes it."""
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    runner = ProcessIdentity.of(os.getpid())
    (directory / RUNNER_FILE).write_text(f"{runner.pid} {runner.started}")
    return directory


def keep_directory(directory: Path) -> None:
    """Keep the directory of a run that has ended: later runs do not remove it."""
    (directory / RUNNER_FILE).unlink(missing_ok=True)


def remove_orphans() -> list[Path]:
    """Remove the directories, and kill the processes, of runs whose runner was killed. Returns the directories."""
    orphans = [path for path in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")) if _is_orphan(path)]
    for process in those_that_name(*orphans) if orphans else []:
        kill(process)
    for path in orphans:
        shutil.rmtree(path, ignore_errors=True)
    return orphans


def _is_orphan(directory: Path) -> bool:
    """True if the run's runner was killed.

    Without a runner file the answer is False: the run has ended, or a person made the directory.
    """
    try:
        pid, started = (directory / RUNNER_FILE).read_text().split()
        return ProcessIdentity(int(pid), float(started)).process() is None
    except (OSError, ValueError):
        return False


# Resources that a cluster still uses after all applications have ended. Each function returns a line for each finding.


async def busy_nodes(client: Client) -> list[str]:
    """Nodes with containers or resources in use, and queues with resources in use, according to the ResourceManager."""
    lines = [
        f"{node.node_id} is {node.state.name}, has {node.containers} containers, {node.used} in use"
        for node in await client.nodes()
        if node.containers or node.used.memory_mb or node.used.vcores
    ]
    root = await client.queue("root")
    if root.absolute_used_capacity:
        lines.append(f"root has {root.absolute_used_capacity:.0%} of its capacity in use")
    return lines


def live_containers(directory: Path) -> list[str]:
    """Container processes of the cluster whose directory this is."""
    lines = []
    for process in those_that_name(directory):
        try:
            container = process.environ().get("CONTAINER_ID", "")
        except psutil.Error:
            continue
        if container:
            lines.append(f"process {process.pid} of {container} is alive")
    return lines


def work_files(nodes: Iterable[Node]) -> list[str]:
    """Work directories of applications. A node removes them when the application ends."""
    patterns = ("usercache/*/appcache/*", "nmPrivate/*")
    found = [
        path for node in nodes if node.alive for pattern in patterns for path in node.place.local_dir.glob(pattern)
    ]
    return [f"file {path}" for path in found]


def sockets_of_this_process() -> set[str]:
    """The addresses at which this process listens."""
    return {
        f"{connection.laddr.ip}:{connection.laddr.port}"
        for connection in psutil.Process().net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN
    }


async def leftovers(directory: Path, sockets_before: set[str], timeout_s: float) -> list[str]:
    """A line for each process, port and mount that remains after `timeout_s`. Returns early once nothing remains."""
    deadline_s = now_s() + timeout_s
    while True:
        lines = await asyncio.to_thread(_left, directory, sockets_before)
        if not lines or now_s() > deadline_s:
            return lines
        await asyncio.sleep(POLL_S)


def _left(directory: Path, sockets_before: set[str]) -> list[str]:
    lines = [f"process {process.pid} ({_command(process)})" for process in those_that_name(directory)]
    lines += [f"listening port {place}" for place in sorted(sockets_of_this_process() - sockets_before)]
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return lines + [f"mount {line.split()[1]}" for line in mounts if f" {directory}/" in line]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:200]
    except psutil.Error:
        return "gone"
