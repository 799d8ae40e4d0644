"""Traces of a cluster's containers on this machine: log files and, while they run, processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import psutil
from msgspec import Struct

from wire.files.aggregated_logs import (
    TEMPORARY,
    AggregatedLog,
    application_directory,
    read_aggregated_logs,
    read_content,
)
from yarn.configuration import Configuration
from yarn.errors import InvalidIdException
from yarn.ids import ApplicationId, ContainerId
from yarn.settings import logs
from yarnling.cluster.processes import descendants

T = TypeVar("T")

TEXT_LENGTH_MAX = 16 * 1024 * 1024
"""The number of bytes that are read from one log file at most; a log may have any size."""

NO_OUTPUT = frozenset({"launch_container.sh", "directory.info", "prelaunch.out"})
"""Files that the NodeManager writes to help debug a launch."""


class ContainerLog(Struct, frozen=True):
    """A log file of a container, for example its stdout."""

    container_id: ContainerId
    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def log_dir(self) -> Path:
        """The log directory of the node, which has a directory for each application."""
        return self.path.parents[2]

    @property
    def size(self) -> int:
        """Its length in bytes now; it may grow."""
        return self.path.stat().st_size

    @property
    def modified_ms(self) -> int:
        """The time of the last write; of an aggregated log, the time of its aggregation, as in Hadoop."""
        return int(self.path.stat().st_mtime * 1000)

    @property
    def is_aggregated(self) -> bool:
        return False

    @property
    def is_output(self) -> bool:
        """True for output of the container: not for the NodeManager's own files, nor for an empty prelaunch.err."""
        if self.name == "prelaunch.err":
            return self.size > 0
        return self.name not in NO_OUTPUT

    def text(self, bytes_max: int = TEXT_LENGTH_MAX) -> str:
        """The last `bytes_max` bytes of the file as text. Bytes that are not UTF-8 are replaced."""
        return self.read(max(0, self.size - bytes_max), bytes_max).decode(errors="replace")

    def read(self, start: int, bytes_max: int = -1) -> bytes:
        """The bytes from `start` on, at most `bytes_max` of them unless that is negative."""
        with self.path.open("rb") as file:
            file.seek(start)
            return file.read(bytes_max)


class AggregatedContainerLog(ContainerLog, frozen=True):
    """A log file in the aggregated log at `path`, which was written by the node in its name."""

    log: AggregatedLog

    @property
    def name(self) -> str:
        return self.log.name

    @property
    def size(self) -> int:
        return self.log.length

    @property
    def is_aggregated(self) -> bool:
        return True

    @property
    def node(self) -> str:
        """The node as Hadoop prints it: host_port."""
        return self.path.name

    def read(self, start: int, bytes_max: int = -1) -> bytes:
        with self.path.open("rb") as file:
            data = b"".join(read_content(file, self.log, start))
        return data if bytes_max < 0 else data[:bytes_max]


def find_aggregated_logs(conf: Configuration, app_id: ApplicationId) -> list[AggregatedContainerLog]:
    """The files in the application's aggregated logs, by container and name; none without log aggregation.

    Raises InvalidArgumentException if one of them cannot be read.
    """
    if not logs.AGGREGATION_ENABLED.of(conf):
        return []
    names = application_directory("*", app_id, logs.log_dir_suffix(conf))
    found: list[AggregatedContainerLog] = []
    for path in Path(logs.remote_log_dir(conf)).glob("/".join(names) + "/*"):
        # Hadoop's own nodes leave checksums in hidden files.
        if path.suffix == TEMPORARY or path.name.startswith(".") or not path.is_file() or path.is_symlink():
            continue
        with path.open("rb") as file:
            found += (AggregatedContainerLog(log.container_id, path, log) for log in read_aggregated_logs(file))
    return sorted(found, key=lambda log: (log.container_id, log.name))


def find_logs(log_dirs: Iterable[Path], app_id: ApplicationId) -> list[ContainerLog]:
    """The files `<log dir>/<application>/<container>/<file>` of all directories, sorted by container and name."""
    found: list[ContainerLog] = []
    for log_dir in log_dirs:
        for directory in _entries(log_dir / str(app_id)):
            container_id = _container_id(directory.name)
            if container_id is not None:
                files = [path for path in _entries(directory) if path.is_file() and not path.is_symlink()]
                found.extend(ContainerLog(container_id, path) for path in files)
    return sorted(found, key=lambda log: (log.container_id, log.name))


def _entries(directory: Path) -> list[Path]:
    """The entries of a directory; none if the NodeManager has deleted it."""
    try:
        return list(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def find_all_logs(log_dirs: Iterable[Path], conf: Configuration, app_id: ApplicationId) -> list[ContainerLog]:
    """Local files, and those that are aggregated already, once each."""
    # The local ones first: a node deletes them once they are aggregated.
    found = find_logs(log_dirs, app_id)
    aggregated = {(log.container_id, log.name): log for log in find_aggregated_logs(conf, app_id)}
    local = [log for log in found if (log.container_id, log.name) not in aggregated]
    return sorted((*local, *aggregated.values()), key=lambda log: (log.container_id, log.name))


def read_log(
    log: ContainerLog, find: Callable[[], Iterable[ContainerLog]], read: Callable[[ContainerLog], T]
) -> T | None:
    """The result of `read` for a log; None if the log is gone.

    A node deletes a local log once it is aggregated. Then `find` is called, and the log of the same name is read.
    """
    try:
        return read(log)
    except FileNotFoundError:
        same = (each for each in find() if (each.container_id, each.name) == (log.container_id, log.name))
        return next(map(read, same), None)


def processes_of(container_id: ContainerId, below: int | None = None) -> list[psutil.Process]:
    """The processes of a container, found by the variable CONTAINER_ID that YARN sets in each of them.

    If `below` is given, only the descendants of this process id are searched, for example of a cluster's fork server.
    """
    wanted = f"CONTAINER_ID={container_id}".encode()
    processes = psutil.process_iter() if below is None else descendants(below)
    return [process for process in processes if wanted in _environment(process)]


def _container_id(name: str) -> ContainerId | None:
    try:
        return ContainerId.parse(name)
    except InvalidIdException:
        return None


def _environment(process: psutil.Process) -> list[bytes]:
    """The environment that the process was started with; empty if the process has ended."""
    try:
        return Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
