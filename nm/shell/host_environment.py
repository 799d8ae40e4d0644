"""The machine of a NodeManager process: hardware, Java, addresses, directories."""

from __future__ import annotations

import fcntl
import logging
import os
import random
import re
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from nm.core.settings import Hardware
from nm.launcher.deletion import TreeDeleter
from nm.launcher.directories import FILECACHE, NM_PRIVATE, PLAIN_MODE, USERCACHE, NodeDirectories, make_dir
from nm.launcher.processes import kill_orphans
from nm.launcher.unknown_files import move_unknown_aside
from wire.address import Address
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.ids import ContainerId
from yarn.settings import nodemanager

if TYPE_CHECKING:
    from nm.shell.stored_node import StoredNode

LOCK = ".nm.lock"

_JAVA_RELEASE_BYTES_MAX = 64 * 1024
"""The size limit of the `release` file of a JDK, which lists its modules in a few kilobytes."""
_JAVA_VERSION = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d{1,4})\b', re.MULTILINE)
_LEVELS_TO_JAVA_HOME = 3
"""The number of directories between `java` and its home: `java` is in <home>/bin, in Java 8 also in <home>/jre/bin."""

_logger = logging.getLogger(f"yarnling.{__name__}")


class DirectoriesInUse(YarnException):
    """Another NodeManager uses one of the directories."""


class HostEnvironment:
    """The addresses and directories of the nodes of a process.

    `directories` is {host: directories of the node on that host}; only a pack has several hosts. AMs call a node at its
    host, which is part of its node id. The first node may listen on another address, `listening` (buildNodeId). Call
    `lock_directories` before a node uses its directories, and `close` at the end. `stored` is {host: what an earlier
    NodeManager has stored of the node}, empty without recovery.
    """

    def __init__(self, conf: Configuration, directories: Mapping[str, NodeDirectories], listening: Address) -> None:
        self.conf = conf
        self.directories = directories
        self.hosts = tuple(directories)
        self.listening = listening
        self.deleter = TreeDeleter()
        self.local_dirs = tuple(os.path.abspath(directory) for directory in nodemanager.LOCAL_DIRS.of(conf))
        self._locks: list[int] = []
        self._started_before: dict[str, tuple[ContainerId, ...]] = {}
        self.stored: dict[str, StoredNode] = {}

    @staticmethod
    def of_one_node(conf: Configuration) -> HostEnvironment:
        """The environment of a process with one node, which uses the configured directories."""
        address = Address.read(conf, nodemanager.ADDRESS)
        bind_host = nodemanager.BIND_HOST.maybe_of(conf)
        listening = Address(bind_host, address.port, nodemanager.BIND_HOST.key) if bind_host else address
        directories = NodeDirectories(nodemanager.LOCAL_DIRS.of(conf), nodemanager.LOG_DIRS.of(conf), random.Random())
        return HostEnvironment(conf, {address.host: directories}, listening)

    @property
    def is_pack(self) -> bool:
        return len(self.hosts) > 1

    def started_before(self, host: str) -> tuple[ContainerId, ...]:
        """The containers that an earlier NodeManager started in the directories of the node on `host`."""
        return self._started_before.get(host, ())

    def lock_directories(self) -> None:
        """Lock the local directories for this process, and remove what an earlier NodeManager left in them.

        Processes of the earlier NodeManager are killed and its files deleted, except those that it has stored for
        recovery. Hadoop's NodeManager lets such processes run, while the RM assumes that a registering node is empty
        and fills it a second time. Raises DirectoriesInUse, and YarnException for a store that cannot be used.
        """
        for local in self.local_dirs:
            _make_local_dir(local)
        self._locks = lock_directories(self.local_dirs)
        if nodemanager.RECOVERY_ENABLED.of(self.conf):
            self._open_stores()
        spared = {container_id for stored in self.stored.values() for container_id in stored.containers}
        has_private_files = False
        for host, directories in self.directories.items():
            if any(_entries(f"{local}/{NM_PRIVATE}") for local in directories.local_dirs):
                has_private_files = True
                if host not in self.stored or self.stored[host].is_new:
                    self._started_before[host] = started_containers(directories.local_dirs)
        if has_private_files:
            for process in kill_orphans(self.local_dirs, spared):
                _logger.warning("killed a process that an earlier NodeManager left pid=%d", process.pid)
        for host, directories in self.directories.items():
            for path in self._move_aside(host, directories):
                self.deleter.delete_tree(os.path.dirname(path), path)

    def close(self) -> None:
        """Release the locks."""
        for descriptor in self._locks:
            os.close(descriptor)
        self._locks = []
        for stored in self.stored.values():
            stored.store.close()

    def _open_stores(self) -> None:
        """Open the recovery store of each node, and read it."""
        # Imported here: few NodeManagers recover, and every other one would have SQLite in its memory.
        from nm.shell.stored_node import StoredNode

        port = self.listening.port
        if port == 0:
            raise YarnException(
                f"{nodemanager.RECOVERY_ENABLED.key} = true: Cannot support recovery with an ephemeral server port: "
                f"the node would come back as another one (give {nodemanager.ADDRESS.key} a port)"
            )
        directory = Path(nodemanager.RECOVERY_DIR.of(self.conf))
        for host, directories in self.directories.items():
            self.stored[host] = StoredNode.open(directory / host if self.is_pack else directory, directories)

    def _move_aside(self, host: str, directories: NodeDirectories) -> list[str]:
        if host not in self.stored:
            return move_stale_aside(directories.local_dirs)
        return move_unknown_aside(directories, self.stored[host].state)


def lock_directories(local_dirs: Iterable[str]) -> list[int]:
    """Lock directories for this process.

    Returns descriptors that hold the locks until they are closed or the process ends. The locks keep a second
    NodeManager, started by mistake with the same directories, from killing the containers of the first. Raises
    DirectoriesInUse, and locks no directory, if another process has locked one of them.
    """
    held: list[int] = []
    for directory in local_dirs:
        try:
            descriptor = os.open(f"{directory}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            # The disk cannot be written, so the disk checker will exclude this directory.
            continue
        held.append(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            for locked in held:
                os.close(locked)
            raise DirectoriesInUse(
                f"yarn.nodemanager.local-dirs: another NodeManager uses {directory} "
                "(stop it, or give this one directories of its own)"
            ) from None
    return held


def started_containers(local_dirs: Iterable[str]) -> tuple[ContainerId, ...]:
    """The containers whose private directories an earlier NodeManager has left behind, ordered by id."""
    started: set[ContainerId] = set()
    for directory in local_dirs:
        for path in Path(directory, NM_PRIVATE).glob("application_*/container_*"):
            with suppress(YarnException):
                started.add(ContainerId.parse(path.name))
    return tuple(sorted(started))


def move_stale_aside(local_dirs: Iterable[str]) -> list[str]:
    """Rename the caches and work directories of an earlier NodeManager. Returns the new paths, which are to be deleted.

    A rename is quick, so the node can register before the files are deleted
    (ResourceLocalizationService.cleanUpLocalDirs; ContainerManagerImpl without recovery).
    """
    stale: list[str] = []
    stamp = time.time_ns()
    for directory in local_dirs:
        for name in _entries(directory):
            if name in (FILECACHE, USERCACHE, NM_PRIVATE):
                aside = f"{directory}/{name}_DEL_{stamp}"
                with suppress(OSError):
                    os.rename(f"{directory}/{name}", aside)
                    stale.append(aside)
            elif name.startswith((f"{FILECACHE}_DEL_", f"{USERCACHE}_DEL_", f"{NM_PRIVATE}_DEL_")):
                stale.append(f"{directory}/{name}")
    return stale


@cache
def hardware() -> Hardware:
    """The machine's memory and processors, read once (by the fork server for all NodeManagers that it forks)."""
    threads = psutil.cpu_count() or 1
    return Hardware(psutil.virtual_memory().total >> 20, psutil.cpu_count(logical=False) or threads, threads)


def java_version(environ: Mapping[str, str]) -> int:
    """The major version (8, 17) of the Java in JAVA_HOME, else of `java` in PATH; 0 if it is not known.

    A Hadoop NodeManager with these variables would run in this Java, and so do containers unless their AM sets another
    JAVA_HOME. The version is read from the file `release` in the Java home, because running `java` would take longer
    than a node's start.
    """
    home = environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java", path=environ.get("PATH", os.defpath))
    if java is None:
        return 0
    directory = os.path.realpath(java)
    for _ in range(_LEVELS_TO_JAVA_HOME):
        directory = os.path.dirname(directory)
        version = _java_version_in(os.path.join(directory, "release"))
        if version:
            return version
    return 0


def _java_version_in(release: str) -> int:
    try:
        with open(release, encoding="utf-8", errors="replace") as file:
            found = _JAVA_VERSION.search(file.read(_JAVA_RELEASE_BYTES_MAX))
    except OSError:
        return 0
    return int(found[1]) if found else 0


def _make_local_dir(local: str) -> None:
    """Make a local directory. If that fails, the disk checker excludes it and the health report names it."""
    try:
        make_dir(local, PLAIN_MODE)
    except OSError as error:
        _logger.warning("cannot use local directory=%s: %s", local, error.strerror)


def _entries(directory: str) -> Sequence[str]:
    """The names in a directory, sorted; empty if the directory cannot be read."""
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return ()
