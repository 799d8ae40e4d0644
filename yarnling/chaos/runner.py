"""One run: a cluster up, work and faults side by side, then heal, drain, end, and look what is left."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from yarn.errors import YarnException
from yarn.settings import nodemanager, resourcemanager, scheduler, yarnling
from yarn.states import FINAL_APPLICATION_STATES, NodeState
from yarnling.chaos.aftermath import busy_nodes, leftovers, live_containers, sockets_of_this_process, work_files
from yarnling.chaos.directories import new_directory, remove_orphans, settle
from yarnling.chaos.disks import NoDisk, SmallDisk, own_mounts
from yarnling.chaos.faults import FAULTS
from yarnling.chaos.history import History, Injected, Outcome, Role
from yarnling.chaos.network import Network, SamePorts
from yarnling.chaos.notes import FRESH_S, Notes, now_s
from yarnling.chaos.observer import Observer
from yarnling.chaos.plan import Plan, Program, Work
from yarnling.chaos.schedule import Blow, schedule
from yarnling.chaos.site import Site
from yarnling.chaos.verdict import Judgement, judge
from yarnling.chaos.workload import Workload
from yarnling.client import Client
from yarnling.local_cluster import LocalCluster

T = TypeVar("T")

LOOK_S = 0.1
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

Tell = Callable[[str, str], None]
"""Takes what happens, as it happens: a kind ("fault", "healed", "phase", "problem", "state") and a line."""


@dataclass(frozen=True, slots=True)
class Run:
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
        history.problem = "; ".join(_told(error) for error in errors.exceptions)
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
            async with asyncio.TaskGroup() as tasks:
                observing = tasks.create_task(
                    Observer(site, cluster.addresses, cluster.configuration, self.history, self.tell).run()
                )
                try:
                    await self._strike(site, workload)
                    await self._heal(site)
                    await self._drain(site, workload)
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
            racks=plan.racks,
            settings={**SETTINGS, **own, **plan.settings},
            fast=True,
            directory=self._cluster_directory,
            detours=network or (SamePorts() if plan.same_ports else None),
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

    # Faults

    async def _strike(self, site: Site, workload: Workload) -> None:
        """Work and faults, side by side, until every fault has ended and every submission is acknowledged."""
        self.history.begun_s = now_s()
        self.tell("phase", "working")
        most_s = self.plan.lasts + self.plan.expect.heal
        try:
            async with asyncio.timeout(most_s), asyncio.TaskGroup() as tasks:
                for work in self.plan.work:
                    tasks.create_task(self._work(workload, work))
                if self.plan.awaits_work:
                    await self._until_work()
                for blow in self.blows:
                    tasks.create_task(self._blow(site, blow))
        except TimeoutError:
            self.history.unhealed.append(f"{most_s:g} s after the beginning a fault or a submission is not over")

    async def _until_work(self) -> None:
        """From here on times count, once a container works: harm before that is harm to nothing."""
        while not self.notes.alive(Role.CONTAINER, Role.TASK):  # noqa: ASYNC110  files set no event
            await asyncio.sleep(LOOK_S)
        self.history.begun_s = now_s()

    async def _work(self, workload: Workload, work: Work) -> None:
        try:
            await workload.run(work)
        except YarnException as error:
            self.history.problem = f"{work.program.value} could not be submitted: {error.message}"

    async def _blow(self, site: Site, blow: Blow) -> None:
        fault = FAULTS[blow.kind.name](site, blow)
        await self._wait_until(blow.at_ms)
        start_s = now_s()
        index = len(self.history.injected)
        self.history.injected.append(Injected(blow, start_s))
        try:
            whom = await _done(fault.start())
        except YarnException as error:
            # Nobody was there to do it to, or has just gone: of no matter where that was to be expected.
            problem = "" if blow.optional else error.message
            self.history.injected[index] = Injected(blow, start_s, now_s(), problem=problem, skipped=blow.optional)
            self.tell("problem", f"{blow}: {error.message}")
            return
        injected = Injected(blow, start_s, whom=whom)
        self.history.injected[index] = injected
        self.tell("fault", f"{blow.kind.name} {whom}")
        if blow.until_ms is None:
            return
        # As long as planned, from when it was done: on a busy machine that takes a while.
        await asyncio.sleep((blow.until_ms - blow.at_ms) / 1000)
        try:
            await _done(fault.heal())
        except YarnException as error:
            self.history.unhealed.append(f"{blow.kind.name} {whom}: {error.message}")
        self.history.injected[index] = replace(injected, healed_s=now_s())
        self.tell("healed", f"{blow.kind.name} {whom}")

    async def _wait_until(self, at_ms: int) -> None:
        await asyncio.sleep(max(0.0, self.history.begun_s + at_ms / 1000 - now_s()))

    # Healing and draining

    async def _heal(self, site: Site) -> None:
        """Undo what is left and wait until everybody is there again."""
        self.tell("phase", "healing")
        try:
            async with asyncio.timeout(self.plan.expect.heal):
                await site.heal()
                while not await _all_run(site):
                    # One that was told to leave just before it was taken back ends only now.
                    await site.bring_all_back()
                    await asyncio.sleep(LOOK_S)
        except (YarnException, TimeoutError) as error:
            self.history.unhealed.append(str(error) or f"not within {self.plan.expect.heal:g} s")
            self.history.unhealed += await _away(site)
        self.history.healed_s = now_s()

    async def _drain(self, site: Site, workload: Workload) -> None:
        """End the services, wait for all ends, and for all that was held to be free.

        Services run until the last fencing window is over: what ran twice would end with them, and not be seen.
        """
        await asyncio.sleep(max(0.0, self._last_window_s() - now_s()))
        self.tell("phase", "draining")
        client = site.cluster.client
        try:
            async with asyncio.timeout(self.plan.expect.drain):
                accepted = [one for one in self.history.submissions if one.acknowledged_s is not None]
                for one in accepted:
                    if one.program is Program.SERVICE:
                        self.history.killed_at_s[one.application_id] = now_s()
                        await client.kill(one.application_id, "the run is over")
                for one in accepted:
                    await client.wait(one.application_id)
                while held := await _held(site):
                    self.tell("state", held[0])
                    await asyncio.sleep(LOOK_S)
            self.history.drained_s = now_s()
        except TimeoutError:
            self.history.undrained += await _held(site)
            self.history.undrained.append(f"not within {self.plan.expect.drain:g} s")
        except YarnException as error:
            self.history.undrained.append(error.message)
        await self._note_outcomes(client, workload)

    def _last_window_s(self) -> float:
        """When all that was given up while a fault hid its node has to have ended, and a sign of life more."""
        hidden = [one.healed_s for one in self.history.injected if one.blow.kind.hides and not one.skipped]
        ends = [healed_s for healed_s in hidden if healed_s is not None]
        return max(ends, default=0.0) + self.plan.expect.fence + FRESH_S

    async def _note_outcomes(self, client: Client, workload: Workload) -> None:
        for one in self.history.submissions:
            outcome = Outcome(None)
            with suppress(YarnException):
                report = await client.report(one.application_id)
                over = report.state in FINAL_APPLICATION_STATES
                right = workload.is_right(one.application_id) if one.program is Program.WORDCOUNT and over else None
                outcome = Outcome(
                    report.state,
                    report.final_status,
                    report.current_attempt_id.attempt,
                    report.diagnostics,
                    right,
                )
            self.history.outcomes[one.application_id] = outcome


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


async def _done(work: Coroutine[Any, Any, T]) -> T:
    """The result of a fault's step. Raises YarnException for what the cluster makes of it, or one that has gone."""
    try:
        return await work
    except* (YarnException, ProcessLookupError, TimeoutError) as errors:
        problem = _told(errors)
    # Not from within `except*`: Python 3.11.2 would make a group of it.
    raise YarnException(problem)


def _told(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_told(inner) for inner in error.exceptions)
    return error.message if isinstance(error, YarnException) else f"{type(error).__name__}: {error}"


async def _all_run(site: Site) -> bool:
    running = await site.cluster.client.nodes(frozenset({NodeState.RUNNING}))
    return len(running) == len(site.cluster.nodes)


async def _away(site: Site) -> list[str]:
    """The nodes that are not RUNNING, if there is anybody to ask."""
    try:
        async with asyncio.timeout(END_S):
            nodes = await site.cluster.client.nodes()
    except (YarnException, TimeoutError):
        return ["the ResourceManager does not answer"]
    return [f"{node.node_id} is {node.state.name}" for node in nodes if node.state is not NodeState.RUNNING]


async def _held(site: Site) -> list[str]:
    """What is not free yet: on nodes as the ResourceManager says, and as their processes and files show."""
    return [
        *await busy_nodes(site.cluster.client),
        *await asyncio.to_thread(live_containers, site.cluster.directory.path),
        *work_files(site.cluster.nodes),
    ]


def _unmount(disk: SmallDisk) -> None:
    with suppress(NoDisk):
        disk.unmount()
