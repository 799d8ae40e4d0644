"""Small file systems in memory, visible only to this process and its children, that a fault can fill.

The file systems are mounted in a mount namespace of the run, so none is left behind, however the run ends. Mounting
requires root. A run that needs such a disk and cannot mount one ends with the verdict "cannot tell".
"""

from __future__ import annotations

import ctypes
import errno
import io
import os
from pathlib import Path

from yarn.errors import YarnException

SIZE_BYTES = 32 << 20
FILLER = "filler"
_CLONE_NEWNS = 0x00020000
_MS_REC, _MS_PRIVATE = 0x4000, 1 << 18
_CHUNK = b"\0" * (1 << 20)


class DiskUnavailable(YarnException):
    """This process may not mount a file system. The message says what would allow it."""


class SmallDisk:
    """A file system of SIZE_BYTES that is mounted at a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def mount(self) -> None:
        """Mount the file system. Call `enter_mount_namespace` first. Raises DiskUnavailable."""
        self.directory.mkdir(parents=True, exist_ok=True)
        _call("mount", b"tmpfs", os.fsencode(self.directory), b"tmpfs", 0, f"size={SIZE_BYTES},mode=0755".encode())

    def fill(self) -> None:
        """Fill the file system to the last byte.

        A thread that was started before `enter_mount_namespace` sees the machine's own disk in this place, which must
        not be filled. In that case, the filler file is removed and DiskUnavailable is raised.
        """
        try:
            with (self.directory / FILLER).open("ab", buffering=0) as file:
                for chunk in (_CHUNK, b"\0"):
                    self._write_until_full(file, chunk)
        except DiskUnavailable:
            self.empty()
            raise

    def _write_until_full(self, file: io.FileIO, chunk: bytes) -> None:
        try:
            while file.write(chunk) == len(chunk):
                if file.tell() > SIZE_BYTES:
                    raise DiskUnavailable(
                        f"{self.directory} is larger than the small disk that belongs there ({SIZE_BYTES} bytes)"
                    )
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise

    def empty(self) -> None:
        (self.directory / FILLER).unlink(missing_ok=True)

    def unmount(self) -> None:
        """Detach the file system; the kernel removes it once it is unused."""
        _call("umount2", os.fsencode(self.directory), 2)


def enter_mount_namespace() -> None:
    """Make later mounts visible only to this thread and to processes that it starts. Raises DiskUnavailable."""
    _call("unshare", _CLONE_NEWNS)
    _call("mount", None, b"/", None, _MS_REC | _MS_PRIVATE, None)


def _call(function: str, *arguments: bytes | int | None) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    if getattr(libc, function)(*given) != 0:
        raise DiskUnavailable(
            f"cannot mount a small disk for this fault: {os.strerror(ctypes.get_errno())} "
            f"(run as root, or under `unshare --user --map-root-user --mount`)"
        )
