"""Small file systems in memory that can be filled, visible only to this process and its children.

They are mounted in a mount namespace of the run's own, so none is left behind however the run ends. That requires root;
a run that needs such a disk and cannot mount one ends with the verdict "cannot tell".
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
    """This process may not mount a file system; the message says what would allow it."""


class SmallDisk:
    """A file system of SIZE_BYTES at a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def mount(self) -> None:
        """Raises DiskUnavailable. Call `enter_mount_namespace` first."""
        self.directory.mkdir(parents=True, exist_ok=True)
        _call("mount", b"tmpfs", os.fsencode(self.directory), b"tmpfs", 0, f"size={SIZE_BYTES},mode=0755".encode())

    def fill(self) -> None:
        """Fill it to the last byte. Raises DiskUnavailable, and removes the filler, if this is another file system.

        A thread started before `enter_mount_namespace` sees the machine's own disk here, which must not be filled.
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
                    raise DiskUnavailable(f"{self.directory} is not a disk of {SIZE_BYTES} bytes: it took more")
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise

    def empty(self) -> None:
        (self.directory / FILLER).unlink(missing_ok=True)

    def unmount(self) -> None:
        """Detach it; it disappears once unused."""
        _call("umount2", os.fsencode(self.directory), 2)


def enter_mount_namespace() -> None:
    """Make later mounts visible only to this thread and what it starts. Raises DiskUnavailable."""
    _call("unshare", _CLONE_NEWNS)
    _call("mount", None, b"/", None, _MS_REC | _MS_PRIVATE, None)


def _call(function: str, *arguments: bytes | int | None) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    if getattr(libc, function)(*given) != 0:
        raise DiskUnavailable(
            f"a disk that can be filled needs a mount of its own: {os.strerror(ctypes.get_errno())} "
            f"(run as root, or under `unshare --user --map-root-user --mount`)"
        )
