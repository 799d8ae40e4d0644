"""PackTrackerProtocol, yarnling's own: requests and replies between NMs that share a process and the RM.

One call replaces many calls of ResourceTracker.
"""

from __future__ import annotations

import ipaddress

from msgspec import Struct, field

from yarn.errors import YarnException
from yarn.ids import NodeId
from yarn.nodes import ResourceUtilization
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse, RegisterNodeManagerResponse


class Pack(Struct, frozen=True):
    """The nodes of one process: `count` nodes with the same port, and consecutive loopback addresses from `first` on.

    The nodes are numbered from 0.
    """

    first: NodeId
    count: int

    def __str__(self) -> str:
        return f"{self.first}+{self.count - 1}"

    def nodes(self) -> tuple[NodeId, ...]:
        """The nodes in the order of their numbers. Raises ValueError if there are not enough addresses."""
        host, port = ipaddress.IPv4Address(self.first.host), self.first.port
        return tuple(NodeId(str(host + number), port) for number in range(self.count))


RegisterOutcome = RegisterNodeManagerResponse | YarnException


class PackHeartbeat(Struct, frozen=True):
    """The heartbeats of `nodes`, by number, with the response id of each.

    `full` has the heartbeats of nodes with news. Any other node repeats its last heartbeat that the RM answered, except
    for the fields here that are the same for all nodes.
    """

    nodes: tuple[int, ...]
    response_ids: tuple[int, ...]
    full: dict[int, NodeHeartbeatRequest] = field(default_factory=dict)
    node_utilization: ResourceUtilization | None = None
    container_token_key_id: int = 0
    nm_token_key_id: int = 0


class PackHeartbeatReply(Struct, frozen=True):
    """The response ids of the nodes' replies, in the order of the heartbeat's nodes, and the replies that contain more.

    `unknown`: nodes whose heartbeat refers to one that the RM does not have. The RM has done nothing for these nodes.
    """

    response_ids: tuple[int, ...]
    next_heartbeat_ms: int
    full: dict[int, NodeHeartbeatResponse] = field(default_factory=dict)
    unknown: frozenset[int] = frozenset()
    failed: dict[int, YarnException] = field(default_factory=dict)
