"""One run: a cluster up, work and faults side by side, then heal, drain, end, and look what is left."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from yarn.errors import YarnException
from yarn.settings import nodemanager, resourcemanager, scheduler, yarnling
from yarnling.chaos.aftermath import leftovers, sockets_of_this_process
from yarnling.chaos.directories import new_directory, remove_orphans, settle
from yarnling.chaos.disks import NoDisk, SmallDisk, own_mounts
from yarnling.chaos.drain import drain, heal
from yarnling.chaos.history import History
from yarnling.chaos.network import Network, SamePorts
from yarnling.chaos.notes import Notes, now_s
from yarnling.chaos.observer import Observer
from yarnling.chaos.plan import Plan
from yarnling.chaos.scene import Scene, Tell, told
from yarnling.chaos.schedule import Blow, schedule
from yarnling.chaos.site import Site
from yarnling.chaos.strike import strike
from yarnling.chaos.verdict import Judgement, judge
from yarnling.chaos.workload import Workload
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

END_S = 5.0
"""What processes, sockets and files get to go after the cluster's end; a cluster promises two seconds."""

# The time factor makes a twentieth of them: a node is lost after 3 to 4 s, a master after 30 to 40. Within that a
# master has to start: a second of CPU, on a machine that may be busy with others. Plans that are about it set less.
PACE = {
    nodemanager.DISK_HEALTH_CHECKER_INTERVAL.key: "10000",
    resourcemanager.NM_EXPIRY_INTERVAL.key: "60000",
    resourcemanager.AM_EXPIRY_INTERVAL.key: "600000",
    resourcemanager.CONTAINER_ALLOCATION_EXPIRY_INTERVAL.key: "200000",
}
SETTINGS = {
    **PACE,
    resourcemanager.RECOVERY_ENABLED.key: "true",
    # Masters are killed more often than two: what is looked for is loss, not patience.
    resourcemanager.AM_MAX_ATTEMPTS.key: "30",
    scheduler.MINIMUM_ALLOCATION_MB.key: "128",
    f"{scheduler.PREFIX}maximum-am-resource-percent": "0.9",
    yarnling.CHECK_INVARIANTS.key: "true",
}
DISK_SETTINGS = {nodemanager.MAX_DISK_UTILIZATION_PERCENTAGE.key: "90.0"}


class Run(Struct, frozen=True):
    """What came of one run; `directory` is where its files are, None if they are gone."""

    plan: Plan
    seed: int
    blows: tuple[Blow, ...]
    history: History
    judgement: Judgement
    directory: Path | None


async def run_plan(
    plan: Plan,
    seed: int,
    *,
    keep: Path | None = None,
    tell: Tell = lambda kind, line: None,
    stop: asyncio.Event | None = None,
) -> Run:
    """Run a plan once. `keep`: where its files stay; without it they stay only if it does not pass.

    `stop` set: the cluster ends at once, and nothing can be told.
    """
    remove_orphans()
    directory = new_directory() if keep is None else keep
    directory.mkdir(parents=True, exist_ok=True)
    history = History()
    blows = schedule(plan, seed)
    before = sockets_of_this_process()
    running = _Running(plan, seed, blows, directory, history, tell)
    try:
        await _unless(stop or asyncio.Event(), running.go())
    except* Exception as errors:
        # Whatever kept this from being a run: nothing can be told of what was not looked at.
        history.problem = "; ".join(told(error) for error in errors.exceptions)
    history.ended_s = now_s()
    history.lives = running.notes.read()
    tell("phase", "looking what is left")
    history.left += await leftovers(directory, before, END_S)
    judgement = judge(plan, history)
    stays = keep is not None or judgement.verdict
    if stays:
        settle(directory)
    else:
        shutil.rmtree(directory)
    return Run(plan, seed, blows, history, judgement, directory if stays else None)


class _Running:
    """The parts of one run while it lasts."""

    def __init__(
        self, plan: Plan, seed: int, blows: tuple[Blow, ...], directory: Path, history: History, tell: Tell
    ) -> None:
        self.plan = plan
        self.blows = blows
        self.directory = directory
        self.history = history
        self.tell = tell
        self.notes = Notes(directory / "notes")
        self._draw = random.Random(f"network {seed}")
        self._cluster_directory = directory / "cluster"

    async def go(self) -> None:
        """Everything but the look at what is left. What is raised means that nothing can be told."""
        async with AsyncExitStack() as stack:
            disks = self._disks(stack)
            network = Network(self.directory, self._draw) if self.plan.needs_network else None
            if network is not None:
                stack.push_async_callback(network.close)
            self.tell("phase", "starting")
            cluster = await stack.enter_async_context(self._cluster(network))
            excluded = self.directory / "excluded"
            site = Site(cluster, self.notes, excluded, network, disks, died=self.history.died)
            addresses = cluster.addresses if network is None else await network.for_clients(cluster.addresses)
            workload = Workload(addresses, cluster.configuration, self.directory, self.notes, self.history)
            stack.push_async_callback(workload.close)
            scene = Scene(self.plan, self.blows, site, workload, self.notes, self.history, self.tell)
            async with asyncio.TaskGroup() as tasks:
                observing = tasks.create_task(
                    Observer(site, cluster.addresses, cluster.configuration, self.history, self.tell).run()
                )
                try:
                    for phase in (strike, heal, drain):
                        await phase(scene)
                finally:
                    observing.cancel()
            # From here on they are told to end.
            site.note_ends()

    def _cluster(self, network: Network | None) -> LocalCluster:
        plan = self.plan.cluster
        excluded = self.directory / "excluded"
        excluded.touch()
        own = {
            resourcemanager.NODES_EXCLUDE_PATH.key: str(excluded),
            yarnling.EVENT_LOG.key: str(self.directory / "events"),
        }
        (self.directory / "events").mkdir(exist_ok=True)
        if self.plan.has("full-disk"):
            own |= DISK_SETTINGS
        if self.plan.has("full-store"):
            own[yarnling.STATE_STORE_FILE.key] = str(self.directory / "store" / "rm-state.sqlite")
        return LocalCluster(
            plan.nodes,
            memory_mb=plan.memory_mb,
            vcores=plan.vcores,
            settings={**SETTINGS, **own, **plan.settings},
            fast=True,
            options=ClusterOptions(
                racks=plan.racks,
                directory=self._cluster_directory,
                routes=network or (SamePorts() if plan.same_ports else None),
            ),
        )

    def _disks(self, stack: AsyncExitStack) -> dict[int, SmallDisk]:
        """The disks that faults will fill, mounted. Raises NoDisk."""
        disks = {
            number: SmallDisk(self._cluster_directory / f"nm-{number}" / "local")
            for blow in self.blows
            if blow.kind.name == "full-disk"
            for number in blow.nodes
        }
        if self.plan.has("full-store"):
            disks[0] = SmallDisk(self.directory / "store")
        if disks:
            own_mounts()
        for disk in disks.values():
            disk.mount()
            stack.callback(_unmount, disk)
        return disks


INTERRUPTED = "interrupted"


class Interrupted(YarnException):
    """The run was told to end."""


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Do `work`; Interrupted if `stop` is set before it is done."""
    async with asyncio.TaskGroup() as tasks:
        stopped, done = tasks.create_task(stop.wait()), tasks.create_task(work)
        await asyncio.wait((stopped, done), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not done.done():
            done.cancel()
            await asyncio.wait((done,))
            raise Interrupted(INTERRUPTED)


def _unmount(disk: SmallDisk) -> None:
    with suppress(NoDisk):
        disk.unmount()
