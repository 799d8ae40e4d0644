"""Why an application has not got what it asks for: the last refusal on each node, its own and of its queues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec import Struct

from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.refusals import REFUSALS_MAX, Reason, Refusal
from yarn.ids import NodeId
from yarn.settings.scheduler import ROOT

_SATISFIED = frozenset({Reason.QUEUE_SATISFIED, Reason.APPLICATION_SATISFIED})


class Obstacle(Struct, frozen=True):
    """What stood in the way of `subject` (an attempt's id or a queue's path) on a node; None: on all of them."""

    subject: str
    node_id: NodeId | None
    refusal: Refusal

    def __str__(self) -> str:
        place = "everywhere" if self.node_id is None else f"on {self.node_id.host}"
        return f"{self.subject} {place}: {self.refusal}"


def obstacles_of(attempt: FiCaSchedulerApp, nodes: Iterable[SchedulerNode]) -> list[Obstacle]:
    """First why it or its master may not start, if so; then, node by node as looked at, its own and its queues'.

    What a node's last visit did not come to is still told, with the time of that older visit. That a queue or
    application wants nothing is left out. Last, of all `nodes`, those that are reserved for others.
    """
    subject = str(attempt.attempt_id)
    leaf = LeafQueue.of(attempt)
    am_refusal = leaf.am_refusal(attempt)
    obstacles = [] if am_refusal is None else [Obstacle(subject, None, am_refusal)]
    if not attempt.is_runnable:
        obstacles.append(Obstacle(subject, None, Refusal(Reason.PARALLEL_LIMIT, attempt.started_ms)))
    for node_id, refusal in leaf.last_refusals(attempt).items():
        obstacles += _kept(subject, node_id, refusal)
    queue: CSQueue | None = attempt.leaf
    while queue is not None:
        for node_id, refusal in queue.refusals.by_node().items():
            obstacles += _kept(queue.path, node_id, refusal)
        queue = queue.parent
    if attempt.requests.keys:
        obstacles += islice(_reserved_for_others(attempt, nodes), REFUSALS_MAX)
    return obstacles


def _reserved_for_others(attempt: FiCaSchedulerApp, nodes: Iterable[SchedulerNode]) -> Iterator[Obstacle]:
    """Visits of such a node look at nothing but the reservation, so nobody notes a refusal there."""
    for node in nodes:
        container = node.reserved_container
        if container is not None and container.id.application_id != attempt.attempt_id.application_id:
            refusal = Refusal(Reason.QUEUE_NODE_RESERVED, container.started_ms, asked=container.resource)
            yield Obstacle(ROOT, node.node_id, refusal)


def _kept(subject: str, node_id: NodeId, refusal: Refusal) -> list[Obstacle]:
    return [] if refusal.reason in _SATISFIED else [Obstacle(subject, node_id, refusal)]
