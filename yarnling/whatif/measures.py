"""The measures by which runs are compared and expectations are written, "p95 wait" for example. Pure.

A measure is a number about a scope: the cluster, a queue or a user. It knows its kind, so that it is written and read
with the right unit, and which direction is better, so that a comparison knows who gains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from msgspec import Struct

from yarn.settings.scheduler import ROOT
from yarn.times import duration
from yarnling.report.wording import count, share
from yarnling.whatif.figures import Figures, GroupFigures
from yarnling.whatif.queue_use import QueueUse
from yarnling.whatif.waits import AT_LEAST, Wait


class Kind(Enum):
    """DURATION in milliseconds, COUNT, SHARE as a fraction."""

    DURATION = "duration"
    COUNT = "count"
    SHARE = "share"


class Better(Enum):
    """Which direction of a measure is better. NEITHER: more is neither better nor worse."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


class Scope(Struct, frozen=True):
    """The subject of a number. `kind`: "cluster", "queue" or "user"; `name`: a queue's path, or a user."""

    kind: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" if self.name else self.kind


CLUSTER = Scope("cluster")
NODE_HOURS = "node-hours"
"""The time that machines were there, all together: what the cluster costs."""
MISSED_DEADLINES = "missed deadlines"
"""The measure that a simulation may end too early for."""


class Value(Struct, frozen=True):
    """A measured value. `at_least`: the number is a lower bound, because some containers were never allocated."""

    number: float
    at_least: bool = False


class Measure(Struct, frozen=True):
    """A measure of a run.

    `weight`: how much a difference in it matters to a reader, compared with other measures. `of_users`: False if it
    compares with a capacity, which only queues and the cluster have.

    `of` returns None where there is nothing to measure: a wait without containers, the use of a user.
    """

    name: str
    kind: Kind
    better: Better
    weight: float
    of: Callable[[GroupFigures, QueueUse | None], Value | None]
    of_users: bool = True

    def written(self, value: Value | None) -> str:
        """The value with its unit."""
        if value is None:
            return "-"
        write = {Kind.DURATION: duration, Kind.COUNT: count, Kind.SHARE: share}[self.kind]
        return f"{AT_LEAST if value.at_least else ''}{write(value.number)}"


def value_of(measure: Measure, scope: Scope, figures: Figures) -> Value | None:
    """The value of a measure in a run. None if the run has no such queue or user, or nothing to measure."""
    group = group_of(scope, figures)
    if group is None:
        return None
    path = {"cluster": ROOT, "queue": scope.name}.get(scope.kind, "")
    return measure.of(group, figures.use_by_queue.get(path))


def group_of(scope: Scope, figures: Figures) -> GroupFigures | None:
    """The figures of a scope; None if the run has no such queue or user."""
    if scope.kind == "cluster" or (scope.kind == "queue" and scope.name == ROOT):
        return figures.cluster
    groups = figures.users if scope.kind == "user" else (*figures.queues, *figures.parents)
    return next((group for group in groups if group.name == scope.name), None)


def scopes_of(runs: Iterable[Figures]) -> tuple[Scope, ...]:
    """The cluster, all queues and all users of some runs."""
    found = {CLUSTER: None}
    for run in runs:
        found |= {Scope("queue", group.name): None for group in (*run.queues, *run.parents)}
    for run in runs:
        found |= {Scope("user", group.name): None for group in run.users}
    return tuple(found)


def _wait(field: str, *, of_ams: bool = False) -> Callable[[GroupFigures, QueueUse | None], Value | None]:
    def value(group: GroupFigures, use: QueueUse | None) -> Value | None:
        wait: Wait | None = getattr(group.am_waits if of_ams else group.waits, field)
        return None if wait is None else Value(wait.ms, wait.at_least)

    return value


def _mean_run(group: GroupFigures, use: QueueUse | None) -> Value | None:
    return None if group.mean_run_ms is None else Value(group.mean_run_ms)


def _mean_wait(group: GroupFigures, use: QueueUse | None) -> Value | None:
    waits = group.waits
    return Value(waits.total_ms / waits.count, waits.unfinished > 0) if waits.count else None


def _number(of: Callable[[GroupFigures], float]) -> Callable[[GroupFigures, QueueUse | None], Value | None]:
    return lambda group, use: Value(of(group))


def _use(of: Callable[[QueueUse], float | None]) -> Callable[[GroupFigures, QueueUse | None], Value | None]:
    def value(group: GroupFigures, use: QueueUse | None) -> Value | None:
        number = None if use is None else of(use)
        return None if number is None else Value(number)

    return value


def _node_hours(group: GroupFigures, _use: QueueUse | None) -> Value | None:
    return None if group.node_ms is None else Value(group.node_ms)


_D, _C, _S = Kind.DURATION, Kind.COUNT, Kind.SHARE
_LOWER, _HIGHER, _NEITHER = Better.LOWER, Better.HIGHER, Better.NEITHER

MEASURES = {
    measure.name: measure
    for measure in (
        Measure("p50 wait", _D, _LOWER, 2, _wait("p50")),
        Measure("p95 wait", _D, _LOWER, 4, _wait("p95")),
        Measure("p99 wait", _D, _LOWER, 0, _wait("p99")),
        Measure("longest wait", _D, _LOWER, 0, _wait("longest")),
        Measure("p50 AM wait", _D, _LOWER, 0, _wait("p50", of_ams=True)),
        Measure("p95 AM wait", _D, _LOWER, 2, _wait("p95", of_ams=True)),
        Measure("mean wait", _D, _LOWER, 0, _mean_wait),
        Measure("mean run time", _D, _LOWER, 0, _mean_run),
        Measure("unallocated containers", _C, _LOWER, 5, _number(lambda group: group.waits.unfinished)),
        Measure("preempted containers", _C, _LOWER, 3, _number(lambda group: group.lost.containers)),
        Measure("lost work", _D, _LOWER, 1, _number(lambda group: group.lost.container_ms)),
        Measure("lost containers", _C, _LOWER, 3, _number(lambda group: group.lost_with_nodes.containers)),
        Measure("work of lost containers", _D, _LOWER, 1, _number(lambda group: group.lost_with_nodes.container_ms)),
        Measure(NODE_HOURS, _D, _LOWER, 4, _node_hours, of_users=False),
        Measure("failed containers", _C, _LOWER, 3, _number(lambda group: group.failed)),
        Measure("completed containers", _C, _HIGHER, 1, _number(lambda group: group.completed)),
        Measure("finished applications", _C, _HIGHER, 3, _number(lambda group: group.finished)),
        Measure("failed applications", _C, _LOWER, 8, _number(lambda group: group.failed_applications)),
        Measure("refused applications", _C, _LOWER, 8, _number(lambda group: group.refused)),
        Measure(MISSED_DEADLINES, _C, _LOWER, 10, _number(lambda group: group.missed)),
        Measure("AM-limit wait", _D, _LOWER, 0.5, _number(lambda group: group.am_limit_wait_ms)),
        Measure("user-limit wait", _D, _LOWER, 0.5, _number(lambda group: group.user_limit_wait_ms)),
        Measure("use", _S, _NEITHER, 1, _use(lambda use: use.use), of_users=False),
        Measure("peak use", _S, _NEITHER, 0, _use(lambda use: use.peak_use), of_users=False),
        Measure("time above guarantee", _S, _NEITHER, 0, _use(lambda use: use.above_guarantee), of_users=False),
        Measure("time at maximum", _S, _NEITHER, 0, _use(lambda use: use.at_maximum), of_users=False),
    )
}
"""{name: measure}. Those of weight 0 are for expectations only: a comparison would say the same thing twice."""
