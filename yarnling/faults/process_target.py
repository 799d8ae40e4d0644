"""A cluster of processes as the target of faults; its daemons may be paused, expected to exit, or leaving."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import Counter
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from yarn.errors import CallOutcomeUnknown
from yarn.ids import ContainerId
from yarn.states import DecommissionType
from yarnling.cluster.containers import processes_of
from yarnling.cluster.launcher import Daemon, DaemonFailed
from yarnling.cluster.local_cluster import LocalCluster
from yarnling.cluster.network import NetworkFault, ProxyNetwork
from yarnling.cluster.processes import kill
from yarnling.faults.disks import SmallDisk
from yarnling.faults.history import ProcessRole, ProcessSpan
from yarnling.faults.notes import ProcessNotes
from yarnling.faults.target import RM, no_target

RETRY_S = 0.1
"""The pause in seconds before a call without an answer is repeated."""


@dataclass
class ProcessTarget:
    """The cluster of a run. `disks` is {node number: disk of its local directory; RM: disk of the state store}.

    `excluded` is the hosts file that lists nodes to decommission. `crashed` has a line for each daemon that exited
    unexpectedly.
    """

    cluster: LocalCluster
    notes: ProcessNotes
    excluded: Path
    network: ProxyNetwork | None = None
    disks: dict[int, SmallDisk] = field(default_factory=dict)
    crashed: list[str] = field(default_factory=list)
    leaving: set[int] = field(default_factory=set)
    _paused: Counter[int] = field(default_factory=Counter)
    _expected_exits: set[int] = field(default_factory=set)
    _recorded_exits: set[int] = field(default_factory=set)
    _restarting: dict[int, asyncio.Lock] = field(default_factory=dict)
    _stopped: dict[ContainerId, list[psutil.Process]] = field(default_factory=dict)

    def is_up(self, number: int) -> bool:
        """True if this daemon runs; False before it has a process."""
        daemon = self._daemon(number)
        return daemon.spawned.is_set() and daemon.exit_status is None

    def _expect_exits(self, numbers: Iterable[int]) -> None:
        """Stop reporting exits of these daemons as unexpected."""
        self._expected_exits.update(self._daemon(number).pid for number in numbers)

    def record_exits(self) -> None:
        """Record every daemon that exited unexpectedly, each once."""
        for name, daemon in [("rm", self.cluster.rm), *((node.name, node.daemon) for node in self.cluster.nodes)]:
            if daemon.exit_status is None or daemon.pid in self._recorded_exits:
                continue
            self._recorded_exits.add(daemon.pid)
            if daemon.pid not in self._expected_exits:
                self.crashed.append(f"{name} (process {daemon.pid}) exited unexpectedly, status {daemon.exit_status}")

    async def kill(self, numbers: Sequence[int], *, containers: bool) -> None:
        self._expect_exits(numbers)
        cluster = self.cluster
        await _all(
            cluster.kill_rm() if number == RM else cluster.kill_node(number, containers=containers)
            for number in numbers
        )

    async def stop(self, numbers: Sequence[int]) -> None:
        self._expect_exits(numbers)
        await _all(self.cluster.remove_node(number) for number in numbers)

    async def start(self, numbers: Sequence[int]) -> None:
        await _all(self.restart(number) for number in numbers)

    async def restart(self, number: int) -> None:
        """Restart a daemon that has exited, and wait until it is ready. No effect on a running or leaving daemon."""
        async with self._restarting.setdefault(number, asyncio.Lock()):
            if number in self.leaving or self.is_up(number):
                return
            self.record_exits()
            try:
                await (self.cluster.restart_node(number) if number != RM else self.cluster.restart_rm())
            except DaemonFailed:
                # The daemon was killed again while it started. The fault that killed it will restart it.
                if self._daemon(number).pid not in self._expected_exits:
                    raise

    async def restart_nodes(self) -> None:
        """Restart every node that has exited."""
        for number in range(1, len(self.cluster.nodes) + 1):
            await self.restart(number)

    def pause(self, number: int) -> None:
        self._signal(number, signal.SIGSTOP)
        self._paused[number] += 1

    def resume(self, number: int) -> None:
        """Resume a paused daemon, unless another fault has paused it too."""
        self._paused[number] -= 1
        if self._paused[number] <= 0:
            self._signal(number, signal.SIGCONT)

    async def decommission(self, numbers: Sequence[int], timeout_s: int) -> None:
        self._expect_exits(numbers)
        self.leaving |= set(numbers)
        await self.refresh_leaving(timeout_s)

    async def recommission(self, numbers: Sequence[int]) -> None:
        self.leaving -= set(numbers)
        await self.refresh_leaving(0)

    async def refresh_leaving(self, timeout_s: int) -> None:
        """Send the list of leaving nodes to the ResourceManager, and retry if it was killed during the call."""
        hosts = [self.cluster.node(number).place.host for number in sorted(self.leaving)]
        self.excluded.write_text("".join(f"{host}\n" for host in hosts))
        while True:
            try:
                await self.cluster.client.refresh_nodes(DecommissionType.GRACEFUL, timeout_s)
                return
            except CallOutcomeUnknown:
                await asyncio.sleep(RETRY_S)

    async def fill_disk(self, number: int) -> None:
        await asyncio.to_thread(self.disks[number].fill)

    def empty_disk(self, number: int) -> None:
        self.disks[number].empty()

    def impair(self, key: int, links: Sequence[str], fault: NetworkFault) -> None:
        assert self.network is not None, "the plan of such a fault has a network"
        self.network.inject(key, tuple(links), fault)

    def mend(self, key: int, links: Sequence[str]) -> None:
        assert self.network is not None
        self.network.remove(key)

    def running(self, *roles: ProcessRole) -> list[ProcessSpan]:
        return self.notes.alive(*roles)

    async def kill_container(self, container: ProcessSpan) -> None:
        for process in await _processes_of(container):
            kill(process)

    async def pause_container(self, container: ProcessSpan) -> None:
        self._stopped[container.container_id] = processes = await _processes_of(container)
        for process in processes:
            _send(process, signal.SIGSTOP)

    def resume_container(self, container: ProcessSpan) -> None:
        for process in self._stopped.pop(container.container_id, ()):
            _send(process, signal.SIGCONT)

    async def recover(self) -> None:
        """Undo every remaining fault and restart all daemons that have exited. Raises YarnException if that fails."""
        if self.network is not None:
            self.network.recover()
        for disk in self.disks.values():
            disk.empty()
        for number in range(len(self.cluster.nodes) + 1):
            self._paused[number] = 0
            self._signal(number, signal.SIGCONT)
        await self.restart(RM)
        if self.leaving:
            self.leaving.clear()
            await self.refresh_leaving(0)
        await self.restart_nodes()

    def _signal(self, number: int, signum: signal.Signals) -> None:
        """Send a signal to a daemon, if it runs.

        A daemon that has not started has process id 0, which means our own group.
        """
        if self.is_up(number):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._daemon(number).pid, signum)

    def _daemon(self, number: int) -> Daemon:
        return self.cluster.node(number).daemon if number != RM else self.cluster.rm


async def _all(steps: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all steps concurrently."""
    async with asyncio.TaskGroup() as tasks:
        for step in steps:
            tasks.create_task(step)


async def _processes_of(container: ProcessSpan) -> list[psutil.Process]:
    """The processes of a container. Raises NoTarget if it has exited, also while its processes were looked up.

    Finding them takes a while on a busy machine. Searches only among our own descendants: reading the environment of
    unrelated processes can block for seconds.
    """
    processes = await asyncio.to_thread(processes_of, container.container_id, os.getpid())
    if not processes:
        raise no_target(container.role)
    return processes


def _send(process: psutil.Process, signum: signal.Signals) -> None:
    with contextlib.suppress(psutil.Error, OSError):
        if process.is_running():
            os.kill(process.pid, signum)
