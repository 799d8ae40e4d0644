"""The cluster that faults are injected into, and the state of its daemons: paused, expected to exit, or leaving."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from yarn.errors import CallOutcomeUnknown
from yarn.states import DecommissionType
from yarnling.cluster.launcher import Daemon, DaemonFailed
from yarnling.cluster.local_cluster import LocalCluster
from yarnling.cluster.network import Network
from yarnling.faults.disks import SmallDisk
from yarnling.faults.notes import Notes

RETRY_S = 0.1
"""The pause in seconds before a call without an answer is repeated."""
RM = 0
"""The number that stands for the ResourceManager; nodes are numbered from 1."""


@dataclass
class TargetCluster:
    """The cluster of a run. `disks` is {node number: disk of its local directory; RM: disk of the state store}.

    `excluded` is the hosts file that lists nodes to decommission. `crashed` has a line for each daemon that exited
    unexpectedly.
    """

    cluster: LocalCluster
    notes: Notes
    excluded: Path
    network: Network | None = None
    disks: dict[int, SmallDisk] = field(default_factory=dict)
    crashed: list[str] = field(default_factory=list)
    leaving: set[int] = field(default_factory=set)
    _paused: Counter[int] = field(default_factory=Counter)
    _expected_exits: set[int] = field(default_factory=set)
    _recorded_exits: set[int] = field(default_factory=set)
    _restarting: dict[int, asyncio.Lock] = field(default_factory=dict)

    def is_up(self, number: int) -> bool:
        """True if this daemon runs; False before it has a process."""
        daemon = self._daemon(number)
        return daemon.spawned.is_set() and daemon.exit_status is None

    def expect_exit(self, number: int) -> None:
        """From now on, do not report the exit of this daemon as unexpected."""
        self._expected_exits.add(self._daemon(number).pid)

    def record_exits(self) -> None:
        """Record every daemon that exited unexpectedly, each once."""
        for name, daemon in [("rm", self.cluster.rm), *((node.name, node.daemon) for node in self.cluster.nodes)]:
            if daemon.exit_status is None or daemon.pid in self._recorded_exits:
                continue
            self._recorded_exits.add(daemon.pid)
            if daemon.pid not in self._expected_exits:
                self.crashed.append(f"{name} (process {daemon.pid}) exited unexpectedly, status {daemon.exit_status}")

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
