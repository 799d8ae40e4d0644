"""Addresses to listen on: `host:port` as Hadoop's keys have them."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass

from yarn.errors import YarnException

PORT_MAX = 65535


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: port 0 = any that is free. `key` is the configuration key it came from, for errors."""

    host: str
    port: int
    key: str = ""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def said(self) -> str:
        """How errors name it: with its key, if it has one."""
        return f"{self.key} = {self}" if self.key else str(self)

    @staticmethod
    def parse(text: str, *, key: str = "", default_port: int | None = None) -> Address:
        """Raises YarnException if `text` is not host:port (or host alone, where there is a default port)."""
        host, colon, port = text.strip().rpartition(":")
        if not colon and default_port is not None:
            host, port = text.strip(), str(default_port)
        if not host or not port.isdecimal() or int(port) > PORT_MAX:
            name = f"{key} = " if key else ""
            raise YarnException(f"{name}{text!r} is not host:port with a port of 0 to {PORT_MAX}")
        return Address(host, int(port), key)


async def resolve(address: Address, *, beyond_loopback: bool) -> str:
    """The IP address to listen on. Raises YarnException for an unknown host, or one that others can reach."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(address.host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise YarnException(f"cannot listen on {address.said}: unknown host ({error.strerror})") from None
    # IPv4 first: `localhost` is both, and clients of one cluster should all take the same.
    found.sort(key=lambda entry: entry[0] is not socket.AF_INET)
    ip = str(found[0][4][0])
    if not beyond_loopback and not ipaddress.ip_address(ip.partition("%")[0]).is_loopback:
        raise YarnException(
            f"cannot listen on {address.said}: {ip} can be reached from other machines "
            f"(use 127.0.0.1, or set yarn.yarnling.listen-beyond-loopback to true: calls are not encrypted)"
        )
    return ip
