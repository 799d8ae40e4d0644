"""A file that a ResourceManager keeps locked as long as its process lives, so that others see at once when it ends.

The kernel releases the lock when the process ends, however that happens; that of a stopped process is kept. It is a
lock of the whole file (flock), so it also works between processes that do not see each other's process ids.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from yarn.errors import YarnException


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
