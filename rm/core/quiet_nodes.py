"""Leave out heartbeats that would change nothing: of which nodes, until when, and what they would have updated.

A simulation of a thousand nodes would spend most of its time on heartbeats that report nothing and are answered with
nothing. A heartbeat without news changes nothing if all of this holds when it arrives:

- the node is RUNNING and admitted, and no order waits for it;
- no round of preemption is due, which the first heartbeat after its time would run;
- a visit of the scheduler would place nothing and count nothing: the node is full, or nothing is requested, or all
  queues are satisfied or at their limits, or nothing has changed since a visit that did nothing
  (rm.scheduler.placement.memo). Refusals may be noted, which only explanations read. With asynchronous scheduling a
  heartbeat causes no visit, because the scheduler goes through the nodes by itself (rm.scheduler.placement.walk).

With asynchronous scheduling a heartbeat without news still does one thing: it keeps walks from skipping the node as
silent. Nodes whose heartbeats are left out do not count as silent, and get the time of their last heartbeat when they
are resumed. This is exact if a node that sends all its heartbeats is never silent (`may_suspend`).

If only the last condition does not hold, all that the heartbeat does is that visit: `heartbeat` does it. If containers
have started or ended on the node, or the reply has it end or forget some, `heartbeat_with_news` does this too.

`watch` says whether all of them hold, and then finds out when they may no longer, without looking at all nodes: `due`
after each step of the core, and `idle_due` for all idle nodes of a partition together. `skip` makes the node what it
would be after its heartbeats. The caller keeps the times of heartbeats: rounds of preemption, and heartbeats that are
not left out, come at the same times as before.
"""

from __future__ import annotations

from rm.core.context import RMContext
from rm.core.events import PlayedHeartbeat, QuietHeartbeat
from rm.core.lifecycle_events import NodeUpdate
from rm.core.rm_node import RMNode
from rm.core.rm_node_lifecycle import take_news
from yarn.ids import NodeId
from yarn.protocols.tracker import NodeHeartbeatResponse
from yarn.states import NodeState


class QuietNodes:
    """The nodes whose heartbeats are left out. Dicts without values are sets that keep their order.

    `_full` need nothing until more fits on them, or a reservation is moved to them. `_idle` {partition: nodes} wait for
    requests, or while all queues are at their limits for any change, and are only named together, because most of what
    follows is served by the first of them. `_settled` (those with a reservation, and all others that refuse what is
    requested) wait for any change. With asynchronous scheduling all are `_unplaced`: heartbeats place nothing, so only
    what happens to the node itself matters. `_group_of` {node: the one of these groups that it is in}.
    """

    def __init__(self, context: RMContext) -> None:
        self._context = context
        self._suspended = context.scheduler.walks.suspended
        self._full: dict[NodeId, None] = {}
        self._idle: dict[str, dict[NodeId, None]] = {}
        self._settled: dict[NodeId, None] = {}
        self._unplaced: dict[NodeId, None] = {}
        self._group_of: dict[NodeId, dict[NodeId, None]] = {}
        self._due: dict[NodeId, None] = {}
        self._change_count = -1

    def may_suspend(self, node_id: NodeId, heard_ms: int, period_ms: int) -> bool:
        """False if a walk might find the node silent although a heartbeat arrives every `period_ms` from `heard_ms` on.

        That is so if the period is longer than the silence at which walks skip a node, or if the last heartbeat did not
        reach the scheduler, as when its reply was sent again. All nodes have to be resumed before `RefreshQueues`,
        which may change that silence.
        """
        scheduler = self._context.scheduler
        place = scheduler.nodes.get(node_id)
        if place is None or not scheduler.walks.is_on:
            return True
        return place.heard_ms == heard_ms and period_ms <= scheduler.context.settings.asynchronous.skip_after_ms

    def suspend(self, node_id: NodeId) -> None:
        """Start leaving out heartbeats of the node, which does not expire meanwhile."""
        if self._context.node_liveness.suspend(node_id):
            self._suspended[node_id] = None

    def resume(self, node_id: NodeId, last_ms: int) -> None:
        """Stop leaving out the node's heartbeats; the last one left out would have arrived at `last_ms`."""
        self._forget(node_id)
        if node_id in self._suspended:
            del self._suspended[node_id]
            if node_id in self._context.nodes:
                self._context.node_liveness.resume(node_id, last_ms)
            place = self._context.scheduler.nodes.get(node_id)
            if place is not None:
                place.heard_ms = last_ms

    def skip(self, node_id: NodeId, count: int) -> None:
        """Update the node as `count` heartbeats that change nothing would have done."""
        node = self._context.nodes.get(node_id)
        if node is not None:
            node.skip_heartbeats(count, self._context.settings.node_heartbeat_interval_ms)

    def needs_only_a_visit(self, node_id: NodeId, now_ms: int) -> bool:
        """True if all that a heartbeat without news could do is to have the scheduler visit the node."""
        node = self._context.nodes.get(node_id)
        return node is not None and node_id in self._context.scheduler.nodes and self._is_at_rest(node, now_ms)

    def needs_only_news(self, node_id: NodeId, now_ms: int) -> bool:
        """True if all that a heartbeat could do is to report containers, to be told what to end or forget, and that
        visit.
        """
        node = self._context.nodes.get(node_id)
        return (
            node is not None
            and node_id in self._context.scheduler.nodes
            and node.needs_only_news
            and self._is_in_use(node, now_ms)
        )

    def heartbeat(self, event: QuietHeartbeat) -> None:
        """Process a heartbeat of a node for which `needs_only_a_visit` holds."""
        self.skip(event.node_id, 1)
        self._context.send(NodeUpdate(event.node_id))

    def heartbeat_with_news(self, event: PlayedHeartbeat) -> NodeHeartbeatResponse:
        """Process a heartbeat of a node for which `needs_only_news` holds; returns the orders to the node."""
        context = self._context
        node = context.nodes[event.node_id]
        response = node.respond(context.settings.node_heartbeat_interval_ms)
        take_news(node, event.news)
        context.send(NodeUpdate(event.node_id))
        return response

    def unwatch(self, node_id: NodeId) -> None:
        """Stop watching the node: its next heartbeat arrives."""
        self._forget(node_id)

    def watch(self, node_id: NodeId, now_ms: int) -> bool:
        """Watch the node, if a heartbeat without news would change nothing now, until `due` returns it; True if so."""
        self._forget(node_id)
        context, scheduler = self._context, self._context.scheduler
        node, place = context.nodes.get(node_id), scheduler.nodes.get(node_id)
        if node is None or place is None or not self._is_at_rest(node, now_ms):
            return False
        if scheduler.walks.is_on:
            self._add(node_id, self._unplaced)
            return True
        if not scheduler.placement.is_known(place):
            return False
        if scheduler.placement.is_full(place):
            self._add(node_id, self._full)
        elif place.reserved_container is None and scheduler.placement.is_refusing(place.partition):
            self._add(node_id, self._idle.setdefault(place.partition, {}))
        else:
            self._add(node_id, self._settled)
        place.watch = self._due
        return True

    def _is_at_rest(self, node: RMNode, now_ms: int) -> bool:
        return not node.has_orders and self._is_in_use(node, now_ms)

    def _is_in_use(self, node: RMNode, now_ms: int) -> bool:
        """True if a heartbeat finds the node in use, and neither runs a round nor is the first that may place."""
        context, scheduler = self._context, self._context.scheduler
        return (
            node.state is NodeState.RUNNING
            and context.hosts.allows(node.node_id.host)
            and now_ms < scheduler.round_due_ms
            # The first heartbeat that may place containers again counts as a change. Walks do that by themselves.
            and (scheduler.context.placing_from_ms is None or scheduler.walks.is_on)
        )

    def note(self, node_id: NodeId) -> None:
        """Record that something has happened to the node, so that its next heartbeat may change something."""
        if self._suspended and node_id in self._suspended:
            self._due[node_id] = None

    def due(self) -> list[NodeId]:
        """Return the watched nodes whose next heartbeat may change something, and stop watching them."""
        scheduler = self._context.scheduler
        if scheduler.context.change_count != self._change_count:
            self._change_count = scheduler.context.change_count
            self._due.update(self._settled)
        if not self._due:
            return []
        due = [node_id for node_id in self._due if node_id in self._group_of]
        for node_id in due:
            self._forget(node_id)
        self._due.clear()
        return due

    def idle_due(self) -> list[str]:
        """The partitions whose idle nodes' next heartbeats may change something. These nodes are still watched."""
        is_refusing = self._context.scheduler.placement.is_refusing
        return [partition for partition, nodes in self._idle.items() if nodes and not is_refusing(partition)]

    def idle_partition(self, node_id: NodeId) -> str | None:
        """The partition of an idle node; None for others."""
        return next((partition for partition, nodes in self._idle.items() if node_id in nodes), None)

    def _add(self, node_id: NodeId, group: dict[NodeId, None]) -> None:
        group[node_id] = None
        self._group_of[node_id] = group

    def _forget(self, node_id: NodeId) -> None:
        group = self._group_of.pop(node_id, None)
        if group is None:
            return
        del group[node_id]
        place = self._context.scheduler.nodes.get(node_id)
        if place is not None:
            place.watch = None
