"""The cluster's secret: random bytes in a file that only its owner can read, known to the RM and its NMs.

It stands for Hadoop's Kerberos: who has it may register nodes. It is never on a command line nor in an environment.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.settings.yarnling import CLUSTER_SECRET_FILE

SECRET_BYTES = 32
SECRET_BYTES_MIN = 16
SECRET_BYTES_MAX = 4096
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def write_cluster_secret(path: Path) -> None:
    """Make a new file with a new secret. Raises FileExistsError rather than replace one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(secrets.token_bytes(SECRET_BYTES))


def read_cluster_secret(conf: Configuration) -> bytes:
    """The secret. Raises YarnException if there is none, or if others than its owner could know it."""
    name = CLUSTER_SECRET_FILE.maybe_of(conf)
    if not name:
        raise YarnException(
            f"{CLUSTER_SECRET_FILE.key} is not set: without it anybody could register a node "
            f"(name a file of {SECRET_BYTES} random bytes with mode 0600; `yarnling up` makes one)"
        )
    said = f"{CLUSTER_SECRET_FILE.key} = {name}"
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            secret = file.read(SECRET_BYTES_MAX + 1)
    except OSError as error:
        raise YarnException(f"{said}: {error.strerror} (give a file that the daemon can read)") from None
    if mode & _OTHERS:
        raise YarnException(f"{said}: mode {stat.S_IMODE(mode):04o} lets others read it (chmod 0600)")
    if not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
        raise YarnException(f"{said}: {len(secret)} bytes, must be {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX}")
    return secret
