"""What a cluster holds when its applications are over, and what is left when it has ended: it should be nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import psutil

from yarnling.chaos.notes import now_s
from yarnling.cluster.client import Client
from yarnling.cluster.nodes import Node
from yarnling.cluster.processes import those_that_name

LOOK_S = 0.1


async def busy_nodes(client: Client) -> list[str]:
    """Nodes with containers or resources in use, and queues that use any, as the ResourceManager says."""
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
    """Processes of containers of the cluster in that directory."""
    lines = []
    for process in those_that_name(directory):
        try:
            container = process.environ().get("CONTAINER_ID", "")
        except psutil.Error:
            continue
        if container:
            lines.append(f"process {process.pid} of {container} lives")
    return lines


def work_files(nodes: Iterable[Node]) -> list[str]:
    """Work directories of applications, of which a node keeps none when they are over."""
    patterns = ("usercache/*/appcache/*", "nmPrivate/*")
    found = [
        path for node in nodes if node.alive for pattern in patterns for path in node.place.local_dir.glob(pattern)
    ]
    return [f"file {path}" for path in found]


def sockets_of_this_process() -> set[str]:
    """Where this process listens."""
    return {
        f"{connection.laddr.ip}:{connection.laddr.port}"
        for connection in psutil.Process().net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN
    }


async def leftovers(directory: Path, sockets_before: set[str], timeout_s: float) -> list[str]:
    """A line for each process, port and mount that is still there after a while."""
    given_up_s = now_s() + timeout_s
    while True:
        lines = await asyncio.to_thread(_left, directory, sockets_before)
        if not lines or now_s() > given_up_s:
            return lines
        await asyncio.sleep(LOOK_S)


def _left(directory: Path, sockets_before: set[str]) -> list[str]:
    lines = [f"process {process.pid} ({_words(process)})" for process in those_that_name(directory)]
    lines += [f"port {place} is listened on" for place in sorted(sockets_of_this_process() - sockets_before)]
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return lines + [f"mount {line.split()[1]}" for line in mounts if f" {directory}/" in line]


def _words(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:200]
    except psutil.Error:
        return "gone"
