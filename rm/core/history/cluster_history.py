"""The history of a cluster: use, requests and decisions by queue, use by node, and why applications waited.

The shell calls `sample` every few seconds, and goes through `explain_waiting` for as long as it has time. Both read the
core and change nothing in it. If nothing has changed since the last sample (`SchedulerContext.change_count`), nothing
is looked at, however large the cluster is. Nothing at all happens at a heartbeat.

StepCurves are kept twice, fine for the last minutes and coarse for a day, so that their memory is bounded: at most
CURVES_MAX queues and as many nodes, each with `rows_max` rows of its resolution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rm.core.context import RMContext
from rm.core.explain.verdict_wording import reason_of
from rm.core.history.curves import Resolution, StepCurves
from rm.core.history.verdicts import PastVerdicts
from rm.core.reports.queues import ROOT, leaves_of
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from yarn.ids import ApplicationId
from yarn.protocols.inspection import PastVerdict
from yarn.times import HOUR_MS, MINUTE_MS, SECOND_MS

FINE = Resolution(5 * SECOND_MS, 10 * MINUTE_MS)
COARSE = Resolution(10 * MINUTE_MS, 24 * HOUR_MS)
CLUSTER_COLUMNS = ("total_mb", "nodes")
QUEUE_COLUMNS = (
    "used_mb",
    "reserved_mb",
    "pending_mb",
    "applications",
    "waiting",
    "waiting_since_ms",
    "placed",
    "ended",
    "preempted",
)
"""Memory in all partitions. `used_mb` has no reservations; `applications`: active ones; `waiting`: those that request
something or wait for activation; `waiting_since_ms`: of the oldest request, 0 if there is none. The last three count
containers since the start of the ResourceManager.
"""
NODE_COLUMNS = ("total_mb", "used_mb", "reserved_mb", "containers")
_SINCE = QUEUE_COLUMNS.index("waiting_since_ms")
_CLUSTER = "cluster"


class _Level:
    """The curves of one resolution. `seen`: the scheduler's count of changes at the last sample."""

    __slots__ = ("cluster", "next_ms", "nodes", "queues", "resolution", "seen")

    def __init__(self, resolution: Resolution) -> None:
        self.resolution = resolution
        self.cluster = StepCurves(len(CLUSTER_COLUMNS), resolution)
        self.queues = StepCurves(len(QUEUE_COLUMNS), resolution)
        self.nodes = StepCurves(len(NODE_COLUMNS), resolution)
        self.next_ms = 0
        self.seen = -1


class ClusterHistory:
    """Samples of one core. `since_ms`: the time of the first one, None before it."""

    def __init__(self, context: RMContext, resolutions: Sequence[Resolution] = (FINE, COARSE)) -> None:
        self._context = context
        self._levels = [_Level(resolution) for resolution in resolutions]
        self._verdicts = PastVerdicts()
        self._explained: dict[ApplicationId, int] = {}  # the count of changes when the application was last explained
        self._explained_at = -1  # the count of changes for which all of them have been explained
        self.since_ms: int | None = None

    def sample(self, now_ms: int) -> None:
        """Note the rows of all queues and nodes in the levels whose step is over, if anything has changed."""
        if self.since_ms is None:
            self.since_ms = now_ms
        count = self._context.scheduler.context.change_count
        due = [level for level in self._levels if now_ms >= level.next_ms]
        for level in due:
            level.next_ms = now_ms + level.resolution.step_ms
        changed = [level for level in due if level.seen != count]
        if not changed:
            return
        cluster, queues, nodes = _cluster_row(self._context), _queue_rows(self._context), _node_rows(self._context)
        for level in changed:
            level.seen = count
            level.cluster.note(now_ms, {_CLUSTER: cluster})
            level.queues.note(now_ms, queues)
            level.nodes.note(now_ms, nodes)

    def explain_waiting(self, now_ms: int) -> Iterator[ApplicationId]:
        """Note the verdict on the first request of each application that waits, and yield it: those that were
        explained longest ago first, and none to which nothing has happened since.

        The caller may stop at any time; the next call goes on with the others.
        """
        count = self._context.scheduler.context.change_count
        if self._explained_at == count:
            return
        waiting = {attempt.attempt_id.application_id: attempt for attempt in self._waiting()}
        for application_id in self._verdicts.waiting():
            if application_id not in waiting:
                self._verdicts.end(application_id, now_ms)
        self._explained = {known: seen for known, seen in self._explained.items() if known in waiting}
        for application_id in sorted(waiting, key=lambda one: self._explained.get(one, -1)):
            if self._explained.get(application_id) == count:
                break
            self._explained[application_id] = count
            reason = reason_of(self._context, waiting[application_id], None, now_ms)
            if reason is None:
                self._verdicts.end(application_id, now_ms)
            else:
                self._verdicts.note(application_id, now_ms, *reason)
            yield application_id
        self._explained_at = count

    def verdicts_of(self, application_id: ApplicationId) -> tuple[PastVerdict, ...]:
        """Why the application has waited, the oldest entry first."""
        return self._verdicts.of(application_id)

    def cluster(self, from_ms: int) -> list[tuple[int, ...]]:
        """Rows (time in ms, *CLUSTER_COLUMNS), the one that held at `from_ms` first."""
        return self._level(from_ms).cluster.rows(_CLUSTER, from_ms) or []

    def queue(self, path: str, from_ms: int) -> list[tuple[int, ...]] | None:
        """Rows (time in ms, *QUEUE_COLUMNS) of a queue and all below it; None if nothing is known of it."""
        return self._level(from_ms).queues.rows(path, from_ms)

    def node(self, node_id: str, from_ms: int) -> list[tuple[int, ...]] | None:
        """Rows (time in ms, *NODE_COLUMNS) of a node; None if nothing is known of it."""
        return self._level(from_ms).nodes.rows(node_id, from_ms)

    def step_ms(self, from_ms: int) -> int:
        """The time between two samples of the rows from `from_ms` on."""
        return self._level(from_ms).resolution.step_ms

    def _level(self, from_ms: int) -> _Level:
        """The finest level that reaches back to `from_ms`, or the last one."""
        for level in self._levels[:-1]:
            if from_ms >= level.next_ms - level.resolution.step_ms - level.resolution.kept_ms:
                return level
        return self._levels[-1]

    def _waiting(self) -> Iterator[FiCaSchedulerApp]:
        for leaf in _leaves(self._context):
            yield from _waiting_in(leaf)


def _leaves(context: RMContext) -> Iterator[LeafQueue]:
    root = context.scheduler.queue(ROOT)
    assert root is not None, "the root queue always exists"
    return iter(leaves_of(root))


def _waiting_in(leaf: LeafQueue) -> list[FiCaSchedulerApp]:
    """The attempts that request something; a leaf for which nothing is pending is not searched."""
    if not (leaf.usage.is_pending() or leaf.pending_count or leaf.held_back):
        return []
    return [attempt for attempt in leaf.attempts.values() if not attempt.is_stopped and attempt.usage.is_pending()]


def _cluster_row(context: RMContext) -> tuple[int, ...]:
    return context.scheduler.cluster_resource.memory_mb, len(context.scheduler.nodes)


def _queue_rows(context: RMContext) -> dict[str, list[int]]:
    """{path: row}: leaves as they are, and for each queue above them the sum, with the oldest request."""
    found: dict[str, list[int]] = {}
    for leaf in _leaves(context):
        row = _leaf_row(context, leaf)
        for queue in leaf.and_above():
            known = found.get(queue.path)
            found[queue.path] = row if known is None else _sum(known, row)
    return found


def _sum(one: Sequence[int], other: Sequence[int]) -> list[int]:
    total = [left + right for left, right in zip(one, other, strict=True)]
    total[_SINCE] = min((since for since in (one[_SINCE], other[_SINCE]) if since), default=0)
    return total


def _leaf_row(context: RMContext, leaf: LeafQueue) -> list[int]:
    usage = leaf.usage
    labels = list(usage.partitions())
    reserved_mb = sum(usage.reserved(label).memory_mb for label in labels)
    waiting = _waiting_in(leaf)
    health = context.scheduler.context.health
    totals = None if health is None else health.totals.get(leaf.path)
    return [
        sum(usage.used(label).memory_mb for label in labels) - reserved_mb,
        reserved_mb,
        sum(usage.pending(label).memory_mb for label in labels),
        leaf.active_count,
        len(waiting),
        min((attempt.requests.requested_since_ms() for attempt in waiting), default=0),
        0 if totals is None else totals.allocated,
        0 if totals is None else totals.released,
        leaf.losses.containers,
    ]


def _node_rows(context: RMContext) -> dict[str, tuple[int, ...]]:
    return {str(node_id): _node_row(node) for node_id, node in context.scheduler.nodes.items()}


def _node_row(node: SchedulerNode) -> tuple[int, ...]:
    reserved = node.reserved_container
    reserved_mb = 0 if reserved is None else reserved.resource.memory_mb
    return node.total.memory_mb, node.allocated.memory_mb, reserved_mb, len(node.containers)
