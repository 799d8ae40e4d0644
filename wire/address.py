"""Where servers listen: `host:port` as in Hadoop's settings, and Unix sockets that only their owner can use."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.settings.kinds import AddressSetting
from yarn.settings.yarnling import LISTEN_BEYOND_LOOPBACK


class Address(Struct, frozen=True):
    """An address to listen on; port 0 = any free port. `key`: the configuration key that it comes from, for errors."""

    host: str
    port: int
    key: str = ""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def said(self) -> str:
        """The name of the address in errors: with its key, if it has one."""
        return f"{self.key} = {self}" if self.key else str(self)

    @staticmethod
    def read(conf: Configuration, setting: AddressSetting) -> Address:
        """The value of a setting. Raises ConfigurationException if it is not an address."""
        host, port = setting.of(conf)
        return Address(host, port, setting.key)


async def resolve(address: Address, *, beyond_loopback: bool) -> str:
    """The IP address to listen on.

    Raises YarnException for an unknown host, or for one that is not loopback if only loopback is allowed.
    """
    host = address.host.strip("[]")
    ip = host if _is_ipv4(host) else await _looked_up(host, address)
    if not beyond_loopback and not ipaddress.ip_address(ip.partition("%")[0]).is_loopback:
        raise YarnException(
            f"cannot listen on {address.said}: {ip} can be reached from other machines "
            f"(use 127.0.0.1, or set {LISTEN_BEYOND_LOOPBACK.key} to true: calls are not encrypted)"
        )
    return ip


def _is_ipv4(host: str) -> bool:
    """True for an IPv4 address, which needs no lookup: a lookup starts a thread, in every NodeManager."""
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True


async def _looked_up(host: str, address: Address) -> str:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise YarnException(f"cannot listen on {address.said}: unknown host ({error.strerror})") from None
    # Prefer IPv4: `localhost` has both, and all clients of a cluster should use the same address.
    found.sort(key=lambda entry: entry[0] is not socket.AF_INET)
    return str(found[0][4][0])


def bound(path: Path) -> socket.socket:
    """Create a Unix socket at `path` that only its owner can connect to. Raises OSError.

    The socket of a process that was killed is replaced.
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
    """A name for the file that fits in a socket address, which is limited to 107 bytes."""
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)
