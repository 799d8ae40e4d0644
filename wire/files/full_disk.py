"""Reports a full disk with the path and what to do: the error of write(2) does not say which file it was."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

REMEDY = "free some space there"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_BY_DESCRIPTOR = "/proc/self/fd/"
"""The beginning of paths that are relative to an open directory, and say nothing to a reader."""


class DiskFull(OSError):
    """No space, or no quota, is left for a file. `filename` is set, and `strerror` ends with the remedy."""


@contextmanager
def full_disk_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """A context that writes to `path`, or below it. Raises DiskFull if that disk is full."""
    try:
        yield
    except DiskFull:
        raise
    except OSError as error:
        if error.errno not in _FULL:
            raise
        name = error.filename if isinstance(error.filename, str) else ""
        is_known = name.startswith("/") and not name.startswith(_BY_DESCRIPTOR)
        raise DiskFull(error.errno, f"{error.strerror} ({REMEDY})", name if is_known else os.fspath(path)) from None
