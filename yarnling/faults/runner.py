"""Carries out one run: starts a cluster, runs work and faults, recovers, drains, stops, and looks for leftovers."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from yarn.applications import ApplicationReport
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.nodes import NodeReport
from yarn.settings import nodemanager, resourcemanager, scheduler, yarnling
from yarn.states import FINAL_APPLICATION_STATES, NodeState
from yarnling.cluster.client import Client
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster
from yarnling.cluster.network import ProxyNetwork, SamePorts
from yarnling.faults.cleanup import keep_directory, leftovers, new_directory, remove_orphans, sockets_of_this_process
from yarnling.faults.disks import DiskUnavailable, SmallDisk, enter_mount_namespace
from yarnling.faults.history import SILENT, History, ObservedChange
from yarnling.faults.notes import ProcessNotes, now_s
from yarnling.faults.phases import POLL_S, Report, RunContext, describe, drain, inject_faults, recover
from yarnling.faults.plan import Plan
from yarnling.faults.process_target import ProcessTarget
from yarnling.faults.recorded_faults import write_faults
from yarnling.faults.schedule import FaultInjection, schedule
from yarnling.faults.target import RM
from yarnling.faults.verdict import Judgement, judge
from yarnling.faults.workload import WorkSubmitter
from yarnling.run.writer import EVENTS

END_S = 5.0
"""The seconds that processes, sockets and files may remain after the cluster has stopped; a cluster promises two."""

ANSWER_S = 1.0
"""A ResourceManager that takes longer than this (seconds) to answer a poll is recorded as silent."""
INTERRUPTED = "interrupted"

# The fast timers divide these by 20: a node is lost after 3 to 4 s, an ApplicationMaster after 30 to 40 s. An AM has to
# start within that time, and its start takes a second of CPU on a busy machine. Plans about AM expiry set a lower
# value.
EXPIRY_SETTINGS = {
    nodemanager.DISK_HEALTH_CHECKER_INTERVAL.key: "10000",
    resourcemanager.NM_EXPIRY_INTERVAL.key: "60000",
    resourcemanager.AM_EXPIRY_INTERVAL.key: "600000",
    resourcemanager.CONTAINER_ALLOCATION_EXPIRY_INTERVAL.key: "200000",
}
SETTINGS = {
    **EXPIRY_SETTINGS,
    resourcemanager.RECOVERY_ENABLED.key: "true",
    # Plans kill an application's AM more than twice. The run is to find lost work, not to use up the attempts.
    resourcemanager.AM_MAX_ATTEMPTS.key: "30",
    scheduler.MINIMUM_ALLOCATION_MB.key: "128",
    f"{scheduler.PREFIX}maximum-am-resource-percent": "0.9",
    # If a node and the ResourceManager fail between an allocation and its start, nobody knows of the container, and its
    # AM tries to reach the node for as long as this (Hadoop's default is three minutes, longer than a run may drain).
    resourcemanager.NM_CLIENT_CONNECT_MAX_WAIT.key: "30000",
    yarnling.CHECK_INVARIANTS.key: "true",
}
DISK_SETTINGS = {nodemanager.MAX_DISK_UTILIZATION_PERCENTAGE.key: "90.0"}


class ProcessRun(Struct, frozen=True):
    """The result of one run. `directory` contains its files, None if they were removed."""

    plan: Plan
    seed: int
    injections: tuple[FaultInjection, ...]
    history: History
    judgement: Judgement
    directory: Path | None


async def run_plan(
    plan: Plan,
    seed: int,
    *,
    keep: Path | None = None,
    report: Report = lambda kind, line: None,
    stop: asyncio.Event | None = None,
) -> ProcessRun:
    """Run a plan once. `keep` is where to keep the run's files; by default they are kept only if the run does not pass.

    If `stop` is set, the cluster stops at once, and the verdict is CANNOT_TELL.
    """
    remove_orphans()
    directory = new_directory() if keep is None else keep
    directory.mkdir(parents=True, exist_ok=True)
    history = History()
    injections = schedule(plan, seed)
    before = sockets_of_this_process()
    running = _RunInProgress(plan, seed, injections, directory, history, report)
    try:
        await _unless(stop or asyncio.Event(), running.go())
    except* Exception as errors:
        # The run could not be carried out, so it shows nothing about the product.
        history.problem = "; ".join(describe(error) for error in errors.exceptions)
    history.ended_s = now_s()
    history.spans = running.notes.read()
    report("phase", "looking for leftovers")
    history.left += await leftovers(directory, before, END_S)
    judgement = judge(plan, history)
    is_kept = keep is not None or judgement.verdict
    if is_kept:
        keep_directory(directory)
        write_faults(directory / EVENTS, history, _wall_ms)
    else:
        shutil.rmtree(directory)
    return ProcessRun(plan, seed, injections, history, judgement, directory if is_kept else None)


def _wall_ms(at_s: float) -> int:
    """A time of the history on the clock of the event logs."""
    return round(1000 * (time.time() - now_s() + at_s))


class _RunInProgress:
    """The state of a run in progress."""

    def __init__(
        self,
        plan: Plan,
        seed: int,
        injections: tuple[FaultInjection, ...],
        directory: Path,
        history: History,
        report: Report,
    ) -> None:
        self.plan = plan
        self.injections = injections
        self.directory = directory
        self.history = history
        self.report = report
        self.notes = ProcessNotes(directory / "notes")
        self._draw = random.Random(f"network {seed}")
        self._cluster_directory = directory / "cluster"

    async def go(self) -> None:
        """Do everything except the search for leftovers. Raises an exception if the run could not be carried out."""
        async with AsyncExitStack() as stack:
            disks = self._disks(stack)
            network = ProxyNetwork(self.directory, self._draw) if self.plan.needs_network else None
            if network is not None:
                stack.push_async_callback(network.close)
            self.report("phase", "starting")
            cluster = await stack.enter_async_context(self._cluster(network))
            excluded = self.directory / "excluded"
            target = ProcessTarget(cluster, self.notes, excluded, network, disks, self.history.crashed)
            addresses = cluster.addresses if network is None else await network.for_clients(cluster.addresses)
            workload = WorkSubmitter(addresses, cluster.configuration, self.directory, self.notes, self.history)
            stack.push_async_callback(workload.close)
            context = RunContext(self.plan, self.injections, target, workload, self.notes, self.history, self.report)
            async with asyncio.TaskGroup() as tasks:
                observing = tasks.create_task(
                    Observer(target, cluster.addresses, cluster.configuration, self.history, self.report).run()
                )
                try:
                    for phase in (inject_faults, recover, drain):
                        await phase(context)
                finally:
                    observing.cancel()
            # This must happen before the cluster itself stops its daemons.
            target.record_exits()

    def _cluster(self, network: ProxyNetwork | None) -> LocalCluster:
        plan = self.plan.cluster
        excluded = self.directory / "excluded"
        excluded.touch()
        own = {
            resourcemanager.NODES_EXCLUDE_PATH.key: str(excluded),
            yarnling.EVENT_LOG.key: str(self.directory / EVENTS),
        }
        (self.directory / EVENTS).mkdir(exist_ok=True)
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
        """Mount the disks that faults will fill. Raises DiskUnavailable."""
        disks = {
            number: SmallDisk(self._cluster_directory / f"nm-{number}" / "local")
            for injection in self.injections
            if injection.kind.name == "full-disk"
            for number in injection.nodes
        }
        if self.plan.has("full-store"):
            disks[RM] = SmallDisk(self.directory / "store")
        if disks:
            enter_mount_namespace()
        for disk in disks.values():
            disk.mount()
            stack.callback(_unmount, disk)
        return disks


class Interrupted(YarnException):
    """The run was interrupted from outside."""


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Run `work`. Raises Interrupted if `stop` is set before the work is done."""
    async with asyncio.TaskGroup() as tasks:
        stopped, done = tasks.create_task(stop.wait()), tasks.create_task(work)
        await asyncio.wait((stopped, done), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not done.done():
            done.cancel()
            await asyncio.wait((done,))
            raise Interrupted(INTERRUPTED)


def _unmount(disk: SmallDisk) -> None:
    with suppress(DiskUnavailable):
        disk.unmount()


class Observer:
    """Polls the cluster ten times a second, and appends changes to `history.changes`.

    The polls call the ResourceManager directly, not through the proxies of the network.
    """

    def __init__(
        self,
        target: ProcessTarget,
        addresses: Mapping[str, str],
        conf: Configuration,
        history: History,
        report: Report,
    ) -> None:
        # A failed poll is recorded, not retried.
        impatient = conf.overridden({resourcemanager.CONNECT_MAX_WAIT.key: "0"}, "chaos")
        self._client = Client(addresses, conf=impatient)
        self._target = target
        self._history = history
        self._report = report
        self._seen: dict[str, ObservedChange] = {}

    async def run(self) -> None:
        """Poll until cancelled."""
        try:
            while True:
                await self.poll()
                slept_s = now_s()
                await asyncio.sleep(POLL_S)
                self._history.lag_s = max(self._history.lag_s, now_s() - slept_s - POLL_S)
        finally:
            await self._client.close()

    async def poll(self) -> None:
        self._target.record_exits()
        try:
            async with asyncio.timeout(ANSWER_S):
                nodes, applications = await self._client.nodes(), await self._client.applications()
        except (YarnException, TimeoutError):
            self._record("rm", SILENT)
            self._report("state", "the ResourceManager does not answer")
            return
        self._record("rm", "ANSWERS")
        for node in nodes:
            self._record_node(node, nodes)
        for app in applications:
            self._record(str(app.application_id), app.state.name, app.current_attempt_id.attempt)
        self._report("state", _summary(nodes, applications))

    def _record_node(self, report: NodeReport, all_reports: tuple[NodeReport, ...]) -> None:
        """Record the state of a node.

        A node that came back with another port has two reports; only that of the running process counts.
        """
        same_host = [other for other in all_reports if other.node_id.host == report.node_id.host]
        nodes = self._target.cluster.nodes
        if len(same_host) > 1 and report.node_id not in {node.id for node in nodes}:
            return
        name = next((node.name for node in nodes if node.place.host == report.node_id.host), "")
        self._record(name, report.state.name)

    def _record(self, subject: str, state: str, attempt: int = 0) -> None:
        before = self._seen.get(subject)
        if before is None or (before.state, before.attempt) != (state, attempt):
            self._seen[subject] = change = ObservedChange(now_s(), subject, state, attempt)
            self._history.changes.append(change)


def _summary(nodes: tuple[NodeReport, ...], applications: tuple[ApplicationReport, ...]) -> str:
    ended = sum(1 for app in applications if app.state in FINAL_APPLICATION_STATES)
    running = sum(1 for node in nodes if node.state is NodeState.RUNNING)
    return f"{ended} of {len(applications)} applications have ended, {running} nodes are RUNNING"
