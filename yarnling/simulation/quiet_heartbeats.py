"""Leaves out the heartbeats of NodeManagers that would change nothing, without changing anything else.

A NodeManager whose heartbeats repeat one another, and are answered with nothing, stops sending them. Its heartbeats
stay planned, as numbers: when the next one is due, and so when each following one is. There are these degrees:

- nothing happens as long as neither the node nor the ResourceManager has anything new (rm.core.quiet_nodes);
- the ResourceManager may have something for the node: its next heartbeat arrives there, at its time, but the
  NodeManager does nothing for it. Often only the scheduler looks at the node, and then that is all that is done. If
  the reply contains nothing, it goes on like this;
- on a node that is played, containers start or end, or are forgotten: a heartbeat arrives with these news alone, and
  only a reply that has it forget an application is an event of its own;
- something else happens on the node, or the reply contains an order: the NodeManager becomes what it would be had it
  sent all its heartbeats, one of which may be on its way just then.

So every heartbeat that matters arrives at the same time, in the same order, as if none had been left out. That needs a
network whose delays are known (`Conditions.is_steady`) and without faults on the node's link; otherwise nodes send all
their heartbeats.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from rm.core.events import QuietHeartbeat
from wire.protocols.tracker import ResourceTracker
from yarn.configuration import Configuration
from yarn.errors import InternalError
from yarn.ids import NodeId
from yarn.protocols.tracker import NodeHeartbeatResponse
from yarn.settings.resourcemanager import AM_HEARTBEAT_INTERVAL, NM_HEARTBEAT_INTERVAL
from yarnling.simulation.engine import Engine, Rank
from yarnling.simulation.network import Link, Network, UnderWay
from yarnling.simulation.node_manager import NodeManagerProcess
from yarnling.simulation.quiet_am_heartbeats import QuietAMHeartbeats
from yarnling.simulation.resource_manager import ResourceManagerProcess
from yarnling.simulation.server import Envelope
from yarnling.simulation.turns import Turns


class QuietNode:
    """A node whose heartbeats are left out. `heard_ms`: when the last one arrived; `due_ms`: the time of the next one.

    `count`: those whose replies the NodeManager does not know, all of them without orders. `is_called`: the next one
    arrives. `is_sent`: it is under way already, because it could not wait until its time. `turn`: its place among the
    heartbeats of a period, which never changes, because all nodes have the same period.
    """

    __slots__ = ("calls", "count", "due_ms", "heard_ms", "is_called", "is_sent", "nm", "turn")

    def __init__(
        self,
        nm: NodeManagerProcess,
        heard_ms: int,
        due_ms: int,
        period_ms: int,
        *,
        count: int = 0,
        is_sent: bool = False,
    ) -> None:
        self.turn = (due_ms % period_ms, nm.number)
        self.nm = nm
        self.heard_ms = heard_ms
        self.due_ms = due_ms
        self.count = count
        self.is_called = False
        self.is_sent = is_sent
        self.calls = 0


class QuietHeartbeats:
    """All heartbeats of one cluster that are left out. `left_out` counts them.

    `_turns` has all the nodes, `_idle_turns` those that wait only for requests, and some that did.
    """

    def __init__(
        self, engine: Engine, network: Network, rm: ResourceManagerProcess, *, interval_ms: int, am_interval_ms: int
    ) -> None:
        self.left_out = 0
        self._engine = engine
        self._network = network
        self._rm = rm
        self._interval_ms = interval_ms
        self._delay_ms = network.conditions.delay_ms
        self._period_ms = interval_ms + 2 * self._delay_ms
        self._nodes: dict[NodeId, QuietNode] = {}
        self._round_ms = -1
        self._turns = Turns[QuietNode]()
        self._idle_turns = Turns[QuietNode]()
        self._turns_planned = 0
        self._is_turn_planned = False
        self._due_partitions: list[str] = []
        self.of_masters = QuietAMHeartbeats(engine, network, rm, am_interval_ms, self.look)
        rm.quiet_heartbeats = self
        network.before_fault = self._before_fault

    def leave_out(self, nm: NodeManagerProcess) -> None:
        """Leave out the core's next heartbeats. The last one has just been answered.

        They are quiet, or the node is played and they report only containers.
        """
        rm, heard_ms = self._rm, self._engine.now_ms - self._delay_ms
        if not rm.is_up or rm.is_paused or not self._network.link(nm.tracker_link).is_clear:
            return
        if not rm.core.quiet_nodes.may_suspend(nm.node_id, heard_ms, self._period_ms):
            return
        nm.pause_heartbeats()
        quiet = QuietNode(nm, heard_ms, self._engine.now_ms + self._interval_ms, self._period_ms)
        self._nodes[nm.node_id] = quiet
        self._turns.add(quiet)
        rm.core.quiet_nodes.suspend(nm.node_id)
        if nm.core.status.has_news:
            self._call(quiet)
        else:
            self._watch(quiet)

    def is_between_heartbeats(self, nm: NodeManagerProcess) -> bool:
        """True if the node's heartbeats are left out, and none is under way; if one is, the node sends them again.

        A heartbeat of this very millisecond is under way: it does not contain what happens now.
        """
        quiet = self._nodes.get(nm.node_id)
        if quiet is None or quiet.nm is not nm:
            return False
        self._catch_up(quiet)
        if self._is_answered(quiet) and not quiet.is_sent and self._engine.now_ms < quiet.due_ms:
            return True
        self.resume(nm)
        return False

    def note_news(self, nm: NodeManagerProcess) -> None:
        """Schedule the heartbeat that reports what was played on the node: its next one, or one at once."""
        quiet = self._nodes[nm.node_id]
        if nm.core.status.is_wanted:
            now_ms = self._engine.now_ms
            at_once = QuietNode(nm, quiet.heard_ms, now_ms, self._period_ms, count=quiet.count, is_sent=True)
            self._turns.discard(quiet)
            self._idle_turns.discard(quiet)
            self._turns.add(at_once)
            self._nodes[nm.node_id] = quiet = at_once
        if nm.core.status.has_news:
            self._call(quiet)

    def resume(self, nm: NodeManagerProcess) -> None:
        """Make the NodeManager send its heartbeats again; a no-op if it already does."""
        quiet = self._nodes.get(nm.node_id)
        if quiet is None or quiet.nm is not nm:
            return
        self._catch_up(quiet)
        if not self._is_answered(quiet):
            node = self._rm.core.context.node(nm.node_id)
            assert node is not None, "the ResourceManager has answered it"
            reply = Envelope(ResourceTracker.node_heartbeat, node.last_response)
            quiet.count -= 1
            quiet.due_ms = quiet.heard_ms - self._delay_ms
            self._send_again(quiet, UnderWay(quiet.heard_ms, reply), quiet.heard_ms)
        elif quiet.is_sent or self._is_over(quiet.due_ms, Rank.TIMER, quiet):
            self._send_again(quiet, UnderWay(quiet.due_ms), quiet.heard_ms)
        else:
            self._send_again(quiet, None, quiet.heard_ms)
        if quiet.is_called:
            self._call_for_round()

    def resume_all(self) -> None:
        """Make all NodeManagers and AMs send their heartbeats again."""
        self.of_masters.resume_all()
        for quiet in list(self._nodes.values()):
            self.resume(quiet.nm)

    def look(self) -> None:
        """After a step of the ResourceManager, schedule the heartbeats for which it may have news."""
        self.of_masters.look()
        for node_id in self._rm.core.quiet_nodes.due():
            self._call(self._nodes[node_id])
        self._look_at_idle()
        round_ms = self._rm.core.scheduler.round_due_ms
        if round_ms != self._round_ms:
            self._round_ms = round_ms
            if round_ms < 1 << 60:
                self._engine.at(max(round_ms, self._engine.now_ms), Rank.FAULT, 0, self._call_for_round)

    def _before_fault(self, link: Link) -> None:
        self.of_masters.before_fault(link)
        for quiet in list(self._nodes.values()):
            if quiet.nm.tracker_link == link.name:
                self.resume(quiet.nm)

    def _is_over(self, time_ms: int, rank: Rank, quiet: QuietNode) -> bool:
        return self._engine.is_over(time_ms, rank, quiet.nm.number)

    def _is_answered(self, quiet: QuietNode) -> bool:
        """False if the reply to the node's last heartbeat is under way."""
        return not quiet.count or self._is_over(quiet.heard_ms + self._delay_ms, Rank.HEARTBEAT, quiet)

    def _phase_ms(self) -> int:
        """The turn of the heartbeats that arrive now, in their period."""
        return (self._engine.now_ms - self._delay_ms) % self._period_ms

    def _has_passed(self, quiet: QuietNode) -> bool:
        """True if the heartbeat of a node whose turn it is would have arrived before what happens now."""
        return self._is_over(self._engine.now_ms, Rank.HEARTBEAT, quiet)

    def _catch_up(self, quiet: QuietNode) -> None:
        """Count the heartbeats that would have arrived before now."""
        first_ms, now_ms = quiet.due_ms + self._delay_ms, self._engine.now_ms
        if not self._is_over(first_ms, Rank.HEARTBEAT, quiet):
            return
        later, since_ms = divmod(now_ms - first_ms, self._period_ms)
        count = later + (1 if since_ms or self._is_over(now_ms, Rank.HEARTBEAT, quiet) else 0)
        quiet.count += count
        quiet.due_ms += count * self._period_ms
        quiet.heard_ms = quiet.due_ms - self._interval_ms - self._delay_ms
        self.left_out += count
        self._rm.core.quiet_nodes.skip(quiet.nm.node_id, count)

    def _watch(self, quiet: QuietNode) -> None:
        if not self._is_at_rest(quiet):
            self._call(quiet)

    def _is_at_rest(self, quiet: QuietNode) -> bool:
        """True if a heartbeat would change nothing; then the node is watched."""
        quiet_nodes, node_id = self._rm.core.quiet_nodes, quiet.nm.node_id
        is_at_rest = quiet_nodes.watch(node_id, self._engine.now_ms)
        if is_at_rest and quiet_nodes.idle_partition(node_id) is not None:
            self._idle_turns.add(quiet)
        return is_at_rest

    def _call(self, quiet: QuietNode) -> None:
        """Schedule the arrival of the node's next heartbeat."""
        if not quiet.is_called:
            self._catch_up(quiet)
            quiet.is_called = True
            quiet.calls += 1
            at_ms = quiet.due_ms + self._delay_ms
            self._engine.at(at_ms, Rank.HEARTBEAT, quiet.nm.number, partial(self._arrive, quiet, quiet.calls))

    def _arrive(self, quiet: QuietNode, call: int) -> None:
        if self._nodes.get(quiet.nm.node_id) is quiet and call == quiet.calls:
            quiet.is_called = False
            self._handle(quiet)

    def _handle(self, quiet: QuietNode) -> None:
        """Process the node's heartbeat, which arrives at the ResourceManager now."""
        node_id, now_ms, quiet_nodes = quiet.nm.node_id, self._engine.now_ms, self._rm.core.quiet_nodes
        if quiet.nm.core.status.has_news:
            quiet_nodes.unwatch(node_id)
        elif self._is_at_rest(quiet):
            return
        elif quiet_nodes.needs_only_a_visit(node_id, now_ms):
            self._rm.step(QuietHeartbeat(node_id))
            self._note_arrived(quiet)
            return
        if quiet.nm.is_played and quiet_nodes.needs_only_news(node_id, now_ms):
            self._report(quiet)
            return
        reply = quiet.nm.answer_of(quiet.nm.paused_heartbeat(quiet.count))
        content = reply.content(self._network.encode)
        if isinstance(content, NodeHeartbeatResponse) and content.is_quiet:
            self._note_answered(quiet, content)
        else:
            self._send_again(quiet, UnderWay(now_ms, reply), now_ms)
            # The heartbeat of a node that is out of use runs no round.
            self._call_for_round()

    def _report(self, quiet: QuietNode) -> None:
        """Report what was played on the node. Orders that end something make it send its heartbeats again."""
        nm, now_ms = quiet.nm, self._engine.now_ms
        reply = self._rm.play_news(nm.node_id, nm.core.status.take_news())
        if nm.core.status.only_forgets_ended(reply):
            self._note_answered(quiet, reply)
        elif nm.core.status.only_forgets(reply):
            self._note_arrived(quiet)
            self._engine.at(now_ms + self._delay_ms, Rank.HEARTBEAT, nm.number, partial(self._forget, quiet, reply))
        else:
            self._send_again(quiet, UnderWay(now_ms, Envelope(ResourceTracker.node_heartbeat, reply)), now_ms)

    def _forget(self, quiet: QuietNode, reply: NodeHeartbeatResponse) -> None:
        """Let the NodeManager follow a reply that arrives now, unless it sends its heartbeats again meanwhile."""
        nm = quiet.nm
        if self._nodes.get(nm.node_id) is not quiet:
            return
        nm.play_answer(reply)
        quiet.count = 0
        if not nm.core.reports_only_containers:
            self.resume(nm)
        elif nm.core.status.has_news:
            self._call(quiet)

    def _note_answered(self, quiet: QuietNode, reply: NodeHeartbeatResponse) -> None:
        """Note that a heartbeat has arrived whose reply needs no event of its own."""
        quiet.nm.core.status.reports_received(reply.containers_to_forget)
        self._note_arrived(quiet)

    def _note_arrived(self, quiet: QuietNode) -> None:
        quiet.count += 1
        quiet.heard_ms = self._engine.now_ms
        quiet.due_ms += self._period_ms
        quiet.is_sent = False
        self._watch(quiet)

    def _send_again(self, quiet: QuietNode, under_way: UnderWay | None, last_ms: int) -> None:
        """Let the NodeManager send its heartbeats itself from now on. Its last one arrived at `last_ms`."""
        del self._nodes[quiet.nm.node_id]
        self._turns.discard(quiet)
        self._idle_turns.discard(quiet)
        quiet.calls += 1
        self._rm.core.quiet_nodes.resume(quiet.nm.node_id, last_ms)
        quiet.nm.resume_heartbeats(quiet.count, quiet.due_ms, under_way)

    # Idle nodes. Requests concern all of them, and are mostly served by the first one: so they arrive one by one, in
    # the order of their turns, for as long as anything is requested and not all queues are at their limits.

    def _look_at_idle(self) -> None:
        due = self._rm.core.quiet_nodes.idle_due()
        if due != self._due_partitions:
            self._due_partitions, self._is_turn_planned = due, False
        if due and not self._is_turn_planned and (quiet := self._next_idle()) is not None:
            self._catch_up(quiet)
            self._is_turn_planned = True
            self._turns_planned += 1
            at_ms = quiet.due_ms + self._delay_ms
            self._engine.at(
                at_ms, Rank.HEARTBEAT, quiet.nm.number, partial(self._take_turn, quiet, self._turns_planned)
            )

    def _take_turn(self, quiet: QuietNode, number: int) -> None:
        if not self._is_turn_planned or number != self._turns_planned:
            return
        self._is_turn_planned = False
        is_due = quiet.due_ms + self._delay_ms == self._engine.now_ms
        if is_due and self._partition(quiet) is not None and not quiet.is_called:
            self._handle(quiet)
        self._look_at_idle()

    def _next_idle(self) -> QuietNode | None:
        """The idle node whose heartbeat would arrive next, of those that are due and not called already."""
        found, left = None, list[QuietNode]()
        for quiet in self._idle_turns.coming(self._phase_ms(), self._has_passed):
            partition = self._partition(quiet)
            if partition is None:
                left.append(quiet)
            elif partition in self._due_partitions and not quiet.is_called:
                found = quiet
                break
        for quiet in left:
            self._idle_turns.discard(quiet)
        return found

    def _partition(self, quiet: QuietNode) -> str | None:
        """The partition of an idle node; None if it is not idle any more."""
        node_id = quiet.nm.node_id
        return self._rm.core.quiet_nodes.idle_partition(node_id) if self._nodes.get(node_id) is quiet else None

    def _call_for_round(self) -> None:
        """Schedule the heartbeat that runs a due round of preemption: the next one, which may be left out otherwise."""
        if self._engine.now_ms < self._rm.core.scheduler.round_due_ms or not self._nodes:
            return
        self._call(next(self._turns.coming(self._phase_ms(), self._has_passed)))


def leave_out_quiet(
    network: Network, rm: ResourceManagerProcess, nms: Iterable[NodeManagerProcess], conf: Configuration
) -> QuietHeartbeats:
    """Leave out the quiet heartbeats of these NodeManagers. The network must be steady."""
    if not network.conditions.is_steady:
        raise InternalError(f"heartbeats cannot be left out of a network with {network.conditions}: it must be steady")
    quiet = QuietHeartbeats(
        network.engine,
        network,
        rm,
        interval_ms=NM_HEARTBEAT_INTERVAL.of(conf),
        am_interval_ms=AM_HEARTBEAT_INTERVAL.of(conf),
    )
    for nm in nms:
        nm.quiet_heartbeats = quiet
    return quiet
