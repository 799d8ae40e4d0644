"""Processes: who descends from whom, who works in a cluster's directory, and how they are ended for good."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CONTAINER_VARIABLES = (b"LOCAL_DIRS=", b"LOG_DIRS=", b"HADOOP_TOKEN_FILE_LOCATION=")
LOCK_FILE = "cluster.lock"
"""In the directory of every cluster (yarnling.cluster.directory)."""
DAEMON_MODULES = (b"yarnling.cluster.fork_server", b"rm", b"nm")
_LIBC = ctypes.CDLL(None, use_errno=True)
LINGER_S = 0.01
"""Between two looks at processes that were killed: the kernel takes about a millisecond for one."""


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when `parent_pid`, its parent, ends; exit now if that has happened.

    It watches the thread that forked: only for children of a process of one thread.
    """
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends: none can get away by forking twice."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def thread_count() -> int:
    """The threads of this process as the kernel counts them, not only those that Python started."""
    return len(os.listdir("/proc/self/task"))


def descendants(pid: int) -> list[psutil.Process]:
    """The processes below `pid`; empty if it is gone."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def kill_with_descendants(pid: int) -> None:
    """Kill a process and then all that were below it, so that it cannot tell anybody of their end."""
    below = descendants(pid)
    for process in (*_alive([pid]), *below):
        kill(process)
        below += [late for late in descendants(process.pid) if late not in below]


def kill(process: psutil.Process) -> None:
    """SIGKILL, if it is still the same process and ours."""
    try:
        process.kill()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return


def those_that_name(*directories: Path) -> list[psutil.Process]:
    """The containers and daemons of ours, but this process, that were started with something in these directories.

    A container's environment always tells, whatever it has done to its session. A shell or an editor that works there
    is no container: its variables and words may name the directory too.
    """
    return [
        process
        for process in psutil.process_iter()
        if process.pid != os.getpid() and (_is_container(process, directories) or _is_daemon(process, directories))
    ]


def those_of_cluster(*directories: Path) -> list[psutil.Process]:
    """Those of the cluster that keeps its files in these directories, without those of a cluster further below."""
    return [process for process in those_that_name(*directories) if _is_of_cluster(process, directories)]


def daemons_of_cluster(*directories: Path) -> list[psutil.Process]:
    """The fork server, the ResourceManager and the NodeManagers among them."""
    return [process for process in those_of_cluster(*directories) if _is_daemon(process, directories)]


def wait_gone(processes: Iterable[psutil.Process], timeout_s: float) -> list[psutil.Process]:
    """Wait until they have ended; those that have not. A process nobody has reaped counts as ended."""
    deadline = time.monotonic() + timeout_s
    rest = [process for process in processes if _lives(process)]
    while rest and time.monotonic() < deadline:
        time.sleep(LINGER_S)
        rest = [process for process in rest if _lives(process)]
    return rest


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _alive(pids: Iterable[int]) -> list[psutil.Process]:
    alive: list[psutil.Process] = []
    for pid in pids:
        try:
            alive.append(psutil.Process(pid))
        except psutil.NoSuchProcess:
            continue
    return alive


def _is_container(process: psutil.Process, directories: Iterable[Path]) -> bool:
    given = b"\0".join(entry for entry in _parts(process, "environ") if entry.startswith(CONTAINER_VARIABLES))
    return any(os.fsencode(f"{directory}/") in given for directory in directories)


def _is_daemon(process: psutil.Process, directories: Iterable[Path]) -> bool:
    words = _parts(process, "cmdline")
    return any(module in words for module in DAEMON_MODULES) and any(
        word == os.fsencode(directory) or os.fsencode(f"{directory}/") in word
        for directory in directories
        for word in words
    )


def _is_of_cluster(process: psutil.Process, directories: Iterable[Path]) -> bool:
    """Whether it names a path in one of the directories that is not in the directory of another cluster below that."""
    entries = [entry for entry in _parts(process, "environ") if entry.startswith(CONTAINER_VARIABLES)]
    paths = [
        Path(os.fsdecode(text))
        for entry in (*_parts(process, "cmdline"), *entries)
        for text in entry.rpartition(b"=")[2].split(b",")
        if text.startswith(b"/")
    ]
    return any(_is_without_lock(path, directory) for path in paths for directory in directories)


def _is_without_lock(path: Path, directory: Path) -> bool:
    """Whether `path` is in `directory`, and neither it nor a directory between the two is that of a cluster."""
    if not path.is_relative_to(directory):
        return False
    between = path.relative_to(directory).parts
    return not any(directory.joinpath(*between[:depth], LOCK_FILE).exists() for depth in range(1, len(between) + 1))


def _parts(process: psutil.Process, file: str) -> list[bytes]:
    """What the process was started with; nothing if it has gone or is somebody else's."""
    try:
        return Path(f"/proc/{process.pid}/{file}").read_bytes().split(b"\0")
    except OSError:
        return []


def _prctl(option: int, argument: int) -> None:
    if _LIBC.prctl(option, ctypes.c_ulong(argument), 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"prctl({option}, {argument}): {os.strerror(error)}")
