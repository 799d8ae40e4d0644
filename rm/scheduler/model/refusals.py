"""Why a container was not allocated: Hadoop's diagnostics (ActivityDiagnosticConstant) with the numbers behind them.

A refusal is a tuple, created where the decision is made and kept as the last one of its (application, node) or
(queue, node). It costs one dictionary entry; the text is composed only when a client requests an explanation.
"""

from __future__ import annotations

from enum import Enum
from itertools import islice

from msgspec import Struct

from rm.scheduler.model.requests import SchedulerKey
from yarn.ids import NodeId
from yarn.resource import Resource

REFUSALS_MAX = 100
"""The number of nodes for which a queue or application keeps its last refusal, as Hadoop's
app-activities.max-queue-length."""


class Reason(Enum):
    """The reason that prevented an allocation. The value is Hadoop's sentence where Hadoop has one."""

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
    COMMIT_USER_LIMIT = "Commit refused: the user would exceed its limit in the queue"
    COMMIT_QUEUE_MAXIMUM = "Commit refused: a queue would exceed its maximum capacity"
    COMMIT_NO_ROOM = (
        "Commit refused: the preempted containers are gone, or killing them does not free enough on the node"
    )
    COMMIT_NODE_STATE = "Commit refused: the node is not running"
    PARALLEL_LIMIT = "Application is not started yet: a queue or the user already runs max-parallel-apps applications"
    AM_QUEUE_LIMIT = "Queue's AM resource limit exceeded."
    AM_USER_LIMIT = "User's AM resource limit exceeded."
    AM_NO_CLUSTER = "Skipping AM assignment as cluster resource is empty."


_COMPARED = {
    Reason.QUEUE_MAXIMUM: ("used", "limit"),
    Reason.COMMIT_QUEUE_MAXIMUM: ("would use", "limit"),
    Reason.USER_LIMIT: ("used", "limit"),
    Reason.COMMIT_USER_LIMIT: ("used", "limit"),
    Reason.AM_QUEUE_LIMIT: ("AMs would use", "limit"),
    Reason.AM_USER_LIMIT: ("AMs would use", "limit"),
    Reason.QUEUE_HEADROOM: ("requested", "headroom"),
    Reason.QUEUE_NODE_RESERVED: ("reserved", ""),
    Reason.NODE_TOTAL_TOO_SMALL: ("requested", "total"),
    Reason.QUEUE_NODE_FULL: ("smallest container", "available"),
    Reason.NODE_TOO_SMALL: ("smallest container", "available"),
}
"""{reason: labels of `asked` and `bound`}; ("requested", "available") for all others."""


class Refusal(Struct, frozen=True):
    """A reason with its numbers: the amount that was compared (`asked`), and the limit or free amount (`bound`)."""

    reason: Reason
    at_ms: int
    key: SchedulerKey | None = None
    asked: Resource | None = None
    bound: Resource | None = None

    def __str__(self) -> str:
        asked, bound = _COMPARED.get(self.reason, ("requested", "available"))
        numbers = [f"{name} {value}" for name, value in ((asked, self.asked), (bound, self.bound)) if value is not None]
        return f"{self.reason.value} ({', '.join(numbers)})" if numbers else self.reason.value


class Refusals:
    """The last refusal on each of the last REFUSALS_MAX nodes, the oldest first."""

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
        """Record a refusal; it replaces the last one of the node."""
        by_node = self._by_node
        if node_id in by_node:
            del by_node[node_id]
        elif len(by_node) >= REFUSALS_MAX:
            del by_node[next(iter(by_node))]
        by_node[node_id] = (reason, now_ms, key, asked, bound)

    def last_of(
        self, key: SchedulerKey, since_ms: int, besides: NodeId, count: int
    ) -> tuple[tuple[NodeId, Reason, int], ...]:
        """(node, reason, time) of the last refusals of this key on other nodes, at most `count`, the last first.

        Only the last few refusals of any key are looked at, because this is done at each placement.
        """
        found: list[tuple[NodeId, Reason, int]] = []
        for node_id, (reason, at_ms, refused, _, _) in islice(reversed(self._by_node.items()), 4 * count):
            if at_ms < since_ms or len(found) == count:
                break
            if refused == key and node_id != besides:
                found.append((node_id, reason, at_ms))
        return tuple(found)

    def clear(self, node_id: NodeId) -> None:
        """Forget the refusal of a node, because a container was allocated there."""
        self._by_node.pop(node_id, None)

    def on(self, node_id: NodeId) -> Refusal | None:
        """The last refusal on a node."""
        fields = self._by_node.get(node_id)
        return None if fields is None else Refusal(*fields)

    def by_node(self) -> dict[NodeId, Refusal]:
        """{node: its last refusal}."""
        return {node_id: Refusal(*fields) for node_id, fields in self._by_node.items()}
