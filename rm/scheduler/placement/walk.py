"""Asynchronous scheduling: walks over all nodes place containers, and heartbeats do not (AsyncScheduleThread).

A walk visits every node once, from a random one on, and the first one again at the end, as in Hadoop
(CapacityScheduler.schedule). Each visit places or reserves one container at most. Skipped are nodes that were silent
for longer than a few heartbeat intervals, and nodes that are being decommissioned. The next walk starts one interval
after the last; several threads are that many walks, one after another.

Hadoop walks all the time. Here a walk is left out if it would decide nothing: the last one has changed nothing, and
nothing has changed since then (`SchedulerContext.progress`). A node that sends a heartbeat after a silence counts as a
change. What every walk would repeat does not:

- counts that are high enough already, or that nothing looks at. They are raised when walks go on;
- failed tries to fill a reservation, until so many have failed that one more reservation is allowed;
- the limits that visits store for the headroom. They depend on where a walk starts: those that are left out are taken
  to start where the last one did, while Hadoop's start anywhere.

Walks that are not left out start at the same times as if none was: whole intervals after the last one.

A long walk is divided into parts with a pause between them, in which the ResourceManager handles calls; in Hadoop other
threads do so during a walk.
"""

from __future__ import annotations

from collections.abc import Callable

from rm.scheduler.model.context import RepeatedCounts, SchedulerContext
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.placement.visit import Placement
from yarn.ids import NodeId

VISITS_A_PART_MAX = 25
"""The most nodes that one step visits: some ms of work. Nodes whose visit is known to do nothing do not count."""
PAUSE_MS = 1
"""The pause between two parts of a walk."""

Draw = Callable[[int], int]
"""A random integer from 0 up to, not including, its argument. The core has no random numbers of its own."""


def first_of(_: int) -> int:
    """Start every walk at the first node, without a random number."""
    return 0


class NodeWalks:
    """The walks of one scheduler; `is_on` is False if heartbeats place containers.

    `due_ms`: when to call `tick` for the next walk, or for the next part of one; None = not until something changes.
    `_ahead`: the nodes that the present walk has still to visit, the next one last. `_visited`: those that it has
    visited. `_walked_ms`: when the last walk ended. `_progress`, `_changes`: the context's counts before the present
    walk. `_is_settled`: the next walks would repeat the last one while `progress` stays the same. They would not if a
    node that it visited is silent then: `_looks_ms` is when to look; None if the walk changed nothing at all.
    `suspended`: the nodes whose heartbeats are left out and count as received (rm.core.quiet_nodes), so they are never
    silent.
    """

    __slots__ = (
        "_ahead",
        "_changes",
        "_context",
        "_draw",
        "_is_settled",
        "_known",
        "_looks_ms",
        "_order",
        "_placement",
        "_progress",
        "_repeated",
        "_visited",
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
        self._progress = 0
        self._walked_ms = context.now_ms
        self._changes = 0
        self._visited: list[SchedulerNode] = []
        self._looks_ms: int | None = None
        self._repeated = RepeatedCounts()
        self._is_settled = False
        self.due_ms: int | None = None
        self.suspended: dict[NodeId, None] = {}
        # Only a start applies these settings, a refresh does not, as in Hadoop.
        self.is_on = context.settings.asynchronous.enabled
        if self.is_on:
            context.repeated = self._repeated

    def plan(self, now_ms: int) -> None:
        """Set the time of the next walk. Call this after each event, because any event may be a reason to walk."""
        if not self.is_on or self._ahead:
            return
        interval_ms = self._context.settings.asynchronous.interval_ms
        passed = max(0, now_ms - self._walked_ms) // interval_ms
        if self._is_settled and self._context.progress != self._progress:
            self._go_on_after(passed)
        if self._has_nothing_to_do():
            self.due_ms = None
        elif self._is_settled:
            self.due_ms = self._due_while_settled_ms()
        elif self.due_ms is None:
            self.due_ms = self._walked_ms + (passed + 1) * interval_ms

    def tick(self, now_ms: int) -> None:
        """Walk, or continue a walk, if that is due."""
        if self.due_ms is None or now_ms < self.due_ms:
            return
        context = self._context
        context.now_ms = now_ms
        self.due_ms = None
        if self._is_settled:
            if not self._has_effect(now_ms):
                self._looks_ms = self._may_be_silent_ms()
                return
            self._go_on_after((now_ms - self._walked_ms) // context.settings.asynchronous.interval_ms - 1)
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
        """Note a heartbeat; a node that was silent is visited again by the next walk."""
        if self.is_on:
            if self._is_silent(node):
                self._context.note_change()
            node.heard_ms = self._context.now_ms

    def may_visit(self, node: SchedulerNode) -> bool:
        """False for a node that is silent or is being decommissioned (shouldSkipNodeSchedule)."""
        return node.is_running and not self._is_silent(node)

    def _begin(self) -> None:
        """Plan a walk, or one for each thread."""
        order = self._in_order()
        for _ in range(self._context.settings.asynchronous.threads):
            start = self._draw(len(order))
            self._ahead += [*order[start:], *order[: start + 1]]
        self._ahead.reverse()
        self._progress, self._changes = self._context.progress, self._context.change_count
        self._repeated.clear()
        self._visited.clear()

    def _go_on(self) -> None:
        """Visit the nodes of this part."""
        context, placement, ahead = self._context, self._placement, self._ahead
        visits, stored_limits = 0, context.stored_limit_count
        while ahead and visits < VISITS_A_PART_MAX:
            node = context.nodes.get(ahead.pop())
            if node is not None and self.may_visit(node) and placement.place_one(node):
                visits += 1
                self._visited.append(node)
        context.repeated_count += context.stored_limit_count - stored_limits
        if not ahead:
            self._end()

    def _end(self) -> None:
        """End a walk; note whether the next ones would only repeat it, because it had no effect."""
        context = self._context
        self._is_settled = context.progress == self._progress
        if self._is_settled:
            self._looks_ms = self._may_be_silent_ms() if context.change_count != self._changes else None

    def _go_on_after(self, left_out: int) -> None:
        """Resume walking after so many walks that were left out."""
        self._is_settled = False
        self.due_ms = None
        self._repeated.raise_again(left_out)

    def _due_while_settled_ms(self) -> int | None:
        """The time of the next walk, or check for silent nodes, if nothing changes before; None = never."""
        if self._looks_ms is None:
            return None
        effect_ms = self._effect_ms()
        return self._looks_ms if effect_ms is None else min(effect_ms, self._looks_ms)

    def _effect_ms(self) -> int | None:
        """The time at which a count will be high enough for a walk to have an effect, if all repeat the last one."""
        left_out = self._repeated.walks_without_effect()
        if left_out is None:
            return None
        return self._walked_ms + (left_out + 1) * self._context.settings.asynchronous.interval_ms

    def _has_effect(self, now_ms: int) -> bool:
        """True if a walk would not repeat what the last one did."""
        effect_ms = self._effect_ms()
        return (effect_ms is not None and effect_ms <= now_ms) or any(map(self._is_silent, self._visited))

    def _may_be_silent_ms(self) -> int:
        """The first time of a walk at which a node that the last one visited may be silent.

        A node whose heartbeats are left out may send them all again. The last one was then less than two thirds of the
        time ago after which nodes are skipped: that time is at least two periods (QuietNodes.may_suspend).
        """
        now_ms, settings = self._context.now_ms, self._context.settings.asynchronous
        heard_ms = now_ms - settings.skip_after_ms * 2 // 3 if self.suspended else now_ms
        for node in self._visited:
            if node.node_id not in self.suspended:
                heard_ms = min(heard_ms, node.heard_ms)
        passed = max(0, heard_ms + settings.skip_after_ms - self._walked_ms) // settings.interval_ms
        return self._walked_ms + (passed + 1) * settings.interval_ms

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

    def _has_nothing_to_do(self) -> bool:
        """True without nodes, or if nothing is requested or reserved."""
        usage = self._context.root_usage
        if not self._context.nodes:
            return True
        return not usage.is_pending() and all(usage.reserved(name).is_none() for name in usage.partitions())
