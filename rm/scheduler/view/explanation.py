"""Why an application does not get its containers: the last refusal on each node, by the application and its queues."""

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
    """What prevents an allocation. `subject`: an attempt's id or a queue's path; `node_id` None: on all nodes."""

    subject: str
    node_id: NodeId | None
    refusal: Refusal

    def __str__(self) -> str:
        place = "everywhere" if self.node_id is None else f"on {self.node_id.host}"
        return f"{self.subject} {place}: {self.refusal}"


def obstacles_of(attempt: FiCaSchedulerApp, nodes: Iterable[SchedulerNode]) -> list[Obstacle]:
    """First why the application or its AM may not start; then the refusals node by node, its own and its queues'.

    A check that a node's last heartbeat did not reach is reported with the time of the older heartbeat. Refusals that
    only say that nothing is requested are omitted. Last come those of `nodes` that are reserved for others.
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
    """On such a node only the reservation is considered, so no refusal is recorded there."""
    for node in nodes:
        container = node.reserved_container
        if container is not None and container.id.application_id != attempt.attempt_id.application_id:
            refusal = Refusal(Reason.QUEUE_NODE_RESERVED, container.started_ms, asked=container.resource)
            yield Obstacle(ROOT, node.node_id, refusal)


def _kept(subject: str, node_id: NodeId, refusal: Refusal) -> list[Obstacle]:
    return [] if refusal.reason in _SATISFIED else [Obstacle(subject, node_id, refusal)]
