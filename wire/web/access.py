"""Decides who may call the web services: local processes of the daemon's user or of root, unless the cluster is open.

HTTP carries no token here, so the caller is known by the socket: the kernel says which user's process holds the other
end. The user that a request acts for is its parameter user.name, as in Hadoop's simple authentication. Web pages that
a browser of the same user shows must not reach the services: the Host header must name this machine's loopback (a page
that resolved its own name to 127.0.0.1 sends that name), and a request that changes something must not come from
another origin or be a form.
"""

from __future__ import annotations

import asyncio
import getpass
import ipaddress
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import Scope

from wire.local_peer import Peer
from yarn.configuration import Configuration
from yarn.settings.yarnling import OPEN_TO_LOCAL_USERS

BODY_BYTES_MAX = 1024 * 1024
"""A body is parsed on the daemon's event loop: a MiB of JSON takes some 20 ms, and a change of 500 queues has less."""
BODY_TIMEOUT_S = 20.0
PEER = "peer"
"""The entry of a connection's ASGI state that contains its Peer."""
READING = frozenset({"GET", "HEAD"})
BODY_TYPES = frozenset({"application/json", "application/xml"})


class AccessRefused(Exception):
    """The request is refused before it is processed; `text` names the reason and what would be accepted."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class AccessCheck:
    """The check of each request. `hosts`: names under which the daemon is reached, besides loopback addresses."""

    def __init__(self, conf: Configuration, hosts: Iterable[str]) -> None:
        self._is_open = OPEN_TO_LOCAL_USERS.of(conf)
        self._hosts = frozenset(host.strip("[]").lower() for host in (*hosts, "localhost"))

    async def check(self, scope: Scope) -> None:
        """Raises AccessRefused."""
        headers = Headers(scope=scope)
        self._check_host(headers.getlist("host"))
        await self._check_peer(scope)
        if scope["method"] not in READING:
            _check_origin(headers)
            _check_content(headers)

    def _check_host(self, values: list[str]) -> None:
        host = _host_of(values[0]) if len(values) == 1 else ""
        if host not in self._hosts and not _is_loopback(host):
            raise AccessRefused(403, f"Host {host[:100]!r}: must be a loopback address or name of this daemon")

    async def _check_peer(self, scope: Scope) -> None:
        client = scope["client"]
        peer: Peer = scope["state"][PEER]
        if client is None or not _is_loopback(client[0]):
            raise AccessRefused(403, "only processes on this machine may call")
        if self._is_open:
            return
        if not await peer.is_owner_or_root():
            raise AccessRefused(
                403,
                f"only {getpass.getuser()} and root may call this daemon "
                f"(start the cluster with {OPEN_TO_LOCAL_USERS.key} = true to admit other local users)",
            )


async def read_body(request: Request) -> bytes:
    """The body. Raises AccessRefused if it is too large or takes too long."""
    if request.method in READING:
        return b""
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for part in request.stream():
                size += len(part)
                if size > BODY_BYTES_MAX:
                    raise AccessRefused(413, f"the body has more than {BODY_BYTES_MAX} bytes")
                parts.append(part)
    except TimeoutError:
        raise AccessRefused(408, f"the body did not arrive within {BODY_TIMEOUT_S:g} s") from None
    except ClientDisconnect:
        raise AccessRefused(400, "the connection was closed") from None
    return b"".join(parts)


def _check_origin(headers: Headers) -> None:
    """Refuse requests of other sites' pages: browsers send the page's origin with requests that change something."""
    origin = headers.get("origin")
    if origin is not None and origin.lower() != f"http://{headers.get('host', '')}".lower():
        raise AccessRefused(403, f"Origin {origin[:100]!r}: requests from other origins may not change anything")


def _check_content(headers: Headers) -> None:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    if (has_body or kind) and kind not in BODY_TYPES:
        raise AccessRefused(415, f"Content-Type {kind[:100]!r}: must be application/json or application/xml")


def _host_of(value: str) -> str:
    """The host of `host:port`, `[::1]:port` or `host`."""
    value = value.strip().lower()
    if value.startswith("["):
        return value[1:].partition("]")[0]
    host, colon, port = value.rpartition(":")
    return host if colon and port.isdigit() else value


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
