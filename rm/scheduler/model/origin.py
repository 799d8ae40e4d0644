"""Facts about a container for a later question: why it was placed where it is, and why it was preempted.

The records are made where the decisions are made and kept by the container. They are immutable, and hold ids and
numbers only, so a copy of the scheduler shares them. `gc=False` keeps the collector from visiting the many of them.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from rm.scheduler.model.refusals import Reason
from rm.scheduler.model.requests import NodeType
from yarn.ids import ContainerId, NodeId
from yarn.protocols.inspection import QueueInRound

PASSED_NODES_MAX = 5
"""The number of nodes remembered of those that refused a request before it was placed."""

PassedNode: TypeAlias = tuple[NodeId, Reason, int]
"""A node that refused the request last for this reason, and when."""


class PlacementOrigin(Struct, frozen=True, gc=False):
    """The circumstances of a placement or reservation.

    `requested_ms`: when the AM last sent the request's terms. `opportunities`: how often a node was offered to the
    request since its last local placement, this node included. `places`: how many hosts and racks the request named.
    `delay`: the offers that had to be missed before a node of this kind was accepted; None if there was no delay to
    wait for. `reserved_ms`: when the node was reserved for it, None without a reservation. `passed`: nodes that had
    refused the request, the last first; noted only if the request names places. `killed`: killable containers that made
    way. `has_borrowed`: it has no label and is on an idle node of a shared partition.
    """

    requested_ms: int
    kind: NodeType
    opportunities: int
    places: int
    delay: float | None
    reserved_ms: int | None
    passed: tuple[PassedNode, ...]
    killed: tuple[ContainerId, ...]
    has_borrowed: bool

    def __deepcopy__(self, _: object) -> PlacementOrigin:
        return self


class PreemptionStep(Struct, frozen=True):
    """A round of preemption acted on the container; see PreemptionDecided.

    `victim`: the container's queue in that round, with the amounts of the selector that chose the container.
    `served`: the queue that is to get the resources; None if there is no single one, or if it is the same queue.
    """

    at_ms: int
    step: str
    reason: str
    victim: QueueInRound
    served: QueueInRound | None

    def __deepcopy__(self, _: object) -> PreemptionStep:
        return self
