"""Asynchronous scheduling: walks over all nodes place containers, and heartbeats do not (AsyncScheduleThread).

A walk visits every node once, from a random one on, and the first one again at the end, as in Hadoop
(CapacityScheduler.schedule). Each visit places or reserves one container at most. Skipped are nodes that were silent
for longer than a few heartbeat intervals, and nodes that are being decommissioned. The next walk starts one interval
after the last; several threads are that many walks, one after another.

Hadoop walks all the time. Here a walk is left out if it would decide nothing: the last one has changed nothing, and
nothing has changed since then (`SchedulerContext.progress`). A node that sends a heartbeat after a silence counts as a
change; scheduling opportunities beyond the longest delay do not, but are added up when walks go on. Walks that are not
left out start at the same times as if none was: whole intervals after the last one.

A long walk is divided into parts with a pause between them, in which the ResourceManager handles calls; in Hadoop other
threads do so during a walk.
"""

from __future__ import annotations

from collections.abc import Callable

from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.requests import SchedulerKey
from rm.scheduler.placement.visit import Placement
from yarn.ids import NodeId

VISITS_A_PART_MAX = 25
"""The most nodes that one step visits: some ms of work. Nodes whose visit is known to do nothing do not count."""
PAUSE_MS = 1
"""The pause between two parts of a walk."""
_NEVER = -1

Draw = Callable[[int], int]
"""A random integer from 0 up to, not including, its argument. The core has no random numbers of its own."""


def first_of(_: int) -> int:
    """Draws nothing: every walk starts at the first node."""
    return 0


class NodeWalks:
    """The walks of one scheduler; `is_on` is False if heartbeats place containers.

    `due_ms`: when to call `tick` for the next walk, or for the next part of one; None = not until something changes.
    `_ahead`: the nodes that the present walk has still to visit, the next one last. `_walked_ms`: when the last walk
    ended. `_settled_at`: `progress` at the end of a walk that changed nothing; `_raised`: the counts that it raised all
    the same, with {key: count}, the key, and by how much. `suspended`: the nodes whose heartbeats are left out and
    count as received (rm.core.quiet_nodes), so they are never silent.
    """

    __slots__ = (
        "_ahead",
        "_context",
        "_counted",
        "_draw",
        "_known",
        "_order",
        "_placement",
        "_raised",
        "_settled_at",
        "_walked_ms",
        "due_ms",
        "is_on",
        "suspended",
    )

    def __init__(self, context: SchedulerContext, placement: Placement, draw: Draw) -> None:
        self._context = context
        self._placement = placement
        self._draw = draw
        self._ahead: list[NodeId] = []
        self._known: list[NodeId] = []
        self._order: list[NodeId] = []
        self._counted = 0
        self._walked_ms = context.now_ms
        self._settled_at = _NEVER
        self._raised: list[tuple[dict[SchedulerKey, int], SchedulerKey, int]] = []
        self.due_ms: int | None = None
        self.suspended: dict[NodeId, None] = {}
        # Only a start applies these settings, a refresh does not, as in Hadoop.
        self.is_on = context.settings.asynchronous.enabled
        if self.is_on:
            context.repeated = []

    def plan(self, now_ms: int) -> None:
        """Set when the next walk is due. Call it after each event, because any event may be a reason to walk."""
        if not self.is_on or self._ahead:
            return
        interval_ms = self._context.settings.asynchronous.interval_ms
        passed = max(0, now_ms - self._walked_ms) // interval_ms
        if self._raised and self._context.progress != self._settled_at:
            self._catch_up(passed)
        if self._would_change_nothing():
            self.due_ms = None
        elif self.due_ms is None:
            self.due_ms = self._walked_ms + (passed + 1) * interval_ms

    def tick(self, now_ms: int) -> None:
        """Walk, or continue a walk, if that is due."""
        if self.due_ms is None or now_ms < self.due_ms:
            return
        context = self._context
        context.now_ms = now_ms
        self.due_ms = None
        self._walked_ms = now_ms
        if not context.may_place():
            # Nothing is placed until that time has passed, so the next walk is after it.
            self._walked_ms = max(now_ms, context.placing_from_ms or 0)
            return
        if not self._ahead:
            self._begin()
        self._go_on()
        if self._ahead:
            self.due_ms = now_ms + PAUSE_MS

    def note_heartbeat(self, node: SchedulerNode) -> None:
        """A node sent a heartbeat: if it was silent, the next walk visits it again."""
        if self.is_on:
            if self._is_silent(node):
                self._context.note_change()
            node.heard_ms = self._context.now_ms

    def may_visit(self, node: SchedulerNode) -> bool:
        """False for a node that is silent or leaves (shouldSkipNodeSchedule)."""
        return not node.is_leaving and not self._is_silent(node)

    def note_leaving(self, node: SchedulerNode, *, is_leaving: bool) -> None:
        """A node is being decommissioned, or is not any more."""
        if node.is_leaving is not is_leaving:
            node.is_leaving = is_leaving
            self._context.note_change()

    def _begin(self) -> None:
        """Plan a walk, or one for each thread."""
        order = self._in_order()
        for _ in range(self._context.settings.asynchronous.threads):
            start = self._draw(len(order))
            self._ahead += [*order[start:], *order[: start + 1]]
        self._ahead.reverse()
        self._counted = self._context.progress
        if self._context.repeated is not None:
            self._context.repeated.clear()

    def _go_on(self) -> None:
        """Visit the nodes of this part."""
        context, placement, ahead = self._context, self._placement, self._ahead
        visits = 0
        while ahead and visits < VISITS_A_PART_MAX:
            node = context.nodes.get(ahead.pop())
            if node is not None and self.may_visit(node) and placement.place_one(node):
                visits += 1
        if not ahead:
            self._end()

    def _end(self) -> None:
        """A walk is over: if it decided nothing, neither would the next one."""
        context = self._context
        self._settled_at, self._raised = _NEVER, []
        if context.progress != self._counted or context.repeated is None:
            return
        self._settled_at = context.progress
        by: dict[tuple[int, SchedulerKey], int] = {}
        for counts, key in context.repeated:
            by[id(counts), key] = by.get((id(counts), key), 0) + 1
        unique = {(id(counts), key): counts for counts, key in context.repeated}
        self._raised = [(counts, place[1], by[place]) for place, counts in unique.items()]

    def _catch_up(self, walks: int) -> None:
        """Raise the counts as the walks that were left out would have done."""
        for counts, key, amount in self._raised:
            if key in counts:
                counts[key] += amount * walks
        self._raised = []

    def _in_order(self) -> list[NodeId]:
        """All nodes in the order of Java's map, which is computed again only if nodes came or went."""
        present = list(self._context.nodes)
        if present != self._known:
            self._known = present
            self._order = [node.node_id for node in self._context.nodes_in_hash_order()]
        return self._order

    def _is_silent(self, node: SchedulerNode) -> bool:
        """True if heartbeats are missing (SchedulerUtils.isNodeHeartbeated)."""
        if self._context.now_ms - node.heard_ms <= self._context.settings.asynchronous.skip_after_ms:
            return False
        return node.node_id not in self.suspended

    def _would_change_nothing(self) -> bool:
        """True without nodes, if nothing is requested or reserved, or if nothing has changed since a walk that changed
        nothing.
        """
        context = self._context
        if not context.nodes or context.progress == self._settled_at:
            return True
        usage = context.root_usage
        return not usage.is_pending() and all(usage.reserved(name).is_none() for name in usage.partitions())
