"""The user of the local process at the other end of a TCP connection, as the kernel has it.

The kernel finds one socket in 12 us (sock_diag(7)); where it does not offer that, its tables of all sockets are read.

A caller whose protocol carries no secret (Hadoop's SIMPLE authentication, HTTP) is known by its socket alone. Only an
established socket that a process holds counts: Linux lists the sockets that are left after a close under user 0.

An address alone is not enough: the caller may have gone, and another user's socket may have its port by then. As long
as our own end is established, there cannot be a second connection between the two addresses; hence `user_id_of_peer`,
which looks at our end afterwards.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
import struct
from typing import Protocol

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
"""A client's socket is in one of the two; Java's sockets for IPv4 are in the second."""
ROOT_UID = 0
LOOK_UP_TIMEOUT_S = 1.0
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_HEADER = struct.Struct("=IHHII")
"""struct nlmsghdr: length, kind, flags, number, sender."""
_WANTED = struct.Struct("=BBBxI")
"""The start of struct inet_diag_req_v2: family, protocol, extensions, states."""
_ANY = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
"""The rest of struct inet_diag_sockid: interface and cookie."""
_FOUND = struct.Struct("=BB2x48xIIIII")
"""struct inet_diag_msg: family, state, the addresses, expiry, two queues, user, inode."""
TRIES = 2
"""A row can be skipped when other sockets are closed while the table is read."""
_ESTABLISHED = 1
"""Linux's number of the state, the first byte of TCP_INFO."""
_MAPPED_PREFIX = bytes(10) + b"\xff\xff"
"""The start of an IPv4 address that is written as an IPv6 address."""


class Connection(Protocol):
    """Our end of a connection: a socket, or asyncio's view of one (`transport.get_extra_info("socket")`)."""

    def getpeername(self) -> tuple[str, int]: ...

    def getsockname(self) -> tuple[str, int]: ...

    def getsockopt(self, level: int, name: int, length: int, /) -> bytes: ...


class Peer:
    """The process at the other end of a connection. Its user is looked up once, when somebody first asks."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._user_id: asyncio.Future[int | None] | None = None

    async def is_owner_or_root(self) -> bool:
        """True if the process belongs to this daemon's user or to root. One that is not found belongs to neither."""
        if self._user_id is None:
            # On another thread, because the table of sockets can be long.
            loop = asyncio.get_running_loop()
            self._user_id = loop.run_in_executor(None, user_id_of_peer, self._connection)
        return await asyncio.shield(self._user_id) in (ROOT_UID, os.geteuid())


def user_id_of_peer(connection: Connection) -> int | None:
    """The id of the user whose process is at the other end; None if it is not on this machine or has gone.

    Without sock_diag it reads the table of all sockets, which takes milliseconds with thousands of them.
    """
    try:
        user_id = peer_user_id(connection.getpeername()[:2], connection.getsockname()[:2])
        (state,) = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
    except OSError:
        return None
    return user_id if state == _ESTABLISHED else None


def is_foreign(connection: Connection) -> bool:
    """True if the process at the other end belongs to another user of this machine, root excepted.

    Its connection is closed at once, so that it costs no memory and keeps nobody out. A caller that has gone is not
    foreign, its connection ends by itself; nor is one on another machine, whose token decides.
    """
    return user_id_of_peer(connection) not in (None, ROOT_UID, os.geteuid())


def peer_user_id(peer: tuple[str, int], server: tuple[str, int]) -> int | None:
    """The id of the user whose process is at `peer` and connected to `server`; None if it is not on this machine.

    The caller must make sure afterwards that the connection it means still exists, as `user_id_of_peer` does.
    """
    try:
        return _asked_user_id(peer, server)
    except OSError:
        return _listed_user_id(peer, server)


def _asked_user_id(peer: tuple[str, int], server: tuple[str, int]) -> int | None:
    """Ask the kernel for the one socket. Raises OSError if it does not offer that."""
    family, hosts = _family_of(peer[0], server[0])
    ports = struct.pack("!HH", peer[1], server[1])
    wanted = _WANTED.pack(family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF) + ports + hosts + _ANY
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(LOOK_UP_TIMEOUT_S)
        size = _HEADER.size + len(wanted)
        kernel.sendto(_HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0) + wanted, (0, 0))
        answer = kernel.recv(8192)
    _, kind, _, _, _ = _HEADER.unpack_from(answer)
    if kind != _SOCK_DIAG_BY_FAMILY:
        (error,) = struct.unpack_from("=i", answer, _HEADER.size)
        if error == -errno.ENOENT:
            return None
        raise OSError(-error, os.strerror(-error))
    _, state, _, _, _, user_id, inode = _FOUND.unpack_from(answer, _HEADER.size)
    # A socket without an inode was closed: no process holds it.
    return user_id if state == _ESTABLISHED and inode else None


def _family_of(*hosts: str) -> tuple[int, bytes]:
    """The family of sockets in which the kernel has these addresses, and the addresses, 16 bytes each."""
    packed = [_packed(host) for host in hosts]
    if all(address.startswith(_MAPPED_PREFIX) for address in packed):
        return socket.AF_INET, b"".join(address[12:].ljust(16, b"\0") for address in packed)
    return socket.AF_INET6, b"".join(packed)


def _listed_user_id(peer: tuple[str, int], server: tuple[str, int]) -> int | None:
    for _ in range(TRIES):
        for name in TABLES:
            try:
                with open(name, "rb") as table:
                    user_id = user_id_in(table.read(), peer, server)
            except OSError:
                continue
            if user_id is not None:
                return user_id
    return None


def user_id_in(table: bytes, peer: tuple[str, int], server: tuple[str, int]) -> int | None:
    """The user of the established socket from `peer` to `server` in the text of /proc/net/tcp or /proc/net/tcp6.

    Raises ValueError for an address that is not an IP address.
    """
    for write in (_as_ipv4, _as_ipv6):
        local, remote = write(peer), write(server)
        if local is None or remote is None:
            continue
        # Columns: number, local and remote address, state, queues, timer, retransmits, user, time-out, inode.
        start = table.find(f" {local} {remote} 01 ".encode())
        if start >= 0:
            columns = table[start : table.find(b"\n", start) + 1 or None].split()
            user, inode = columns[6], columns[8]
            # A socket without an inode was closed after its state was read.
            return int(user) if inode != b"0" else None
    return None


def _as_ipv4(address: tuple[str, int]) -> str | None:
    packed = _packed(address[0])
    return f"{_words(packed[12:])}:{address[1]:04X}" if packed.startswith(_MAPPED_PREFIX) else None


def _as_ipv6(address: tuple[str, int]) -> str:
    return f"{_words(_packed(address[0]))}:{address[1]:04X}"


def _packed(host: str) -> bytes:
    """The 16 bytes of an IPv6 address, or of an IPv4 address written as one."""
    ip = ipaddress.ip_address(host.partition("%")[0])
    return ip.packed if ip.version == 6 else _MAPPED_PREFIX + ip.packed


def _words(packed: bytes) -> str:
    """The bytes in hexadecimal, as the kernel prints them: words of four bytes in the machine's byte order."""
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))
