"""PackTracker, yarnling's own: NMs that share a process, and the RM. It is ResourceTracker, many calls in one."""

from __future__ import annotations

import ipaddress

from msgspec import Struct, field

from yarn.errors import YarnException
from yarn.ids import NodeId
from yarn.nodes import ResourceUtilization
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse, RegisterNodeManagerResponse


class Pack(Struct, frozen=True):
    """`count` nodes at one port, with the loopback addresses from that of `first` on. A node's number starts at 0."""

    first: NodeId
    count: int

    def __str__(self) -> str:
        return f"{self.first}+{self.count - 1}"

    def nodes(self) -> tuple[NodeId, ...]:
        """Its nodes by their numbers. Raises ValueError if the first one's host is no address that others follow."""
        host, port = ipaddress.IPv4Address(self.first.host), self.first.port
        return tuple(NodeId(str(host + number), port) for number in range(self.count))


RegisterOutcome = RegisterNodeManagerResponse | YarnException


class PackHeartbeat(Struct, frozen=True):
    """The heartbeats of `nodes`, by number, with the response id of each.

    `told` has those that have something new. Of another it is that which the RM answered with its response id, but for
    what is here for all of them.
    """

    nodes: tuple[int, ...]
    response_ids: tuple[int, ...]
    told: dict[int, NodeHeartbeatRequest] = field(default_factory=dict)
    node_utilization: ResourceUtilization | None = None
    container_token_key_id: int = 0
    nm_token_key_id: int = 0


class PackHeartbeatReply(Struct, frozen=True):
    """The id of each node's reply, in the order of the heartbeat's nodes, and the replies that say more than that.

    `unknown`: the RM has not got what their heartbeats refer to, and has done nothing.
    """

    response_ids: tuple[int, ...]
    next_heartbeat_ms: int
    told: dict[int, NodeHeartbeatResponse] = field(default_factory=dict)
    unknown: frozenset[int] = frozenset()
    failed: dict[int, YarnException] = field(default_factory=dict)
