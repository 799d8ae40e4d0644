"""Collects the logs of an ended application's containers in one file of the remote log directory.

    <remote>/<user>/bucket-<suffix>/<number>/<application>/<host>_<port>

The file is complete when it appears under this name. (LogAggregationService, AppLogAggregatorImpl with the policy that
all containers' logs are collected, LogAggregationTFileController.)
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import IO

from msgspec import Struct

from nm.core.effects import AggregateLogs
from nm.core.events import Event, LogsAggregated
from nm.launcher.directories import NodeDirectories, descend, make_dir
from wire.files.aggregated_logs import TEMPORARY, AggregatedLogWriter, LogPart, application_directory, node_file
from wire.files.full_disk import full_disk_named
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.settings import logs

ROOT_MODE = 0o1777
DIRECTORY_MODE = 0o770
FILE_MODE = 0o640
_READ_BYTES = 65535
"""As Hadoop reads, because the chunks of the file depend on it."""

_logger = logging.getLogger(f"yarnling.{__name__}")


class RemoteLogs(Struct, frozen=True):
    """The remote log directory, and the suffix after `bucket-` in the names of users' directories."""

    root: str
    suffix: str

    @staticmethod
    def read(conf: Configuration) -> RemoteLogs:
        return RemoteLogs(logs.remote_log_dir(conf), logs.log_dir_suffix(conf))


class LogAggregator:
    """Aggregates the logs of one node, each application's in a thread."""

    def __init__(
        self,
        node_id: NodeId,
        directories: NodeDirectories,
        remote: RemoteLogs,
        send: Callable[[Event], None],
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._node_id = node_id
        self._directories = directories
        self._remote = remote
        self._send = send
        self._tasks = tasks

    def aggregate(self, effect: AggregateLogs) -> None:
        """Aggregate the logs of an application; the answer is LogsAggregated."""
        self._tasks.create_task(self._aggregate(effect), name=f"aggregate-{effect.application_id}")

    async def _aggregate(self, effect: AggregateLogs) -> None:
        problem = ""
        try:
            path = await asyncio.to_thread(aggregate_logs, effect, self._node_id, self._directories, self._remote)
            _logger.info("aggregated logs application=%s file=%s", effect.application_id, path or "none: no logs")
        except OSError as error:
            problem = f"{error.strerror}: {error.filename}" if error.filename else str(error)
        self._send(LogsAggregated(effect.application_id, problem))


def aggregate_logs(effect: AggregateLogs, node_id: NodeId, directories: NodeDirectories, remote: RemoteLogs) -> str:
    """Write an application's file and return its path, "" without logs. On OSError a partial file is removed."""
    containers = _containers(directories, effect.application_id)
    if not containers:
        return ""
    make_dir(remote.root, ROOT_MODE)
    names = application_directory(effect.user, effect.application_id, remote.suffix)
    parent = _made(remote.root, names)
    directory = "/".join((remote.root, *names))
    try:
        name = node_file(node_id)
        if _exists(name, parent):
            # The node wrote a file before it restarted. Add another one: readers take all files of the directory.
            name = f"{name}_{time.time_ns() // 1_000_000}"
        with full_disk_named(f"{directory}/{name}"):
            _write(f"{name}{TEMPORARY}", parent, effect, directories, containers)
        os.rename(f"{name}{TEMPORARY}", name, src_dir_fd=parent, dst_dir_fd=parent)
    finally:
        os.close(parent)
    return f"{directory}/{name}"


def _containers(directories: NodeDirectories, application_id: ApplicationId) -> list[ContainerId]:
    """The containers with a log directory that is not empty."""
    found: set[ContainerId] = set()
    for root in directories.log_dirs:
        with suppress(OSError), directories.open(f"{root}/{application_id}") as parent:
            for name in os.listdir(parent):
                with suppress(YarnException, OSError):
                    container_id = ContainerId.parse(name)
                    with directories.open(f"{root}/{application_id}/{name}") as logs_fd:
                        if os.listdir(logs_fd):
                            found.add(container_id)
    return sorted(found)


def _made(root: str, names: Sequence[str]) -> int:
    """A descriptor of the directory `names` below the root; missing ones are made, each with DIRECTORY_MODE."""
    for count in range(1, len(names)):
        os.close(descend(root, names[:count], DIRECTORY_MODE))
    return descend(root, names, DIRECTORY_MODE)


def _exists(name: str, parent: int) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _write(
    name: str, parent: int, effect: AggregateLogs, directories: NodeDirectories, containers: Sequence[ContainerId]
) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(name, flags, FILE_MODE, dir_fd=parent), "wb") as file:
            os.fchmod(file.fileno(), FILE_MODE)
            writer = AggregatedLogWriter(file, effect.user, effect.acls)
            for container_id in containers:
                with ExitStack() as opened:
                    writer.add(container_id, _logs(directories, container_id, opened))
            writer.close()
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=parent)
        raise


def _logs(directories: NodeDirectories, container_id: ContainerId, opened: ExitStack) -> Iterator[LogPart]:
    """The files of a container, by log directory and name; not those in further directories, and no links."""
    for root in sorted(directories.log_dirs):
        try:
            parent = opened.enter_context(directories.open(f"{root}/{container_id.application_id}/{container_id}"))
        except OSError:
            continue
        for name in sorted(os.listdir(parent)):
            if (found := _opened(name, parent)) is not None:
                file, length = found
                with file:
                    # A name of other bytes than UTF-8 cannot be written as a text.
                    yield LogPart(name.encode(errors="replace").decode(), length, _content(file, length))


def _opened(name: str, parent: int) -> tuple[IO[bytes], int] | None:
    """A regular file of a container's log directory and its length; None for anything else, or if it cannot be read."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=parent)
    except OSError as error:
        _logger.warning("cannot aggregate log file=%s: %s", name, error.strerror)
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        return None
    return open(descriptor, "rb", buffering=0), status.st_size


def _content(file: IO[bytes], length: int) -> Iterator[bytes]:
    """Exactly `length` bytes of a file: without text that was added meanwhile, and with NULs if it was truncated."""
    left = length
    while left:
        part = file.read(_READ_BYTES)[:left] or bytes(min(left, _READ_BYTES))
        left -= len(part)
        yield part
