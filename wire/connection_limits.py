"""Limits of the number of a server's connections and of their silence, and the file descriptors that they need."""

from __future__ import annotations

import resource

from msgspec import Struct
from msgspec.structs import replace

from yarn.errors import YarnException

DESCRIPTORS_KEPT = 256
"""File descriptors that connections leave to the process's own files, pipes and calls."""
DESCRIPTORS = 3
"""File descriptors of a connection (wire.splice): its own, and the two ends of the one to the gRPC server."""
CONNECTIONS_MIN = 16
"""Connections to each address beside those of NodeManagers: a few AMs and commands. A ResourceManager that accepted
only one a port would start, and nobody could use it."""


class ConnectionLimits(Struct, frozen=True):
    """Limits for the connections to one address of a server.

    `count`: further connections are closed; each ApplicationMaster, NodeManager or command has one. `handshake_ms`: the
    time for the HTTP/2 handshake (gRPC's default is two minutes) or Hadoop's authentication. `idle_ms`: a connection
    without calls for so long is closed; its caller connects again with its next call.
    """

    count: int = 4_000
    handshake_ms: int = 20_000
    idle_ms: int = 1_800_000

    @staticmethod
    def for_addresses(count: int) -> ConnectionLimits:
        """The limits for a process with so many addresses: all connections together leave DESCRIPTORS_KEPT descriptors.

        Raises the process's limit of open files as far as needed and allowed. Raises YarnException if that leaves less
        than CONNECTIONS_MIN an address.
        """
        most = ConnectionLimits()
        allowed = allow_descriptors(
            descriptors_needed(count, CONNECTIONS_MIN),
            "the ResourceManager",
            wanted=descriptors_needed(count, most.count),
        )
        return replace(most, count=min(most.count, (allowed - DESCRIPTORS_KEPT) // (count * DESCRIPTORS)))

    def options(self) -> tuple[tuple[str, int], ...]:
        """The limits as gRPC options."""
        return (
            ("grpc.max_allowed_incoming_connections", self.count),
            ("grpc.server_handshake_timeout_ms", self.handshake_ms),
            ("grpc.max_connection_idle_ms", self.idle_ms),
        )


def descriptors_needed(addresses: int, connections: int) -> int:
    """The file descriptors of a process that accepts so many connections at each of its addresses."""
    return addresses * connections * DESCRIPTORS + DESCRIPTORS_KEPT


def allow_descriptors(needed: int, user: str, remedy: str = "", *, wanted: int | None = None) -> int:
    """Raise the process's limit of open files to `wanted`, if it is lower, as far as allowed. Returns the limit.

    `wanted` None means `needed`. Raises YarnException if the hard limit is too low for `user`, which needs `needed`;
    the message names a higher limit as the remedy, and ends with `remedy`, an alternative.
    """
    soft, hard = (_number(limit) for limit in resource.getrlimit(resource.RLIMIT_NOFILE))
    if hard < needed:
        raise YarnException(
            f"{user} needs {needed} file descriptors, and the limit is {hard} "
            f"(raise it: `ulimit -n {needed}` as root, or nofile in /etc/security/limits.conf{remedy})"
        )
    raised = min(hard, needed if wanted is None else wanted)
    if soft < raised:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, _limit(hard)))
    return max(soft, raised)


_UNLIMITED = 1 << 31
"""More descriptors than any process can have."""


def _number(limit: int) -> int:
    return _UNLIMITED if limit == resource.RLIM_INFINITY else limit


def _limit(number: int) -> int:
    return resource.RLIM_INFINITY if number == _UNLIMITED else number
