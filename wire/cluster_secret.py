"""The cluster's secret: random bytes in a file that only its owner can read, shared by the RM, its NMs and its clients.

It replaces Hadoop's Kerberos: a process that can read it may register nodes, and may call the RM as a client or an
administrator. It is never passed on a command line or in the environment.
"""

from __future__ import annotations

import os
import pwd
import secrets
import stat
from pathlib import Path

from wire.files.full_disk import full_disk_named
from wire.tokens import ClientTokenSecretManager
from yarn.configuration import Configuration
from yarn.containers import Token
from yarn.errors import AccessControlException, YarnException
from yarn.settings.yarnling import CLUSTER_SECRET_FILE, OPEN_TO_LOCAL_USERS

SECRET_BYTES = 32
SECRET_BYTES_MIN = 16
SECRET_BYTES_MAX = 4096
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def write_cluster_secret(path: Path) -> None:
    """Create a file with a new secret. Raises FileExistsError if there already is a file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with full_disk_named(path), open(descriptor, "wb") as file:
        file.write(secrets.token_bytes(SECRET_BYTES))


def read_cluster_secret(conf: Configuration) -> bytes:
    """The secret. Raises YarnException if it is not configured, or if users other than its owner can read it."""
    name = CLUSTER_SECRET_FILE.maybe_of(conf)
    if not name:
        raise YarnException(
            f"{CLUSTER_SECRET_FILE.key} is not set: without a secret any local user could register nodes "
            f"or run commands (name a file of {SECRET_BYTES} random bytes with mode 0600; `yarnling up` creates one)"
        )
    try:
        return _read(name)
    except OSError as error:
        raise YarnException(f"{_said(name)}: {error.strerror} (name a file that the daemon can read)") from None


def socket_dir(conf: Configuration) -> Path:
    """The directory for the daemons' own Unix sockets: beside the secret, which every daemon has."""
    return Path(CLUSTER_SECRET_FILE.of(conf)).absolute().parent / "sockets"


def read_client_token(conf: Configuration) -> Token | None:
    """The token for the RM's client and admin ports; None if no secret is configured or none is needed.

    Raises AccessControlException for a user who may not read the secret, YarnException if the file cannot be used.
    """
    name = CLUSTER_SECRET_FILE.maybe_of(conf)
    if not name:
        return None
    try:
        return ClientTokenSecretManager(_read(name)).create()
    except PermissionError as error:
        if OPEN_TO_LOCAL_USERS.of(conf):
            return None
        raise AccessControlException(
            f"{_said(name)}: {error.strerror}: only {_owner(name)} and root may use this cluster "
            f"(run as that user, or start the cluster with {OPEN_TO_LOCAL_USERS.key} = true)"
        ) from None
    except OSError as error:
        raise YarnException(f"{_said(name)}: {error.strerror} (use the configuration of a running cluster)") from None


def _read(name: str) -> bytes:
    """The content of the file. Raises OSError if it cannot be read, YarnException if its mode or size is wrong."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        secret = file.read(SECRET_BYTES_MAX + 1)
    if mode & _OTHERS:
        raise YarnException(f"{_said(name)}: mode {stat.S_IMODE(mode):04o} lets other users read it (chmod 0600)")
    if not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
        raise YarnException(f"{_said(name)}: {len(secret)} bytes, must be {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX}")
    return secret


def _said(name: str) -> str:
    return f"{CLUSTER_SECRET_FILE.key} = {name}"


def _owner(name: str) -> str:
    """The user who owns the file, if the owner can be determined."""
    try:
        uid = os.stat(name).st_uid
        return f"the user {pwd.getpwuid(uid).pw_name}"
    except (OSError, KeyError):
        return "the user who started it"
