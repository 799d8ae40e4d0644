"""The search itself: runs the configuration as it is, then others, and makes the difference of the best one small.

1. The configuration before is run; it sets the limits of goals such as "not worse than before".
2. If the space is small, all of it is tried. Else an optimiser proposes configurations, each of which learns from the
   results of those before. Once half of them are tried and none meets the goals, it looks for the front between the
   goals that are missed most.
3. Changes of the best configuration are taken back, one by one, wholly or in part, as long as all goals stay met and
   the figure to minimise does not become worse by more than a hundredth.

A configuration is run with one seed first. The others follow unless it is already worse than one that is known.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from yarnling.report.wording import counted
from yarnling.search.goals import GoalJudgement, Goals, is_dominated, limit_of
from yarnling.search.goals_file import SearchGoals
from yarnling.search.space import Point, Settings
from yarnling.search.trials import SearchTrial, Trials

PATIENCE = 30
"""The search ends after so many configurations in turn that are no better than the best, which meets the goals."""
CONTRADICTING_MAX = 3
"""The most goals between which the front is searched: each takes more configurations."""
REDUCTIONS_MAX = 200
"""The most configurations that are tried to make the difference smaller."""
TOLERANCE = 0.01
"""The figure to minimise may become worse by this fraction for a smaller difference."""
COST_MAX = 1e15
"""The cost of a configuration that is not valid, or has nothing to measure."""


class SearchBounds(Struct, frozen=True):
    """The bounds of a search: configurations, and seconds of real time (None: no bound). `at_a_time`: how many are
    proposed together, because so many are run in parallel; `seed`: of the optimiser.
    """

    trials: int
    seconds: float | None = None
    at_a_time: int = 1
    seed: int = 1


class SearchProgress(Struct, frozen=True):
    """The progress of a search: configurations `tried`, of `most`, and the best of them."""

    tried: int
    most: int
    best: SearchTrial
    goals: Goals
    is_reducing: bool = False

    def best_in_words(self) -> str:
        """The best configuration in a few words: "best: 2 of 3 goals met by 4 changes, mean run time 12 min"."""
        judgement = self.best.judgement
        if judgement is None:
            return "best: none yet"
        met = sum(not distance for distance in judgement.distances)
        words = f"best: {met} of {len(judgement.distances)} goals met by {counted(len(self.best.settings), 'change')}"
        objective = self.goals.objective
        words += f", {objective.measure.name} {objective.written(judgement.cost)}" if objective else ""
        return f"{words}; making it smaller" if self.is_reducing else words


class SearchOutcome(Struct, frozen=True):
    """The outcome of a search.

    `trials`: all configurations, in the order in which they were tried, that before first. `best`: the one with the
    smallest difference that meets the goals, or else the one nearest to them. `is_exhausted`: there are no other
    configurations within the bounds. `is_interrupted`: by Ctrl-C; `is_late`: the time was over.
    """

    goals: Goals
    trials: tuple[SearchTrial, ...]
    best: SearchTrial
    simulated: int
    is_exhausted: bool = False
    is_interrupted: bool = False
    is_late: bool = False

    @property
    def before(self) -> SearchTrial:
        """The configuration before the search."""
        return self.trials[0]


def search(
    trials: Trials, given: SearchGoals, bounds: SearchBounds, report: Callable[[SearchProgress], None]
) -> SearchOutcome:
    """Search. Ctrl-C ends it with the best so far. Raises YarnException if the configuration before is not valid."""
    before = trials.run_before()
    goals = Goals(tuple(limit_of(each, before) for each in given.limits), given.objective)
    searching = _Searching(trials, replace(given, limits=goals.limits), goals, bounds, report)
    is_interrupted = False
    try:
        searching.explore()
        searching.reduce()
    except KeyboardInterrupt:
        is_interrupted = True
    return SearchOutcome(
        goals,
        tuple(searching.tried),
        searching.best,
        trials.simulated,
        searching.is_exhausted and not is_interrupted,
        is_interrupted,
        searching.is_late(),
    )


class _Searching:
    """A search in progress. `tried`: in order; `best`: the nearest to the goals of those run with all seeds."""

    def __init__(
        self,
        trials: Trials,
        given: SearchGoals,
        goals: Goals,
        bounds: SearchBounds,
        report: Callable[[SearchProgress], None],
    ) -> None:
        self._trials = trials
        self._space = given.space
        self._goals = goals
        self._bounds = bounds
        self._report = report
        self._until_s = None if bounds.seconds is None else time.monotonic() + bounds.seconds
        self.tried = trials.run([{}], goals, lambda *_: True)
        self.best = self.tried[0]
        self.is_exhausted = False
        self._best_at = 0

    def is_late(self) -> bool:
        """True if the time of the search is over."""
        return self._until_s is not None and time.monotonic() >= self._until_s

    def explore(self) -> None:
        """Try configurations until the bounds are reached, or nothing better is found."""
        points = self._space.all_points(self._bounds.trials)
        if points is not None:
            self.is_exhausted = True
            settings = sorted(map(self._space.settings, points), key=self._space.size)
            self._try_all([each for each in settings if each])
        else:
            self._optimise()

    def reduce(self) -> None:
        """Take changes of the best configuration back while it stays good enough."""
        cost = self.best.judgement.cost if self.best.judgement is not None else 0.0
        known: set[tuple[tuple[str, str], ...]] = set()
        while self.best.judgement is not None and self.best.judgement.is_met and not self.is_late():
            smaller = self._smaller(known)
            found = next(self._good_enough(smaller, cost + TOLERANCE * abs(cost)), None)
            if found is None:
                return
            self.best = found

    def _smaller(self, known: set[tuple[tuple[str, str], ...]]) -> list[Settings]:
        """Smaller differences than that of the best configuration, that are not in `known`, to which they are added."""
        size, found = self._space.size(self.best.settings), []
        for settings in self._space.reductions(self.best.settings):
            key = tuple(sorted(settings.items()))
            if self._space.size(settings) < size and key not in known and len(known) < REDUCTIONS_MAX:
                known.add(key)
                found.append(settings)
        return found

    def _good_enough(self, candidates: Sequence[Settings], cost_max: float) -> Iterator[SearchTrial]:
        def is_good(judgement: GoalJudgement) -> bool:
            return judgement.is_met and judgement.cost <= cost_max

        for start in range(0, len(candidates), self._bounds.at_a_time):
            some = candidates[start : start + self._bounds.at_a_time]
            found = self._trials.run(some, self._goals, lambda judgement, _: is_good(judgement))
            self._note(found, is_reducing=True)
            yield from (trial for trial in found if trial.judgement is not None and is_good(trial.judgement))

    def _try_all(self, candidates: Sequence[Settings]) -> None:
        for start in range(0, len(candidates), self._bounds.at_a_time):
            if self.is_late():
                self.is_exhausted = False
                return
            self._run(candidates[start : start + self._bounds.at_a_time])

    def _optimise(self) -> None:
        """Try what an optimiser proposes: first for the goals, then for the front between those that contradict."""
        from yarnling.search.optimiser import Optimiser  # Needs optuna.

        optimiser = Optimiser(self._space, self._bounds.seed, targets=1)
        before = self._space.point_before()
        known: dict[Point, SearchTrial] = {} if before is None else {before: self.tried[0]}
        for point, trial in known.items():
            optimiser.tell(point, *self._result(trial, ()))
        missed: tuple[int, ...] = ()
        while len(self.tried) < self._bounds.trials and not self.is_late() and not self._is_patience_over():
            if not missed and len(self.tried) >= self._bounds.trials // 2 and not self._is_met(self.best):
                missed = self._missed_most()
                if missed:
                    optimiser = Optimiser(self._space, self._bounds.seed, len(missed))
                    for point, trial in known.items():
                        optimiser.tell(point, *self._result(trial, missed))
            left = self._bounds.trials - len(self.tried)
            asked = [optimiser.ask() for _ in range(min(self._bounds.at_a_time, left))]
            points = [point for point in asked if point is not None]
            if not points:
                return
            for point, trial in zip(points, self._run([self._space.settings(point) for point in points]), strict=True):
                known[point] = trial
                optimiser.tell(point, *self._result(trial, missed))

    def _run(self, candidates: Sequence[Settings]) -> list[SearchTrial]:
        found = self._trials.run(candidates, self._goals, self._can_improve)
        self._note(found)
        return found

    def _note(self, trials: Sequence[SearchTrial], *, is_reducing: bool = False) -> None:
        for trial in trials:
            self.tried.append(trial)
            if not is_reducing and trial.is_whole and self._rank(trial) < self._rank(self.best):
                self.best, self._best_at = trial, len(self.tried)
        self._report(SearchProgress(len(self.tried), self._bounds.trials, self.best, self._goals, is_reducing))

    def _can_improve(self, judgement: GoalJudgement, settings: Settings) -> bool:
        """Once the goals are met: better than the best. Until then: not worse in all goals than a configuration that
        was run with all seeds, because the front between the goals may be asked for.
        """
        if self._is_met(self.best):
            return self._rank(SearchTrial(settings, judgement, is_whole=False)) < self._rank(self.best)
        whole = (trial.judgement for trial in self.tried if trial.is_whole and trial.judgement is not None)
        return not any(is_dominated(judgement.distances, other.distances) for other in whole)

    def _rank(self, trial: SearchTrial) -> tuple[float, float, float]:
        """The order of configurations, the best first: by goals, then by cost, then by the size of the difference."""
        if trial.judgement is None:
            return float("inf"), 0.0, 0.0
        return trial.judgement.distance, trial.judgement.cost, self._space.size(trial.settings)

    def _result(self, trial: SearchTrial, missed: Sequence[int]) -> tuple[list[float], float]:
        """(the targets, the distance from the goals) of a configuration, as the optimiser gets them."""
        judgement = trial.judgement
        if judgement is None:
            return [COST_MAX] * max(len(missed), 1), len(self._goals.limits) + 1.0
        if missed:
            return [judgement.distances[position] for position in missed], 0.0
        cost = judgement.cost if self._goals.objective is not None else self._space.size(trial.settings)
        return [min(cost, COST_MAX)], judgement.distance

    def _missed_most(self) -> tuple[int, ...]:
        """The positions of the goals that most configurations miss; none if there are fewer than two."""
        judged = [trial.judgement for trial in self.tried if trial.judgement is not None]
        times = Counter(
            position for each in judged for position, distance in enumerate(each.distances) if distance
        ).most_common(CONTRADICTING_MAX)
        return tuple(sorted(position for position, _ in times)) if len(times) > 1 else ()

    def _is_met(self, trial: SearchTrial) -> bool:
        return trial.judgement is not None and trial.judgement.is_met

    def _is_patience_over(self) -> bool:
        return self._is_met(self.best) and len(self.tried) - self._best_at >= PATIENCE
