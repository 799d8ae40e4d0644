"""The scheduler's last actions, counted (SchedulerHealth, and the aggregates of QueueMetrics); only for reports.

Kept only if somebody reads it: `SchedulerContext.health` is None otherwise, and then counting costs nothing.
"""

from __future__ import annotations

from rm.scheduler.model.requests import NodeType
from yarn.ids import ContainerId, NodeId
from yarn.resource import Resource


class LastOperation:
    """The last operation of one kind; a container is named only for those that ended."""

    __slots__ = ("container_id", "node_id", "queue")

    def __init__(self) -> None:
        self.node_id: NodeId | None = None
        self.container_id: ContainerId | None = None
        self.queue: str | None = None

    def note(self, queue: str, node_id: NodeId, container_id: ContainerId | None = None) -> None:
        self.queue, self.node_id, self.container_id = queue, node_id, container_id


class QueueTotals:
    """Containers of a leaf since the start: allocated, by locality too, and ended."""

    __slots__ = ("allocated", "by_locality", "released")

    def __init__(self) -> None:
        self.allocated = 0
        self.released = 0
        self.by_locality: dict[NodeType, int] = dict.fromkeys(NodeType, 0)


class SchedulerHealth:
    """Counts of what the scheduler did, for reports.

    `totals` {leaf's path: its totals}. `run_ms`: the time of the last visit of a node that placed something;
    `run_allocated` and `run_reserved`: (count, amount) of it.
    """

    __slots__ = (
        "allocation",
        "preemption",
        "release",
        "reservation",
        "run_allocated",
        "run_ms",
        "run_reserved",
        "totals",
    )

    def __init__(self, none: Resource) -> None:
        self.allocation, self.release = LastOperation(), LastOperation()
        self.preemption, self.reservation = LastOperation(), LastOperation()
        self.totals: dict[str, QueueTotals] = {}
        self.run_ms = 0
        self.run_allocated = self.run_reserved = (0, none)

    def note_allocation(self, queue: str, node_id: NodeId, kind: NodeType, size: Resource, now_ms: int) -> None:
        """Count a placed container."""
        self.allocation.note(queue, node_id)
        totals = self.totals_of(queue)
        totals.allocated += 1
        totals.by_locality[kind] += 1
        self._begin_run(now_ms, size)
        self.run_allocated = (self.run_allocated[0] + 1, self.run_allocated[1] + size)

    def note_reservation(self, queue: str, node_id: NodeId, size: Resource, now_ms: int) -> None:
        """Count a reservation, also one that was made again."""
        self.reservation.note(queue, node_id)
        self._begin_run(now_ms, size)
        self.run_reserved = (self.run_reserved[0] + 1, self.run_reserved[1] + size)

    def note_end(self, queue: str, node_id: NodeId, container_id: ContainerId, *, is_preempted: bool) -> None:
        """Count an ended container."""
        (self.preemption if is_preempted else self.release).note(queue, node_id, container_id)
        self.totals_of(queue).released += 1

    def totals_of(self, queue: str) -> QueueTotals:
        """The leaf's totals, created if absent."""
        totals = self.totals.get(queue)
        if totals is None:
            totals = self.totals[queue] = QueueTotals()
        return totals

    def _begin_run(self, now_ms: int, size: Resource) -> None:
        if self.run_ms != now_ms:
            self.run_ms = now_ms
            self.run_allocated = self.run_reserved = (0, size - size)
