"""A file that a ResourceManager keeps locked as long as its process lives, so that others see at once when it ends.

The kernel releases the lock when the process ends, however that happens; that of a stopped process is kept. It is a
lock of the whole file (flock), so it also works between processes that do not see each other's process ids. The file
has the process id, so that one that hangs within a transaction of the state store can be ended.
"""

from __future__ import annotations

import fcntl
import os
import signal
from contextlib import suppress
from pathlib import Path

from yarn.errors import YarnException

_PID_BYTES_MAX = 10


class LivenessLock:
    """The lock of one ResourceManager. Its methods do not block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def take(self) -> None:
        """Lock the file. Raises YarnException if another process has locked it."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise YarnException(
                f"{self._path}: another ResourceManager has this id (end that one, or give each its own id)"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Unlock the file; again is a no-op."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def is_locked(path: Path) -> bool:
    """True if a living process has locked the file; a file that does not exist is not locked."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # A shared lock: two that look at once do not see each other.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def kill_holder(path: Path, lockers: frozenset[int]) -> bool:
    """Kill the process that has locked the file, if it is one of `lockers`. False if it is not, or has ended.

    A locked file has the id of a living process, and the descriptor of that process keeps its id from being reused.
    """
    pid = _pid_in(path)
    if pid is None or pid not in lockers or pid == os.getpid():
        return False
    with suppress(ProcessLookupError):
        process = os.pidfd_open(pid)
        try:
            if is_locked(path) and _pid_in(path) == pid:
                signal.pidfd_send_signal(process, signal.SIGKILL)
                return True
        finally:
            os.close(process)
    return False


def lockers_of(path: Path) -> frozenset[int]:
    """The ids of the processes that have locked a part of the file, as SQLite does in a transaction (fcntl).

    From /proc/locks: `1: POSIX  ADVISORY  WRITE 4711 fe:00:123456 1073741825 1073741825`, the inode is 123456.
    """
    inode = str(path.stat().st_ino)
    fields = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return frozenset(
        int(found[4]) for found in fields if found[1] == "POSIX" and len(found) == 8 and found[5].split(":")[2] == inode
    )


def _pid_in(path: Path) -> int | None:
    try:
        text = path.read_bytes()[:_PID_BYTES_MAX]
    except FileNotFoundError:
        return None
    return int(text) if text.isdigit() else None
