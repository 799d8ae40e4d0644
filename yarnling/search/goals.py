"""Goals of a search, and how far the runs of a configuration are from them. Pure.

A configuration is run with several seeds, and judged by the worst of them: more seeds can only make its figures worse.
So a configuration whose first run is already worse than the best known one need not be run again.

The distance from a goal is 0 if it is met, and else grows from 0 to 1 with the amount by which its limit is missed:
twice the limit is 0.5, three times the limit 0.67. So a goal that is far out of reach does not hide the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from yarnling.whatif.expectations import Checked, Expectation, meets
from yarnling.whatif.figures import Figures
from yarnling.whatif.measures import Better, Kind, Measure, Scope, Value, value_of

SMALL_LIMITS = {Kind.DURATION: 60_000, Kind.COUNT: 10, Kind.SHARE: 0.1}
"""A limit below this, 0 for example, is missed by an amount that is compared with this instead."""
SHORTEST = 0.01
"""The least distance of a goal that is not met."""
NOTHING_MEASURED = 1.0
"""The distance if there is nothing to measure, for example the wait of a queue without containers."""


class Objective(Struct, frozen=True):
    """A figure to minimise, or to maximise, among the configurations that meet the goals."""

    text: str
    scope: Scope
    measure: Measure
    is_maximised: bool = False

    def cost(self, runs: Sequence[Figures]) -> float:
        """The figure of the worst run, negative if it is maximised; infinity if a run has nothing to measure."""
        values = [value_of(self.measure, self.scope, run) for run in runs]
        numbers = [
            math.inf if value is None else -value.number if self.is_maximised else value.number for value in values
        ]
        return max(numbers)

    def written(self, cost: float) -> str:
        """The figure of a cost, with its unit."""
        return self.measure.written(None if math.isinf(cost) else Value(abs(cost)))


class Goals(Struct, frozen=True):
    """The goals of a search: limits, each of which must hold with every seed, and at most one objective."""

    limits: tuple[Expectation, ...]
    objective: Objective | None = None


class GoalJudgement(Struct, frozen=True):
    """The judgement on a configuration. `values` and `distances`: of each limit, with the worst seed. `cost`: of the
    objective, 0 without one. `runs`: how many seeds were run.
    """

    values: tuple[Value | None, ...]
    distances: tuple[float, ...]
    cost: float
    runs: int

    @property
    def distance(self) -> float:
        """The sum of the distances, 0 if all goals are met."""
        return sum(self.distances)

    @property
    def is_met(self) -> bool:
        """True if all goals are met."""
        return not any(self.distances)


def judge(goals: Goals, runs: Sequence[Figures]) -> GoalJudgement:
    """Judge a configuration by its runs; at least one."""
    worst = [max(_measured(limit, runs), key=lambda each: each[0]) for limit in goals.limits]
    return GoalJudgement(
        values=tuple(value for _, value in worst),
        distances=tuple(distance for distance, _ in worst),
        cost=goals.objective.cost(runs) if goals.objective is not None else 0.0,
        runs=len(runs),
    )


def limit_of(expectation: Expectation, before: Sequence[Figures]) -> Expectation:
    """The expectation as a limit: one that compares with before gets the limit that the runs before the change set.

    The worst of them counts, as in a judgement.
    """
    if not expectation.needs_before:
        return expectation
    measure = expectation.measure
    values = [value for run in before if (value := value_of(measure, expectation.scope, run)) is not None]
    is_lower_better = measure.better is Better.LOWER
    numbers = [value.number for value in values]
    worst = (max if is_lower_better else min)(numbers, default=0.0)
    margin = expectation.bound * worst if expectation.is_relative else expectation.bound
    comparison, bound = ("<=", worst + margin) if is_lower_better else (">=", max(worst - margin, 0.0))
    return Expectation(expectation.text, expectation.scope, measure, comparison, bound)


def checked(limit: Expectation, value: Value | None, distance: float) -> Checked:
    """A limit with the value of the worst seed, for people."""
    return Checked(limit.text, not distance, limit.measure.written(value))


def is_dominated(distances: Sequence[float], others: Sequence[float]) -> bool:
    """True if the others are nowhere larger, and somewhere smaller."""
    pairs = list(zip(distances, others, strict=True))
    return all(other <= own for own, other in pairs) and any(other < own for own, other in pairs)


def _measured(limit: Expectation, runs: Sequence[Figures]) -> list[tuple[float, Value | None]]:
    """(distance, value) of each run, and for equal distances the value that is nearer the limit last."""
    values = [value_of(limit.measure, limit.scope, run) for run in runs]
    is_upper = limit.comparison in ("<", "<=")
    ordered = sorted(values, key=lambda value: 0.0 if value is None else value.number, reverse=is_upper)
    return [(distance_of(limit, value), value) for value in ordered]


def distance_of(limit: Expectation, value: Value | None) -> float:
    """The distance of a value from a limit, 0..1."""
    if value is None:
        return NOTHING_MEASURED
    if meets(value, limit):
        return 0.0
    missed_by = abs(value.number - limit.bound) / max(limit.bound, SMALL_LIMITS[limit.measure.kind])
    is_lower_bound = value.at_least and value.number <= limit.bound
    return SHORTEST if is_lower_bound else max(missed_by / (1 + missed_by), SHORTEST)
