"""Looks at what containers' processes and the node really use (ContainersMonitorImpl, NodeResourceMonitorImpl).

One pass over the processes of the machine serves all containers of a look; a container's tree is its session leader
with all that descends from it, and orphans that are still in its session. An emulated container is asked of its
launcher instead, as one process; a node that emulates containers uses what they use, not what the machine does.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import psutil
from msgspec import Struct
from msgspec.structs import replace

from nm.core.effects import ChangeMonitoring, MonitorContainer
from nm.core.events import Event, MemoryExceeded, UtilizationSampled
from nm.core.memory_limits import MemoryLimits, ProcessSample, check_memory
from nm.core.node_resources import Hardware
from nm.launcher.launchers import Launchers
from nm.launcher.processes import ProcessStat, all_processes
from yarn.configuration import Configuration
from yarn.ids import ContainerId
from yarn.nodes import ResourceUtilization
from yarn.settings import nodemanager

_logger = logging.getLogger(__name__)

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MB = 20


class MonitorSettings(Struct, frozen=True):
    """How often is looked, and what a container over its memory gets."""

    interval_ms: int = 3000
    check_physical: bool = True
    check_virtual: bool = True
    watch_containers: bool = True

    @staticmethod
    def read(conf: Configuration) -> MonitorSettings:
        """With memory.enforced true nothing is checked: Hadoop leaves it to cgroups then, which hold only CPU here."""
        checked = not nodemanager.RESOURCE_MEMORY_ENFORCED.of(conf)
        return MonitorSettings(
            nodemanager.CONTAINER_MONITOR_INTERVAL.of(conf),
            checked and nodemanager.PMEM_CHECK_ENABLED.of(conf),
            checked and nodemanager.VMEM_CHECK_ENABLED.of(conf),
            nodemanager.CONTAINER_MONITOR_ENABLED.of(conf),
        )


@dataclass(slots=True)
class _Watched:
    """A container's limits, and what the last look saw of it: ages {pid: looks}, CPU seconds and when."""

    launch: int
    limits: MemoryLimits
    ages: dict[int, int] = field(default_factory=dict)
    cpu_s: dict[int, float] = field(default_factory=dict)
    looked_s: float = 0.0


class ContainersMonitor:
    """The watched containers of a node. `vcores` are those that the node offers; `emulating`: it has a table for it.

    `packed`: what the machine uses is told for all nodes of the process at once.
    """

    def __init__(
        self,
        launcher: Launchers,
        send: Callable[[Event], None],
        settings: MonitorSettings,
        vcores: int,
        *,
        emulating: bool = False,
        packed: bool = False,
    ) -> None:
        self._launcher = launcher
        self._send = send
        self._settings = settings
        self._vcores = vcores
        self._processors = psutil.cpu_count() or 1
        self._emulating = emulating
        self._packed = packed
        self._idle_told = False
        self._watched: dict[ContainerId, _Watched] = {}

    def watch(self, effect: MonitorContainer) -> None:
        """Look at this container from now on, until its process is gone."""
        self._watched[effect.container_id] = _Watched(effect.launch, self._limits(effect))

    def change(self, effect: ChangeMonitoring) -> None:
        """Hold a container that is looked at to other limits."""
        watched = self._watched.get(effect.container_id)
        if watched is not None:
            watched.limits = self._limits(effect)

    def _limits(self, effect: MonitorContainer | ChangeMonitoring) -> MemoryLimits:
        return MemoryLimits(
            effect.physical_memory_limit_bytes,
            effect.virtual_memory_limit_bytes,
            self._settings.check_physical,
            self._settings.check_virtual,
        )

    def look(self, processes: Processes, machine: ResourceUtilization) -> None:
        """One look at all: MemoryExceeded for each container over a limit, then UtilizationSampled.

        An emulating or packed node without containers has nothing new to say after it has said so once.
        """
        idle = (self._emulating or self._packed) and not self._watched
        if idle and self._idle_told:
            return
        self._idle_told = idle
        total = ResourceUtilization()
        if self._settings.watch_containers and self._watched:
            total = self._look_at_containers(processes)
        self._send(UtilizationSampled(total, total if self._emulating else machine))

    def _look_at_containers(self, processes: Processes) -> ResourceUtilization:
        emulated: dict[ContainerId, ProcessSample] = {}
        roots: dict[int, ContainerId] = {}
        for container_id in list(self._watched):
            sample = self._launcher.emulated_sample(container_id)
            if sample is not None:
                emulated[container_id] = sample
            elif not self._launcher.is_running(container_id):
                del self._watched[container_id]
            elif (pid := self._launcher.pid_of(container_id)) is not None:
                roots[pid] = container_id
        used = [self._look_at_emulated(container_id, sample) for container_id, sample in emulated.items()]
        trees = processes.trees(roots) if roots else {}
        used += [self._look_at_processes(container_id, trees.get(pid, [])) for pid, container_id in roots.items()]
        return _sum([use for use in used if use is not None])

    def _look_at_emulated(self, container_id: ContainerId, sample: ProcessSample) -> ResourceUtilization | None:
        """An emulated container's vcores are those of its node: it uses so much of them, not of the machine."""
        ages = self._watched[container_id].ages
        return self._look_at(container_id, [replace(sample, age=ages.get(sample.pid, 0) + 1)], processors=self._vcores)

    def _look_at_processes(self, container_id: ContainerId, tree: list[int]) -> ResourceUtilization | None:
        ages = self._watched[container_id].ages
        samples = [sample for pid in tree if (sample := _sample(pid, ages)) is not None]
        return self._look_at(container_id, samples, processors=self._processors)

    def _look_at(
        self, container_id: ContainerId, samples: list[ProcessSample], *, processors: int
    ) -> ResourceUtilization | None:
        """What one container uses; None if it is gone, or seen for the first time (its CPU is not known then)."""
        watched = self._watched[container_id]
        watched.ages = {sample.pid: sample.age for sample in samples}
        now_s = time.monotonic()
        earlier_s, watched.looked_s = watched.looked_s, now_s
        before, watched.cpu_s = watched.cpu_s, {s.pid: (s.user_ms + s.system_ms) / 1000 for s in samples}
        if not samples or not earlier_s:
            return None
        excess = check_memory(container_id, samples, watched.limits, _PAGE_BYTES)
        if excess is not None:
            del self._watched[container_id]
            self._send(MemoryExceeded(container_id, watched.launch, excess.exit_status, excess.diagnostics))
        used_s = sum(cpu_s - before.get(pid, 0.0) for pid, cpu_s in watched.cpu_s.items())
        cores = max(0.0, used_s) / max(now_s - earlier_s, 0.001)
        return ResourceUtilization(
            sum(sample.resident_pages for sample in samples) * _PAGE_BYTES >> _MB,
            sum(sample.virtual_bytes for sample in samples) >> _MB,
            int(cores / processors * 1000 * self._vcores) / 1000,
        )


def _sum(parts: list[ResourceUtilization]) -> ResourceUtilization:
    return ResourceUtilization(
        sum(part.physical_memory_mb for part in parts),
        sum(part.virtual_memory_mb for part in parts),
        sum(part.cpu for part in parts),
    )


class Processes:
    """The machine's processes at one moment: that of the first question, if there is one."""

    def __init__(self) -> None:
        self._children: dict[int, list[int]] | None = None
        self._alive: dict[int, ProcessStat] = {}

    def trees(self, roots: Iterable[int]) -> dict[int, list[int]]:
        """{root: the process ids of its tree, the root first} of those roots that are alive."""
        if self._children is None:
            self._alive = {process.pid: process for process in all_processes()}
            self._children = _children(self._alive)
        trees: dict[int, list[int]] = {}
        for root in roots:
            if root in self._alive:
                tree = trees[root] = [root]
                for pid in tree:
                    tree.extend(self._children.get(pid, ()))
        return trees


def _children(alive: Mapping[int, ProcessStat]) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for process in alive.values():
        parent = alive.get(process.parent)
        # An orphan belongs to init (or to who takes orphans here), and still to its session.
        is_orphan = process.session != process.pid and (parent is None or parent.session != process.session)
        children.setdefault(process.session if is_orphan else process.parent, []).append(process.pid)
    return children


class MonitorLoop:
    """Has the monitors of a process's nodes look, with one look at the machine for all of them."""

    def __init__(self, monitors: Sequence[ContainersMonitor], interval_ms: int) -> None:
        self._monitors = monitors
        self._interval_s = interval_ms / 1000
        self._processors = psutil.cpu_count() or 1
        self.machine = ResourceUtilization()

    async def run(self) -> None:
        """Look for ever."""
        psutil.cpu_percent()
        while True:
            await asyncio.sleep(self._interval_s)
            self._look()

    def _look(self) -> None:
        processes, self.machine = Processes(), node_utilization(self._processors)
        for monitor in tuple(self._monitors):
            try:
                monitor.look(processes, self.machine)
            except Exception:
                # A look that fails must not end the node: the next one may not.
                _logger.exception("a look at the containers failed")


def node_utilization(processors: int) -> ResourceUtilization:
    """What the whole machine uses: memory that is not available, with swap for the virtual one, and busy cores."""
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    physical = memory.total - memory.available
    return ResourceUtilization(physical >> _MB, (physical + swap.used) >> _MB, psutil.cpu_percent() / 100 * processors)


@cache
def hardware() -> Hardware:
    """What psutil says that the machine has; looked at once, and by who forks NodeManagers for all of them."""
    threads = psutil.cpu_count() or 1
    return Hardware(psutil.virtual_memory().total >> _MB, psutil.cpu_count(logical=False) or threads, threads)


def _sample(pid: int, ages: dict[int, int]) -> ProcessSample | None:
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            memory, cpu = process.memory_info(), process.cpu_times()
            return ProcessSample(
                pid,
                process.ppid(),
                os.getpgid(pid),
                os.getsid(pid),
                process.name(),
                int(cpu.user * 1000),
                int(cpu.system * 1000),
                memory.vms,
                memory.rss // _PAGE_BYTES,
                tuple(process.cmdline()),
                ages.get(pid, 0) + 1,
            )
    except (psutil.Error, OSError):
        return None
