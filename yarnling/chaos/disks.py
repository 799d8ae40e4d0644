"""Small disks that can be filled: file systems in memory, seen by this process and what it starts, and by nobody else.

They are mounted in a mount namespace of the run's own, so that none is left however it ends. Only root may do that; a
run that wants such a disk and cannot have one tells nothing of the product.
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


class NoDisk(YarnException):
    """This process may not have a file system of its own; the text says what would."""


class SmallDisk:
    """A file system of SIZE_BYTES at a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def mount(self) -> None:
        """Raises NoDisk. Call `own_mounts` before."""
        self.directory.mkdir(parents=True, exist_ok=True)
        _call("mount", b"tmpfs", os.fsencode(self.directory), b"tmpfs", 0, f"size={SIZE_BYTES},mode=0755".encode())

    def fill(self) -> None:
        """Leave no byte free. Raises NoDisk, with nothing left, if this is another file system.

        A thread that is older than `own_mounts` sees what is below: the disk of the machine, which others use.
        """
        try:
            with (self.directory / FILLER).open("ab", buffering=0) as file:
                for chunk in (_CHUNK, b"\0"):
                    self._write_until_full(file, chunk)
        except NoDisk:
            self.empty()
            raise

    def _write_until_full(self, file: io.FileIO, chunk: bytes) -> None:
        try:
            while file.write(chunk) == len(chunk):
                if file.tell() > SIZE_BYTES:
                    raise NoDisk(f"{self.directory} is no disk of {SIZE_BYTES} bytes: it took more")
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise

    def empty(self) -> None:
        (self.directory / FILLER).unlink(missing_ok=True)

    def unmount(self) -> None:
        """As soon as nobody uses it."""
        _call("umount2", os.fsencode(self.directory), 2)


def own_mounts() -> None:
    """From now on, what this thread and what it starts mount is seen by them alone. Raises NoDisk."""
    _call("unshare", _CLONE_NEWNS)
    _call("mount", None, b"/", None, _MS_REC | _MS_PRIVATE, None)


def _call(function: str, *arguments: bytes | int | None) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    if getattr(libc, function)(*given) != 0:
        raise NoDisk(
            f"a disk that can be full needs a mount of its own: {os.strerror(ctypes.get_errno())} "
            f"(run as root, or below `unshare --user --map-root-user --mount`)"
        )
