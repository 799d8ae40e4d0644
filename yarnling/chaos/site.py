"""The cluster that faults are done to, with what is done to it at the moment: who is paused, killed, leaving."""

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
from yarnling.chaos.disks import SmallDisk
from yarnling.chaos.network import Network
from yarnling.chaos.notes import Notes
from yarnling.cluster.launcher import Daemon, DaemonFailed
from yarnling.cluster.local_cluster import LocalCluster

AGAIN_S = 0.1
"""Between two calls where the first was not answered."""


@dataclass
class Site:
    """`disks`: of node number; 0: the state store's. `excluded`: hosts file of nodes that are to leave."""

    cluster: LocalCluster
    notes: Notes
    excluded: Path
    network: Network | None = None
    disks: dict[int, SmallDisk] = field(default_factory=dict)
    died: list[str] = field(default_factory=list)
    leaving: set[int] = field(default_factory=set)
    _paused: Counter[int] = field(default_factory=Counter)
    _may_end: set[int] = field(default_factory=set)
    _seen_ended: set[int] = field(default_factory=set)
    _starting: dict[int, asyncio.Lock] = field(default_factory=dict)

    def is_up(self, number: int) -> bool:
        """Whether a daemon runs: 0 is the ResourceManager, the others are nodes. One without a process does not yet."""
        daemon = self._daemon(number)
        return daemon.spawned.is_set() and daemon.exit_status is None

    def may_end(self, number: int) -> None:
        """That this daemon ends is somebody's doing from now on."""
        self._may_end.add(self._daemon(number).pid)

    def note_ends(self) -> None:
        """Remember every daemon that has ended and was to live."""
        for name, daemon in [("rm", self.cluster.rm), *((node.name, node.daemon) for node in self.cluster.nodes)]:
            if daemon.exit_status is None or daemon.pid in self._seen_ended:
                continue
            self._seen_ended.add(daemon.pid)
            if daemon.pid not in self._may_end:
                self.died.append(f"{name} (process {daemon.pid}) ended by itself, status {daemon.exit_status}")

    async def bring_back(self, number: int) -> None:
        """Start a daemon that has ended; returns when it is ready. None is started twice, nor one that is to leave."""
        async with self._starting.setdefault(number, asyncio.Lock()):
            if number in self.leaving or self.is_up(number):
                return
            self.note_ends()
            try:
                await (self.cluster.restart_node(number) if number else self.cluster.restart_rm())
            except DaemonFailed:
                # Killed once more while it started: who did that brings it back.
                if self._daemon(number).pid not in self._may_end:
                    raise

    def pause(self, number: int) -> None:
        self._signal(number, signal.SIGSTOP)
        self._paused[number] += 1

    def resume(self, number: int) -> None:
        """Let a daemon go on that nobody else has paused."""
        self._paused[number] -= 1
        if self._paused[number] <= 0:
            self._signal(number, signal.SIGCONT)

    async def tell_leaving(self, timeout_s: int) -> None:
        """Have the ResourceManager know which nodes are to leave; again, if one was killed that was just asked."""
        hosts = [self.cluster.node(number).place.host for number in sorted(self.leaving)]
        self.excluded.write_text("".join(f"{host}\n" for host in hosts))
        while True:
            try:
                await self.cluster.client.refresh_nodes(DecommissionType.GRACEFUL, timeout_s)
                return
            except CallOutcomeUnknown:
                await asyncio.sleep(AGAIN_S)

    async def heal(self) -> None:
        """Undo what is left of everything, and start what has ended. Raises YarnException if that cannot be."""
        if self.network is not None:
            self.network.heal()
        for disk in self.disks.values():
            disk.empty()
        for number in range(len(self.cluster.nodes) + 1):
            self._paused[number] = 0
            self._signal(number, signal.SIGCONT)
        await self.bring_back(0)
        if self.leaving:
            self.leaving.clear()
            await self.tell_leaving(0)
        await self.bring_all_back()

    async def bring_all_back(self) -> None:
        """Start every node that has ended."""
        for number in range(1, len(self.cluster.nodes) + 1):
            await self.bring_back(number)

    def _signal(self, number: int, signum: signal.Signals) -> None:
        """To a daemon that runs; to no process id but its own (0 would be this very process and its group)."""
        if self.is_up(number):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._daemon(number).pid, signum)

    def _daemon(self, number: int) -> Daemon:
        return self.cluster.node(number).daemon if number else self.cluster.rm
