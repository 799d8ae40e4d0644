"""Why a container was not placed: Hadoop's words (ActivityDiagnosticConstant), kept with the numbers behind them.

A refusal is one tuple, made where the decision falls and kept as the last one of its (application, node) or
(queue, node). It costs a dictionary's entry; nothing is worded until somebody asks.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from rm.scheduler.model.requests import SchedulerKey
from yarn.ids import NodeId
from yarn.resource import Resource

REFUSALS_MAX = 100
"""Nodes that a queue or an application remembers a refusal of, as Hadoop's app-activities.max-queue-length."""


class Reason(Enum):
    """What stood in the way; the value is Hadoop's sentence."""

    NODE_TOO_SMALL = "Initial check: node resource is insufficient for minimum allocation"
    NO_ACCESS = "Queue is not able to access partition"
    QUEUE_SATISFIED = "Queue does not need more resource"
    QUEUE_MAXIMUM = "Queue hits max-capacity limit"
    USER_LIMIT = "Queue hits user max-capacity limit"
    QUEUE_HEADROOM = "Queue does not have enough headroom for inner highest-priority request"
    QUEUE_FIFO = "Queue skipped to respect FIFO of applications"
    QUEUE_NODE_RESERVED = "Queue skipped because node has been reserved"
    QUEUE_NODE_FULL = "Queue skipped because node resource is insufficient"
    APPLICATION_SATISFIED = "Application does not need more resource"
    REQUEST_SATISFIED = "Request does not need more resource"
    REQUEST_GONE = "Request skipped because off-switch request is null"
    REQUEST_AM_ON_SHARED_LABEL = "Request skipped in Ignore Exclusivity mode for AM allocation"
    REQUEST_RESERVED_ENOUGH = "Request skipped based on reservation algo"
    REQUEST_OWN_PARTITION_FIRST = (
        "Request skipped because non-partitioned resource request "
        "should be scheduled to non-partitioned partition first"
    )
    NODE_PARTITION = "Node does not match partition or placement constraints"
    NODE_BLACKLISTED = "Node is blacklisted"
    NODE_OFF_SWITCH_DELAY = "Node skipped because of off-switch delay"
    NODE_STRICT_LOCALITY = "Node skipped because relax locality is not allowed"
    NODE_LOCALITY = "Node skipped because node/rack locality cannot be satisfied"
    NODE_TOTAL_TOO_SMALL = "Node's total resource is insufficient for request"
    NODE_FULL = "Node does not have sufficient resource for request"
    NODE_NOTHING_TO_UNRESERVE = "Node can't find a container to be unreserved when needed"
    COMMIT_USER_LIMIT = "Commit refused: the user is above its limit"
    COMMIT_QUEUE_MAXIMUM = "Commit refused: a queue would be above its maximum"
    COMMIT_NO_ROOM = "Commit refused: what was to be killed for it is over, or leaves too little room"
    COMMIT_NODE_STATE = "Commit refused: the node is not running"
    PARALLEL_LIMIT = "Application is parked: a queue or its user has max-parallel-apps running"
    AM_QUEUE_LIMIT = "Queue's AM resource limit exceeded."
    AM_USER_LIMIT = "User's AM resource limit exceeded."
    AM_NO_CLUSTER = "Skipping AM assignment as cluster resource is empty."


class Refusal(Struct, frozen=True):
    """One reason with its numbers: what was wanted (`asked`) against what there was (`bound`), at `at_ms`."""

    reason: Reason
    at_ms: int
    key: SchedulerKey | None = None
    asked: Resource | None = None
    bound: Resource | None = None

    def __str__(self) -> str:
        numbers = [
            text
            for text, value in ((f"asked {self.asked}", self.asked), (f"bound {self.bound}", self.bound))
            if value is not None
        ]
        return f"{self.reason.value} ({', '.join(numbers)})" if numbers else self.reason.value


class Refusals:
    """The last refusal on each of the nodes that were looked at last, the oldest node first."""

    __slots__ = ("_by_node",)

    def __init__(self) -> None:
        self._by_node: dict[NodeId, tuple[Reason, int, SchedulerKey | None, Resource | None, Resource | None]] = {}

    def note(
        self,
        node_id: NodeId,
        reason: Reason,
        now_ms: int,
        asked: Resource | None = None,
        bound: Resource | None = None,
        *,
        key: SchedulerKey | None = None,
    ) -> None:
        """Keep it in the place of the node's last one."""
        by_node = self._by_node
        if node_id in by_node:
            del by_node[node_id]
        elif len(by_node) >= REFUSALS_MAX:
            del by_node[next(iter(by_node))]
        by_node[node_id] = (reason, now_ms, key, asked, bound)

    def clear(self, node_id: NodeId) -> None:
        """The node gave a container."""
        self._by_node.pop(node_id, None)

    def by_node(self) -> dict[NodeId, Refusal]:
        """{node: its last refusal}."""
        return {node_id: Refusal(*fields) for node_id, fields in self._by_node.items()}
