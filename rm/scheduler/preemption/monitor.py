"""Runs rounds of preemption and carries out their orders: Hadoop's SchedulingMonitor, driven by heartbeats.

In Hadoop a thread runs a round per interval. Here a node's heartbeat runs the round that is due, after placement on
the node; a cluster without heartbeats has nothing to preempt either. With preemption off no round is ever due.

A round that would again do nothing is skipped. `SchedulerContext.change_count` counts every change that a round could
depend on, except the time: that decides when a victim is killed or forgotten, and since when a reservation has waited.
"""

from __future__ import annotations

from typing import assert_never

from rm.scheduler.capacity.booking import kill_or_mark, unreserved_status
from rm.scheduler.events.applications import Applications
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.notices import PreemptionDecided, PreemptionFailed
from rm.scheduler.model.origin import PreemptionStep
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.model.rm_container_events import RMContainerKill
from rm.scheduler.preemption.policy import (
    Figures,
    MarkForKillable,
    MarkForPreemption,
    Order,
    ProportionalCapacityPreemptionPolicy,
)
from rm.scheduler.preemption.preemption_round import Victim
from rm.scheduler.queues.queue_tree import QueueTree
from yarn.resource import INT64_MAX

_NEVER_MS = INT64_MAX


class SchedulingMonitor:
    """Runs rounds. `due_ms`: when the next round runs. `policy` keeps what earlier rounds chose.

    `_settled_count`: the change count at which a round did nothing, and a later one would do nothing.
    """

    __slots__ = ("_applications", "_context", "_settled_count", "_tree", "due_ms", "policy")

    def __init__(self, context: SchedulerContext, tree: QueueTree, applications: Applications) -> None:
        self._context = context
        self._tree = tree
        self._applications = applications
        self.policy = ProportionalCapacityPreemptionPolicy(context, applications.table)
        self.due_ms = _NEVER_MS
        self._settled_count = -1
        self.refresh()
        if self.due_ms != _NEVER_MS:
            # Hadoop's first round also runs at the start and finds nothing; it is skipped here.
            self.due_ms += context.settings.preemption.interval_ms

    def refresh(self) -> None:
        """Apply a new configuration: rounds start at once, or stop; queues may have been added."""
        queues = self._tree.by_path.values()
        parents = ((queue.path, queue.parent.path if queue.parent is not None else None) for queue in queues)
        self._context.killables.refresh_queues(parents)
        if not self._context.settings.preemption.enabled:
            self.due_ms = _NEVER_MS
        elif self.due_ms == _NEVER_MS:
            self.due_ms = self._context.now_ms

    def run_due(self) -> None:
        """Run the round that is due. Rounds missed since then are skipped."""
        context = self._context
        interval_ms = context.settings.preemption.interval_ms
        self.due_ms += ((context.now_ms - self.due_ms) // interval_ms + 1) * interval_ms
        self.run(context.now_ms)
        failure = self.policy.last_failure
        if failure is not None:
            context.notify(PreemptionFailed(str(failure)))

    def run(self, clock_ms: int) -> None:
        """Run one round, at `clock_ms` of the policy's clock, unless it would do nothing."""
        if self.is_settled():
            return
        context = self._context
        context.note_change()
        change_count = context.change_count
        for order in self.policy.edit_schedule(self._tree.root, clock_ms, self._drop):
            self._carry_out(order, clock_ms)
        if context.change_count == change_count and not self.policy.heeds_time():
            self._settled_count = change_count

    def is_settled(self) -> bool:
        """True if a round would do nothing, because nothing has changed since the last one, which did nothing."""
        return self._settled_count == self._context.change_count

    def _carry_out(self, order: Order, clock_ms: int) -> None:
        match order:
            case MarkForPreemption(victim, figures):
                attempt = self._applications.table.attempt_of(victim.container.id.application_id)
                if attempt is not None:
                    attempt.mark_for_preemption(victim.container.id)
                self._notify(victim, "requested", clock_ms, figures)
            case MarkForKillable(victim, figures):
                self._kill(victim, clock_ms, figures)
            case _:
                assert_never(order)

    def _drop(self, reserved: RMContainer) -> None:
        self._context.note_change()
        self._applications.complete(reserved, unreserved_status(reserved.id), RMContainerKill)

    def _kill(self, victim: Victim, clock_ms: int, figures: Figures | None) -> None:
        self._notify(victim, "killable" if self._context.settings.preemption.lazy else "killed", clock_ms, figures)
        kill_or_mark(victim.container, self._applications.table, self._context)

    def _notify(self, victim: Victim, step: str, clock_ms: int, figures: Figures | None) -> None:
        container, context = victim.container, self._context
        if figures is not None:
            container.note_preemption(PreemptionStep(context.now_ms, step, victim.reason.name, *figures))
        context.notify(
            PreemptionDecided(container.id, container.node_id, step, victim.reason.name, victim.serves, clock_ms)
        )
