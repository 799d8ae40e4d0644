"""Sockets in the file system: for their owner alone, and at paths of any length."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path


def bound(path: Path) -> socket.socket:
    """A socket there, for its owner alone; what a killed process has left is replaced. Raises OSError."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_name(path) as short:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(short)
            listening.bind(short)
            os.chmod(short, 0o600)
    except OSError:
        listening.close()
        raise
    return listening


@contextlib.contextmanager
def short_name(path: Path) -> Iterator[str]:
    """A name of the file that is short enough for the address of a socket, which may have 107 bytes."""
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)
