"""Compares a workload under two configurations: what differs, what of it matters, who gains and who pays. Pure.

Each side has one run or several, with different seeds; values are medians over the runs of a side. A difference is
noise if it is not larger than the spread of the values among the runs of one side: with another seed it might have been
the other way round. It is too small to mention below a threshold. What is left is ordered by importance: how much the
measure matters to people, times the relative difference, times the share of all containers that it concerns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import TypeVar

from msgspec import Struct

from yarn.times import MINUTE_MS, SECOND_MS
from yarnling.whatif.error_margins import margin_of, with_margin
from yarnling.whatif.expectations import median_of
from yarnling.whatif.figures import Figures
from yarnling.whatif.measures import (
    MEASURES,
    NODE_HOURS,
    Better,
    Kind,
    Measure,
    Scope,
    Value,
    group_of,
    scopes_of,
    value_of,
)
from yarnling.whatif.reasons import MainReason, main_reason, reason_of_measure
from yarnling.whatif.result import WaitReason
from yarnling.workload.calibration import Calibration

THRESHOLD = 0.1
"""A smaller difference, as a fraction of the larger value, is not mentioned."""
FLOORS = {Kind.DURATION: 5 * SECOND_MS, Kind.COUNT: 1, Kind.SHARE: 0.02}
"""An absolute difference smaller than this is not mentioned either: waits differ by some heartbeats."""
LARGE = {Kind.DURATION: 2 * MINUTE_MS, Kind.COUNT: 10, Kind.SHARE: 0.1}
"""Differences of values below this are less important, however large they are in relation."""
SMALLEST_SHARE = 0.02
"""A group with few containers counts as if it had this share of all: else a small queue could not get a sentence."""
QUEUES_FEW = 12
"""If the waits of more queues changed, their parents say who gains and who pays."""
USER_WEIGHT = 0.4
"""Differences of users usually repeat those of their queue."""


class ChangeVerdict(Enum):
    """The meaning of a difference. OTHER: neither better nor worse; NOISE: maybe chance; SMALL: below the threshold."""

    BETTER = "better"
    WORSE = "worse"
    OTHER = "other"
    NOISE = "noise"
    SMALL = "small"


class Difference(Struct, frozen=True):
    """A measure of one scope on both sides. `spread`: of the values among the runs of a side. `margin`: the error of
    `after`, from the replay of the recorded run and from the spread; None: the workload was not calibrated.
    """

    scope: Scope
    measure: Measure
    before: Value | None
    after: Value | None
    spread: float
    verdict: ChangeVerdict
    importance: float
    margin: float | None = None

    @property
    def after_text(self) -> str:
        """The value after the change, with its error."""
        return with_margin(self.measure, self.after, self.margin)

    @property
    def matters(self) -> bool:
        """True if it is worth mentioning."""
        return self.verdict not in (ChangeVerdict.NOISE, ChangeVerdict.SMALL)


class Balance(Struct, frozen=True):
    """Gain (negative) or loss of a queue or a user: `change_ms` is the change of the mean wait of a container.

    `margin_ms`: the error of `after_ms`, as in `Difference`.
    """

    scope: Scope
    before_ms: float
    after_ms: float
    containers: int
    verdict: ChangeVerdict
    margin_ms: float | None = None

    @property
    def after_text(self) -> str:
        """The mean wait after the change, with its error."""
        return with_margin(MEASURES[MEAN_WAIT], Value(self.after_ms), self.margin_ms)

    @property
    def change_ms(self) -> float:
        return self.after_ms - self.before_ms

    @property
    def total_ms(self) -> float:
        """The change of the waits of all its containers together."""
        return self.change_ms * self.containers


class ParentBalance(Struct, frozen=True):
    """Losses and gains of the leaf queues right below a parent together: how many there are, and `total_ms`, the change
    of the waits of all their containers, negative if they gain.
    """

    parent: str
    paying: int
    gaining: int
    total_ms: float


class Comparison(Struct, frozen=True):
    """The result of a comparison.

    `differences`: those that matter, most important first; `noise`: those that may be chance. `balances`: queues and
    users whose mean wait changed, those who pay most first. `only_before`, `only_after`: leaf queues of one side.
    """

    before: tuple[Figures, ...]
    after: tuple[Figures, ...]
    differences: tuple[Difference, ...]
    noise: tuple[Difference, ...]
    balances: tuple[Balance, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    @property
    def calibration(self) -> Calibration | None:
        """The calibration of the workload after the change; None if it has none."""
        return self.after[0].calibration

    def gainers(self, kind: str) -> tuple[Balance, ...]:
        """The queues or users that wait less than before, the largest gain first."""
        return tuple(each for each in reversed(self.balances) if each.scope.kind == kind and each.change_ms < 0)

    def payers(self, kind: str) -> tuple[Balance, ...]:
        """The queues or users that wait longer than before, the largest loss first."""
        return tuple(each for each in self.balances if each.scope.kind == kind and each.change_ms > 0)

    def reason(self, changed: Difference | Balance | ParentBalance) -> MainReason | None:
        """The main reason of a wait that changed, on the side where it is longer; None for what is not a wait."""
        if isinstance(changed, ParentBalance):
            return main_reason(self._reasons(is_after=changed.total_ms > 0), Scope("queue", changed.parent))
        if isinstance(changed, Balance):
            return main_reason(self._reasons(is_after=changed.change_ms > 0), changed.scope)
        if changed.before is None or changed.after is None or changed.before.number == changed.after.number:
            return None
        reasons = self._reasons(is_after=changed.after.number > changed.before.number)
        return reason_of_measure(reasons, changed.scope, changed.measure)

    def _reasons(self, *, is_after: bool) -> list[WaitReason]:
        return [reason for run in (self.after if is_after else self.before) for reason in run.wait_reasons]

    def parents(self) -> tuple[ParentBalance, ...]:
        """The balances of queues by parent, those who pay most first; none if few queues, or of one parent, changed."""
        below: dict[str, list[Balance]] = {}
        queues = [each for each in self.balances if each.scope.kind == "queue"]
        for each in queues:
            below.setdefault(each.scope.name.rpartition(".")[0], []).append(each)
        if len(queues) <= QUEUES_FEW or len(below) < 2:
            return ()
        found = [
            ParentBalance(
                parent,
                sum(each.change_ms > 0 for each in balances),
                sum(each.change_ms < 0 for each in balances),
                sum(each.total_ms for each in balances),
            )
            for parent, balances in below.items()
        ]
        return tuple(sorted(found, key=lambda each: (-each.total_ms, each.parent)))


def compare(before: Sequence[Figures], after: Sequence[Figures], threshold: float = THRESHOLD) -> Comparison:
    """Compare the runs of two configurations; at least one run each. Use is of the type measured in the first after."""
    measured = after[0].measured
    before, after = ([run.measured_in(measured) for run in runs] for runs in (before, after))
    scopes = scopes_of((*before, *after))
    common = [scope for scope in scopes if group_of(scope, before[0]) and group_of(scope, after[0])]
    found = [
        _difference(scope, measure, (before, after), threshold)
        for scope in common
        for measure in MEASURES.values()
        if measure.weight and (measure.name != NODE_HOURS or nodes_differ((*before, *after)))
    ]
    found.sort(key=lambda each: -each.importance)
    balances = [_balance(scope, (before, after), threshold) for scope in common if scope.kind != "cluster"]
    leaves = [{queue.name: None for queue in runs[0].queues} for runs in (before, after)]
    return Comparison(
        tuple(before),
        tuple(after),
        tuple(each for each in found if each.matters),
        tuple(each for each in found if each.verdict is ChangeVerdict.NOISE),
        tuple(sorted((each for each in balances if _changed(each, after)), key=lambda each: -each.total_ms)),
        tuple(name for name in leaves[0] if name not in leaves[1]),
        tuple(name for name in leaves[1] if name not in leaves[0]),
    )


def nodes_differ(runs: Sequence[Figures]) -> bool:
    """False if all runs have the same number of nodes all the time: then node-hours only say when a run ended."""
    return any(run.nodes.changes for run in runs) or len({run.nodes.most for run in runs}) > 1


MEAN_WAIT = "mean wait"
_T = TypeVar("_T")


def ends_of(balances: Sequence[_T], most: int) -> Sequence[_T]:
    """The balances with the largest losses and gains, `most` together, if there are more than that."""
    gaining = most - most // 2
    return balances if len(balances) <= most else (*balances[: most // 2], *balances[-gaining:])


Sides = tuple[Sequence[Figures], Sequence[Figures]]


def _difference(scope: Scope, measure: Measure, sides: Sides, threshold: float) -> Difference:
    values = [[value_of(measure, scope, run) for run in runs] for runs in sides]
    before, after = (median_of(side) for side in values)
    spread = max(map(_spread, values))
    verdict = _verdict(measure, (before, after), spread, threshold)
    importance = 0.0
    if before is not None and after is not None:
        weight = measure.weight * (USER_WEIGHT if scope.kind == "user" else 1)
        importance = weight * _relative(before, after, LARGE[measure.kind]) * _share(scope, sides)
    margin = margin_of(measure, scope, after, sides[1][0].calibration, spread)
    return Difference(scope, measure, before, after, spread, verdict, importance, margin)


def _verdict(
    measure: Measure, values: tuple[Value | None, Value | None], spread: float, threshold: float
) -> ChangeVerdict:
    before, after = values
    if before is None or after is None:
        return ChangeVerdict.SMALL
    change = after.number - before.number
    if abs(change) < FLOORS[measure.kind] or _relative(before, after, 0) < threshold:
        return ChangeVerdict.SMALL
    if abs(change) <= spread:
        return ChangeVerdict.NOISE
    if measure.better is Better.NEITHER:
        return ChangeVerdict.OTHER
    return ChangeVerdict.BETTER if (change < 0) == (measure.better is Better.LOWER) else ChangeVerdict.WORSE


def _relative(before: Value, after: Value, floor: float) -> float:
    """The difference as a fraction of the larger value, or of `floor` if that is larger."""
    larger = max(before.number, after.number, floor)
    return abs(after.number - before.number) / larger if larger else 0.0


def _spread(values: Sequence[Value | None]) -> float:
    numbers = [value.number for value in values if value is not None]
    return max(numbers) - min(numbers) if numbers else 0.0


def _share(scope: Scope, sides: Sides) -> float:
    """The share of all containers that the scope has, on the side where it is larger."""
    shares = [SMALLEST_SHARE]
    for runs in sides:
        group = group_of(scope, runs[0])
        if group is not None and runs[0].cluster.containers:
            shares.append(group.containers / runs[0].cluster.containers)
    return math.sqrt(max(shares))


def _balance(scope: Scope, sides: Sides, threshold: float) -> Balance:
    """The mean waits of a scope, judged like any other duration."""
    means = [[_mean_wait(scope, run) for run in runs] for runs in sides]
    before, after = (median_of(side) or Value(0) for side in means)
    spread = max(map(_spread, means))
    verdict = _verdict(MEASURES["p50 wait"], (before, after), spread, threshold)
    group = group_of(scope, sides[1][0])
    margin = margin_of(MEASURES[MEAN_WAIT], scope, after, sides[1][0].calibration, spread)
    return Balance(scope, before.number, after.number, group.containers if group else 0, verdict, margin)


def _mean_wait(scope: Scope, run: Figures) -> Value:
    group = group_of(scope, run)
    return Value(group.waits.total_ms / group.waits.count if group and group.waits.count else 0.0)


def _changed(balance: Balance, after: Sequence[Figures]) -> bool:
    """True for a leaf queue or a user with a difference that matters; parents repeat their leaves."""
    is_leaf = balance.scope.kind == "user" or any(queue.name == balance.scope.name for queue in after[0].queues)
    return is_leaf and balance.verdict in (ChangeVerdict.BETTER, ChangeVerdict.WORSE)
