"""When rounds of preemption run, and what becomes of their orders: Hadoop's SchedulingMonitor, driven by heartbeats.

In Hadoop a thread runs a round every so often. Here a node's heartbeat runs the one that is due, after the node was
served; a cluster without heartbeats has nothing to preempt either. With preemption off no round is ever due.
"""

from __future__ import annotations

from typing import assert_never

from rm.scheduler.applications import Applications
from rm.scheduler.capacity.booking import preempted_status, unreserved_status
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.notices import PreemptionFailed, VictimOrdered
from rm.scheduler.model.rm_container import RMContainer, RMContainerEvent
from rm.scheduler.preemption.policy import (
    MarkForKillable,
    MarkForPreemption,
    Order,
    ProportionalCapacityPreemptionPolicy,
)
from rm.scheduler.preemption.victims import Victim
from rm.scheduler.queue_tree import QueueTree
from yarn.resource import INT64_MAX

_NEVER_MS = INT64_MAX


class SchedulingMonitor:
    """`due_ms`: when the next round runs. `policy` remembers what was chosen in earlier ones."""

    __slots__ = ("_applications", "_context", "_tree", "due_ms", "policy")

    def __init__(self, context: SchedulerContext, tree: QueueTree, applications: Applications) -> None:
        self._context = context
        self._tree = tree
        self._applications = applications
        self.policy = ProportionalCapacityPreemptionPolicy(context, applications.table)
        self.due_ms = _NEVER_MS
        self.refresh()
        if self.due_ms != _NEVER_MS:
            # Hadoop's first round is at its start too, and finds nothing.
            self.due_ms += context.settings.preemption.interval_ms

    def refresh(self) -> None:
        """The configuration is new: rounds may begin, at once, or end; the queues may be others."""
        queues = self._tree.by_path.values()
        parents = ((queue.path, queue.parent.path if queue.parent is not None else None) for queue in queues)
        self._context.killables.refresh_queues(parents)
        if not self._context.settings.preemption.enabled:
            self.due_ms = _NEVER_MS
        elif self.due_ms == _NEVER_MS:
            self.due_ms = self._context.now_ms

    def run_due(self) -> None:
        """Run the round that is due; those that were missed since are not made up for."""
        context = self._context
        interval_ms = context.settings.preemption.interval_ms
        self.due_ms += ((context.now_ms - self.due_ms) // interval_ms + 1) * interval_ms
        self.run(context.now_ms)
        failure = self.policy.last_failure
        if failure is not None:
            context.notify(PreemptionFailed(str(failure)))

    def run(self, clock_ms: int) -> None:
        """One round, at `clock_ms` of the policy's clock."""
        self._context.note_change()
        for order in self.policy.edit_schedule(self._tree.root, clock_ms, self._drop):
            self._carry_out(order, clock_ms)

    def _carry_out(self, order: Order, clock_ms: int) -> None:
        match order:
            case MarkForPreemption(victim):
                attempt = self._applications.table.attempt_of(victim.container.id.application_id)
                if attempt is not None:
                    attempt.mark_for_preemption(victim.container.id)
                self._tell(victim, "told", clock_ms)
            case MarkForKillable(victim):
                self._end(victim, clock_ms)
            case _:
                assert_never(order)

    def _drop(self, reserved: RMContainer) -> None:
        self._applications.complete(reserved, unreserved_status(reserved.id), RMContainerEvent.KILL)

    def _end(self, victim: Victim, clock_ms: int) -> None:
        """At once, or with lazy preemption when its room is needed (markContainerForKillable)."""
        container, context = victim.container, self._context
        if not context.settings.preemption.lazy:
            self._tell(victim, "ended", clock_ms)
            self._applications.complete(container, preempted_status(container.id), RMContainerEvent.KILL)
            return
        self._tell(victim, "killable", clock_ms)
        node = context.nodes[container.node_id]
        node.mark_killable(container.id)
        attempt = self._applications.table.attempt_of(container.id.application_id)
        if attempt is not None:
            context.killables.add(container, node.partition, attempt.leaf.path)

    def _tell(self, victim: Victim, step: str, clock_ms: int) -> None:
        container = victim.container
        self._context.notify(
            VictimOrdered(container.id, container.node_id, step, victim.reason.name, victim.serves, clock_ms)
        )
