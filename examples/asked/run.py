"""The node of 11 GB: applications that request 10 GB and use 1 GB, as real processes.

python examples/asked/run.py              ann's container runs, bob's waits beside an idle node
python examples/asked/run.py --asked 5    both run
--used MB (default 1024): what each container really takes; --json for programs
Exit status 1 if something was not as it should be
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from am.programs.distributed_shell.client import parse
from yarn.ids import ApplicationId, ContainerId
from yarn.nodes import NodeReport
from yarn.states import YarnApplicationState
from yarnling import LocalCluster
from yarnling.cluster.containers import processes_of

GB = 1024
NODE_MB = 11 * GB
AM_MB = 128
WAIT_S = 120.0
DETECT = {"yarn.nodemanager.resource.detect-hardware-capabilities": "true"}
SETTINGS = {
    "yarn.scheduler.minimum-allocation-mb": str(AM_MB),
    "yarn.scheduler.maximum-allocation-mb": str(NODE_MB),
    "yarn.nodemanager.resource-monitor.interval-ms": "1000",
}


@dataclass
class Container:
    """A container of one of the applications. `in_proc_mb`: the memory of its processes as /proc has it."""

    user: str
    requested_mb: int
    runs: bool
    in_proc_mb: int = 0
    waits: str = ""


@dataclass
class Seen:
    """The figures: the memory that a node offers in three configurations, and the node of 11 GB with its containers."""

    machine_mb: int
    offered_mb: dict[str, int] = field(default_factory=dict)
    containers: list[Container] = field(default_factory=list)
    allocated_mb: int = 0
    reported_mb: int = 0
    runs_afterwards: bool = False


async def offered_mb(settings: dict[str, str]) -> int:
    """The memory that a node offers with these settings."""
    async with LocalCluster(1, settings=settings, fast=True) as cluster:
        (node,) = await cluster.client.nodes()
    return node.capability.memory_mb


def command(resident: Path, used_mb: int) -> str:
    """A command that takes so much memory, creates the file `resident`, and sleeps."""
    code = (
        f"import pathlib, time; held = bytearray({used_mb} << 20); held[::4096] = bytes(len(held) // 4096); "
        f'pathlib.Path(\\"{resident}\\").touch(); time.sleep(3600)'
    )
    return f"exec {shlex.quote(sys.executable)} -c '{code}'"


class Scene:
    """The cluster of one node, and the applications of ann and bob."""

    def __init__(self, cluster: LocalCluster, folder: Path, asked_mb: int, used_mb: int) -> None:
        self.cluster = cluster
        self.folder = folder
        self.asked_mb = asked_mb
        self.used_mb = used_mb
        self.applications: dict[str, ApplicationId] = {}

    async def submit(self, user: str) -> None:
        options = ["-num_containers", "1", "-container_memory", str(self.asked_mb), "-master_memory", str(AM_MB)]
        work = ["-shell_command", command(self.folder / user, self.used_mb)]
        report = await self.cluster.client_of(user).start(parse([*work, *options]))
        self.applications[user] = report.application_id
        await self.cluster.client.wait(
            report.application_id, states=frozenset({YarnApplicationState.RUNNING}), timeout_s=WAIT_S
        )

    async def running(self, user: str) -> ContainerId | None:
        """The container of an application, besides its AM's."""
        attempt = (await self.cluster.client.report(self.applications[user])).current_attempt_id
        found = await self.cluster.client.containers(attempt)
        return next((each.container_id for each in found if each.container_id.sequence > 1), None)

    async def until_resident(self, user: str) -> None:
        """Wait until the container has taken its memory."""

        async def is_resident() -> bool:
            return (self.folder / user).exists()

        await self.cluster.until(is_resident, WAIT_S)

    async def why_waiting(self, user: str) -> str:
        """The reason why an application waits, as `yarnling explain` says it; "" until it is known that it does."""
        explained = await self.cluster.client.explain(self.applications[user])
        return "; ".join(verdict.sentence for verdict in explained.verdicts)

    async def container(self, user: str) -> Container:
        """Wait until bob's container runs or is known to wait, and look at it."""

        async def decided() -> Container | None:
            container_id = await self.running(user)
            if container_id is not None:
                await self.until_resident(user)
                memory = sum(process.memory_info().rss for process in processes_of(container_id))
                return Container(user, self.asked_mb, runs=True, in_proc_mb=memory >> 20)
            waits = await self.why_waiting(user)
            return Container(user, self.asked_mb, runs=False, waits=waits) if waits else None

        found = await self.cluster.until(decided, WAIT_S)
        assert found is not None
        return found

    async def node(self, least_mb: int) -> NodeReport:
        """The node's report, once its NodeManager has measured at least so much."""

        async def is_measured() -> NodeReport | None:
            (node,) = await self.cluster.client.nodes()
            return node if reported_mb(node) >= least_mb else None

        found = await self.cluster.until(is_measured, WAIT_S)
        assert found is not None
        return found


def reported_mb(node: NodeReport) -> int:
    return 0 if node.containers_utilization is None else node.containers_utilization.physical_memory_mb


async def look(seen: Seen, asked_mb: int, used_mb: int) -> None:
    with tempfile.TemporaryDirectory(prefix="asked-") as folder:
        async with LocalCluster(1, memory_mb=NODE_MB, vcores=8, settings=SETTINGS, fast=True) as cluster:
            scene = Scene(cluster, Path(folder), asked_mb, used_mb)
            for user in ("ann", "bob"):
                await scene.submit(user)
                seen.containers.append(await scene.container(user))
            node = await scene.node(used_mb * sum(each.runs for each in seen.containers))
            seen.offered_mb["configured"] = node.capability.memory_mb
            seen.allocated_mb, seen.reported_mb = node.used.memory_mb, reported_mb(node)
            await cluster.client_of("ann").kill(scene.applications["ann"])
            await scene.until_resident("bob")
            seen.runs_afterwards = True


def faults(seen: Seen, asked_mb: int, used_mb: int) -> list[str]:
    """List the checks that fail."""
    fit = min(2, (NODE_MB - 2 * AM_MB) // asked_mb)
    checks = {
        "as many containers run as fit by their requests": sum(each.runs for each in seen.containers) == fit,
        "the node's memory is what was configured": seen.offered_mb["configured"] == NODE_MB,
        "the allocated memory is what was requested": seen.allocated_mb == fit * asked_mb + 2 * AM_MB,
        "/proc has what the containers use": all(each.in_proc_mb >= used_mb for each in seen.containers if each.runs),
        "bob's container runs when ann's has ended": seen.runs_afterwards,
    }
    return [text for text, holds in checks.items() if not holds]


def print_tables(seen: Seen) -> None:
    console = Console()
    machine = Table("A node's memory", "MB")
    machine.add_row("this machine, in /proc/meminfo", str(seen.machine_mb))
    for how, memory_mb in seen.offered_mb.items():
        machine.add_row(f"offered: {how}", str(memory_mb))
    containers = Table("Container of", "requested", "runs", "in /proc")
    for each in seen.containers:
        amounts = (f"{each.requested_mb} MB", "yes" if each.runs else "no")
        containers.add_row(each.user, *amounts, f"{each.in_proc_mb} MB" if each.runs else "")
    node = Table("The node, as the ResourceManager knows it", "MB")
    node.add_row("total", str(NODE_MB))
    node.add_row("allocated (with the two AMs)", str(seen.allocated_mb))
    node.add_row("used by all containers, as the NodeManager reports it", str(seen.reported_mb))
    for table in (machine, containers, node):
        console.print(table)
    for each in seen.containers:
        if each.waits:
            console.print(f"yarnling explain: {each.user}'s container {each.waits}.")
    if not all(each.runs for each in seen.containers):
        idle_mb = NODE_MB - seen.reported_mb
        console.print(f"{idle_mb} MB of the node are idle. bob's container ran when ann's had ended.")


async def main(arguments: argparse.Namespace) -> int:
    asked_mb, used_mb = arguments.asked * GB, arguments.used
    seen = Seen(psutil.virtual_memory().total >> 20)
    seen.offered_mb["nothing configured"] = await offered_mb({})
    seen.offered_mb["detect-hardware-capabilities"] = await offered_mb(DETECT)
    await look(seen, asked_mb, used_mb)
    wrong = faults(seen, asked_mb, used_mb)
    if arguments.json:
        print(json.dumps({**asdict(seen), "faults": wrong}, indent=2))
    else:
        print_tables(seen)
        for text in wrong:
            print(f"not so: {text}")
    return 1 if wrong else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--asked", type=int, default=10, choices=range(1, 11), metavar="GB", help="requested by each")
    parser.add_argument("--used", type=int, default=GB, choices=range(16, GB + 1), metavar="MB", help="used by each")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(parse_arguments())))
