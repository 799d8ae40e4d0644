"""What the fork server and its owner say to one another: JSON objects, one a packet."""

from __future__ import annotations

import json
import socket
from typing import Any

from msgspec import Struct, field, to_builtins

PACKET_BYTES_MAX = 64 * 1024
"""One message. A start request is some 2 KB; the kernel takes packets of 200 KB."""

RM = "rm"
"""The package of the ResourceManager, which does not wait until NodeManagers are ready: they may wait for it."""
NM = "nm"
"""The package of a NodeManager."""


class StartRequest(Struct, frozen=True):
    """A daemon to start: `package` is rm or nm, `overrides` {key: value} go over the files of `conf_dir`.

    `environment` is added to what the fork server was given; None takes a variable away.
    """

    name: str
    package: str
    conf_dir: str
    log_file: str
    overrides: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str | None] = field(default_factory=dict)


class Started(Struct, frozen=True):
    """The daemon has a process; it is not ready yet."""

    name: str
    pid: int


class Ready(Struct, frozen=True):
    """The daemon serves; `facts` is its ready line (addresses, ids)."""

    name: str
    facts: dict[str, Any]


class Exited(Struct, frozen=True):
    """The daemon ended: `status` as subprocess has it, negative for a signal."""

    name: str
    pid: int
    status: int


class Refused(Struct, frozen=True):
    """The daemon could not be started at all."""

    name: str
    problem: str


Message = StartRequest | Started | Ready | Exited | Refused
_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (StartRequest, Started, Ready, Exited, Refused)}


def encode(message: Message) -> bytes:
    """The packet for `message`; ValueError if it is too long for one."""
    packet = json.dumps({type(message).__name__: to_builtins(message)}).encode()
    if len(packet) > PACKET_BYTES_MAX:
        raise ValueError(f"{message.name}: a message of {len(packet)} bytes, at most {PACKET_BYTES_MAX}")
    return packet


def decode(packet: bytes) -> Message:
    """The message in a packet of the other side, which is trusted to be one of ours."""
    ((kind, fields),) = json.loads(packet).items()
    message: Message = _KINDS[kind](**fields)
    return message


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a connection that keeps packets whole."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
