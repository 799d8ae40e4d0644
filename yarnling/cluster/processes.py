"""The processes of a cluster: how to find them by ancestry or by the cluster's directory, and how to end them."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import psutil
from msgspec import Struct

from yarn.errors import YarnException

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CONTAINER_VARIABLES = (b"LOCAL_DIRS=", b"LOG_DIRS=", b"HADOOP_TOKEN_FILE_LOCATION=")
LOCK_FILE = "cluster.lock"
"""The lock file in the directory of every cluster (yarnling.cluster.directory)."""
DAEMON_MODULES = (b"yarnling.cluster.fork_server", b"rm", b"nm")
_LIBC = ctypes.CDLL(None, use_errno=True)
POLL_S = 0.01
"""The interval, in seconds, between two checks whether killed processes have ended; the kernel needs about a
millisecond."""
START_TOLERANCE_S = 0.02
"""The difference, in seconds, that two readings of a process's start time may have: a clock tick."""
ORPHAN_GRACE_S = 2.0
"""The time, in seconds, the daemons of a dead cluster may take to end by themselves. Their fork server ends them in
order when its owner has died. After an orderly end, applications resume without waiting for the expiry of their AMs."""
KILL_TIMEOUT_S = 1.0
KILL_ROUNDS_MAX = 20
"""The limit on rounds of killing orphans. Each round kills those that were forked during the previous one."""


class ProcessIdentity(Struct, frozen=True):
    """Identifies a process, even if its id is reused later. `started` is its start time in seconds since the epoch."""

    pid: int
    started: float

    @staticmethod
    def of(pid: int) -> ProcessIdentity:
        """The identity of process `pid`. Raises psutil.NoSuchProcess if there is no such process."""
        return ProcessIdentity(pid, psutil.Process(pid).create_time())

    @staticmethod
    def of_one_that_may_be_gone(pid: int) -> ProcessIdentity:
        """The identity of process `pid`; if the process has ended, an identity that no process has."""
        try:
            return ProcessIdentity.of(pid)
        except psutil.NoSuchProcess:
            return ProcessIdentity(pid, 0.0)

    def process(self) -> psutil.Process | None:
        """The process with this identity; None if it has ended."""
        try:
            found = psutil.Process(self.pid)
            same = abs(found.create_time() - self.started) <= START_TOLERANCE_S
            return found if same and found.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent `parent_pid` ends. Exit now if the parent has ended.

    The kernel watches the thread that forked: it must not end before the parent does, as when it is the only one.
    """
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none can escape by forking twice."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def thread_count() -> int:
    """The number of threads of this process that the kernel counts, including those that Python did not start."""
    return len(os.listdir("/proc/self/task"))


def descendants(pid: int) -> list[psutil.Process]:
    """The descendants of process `pid`; empty if it has ended."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def kill_with_descendants(pid: int) -> None:
    """Kill a process, and then its descendants. In this order the process cannot report the end of its descendants."""
    below = descendants(pid)
    for process in (*_alive([pid]), *below):
        kill(process)
        below += [late for late in descendants(process.pid) if late not in below]


def kill(process: psutil.Process) -> None:
    """Send SIGKILL, unless the process has ended or belongs to another user."""
    try:
        process.kill()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return


def those_that_name(*directories: Path) -> list[psutil.Process]:
    """The containers and daemons that were started with a path in one of these directories, except this process.

    A container is recognised by the variables that its NodeManager set, a daemon by its command line. Other programs
    that name the directory, for example a shell or an editor, are not returned.
    """
    return [
        process
        for process in psutil.process_iter()
        if process.pid != os.getpid() and (_is_container(process, directories) or _is_daemon(process, directories))
    ]


def those_of_cluster(*directories: Path) -> list[psutil.Process]:
    """The processes of the cluster with these directories. A cluster in a directory below them is not included."""
    return [process for process in those_that_name(*directories) if _is_of_cluster(process, directories)]


def daemons_of_cluster(*directories: Path) -> list[psutil.Process]:
    """The fork server, the ResourceManager and the NodeManagers of the cluster with these directories."""
    return [process for process in those_of_cluster(*directories) if _is_daemon(process, directories)]


def wait_gone(processes: Iterable[psutil.Process], timeout_s: float) -> list[psutil.Process]:
    """Wait until the processes have ended. Returns those that have not. A zombie counts as ended."""
    deadline = time.monotonic() + timeout_s
    rest = [process for process in processes if _lives(process)]
    while rest and time.monotonic() < deadline:
        time.sleep(POLL_S)
        rest = [process for process in rest if _lives(process)]
    return rest


def end_orphans(directories: Iterable[Path], others: Iterable[ProcessIdentity] = ()) -> int:
    """End the daemons and containers of a cluster whose owner has died. Returns how many had to be killed.

    The fork server ends when its owner ends, and the daemons end with it. Remaining containers are found by the
    variables that their NodeManager set. `others` are further processes of the cluster. The caller must hold the lock
    of the cluster's directory. Raises YarnException if a process does not end.
    """
    directories, others = tuple(directories), tuple(others)
    wait_gone(daemons_of_cluster(*directories), ORPHAN_GRACE_S)
    killed: set[int] = set()
    for _ in range(KILL_ROUNDS_MAX):
        known = [process for other in others if (process := other.process()) is not None]
        orphans = [*those_of_cluster(*directories), *known]
        if not orphans:
            break
        for orphan in orphans:
            kill(orphan)
        if survivors := wait_gone(orphans, KILL_TIMEOUT_S):
            raise YarnException(f"processes {', '.join(str(left.pid) for left in survivors)} did not end (kill them)")
        killed |= {process.pid for process in orphans}
    return len(killed)


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
    """True if the process names a path in one of the directories that is not in another cluster's
    directory below it.
    """
    entries = [entry for entry in _parts(process, "environ") if entry.startswith(CONTAINER_VARIABLES)]
    paths = [
        Path(os.fsdecode(text))
        for entry in (*_parts(process, "cmdline"), *entries)
        for text in entry.rpartition(b"=")[2].split(b",")
        if text.startswith(b"/")
    ]
    return any(_is_without_lock(path, directory) for path in paths for directory in directories)


def _is_without_lock(path: Path, directory: Path) -> bool:
    """True if `path` is in `directory`, and no directory from there down to `path` has a cluster's lock file."""
    if not path.is_relative_to(directory):
        return False
    between = path.relative_to(directory).parts
    return not any(directory.joinpath(*between[:depth], LOCK_FILE).exists() for depth in range(1, len(between) + 1))


def _parts(process: psutil.Process, file: str) -> list[bytes]:
    """The entries of a /proc file of the process; empty if the process has ended or belongs to another user."""
    try:
        return Path(f"/proc/{process.pid}/{file}").read_bytes().split(b"\0")
    except OSError:
        return []


def _prctl(option: int, argument: int) -> None:
    if _LIBC.prctl(option, ctypes.c_ulong(argument), 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"prctl({option}, {argument}): {os.strerror(error)}")
