"""The last refusals of a queue, a user or an application, by node, for explanations.

They are apart from the record of a refusal so that they can be compiled: one is noted at nearly each offer.
"""

from __future__ import annotations

from itertools import islice

from rm.scheduler.model.refusals import Reason, Refusal
from rm.scheduler.model.requests import SchedulerKey
from yarn.ids import NodeId
from yarn.resource import Resource

REFUSALS_MAX = 100
"""The number of nodes for which a queue or application keeps its last refusal, as Hadoop's
app-activities.max-queue-length."""


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

    def since(self, since_ms: int) -> list[tuple[NodeId, Refusal]]:
        """(node, its last refusal) of the refusals that are not older than this, the last first."""
        found: list[tuple[NodeId, Refusal]] = []
        for node_id, fields in reversed(self._by_node.items()):
            if fields[1] < since_ms:
                break
            found.append((node_id, Refusal(*fields)))
        return found

    def by_node(self) -> dict[NodeId, Refusal]:
        """{node: its last refusal}."""
        return {node_id: Refusal(*fields) for node_id, fields in self._by_node.items()}
