"""Why a container was not allocated: Hadoop's diagnostics (ActivityDiagnosticConstant) with the numbers behind them.

A refusal is a tuple, created where the decision is made and kept as the last one of its (application, node) or
(queue, node), in last_refusals.py. It costs one dictionary entry; the text is composed only when a client requests an
explanation.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from rm.scheduler.model.requests import SchedulerKey
from yarn.resource import Resource


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
