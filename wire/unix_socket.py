"""Unix sockets that only their owner can connect to, at paths of any length."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path


def bound(path: Path) -> socket.socket:
    """A socket at `path` that only its owner can connect to. Replaces the socket of a killed process.

    Raises OSError.
    """
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Linux gives the file the mode of the socket, so it is never open to others, not even before a chmod.
        os.fchmod(listening.fileno(), 0o600)
        with short_name(path) as short:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(short)
            listening.bind(short)
    except OSError:
        listening.close()
        raise
    return listening


@contextlib.contextmanager
def short_name(path: Path) -> Iterator[str]:
    """A name for the file that is short enough for a socket address, which is limited to 107 bytes."""
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)
