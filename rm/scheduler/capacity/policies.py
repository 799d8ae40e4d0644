"""What is done about queues in rounds, at its own times: idle ones go, leaves of managed parents are entitled anew."""

from __future__ import annotations

from rm.scheduler.context import SchedulerContext
from rm.scheduler.idle_queues import IdleQueues
from rm.scheduler.model.queue_tree import QueueTree
from rm.scheduler.preemption.monitor import Rounds


class Policies:
    """AutoCreatedQueueDeletionPolicy and QueueManagementDynamicEditPolicy; each runs only if it is named."""

    __slots__ = ("_context", "_entitling", "_idle", "_removing", "_tree")

    def __init__(self, context: SchedulerContext, tree: QueueTree) -> None:
        self._context = context
        self._tree = tree
        self._idle = IdleQueues(tree)
        self._removing = Rounds()
        self._entitling = Rounds()

    def configure(self, now_ms: int) -> None:
        """After a start or refresh: which of them run."""
        settings = self._context.settings
        expiry_ms = settings.idle_queue_expiry_s * 1000
        if self._removing.configure(expiry_ms, now_ms, are_wanted=settings.removes_idle_queues):
            self._idle.forget()
        self._entitling.configure(settings.queue_management_interval_ms, now_ms, are_wanted=settings.manages_queues)

    def next_deadline_ms(self) -> int | None:
        """When the next round is due; None = never."""
        deadlines = (self._removing.next_ms, self._entitling.next_ms)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def tick(self, now_ms: int) -> None:
        """The rounds that are due by now."""
        if self._removing.take(now_ms):
            self.remove_idle_queues(now_ms)
        if self._entitling.take(now_ms):
            self.entitle_leaves(now_ms)

    def remove_idle_queues(self, now_ms: int) -> None:
        """A round that takes away queues that were created on demand and that nobody uses."""
        self._at(now_ms)
        self._idle.remove(now_ms)

    def entitle_leaves(self, now_ms: int) -> None:
        """A round that takes guarantees from idle leaves and gives them to those with applications."""
        for parent in self._tree.managed_parents():
            self._at(now_ms)
            parent.run_round()

    def _at(self, now_ms: int) -> None:
        self._context.now_ms = now_ms
        self._context.revision += 1
