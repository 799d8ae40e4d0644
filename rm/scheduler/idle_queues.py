"""Taking away queues that were created on demand and that nobody uses (AutoCreatedQueueDeletionPolicy).

A queue goes when two rounds in a row find it without applications (a parent: without children), and nobody has
submitted to it for longer than the expiry. They go in the order of Java's hash sets, which shows in what is left: each
removal works the shares beside it out anew. A parent whose last child goes is found empty by the next round, and goes
with the one after that. Rounds are an expiry apart, and only if the configuration names the policy among the
scheduler's monitors, which it does not by default.
"""

from __future__ import annotations

from rm.scheduler.model.parent_queue import ParentQueue
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.queue_tree import QueueTree
from yarn.java.hash_order import hash_order, string_hash


class IdleQueues:
    """What the last round found idle."""

    __slots__ = ("_marked", "_tree")

    def __init__(self, tree: QueueTree) -> None:
        self._tree = tree
        self._marked: frozenset[str] = frozenset()

    def forget(self) -> None:
        """Rounds begin."""
        self._marked = frozenset()

    def remove(self, now_ms: int) -> None:
        """One round. A queue that is idle and was so at the last round is not marked again, removed or not."""
        by_path = self._tree.by_path
        idle = [path for path in hash_order(by_path, string_hash) if _may_go(by_path[path])]
        again = [path for path in idle if path in self._marked]
        self._marked = frozenset(idle).difference(again)
        for path in hash_order(again, string_hash):
            queue = self._tree.by_path.get(path)
            if queue is not None and _may_go(queue) and self._is_expired(queue, now_ms):
                self._tree.remove(queue)

    def _is_expired(self, queue: CSQueue, now_ms: int) -> bool:
        submitted_ms = queue.last_submitted_ms
        expiry_s = queue.context.settings.idle_queue_expiry_s
        return submitted_ms is None or (now_ms - submitted_ms) // 1000 > expiry_s


def _may_go(queue: CSQueue) -> bool:
    """Created on demand, empty, and not kept by its configuration (isEligibleForAutoDeletion)."""
    if not (queue.is_dynamic and queue.configuration.creation.removes_idle):
        return False
    return not queue.children if isinstance(queue, ParentQueue) else queue.application_total() == 0
