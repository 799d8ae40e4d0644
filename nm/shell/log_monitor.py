"""Measures the log directories of containers, off the event loop (ContainersMonitorImpl.LogMonitorThread).

One directory after the other is measured in a thread. A measurement reads a bounded number of entries, and never
follows a symbolic link: a container must not have the NodeManager walk through other directories.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from msgspec import Struct

from nm.core.container_limits import LogLimits, check_logs
from nm.core.effects import MonitorContainer
from nm.core.events import Event, LimitExceeded
from nm.launcher.containers_launcher import Launchers
from nm.launcher.directories import NodeDirectories, descend_in, log_dir
from yarn.configuration import Configuration
from yarn.ids import ContainerId
from yarn.settings import nodemanager

ENTRIES_MAX = 100_000
"""The number of files and directories of one log directory that are measured: about 0.2 s of a thread."""

_logger = logging.getLogger(f"yarnling.{__name__}")


class LogMonitorSettings(Struct, frozen=True):
    """Settings of the measurement of containers' logs, and their limits."""

    enabled: bool = False
    interval_ms: int = 60_000
    limits: LogLimits = LogLimits()

    @staticmethod
    def read(conf: Configuration) -> LogMonitorSettings:
        return LogMonitorSettings(
            nodemanager.CONTAINER_LOG_MONITOR_ENABLED.of(conf),
            nodemanager.CONTAINER_LOG_MONITOR_INTERVAL.of(conf),
            LogLimits(
                nodemanager.CONTAINER_LOG_DIR_SIZE_LIMIT.of(conf), nodemanager.CONTAINER_LOG_TOTAL_SIZE_LIMIT.of(conf)
            ),
        )


class LogMonitor:
    """The containers of one node whose logs are measured. An emulated container has no logs."""

    def __init__(
        self,
        launcher: Launchers,
        directories: NodeDirectories,
        send: Callable[[Event], None],
        settings: LogMonitorSettings,
    ) -> None:
        self._launcher = launcher
        self._directories = directories
        self._send = send
        self._settings = settings
        self._launches: dict[ContainerId, int] = {}

    @property
    def watched(self) -> tuple[ContainerId, ...]:
        """The containers whose logs are measured."""
        return tuple(self._launches)

    def watch(self, effect: MonitorContainer) -> None:
        """Measure the logs of a container until its process has exited, if that is configured."""
        if self._settings.enabled:
            self._launches[effect.container_id] = effect.launch

    async def measure(self) -> None:
        """Measure the logs of all containers: send LimitExceeded for each one above a limit."""
        for container_id, launch in list(self._launches.items()):
            pid = self._launcher.pid_of(container_id)
            if pid is not None:
                await self._measure(container_id, launch, pid)
            elif not self._launcher.is_running(container_id):
                self._forget(container_id, launch)

    async def _measure(self, container_id: ContainerId, launch: int, pid: int) -> None:
        paths = [log_dir(logs, container_id) for logs in self._directories.log_dirs]
        sizes = [(path, await asyncio.to_thread(self._size_of, path)) for path in paths]
        violation = check_logs(container_id, pid, sizes, self._settings.limits)
        if violation is not None and self._forget(container_id, launch):
            self._send(LimitExceeded(container_id, launch, violation.exit_status, violation.diagnostics))

    def _forget(self, container_id: ContainerId, launch: int) -> bool:
        """Stop measuring a launch; False if the container was launched again meanwhile."""
        if self._launches.get(container_id) != launch:
            return False
        del self._launches[container_id]
        return True

    def _size_of(self, path: str) -> int:
        """The bytes of the files in a container's log directory; 0 if it has none on this disk."""
        try:
            with self._directories.open(path) as descriptor:
                size = directory_size(descriptor)
        except OSError:
            return 0
        if not size.is_complete:
            _logger.warning("%s has more than %d entries; the others are not measured", path, ENTRIES_MAX)
        return size.total_bytes


class DirectorySize(Struct, frozen=True):
    """The lengths of the files below a directory together. `is_complete`: False if it has too many entries."""

    total_bytes: int
    is_complete: bool


def directory_size(top: int, entries_max: int = ENTRIES_MAX) -> DirectorySize:
    """Add up the lengths of the files below the directory of descriptor `top` (FileUtil.getDU).

    Links count nothing, and neither do directories themselves. What vanishes meanwhile is left out.
    """
    total_bytes = visited = 0
    # Pairs share the text of the directory that they are in: 100,000 long paths would need hundreds of megabytes.
    pending = [("", "")]
    while pending:
        below = os.path.join(*pending.pop())
        with suppress(OSError), _opened(top, below) as descriptor, os.scandir(descriptor) as entries:
            for entry in entries:
                if visited == entries_max:
                    return DirectorySize(total_bytes, is_complete=False)
                visited += 1
                if entry.is_dir(follow_symlinks=False):
                    pending.append((below, entry.name))
                elif not entry.is_symlink():
                    total_bytes += _length(entry)
    return DirectorySize(total_bytes, is_complete=True)


@contextmanager
def _opened(top: int, below: str) -> Iterator[int]:
    descriptor = descend_in(top, below.split(os.sep) if below else ())
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _length(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


class LogMonitorLoop:
    """Measures the logs on all nodes of a process. `monitors` returns the monitors of the nodes that still run."""

    def __init__(self, monitors: Callable[[], Sequence[LogMonitor]], settings: LogMonitorSettings) -> None:
        self._monitors = monitors
        self._settings = settings

    async def run(self) -> None:
        """Measure at every interval, if that is configured."""
        while self._settings.enabled:
            await asyncio.sleep(self._settings.interval_ms / 1000)
            for monitor in self._monitors():
                try:
                    await monitor.measure()
                except Exception:
                    # A failed measurement must not end the node: the next one may succeed.
                    _logger.exception("cannot measure the logs of containers")
