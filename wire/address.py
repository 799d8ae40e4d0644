"""Addresses to listen on: `host:port` as Hadoop's keys have them."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

from msgspec import Struct

from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.settings.kinds import AddressSetting
from yarn.settings.yarnling import LISTEN_BEYOND_LOOPBACK


class Address(Struct, frozen=True):
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
    def read(conf: Configuration, setting: AddressSetting) -> Address:
        """The address under a setting. Raises ConfigurationException if it is none."""
        host, port = setting.of(conf)
        return Address(host, port, setting.key)


async def resolve(address: Address, *, beyond_loopback: bool) -> str:
    """The IP address to listen on. Raises YarnException for an unknown host, or one that others can reach."""
    host = address.host.strip("[]")
    ip = host if _is_ipv4(host) else await _looked_up(host, address)
    if not beyond_loopback and not ipaddress.ip_address(ip.partition("%")[0]).is_loopback:
        raise YarnException(
            f"cannot listen on {address.said}: {ip} can be reached from other machines "
            f"(use 127.0.0.1, or set {LISTEN_BEYOND_LOOPBACK.key} to true: calls are not encrypted)"
        )
    return ip


def _is_ipv4(host: str) -> bool:
    """Nothing has to be looked up then: that takes a thread, and every NodeManager starts with it."""
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
    # IPv4 first: `localhost` is both, and clients of one cluster should all take the same.
    found.sort(key=lambda entry: entry[0] is not socket.AF_INET)
    return str(found[0][4][0])
