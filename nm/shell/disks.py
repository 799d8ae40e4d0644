"""Checks the disks below a node's directories (LocalDirsHandlerService)."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from msgspec import Struct

from nm.core.disk_health import DiskLimits, DiskSample, check_directories, health_report, is_healthy
from nm.core.events import Event, HealthChecked
from nm.launcher.directories import NodeDirectories, make_dir
from yarn.configuration import Configuration
from yarn.nodes import NodeHealth
from yarn.settings import nodemanager

_REPORTS_JOINED_BY = ";"
"""NodeHealthCheckerService.SEPARATOR."""


class DiskSettings(Struct, frozen=True):
    """Settings of the check of disks, and the limits above which a disk counts as full."""

    interval_ms: int = 120_000
    enabled: bool = True
    limits: DiskLimits = DiskLimits()

    @staticmethod
    def read(conf: Configuration) -> DiskSettings:
        limits = DiskLimits(
            nodemanager.MAX_DISK_UTILIZATION_PERCENTAGE.of(conf),
            nodemanager.DISK_UTILIZATION_WATERMARK_LOW.of(conf),
            nodemanager.MIN_FREE_SPACE_PER_DISK_MB.of(conf),
            nodemanager.MIN_FREE_SPACE_WATERMARK_HIGH_MB.of(conf),
            nodemanager.MIN_HEALTHY_DISKS.of(conf),
        )
        return DiskSettings(
            nodemanager.DISK_HEALTH_CHECKER_INTERVAL.of(conf),
            nodemanager.DISK_HEALTH_CHECKER_ENABLE.of(conf),
            limits,
        )


class DiskChecker:
    """Checks a node's directories, and reports the node's health to its core.

    `now_ms` is the core's clock. `notice` is added to every health report.
    """

    def __init__(
        self,
        directories: NodeDirectories,
        settings: DiskSettings,
        send: Callable[[Event], None],
        now_ms: Callable[[], int],
        sampled: Callable[[str], DiskSample] | None = None,
        notice: str = "",
    ) -> None:
        """`sampled` returns the sample of a directory; if it is None, each directory is sampled by itself."""
        self._sampled = sampled or sample
        self._directories = directories
        self._settings = settings
        self._send = send
        self._now_ms = now_ms
        self._notice = notice

    def problem(self) -> str:
        """The health report if too few directories are good, else an empty text."""
        local, logs = self._directories.local_health, self._directories.log_health
        if not self._settings.enabled or is_healthy(local, logs, self._settings.limits):
            return ""
        return health_report(local, logs)

    def check(self) -> None:
        """Check all directories once, and create those that are missing."""
        if not self._settings.enabled:
            self._send(HealthChecked(NodeHealth(True, self._notice, self._now_ms())))
            return
        directories, limits = self._directories, self._settings.limits
        directories.local_health = check_directories(
            {path: self._sampled(path) for path in directories.local_dirs}, directories.local_health, limits
        )
        directories.log_health = check_directories(
            {path: self._sampled(path) for path in directories.log_dirs}, directories.log_health, limits
        )
        healthy = is_healthy(directories.local_health, directories.log_health, limits)
        report = _REPORTS_JOINED_BY.join(
            text for text in (health_report(directories.local_health, directories.log_health), self._notice) if text
        )
        self._send(HealthChecked(NodeHealth(healthy, report, self._now_ms())))


class DiskLoop:
    """Checks the disks of all nodes of a process. `checkers` returns the checkers of the nodes that still run."""

    def __init__(self, checkers: Callable[[], Sequence[DiskChecker]], interval_ms: int, shared: SharedSamples) -> None:
        self._checkers = checkers
        self._interval_s = interval_ms / 1000
        self._shared = shared

    async def run(self) -> None:
        """Check the disks at every interval."""
        while True:
            await asyncio.sleep(self._interval_s)
            self._shared.forget()
            for checker in self._checkers():
                checker.check()


class SharedSamples:
    """Samples of the parents of packed nodes' directories, so that one sample serves all nodes of the process."""

    def __init__(self) -> None:
        self._samples: dict[str, DiskSample] = {}

    def forget(self) -> None:
        self._samples.clear()

    def of(self, directory: str) -> DiskSample:
        """The sample of the parent of a packed node's directory."""
        shared = os.path.dirname(directory)
        if shared not in self._samples:
            self._samples[shared] = sample(shared)
        return self._samples[shared]


def sample(directory: str) -> DiskSample:
    """Check whether a directory can be created, entered and written, and measure the free space on its disk."""
    try:
        made = make_dir(directory, 0o755)
    except OSError as error:
        return DiskSample(f"Cannot create directory : {directory}, error {error.strerror}")
    if not os.path.isdir(directory):
        return DiskSample(f"Not a directory: {directory}")
    for right, name in ((os.R_OK, "readable"), (os.W_OK, "writable"), (os.X_OK, "executable")):
        if not os.access(directory, right):
            return DiskSample(f"Directory is not {name}: {directory}")
    try:
        # Permissions do not restrict root and do not show that a disk is mounted read-only, so write a file. If the
        # directory was just created, that was already a write.
        with nullcontext() if made else tempfile.TemporaryFile(dir=directory):
            stats = os.statvfs(directory)
    except OSError as error:
        return DiskSample(f"Error checking directory {directory}: {error.strerror}")
    return DiskSample("", stats.f_blocks * stats.f_frsize, stats.f_bavail * stats.f_frsize)
