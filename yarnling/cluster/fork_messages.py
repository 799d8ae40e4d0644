"""The messages between the fork server and its owner: JSON objects, one in each packet."""

from __future__ import annotations

import json
import socket
from typing import Any

from msgspec import Struct, field, to_builtins

PACKET_BYTES_MAX = 64 * 1024
"""The size limit of a message. A request has about 2 KB; the kernel accepts packets of 200 KB."""

RM = "rm"
"""The package of the ResourceManager. Unlike a NodeManager, it is started without waiting for
NodeManagers to be ready."""
NM = "nm"
"""The package of a NodeManager."""


class DaemonRequest(Struct, frozen=True):
    """Start a daemon of the package rm or nm. `overrides` {key: value} take precedence over the files in `conf_dir`.

    `environment` {variable: value} is added to the environment of the fork server; None removes a variable.
    """

    name: str
    package: str
    conf_dir: str
    log_file: str
    overrides: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str | None] = field(default_factory=dict)


class DaemonStarted(Struct, frozen=True):
    """The daemon has a process; it is not ready yet."""

    name: str
    pid: int


class DaemonReady(Struct, frozen=True):
    """The daemon is ready to serve. `facts` is the content of its ready line (addresses, ids)."""

    name: str
    facts: dict[str, Any]


class DaemonExited(Struct, frozen=True):
    """The daemon has ended. `status` is an exit status, or a negative signal number as in subprocess."""

    name: str
    pid: int
    status: int


class DaemonRefused(Struct, frozen=True):
    """The daemon could not be started."""

    name: str
    problem: str


Message = DaemonRequest | DaemonStarted | DaemonReady | DaemonExited | DaemonRefused
_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (DaemonRequest, DaemonStarted, DaemonReady, DaemonExited, DaemonRefused)
}


def encode(message: Message) -> bytes:
    """Encode a message as a packet. Raises ValueError if the packet would exceed PACKET_BYTES_MAX."""
    packet = json.dumps({type(message).__name__: to_builtins(message)}).encode()
    if len(packet) > PACKET_BYTES_MAX:
        raise ValueError(f"{message.name}: a message of {len(packet)} bytes, at most {PACKET_BYTES_MAX}")
    return packet


def decode(packet: bytes) -> Message:
    """Decode a packet of the other side, which is trusted to send valid messages."""
    ((kind, fields),) = json.loads(packet).items()
    message: Message = _KINDS[kind](**fields)
    return message


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets that keep packet boundaries."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
