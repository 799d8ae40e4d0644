"""Policies that change queues in periodic rounds: remove idle queues, entitle leaves of managed parents.

AutoCreatedQueueDeletionPolicy removes a queue that was created on demand if two consecutive rounds find it without
applications (a parent: without children) and nothing was submitted to it for longer than the expiry. Queues are removed
in the order of Java's hash sets, which affects the result: each removal recomputes the shares of the siblings. A parent
whose last child is removed is found empty in the next round and removed in the one after. Rounds are one expiry apart.

Each policy runs only if the configuration lists it among the scheduler's monitors; by default it does not.
"""

from __future__ import annotations

from rm.scheduler.model.application import ApplicationTable
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.queues.queue_tree import QueueTree
from yarn.java.hash_order import hash_order, string_hash


class Policies:
    """AutoCreatedQueueDeletionPolicy and QueueManagementDynamicEditPolicy."""

    __slots__ = ("_applications", "_context", "_entitling", "_idle", "_removing", "_tree")

    def __init__(self, context: SchedulerContext, tree: QueueTree, applications: ApplicationTable) -> None:
        self._context = context
        self._tree = tree
        self._applications = applications
        self._idle = IdleQueues(tree)
        self._removing = Rounds()
        self._entitling = Rounds()

    def configure(self, now_ms: int) -> None:
        """Start or stop the rounds of each policy, after a start or refresh."""
        settings = self._context.settings
        expiry_ms = settings.idle_queue_expiry_s * 1000
        if self._removing.configure(expiry_ms, now_ms, are_wanted=settings.removes_idle_queues):
            self._idle.forget()
        self._entitling.configure(settings.queue_management_interval_ms, now_ms, are_wanted=settings.manages_queues)

    def next_deadline_ms(self) -> int | None:
        """The time of the next round; None = never."""
        deadlines = (self._removing.next_ms, self._entitling.next_ms)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def tick(self, now_ms: int) -> None:
        """Run the rounds that are due."""
        if self._removing.take(now_ms):
            self.remove_idle_queues(now_ms)
        if self._entitling.take(now_ms):
            self.entitle_leaves(now_ms)

    def remove_idle_queues(self, now_ms: int) -> None:
        """Run a round that removes unused queues that were created on demand."""
        self._at(now_ms)
        self._idle.remove(now_ms)

    def entitle_leaves(self, now_ms: int) -> None:
        """Run a round that moves guarantees from idle leaves to leaves with applications."""
        for parent in self._tree.managed_parents():
            self._at(now_ms)
            parent.run_round(self._applications)

    def _at(self, now_ms: int) -> None:
        self._context.now_ms = now_ms
        self._context.note_change()


class IdleQueues:
    """Removes idle queues; remembers which queues the last round found idle."""

    __slots__ = ("_marked", "_tree")

    def __init__(self, tree: QueueTree) -> None:
        self._tree = tree
        self._marked: frozenset[str] = frozenset()

    def forget(self) -> None:
        """Discard the results of earlier rounds."""
        self._marked = frozenset()

    def remove(self, now_ms: int) -> None:
        """Run one round. A queue that was also idle in the last round is not marked again, whether removed or not."""
        by_path = self._tree.by_path
        idle = [path for path in hash_order(by_path, string_hash) if _may_be_removed(by_path[path])]
        again = [path for path in idle if path in self._marked]
        self._marked = frozenset(idle).difference(again)
        for path in hash_order(again, string_hash):
            queue = self._tree.by_path.get(path)
            if queue is not None and _may_be_removed(queue) and self._is_expired(queue, now_ms):
                self._tree.remove(queue)

    def _is_expired(self, queue: CSQueue, now_ms: int) -> bool:
        submitted_ms = queue.last_submitted_ms
        expiry_s = queue.context.settings.idle_queue_expiry_s
        return submitted_ms is None or (now_ms - submitted_ms) // 1000 > expiry_s


def _may_be_removed(queue: CSQueue) -> bool:
    """True if the queue was created on demand, is empty, and may be removed by its configuration
    (isEligibleForAutoDeletion).
    """
    if not (queue.is_dynamic and queue.configuration.creation.removes_idle):
        return False
    return not queue.children if isinstance(queue, ParentQueue) else queue.application_total() == 0


class Rounds:
    """The times of a policy's rounds: the first at once, then one per interval.

    `next_ms`: the time of the next round; None: no round.
    """

    __slots__ = ("_interval_ms", "next_ms")

    def __init__(self) -> None:
        self._interval_ms = 0
        self.next_ms: int | None = None

    def configure(self, interval_ms: int, now_ms: int, *, are_wanted: bool) -> bool:
        """Start or stop the rounds after a start or refresh. True if they start; running ones keep their interval."""
        if not are_wanted:
            self.next_ms = None
        elif self.next_ms is None:
            self._interval_ms = max(1, interval_ms)
            self.next_ms = now_ms
            return True
        return False

    def take(self, now_ms: int) -> bool:
        """True if a round is due now. Several missed rounds count as one."""
        if self.next_ms is None or now_ms < self.next_ms:
            return False
        missed = (now_ms - self.next_ms) // self._interval_ms
        self.next_ms += (missed + 1) * self._interval_ms
        return True
