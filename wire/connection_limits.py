"""How many connections a server accepts, and how long they may be silent."""

from __future__ import annotations

import resource

from msgspec import Struct
from msgspec.structs import replace

DESCRIPTORS_KEPT = 256
"""File descriptors that connections leave to the process's own files, pipes and calls."""
SPLICED_DESCRIPTORS = 3
"""File descriptors of a gRPC connection to a port that Hadoop's clients can call, too (wire.hadoop_rpc.splice): the
connection itself, and the two ends of the one to the gRPC server."""


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

        Count an address as SPLICED_DESCRIPTORS if its connections are spliced. Raises the process's limit of open
        files as far as needed and allowed.
        """
        most = ConnectionLimits()
        needed = count * most.count + DESCRIPTORS_KEPT
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < needed:
            soft = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft == resource.RLIM_INFINITY:
            return most
        return replace(most, count=max(1, min(most.count, (soft - DESCRIPTORS_KEPT) // count)))

    def options(self) -> tuple[tuple[str, int], ...]:
        """The limits as gRPC options."""
        return (
            ("grpc.max_allowed_incoming_connections", self.count),
            ("grpc.server_handshake_timeout_ms", self.handshake_ms),
            ("grpc.max_connection_idle_ms", self.idle_ms),
        )
