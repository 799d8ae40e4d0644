"""Measures the memory and CPU that containers and the node use (ContainersMonitorImpl, NodeResourceMonitorImpl).

One pass over the processes of the machine serves all containers. A container's process tree consists of its session
leader with all descendants, and of orphans that are still in its session. An emulated container counts as one process,
whose usage its launcher computes. A node that emulates containers reports their usage as its own, instead of the
machine's.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import psutil
from msgspec import Struct
from msgspec.structs import replace

from nm.core.container_limits import MemoryLimits, ProcessSample, check_memory
from nm.core.effects import ChangeMonitoring, MonitorContainer
from nm.core.events import Event, LimitExceeded, UtilizationSampled
from nm.launcher.containers_launcher import Launchers
from nm.launcher.processes import ProcessStat, all_processes
from yarn.configuration import Configuration
from yarn.ids import ContainerId
from yarn.nodes import ResourceUtilization
from yarn.settings import nodemanager

_logger = logging.getLogger(f"yarnling.{__name__}")

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MB = 20


class MonitorSettings(Struct, frozen=True):
    """The interval at which containers are measured, and which memory limits are enforced."""

    interval_ms: int = 3000
    check_physical: bool = True
    check_virtual: bool = True
    watch_containers: bool = True

    @staticmethod
    def read(conf: Configuration) -> MonitorSettings:
        """The settings in `conf`. If memory.enforced is true, no memory limit is checked.

        Hadoop leaves memory to cgroups in that case; yarnling's cgroups limit only CPU.
        """
        checked = not nodemanager.RESOURCE_MEMORY_ENFORCED.of(conf)
        return MonitorSettings(
            nodemanager.CONTAINER_MONITOR_INTERVAL.of(conf),
            checked and nodemanager.PMEM_CHECK_ENABLED.of(conf),
            checked and nodemanager.VMEM_CHECK_ENABLED.of(conf),
            nodemanager.CONTAINER_MONITOR_ENABLED.of(conf),
        )


@dataclass(slots=True)
class _MonitoredContainer:
    """A container's limits and its last measurement: `ages` {pid: times seen} and `cpu_s` {pid: CPU seconds}.

    `measured_s` is the time of the measurement, monotonic; 0 before the first one.
    """

    launch: int
    limits: MemoryLimits
    ages: dict[int, int] = field(default_factory=dict)
    cpu_s: dict[int, float] = field(default_factory=dict)
    measured_s: float = 0.0


class ContainersMonitor:
    """The monitored containers of a node. `vcores` are those that the node offers to containers.

    If `emulating`, the node emulates containers. If `packed`, the machine's usage is reported once for all nodes of a
    pack.
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
        self._idle_reported = False
        self._watched: dict[ContainerId, _MonitoredContainer] = {}

    def watch(self, effect: MonitorContainer) -> None:
        """Monitor a container until its process has exited."""
        self._watched[effect.container_id] = _MonitoredContainer(effect.launch, self._limits(effect))

    def change(self, effect: ChangeMonitoring) -> None:
        """Change the limits of a container, if it is monitored."""
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

    def measure(self, processes: Processes, machine: ResourceUtilization) -> None:
        """Measure all containers: send LimitExceeded for each one above a limit, then UtilizationSampled.

        An emulating or packed node without containers reports its usage, zero, only once.
        """
        idle = (self._emulating or self._packed) and not self._watched
        if idle and self._idle_reported:
            return
        self._idle_reported = idle
        total = self._measure_containers(processes) if self._watched else ResourceUtilization()
        self._send(UtilizationSampled(total, total if self._emulating else machine))

    def _measure_containers(self, processes: Processes) -> ResourceUtilization:
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
        if not self._settings.watch_containers:
            return ResourceUtilization()
        used = [self._measure_emulated(container_id, sample) for container_id, sample in emulated.items()]
        trees = processes.trees(roots) if roots else {}
        used += [self._measure_processes(container_id, trees.get(pid, [])) for pid, container_id in roots.items()]
        return _sum([use for use in used if use is not None])

    def _measure_emulated(self, container_id: ContainerId, sample: ProcessSample) -> ResourceUtilization | None:
        """The usage of an emulated container, which uses vcores of its node instead of processors of the machine."""
        ages = self._watched[container_id].ages
        return self._record(container_id, [replace(sample, age=ages.get(sample.pid, 0) + 1)], processors=self._vcores)

    def _measure_processes(self, container_id: ContainerId, tree: list[int]) -> ResourceUtilization | None:
        ages = self._watched[container_id].ages
        samples = [sample for pid in tree if (sample := _sample(pid, ages)) is not None]
        return self._record(container_id, samples, processors=self._processors)

    def _record(
        self, container_id: ContainerId, samples: list[ProcessSample], *, processors: int
    ) -> ResourceUtilization | None:
        """The usage of one container; None if it has exited.

        It is also None after the first measurement, because CPU usage is computed from two measurements.
        """
        watched = self._watched[container_id]
        watched.ages = {sample.pid: sample.age for sample in samples}
        now_s = time.monotonic()
        earlier_s, watched.measured_s = watched.measured_s, now_s
        before, watched.cpu_s = watched.cpu_s, {s.pid: (s.user_ms + s.system_ms) / 1000 for s in samples}
        if not samples or not earlier_s:
            return None
        violation = check_memory(container_id, samples, watched.limits, _PAGE_BYTES)
        if violation is not None:
            del self._watched[container_id]
            self._send(LimitExceeded(container_id, watched.launch, violation.exit_status, violation.diagnostics))
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
    """The machine's processes at one moment, namely when `trees` is first called."""

    def __init__(self) -> None:
        self._children: dict[int, list[int]] | None = None
        self._alive: dict[int, ProcessStat] = {}

    def trees(self, roots: Iterable[int]) -> dict[int, list[int]]:
        """{root: the process ids of its tree, the root first} for those roots that are alive."""
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
        # An orphan's parent is init (or the local subreaper), but the orphan still belongs to its session.
        is_orphan = process.session != process.pid and (parent is None or parent.session != process.session)
        children.setdefault(process.session if is_orphan else process.parent, []).append(process.pid)
    return children


class MonitorLoop:
    """Measures the containers of all nodes of a process, and the machine once for all of them.

    `monitors` returns the monitors of the nodes that still run. `machine` is the machine's last measured usage.
    """

    def __init__(self, monitors: Callable[[], Sequence[ContainersMonitor]], interval_ms: int) -> None:
        self._monitors = monitors
        self._interval_s = interval_ms / 1000
        self._processors = psutil.cpu_count() or 1
        self.machine = ResourceUtilization()

    async def run(self) -> None:
        """Measure at every interval."""
        psutil.cpu_percent()
        while True:
            await asyncio.sleep(self._interval_s)
            self._measure()

    def _measure(self) -> None:
        # A failed measurement must not end the node: the next one may succeed.
        try:
            self.machine = node_utilization(self._processors)
        except Exception:
            _logger.exception("cannot measure the resource usage of the machine")
        processes = Processes()
        for monitor in self._monitors():
            try:
                monitor.measure(processes, self.machine)
            except Exception:
                _logger.exception("cannot measure the resource usage of containers")


def node_utilization(processors: int) -> ResourceUtilization:
    """The usage of the whole machine: memory that is not available (plus swap for virtual memory),
    and busy processors.
    """
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    physical = memory.total - memory.available
    return ResourceUtilization(physical >> _MB, (physical + swap.used) >> _MB, psutil.cpu_percent() / 100 * processors)


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
