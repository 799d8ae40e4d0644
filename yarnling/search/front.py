"""The front of a search: which goals contradict, what meeting one costs another, and which cannot be met. Pure.

A configuration that was not run with all seeds may look better than it is. So "at least" holds for it too, and a goal
that no configuration meets is met by none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from yarnling.search.goals import GoalJudgement, Goals, is_dominated
from yarnling.search.trials import SearchTrial
from yarnling.whatif.expectations import Expectation
from yarnling.whatif.measures import Value

FRONT_MAX = 12
"""The most configurations of a front that are shown."""
_LIMIT = re.compile(r"(<=|>=|<|>|=).*")


class Contradiction(Struct, frozen=True):
    """No configuration meets both goals: one that meets `met` has, for `missed`, at best this `value`."""

    met: Expectation
    missed: Expectation
    value: Value

    def sentence(self) -> str:
        """The contradiction in words: "queue etl: p95 wait < 20 min costs queue adhoc: p95 wait of at least 5 min"."""
        bound = "at least" if self.missed.comparison in ("<", "<=") else "at most"
        value = f"{bound} {self.missed.measure.written(Value(self.value.number))}"
        goal = limit_in_words(self.missed)
        return f"{self.met.text} costs {subject_in_words(self.missed)} of {value} (goal: {goal})"


class Unmet(Struct, frozen=True):
    """A goal that no configuration meets; `trial` comes nearest to it, with this value."""

    limit: Expectation
    trial: SearchTrial
    value: Value | None


def subject_in_words(limit: Expectation) -> str:
    """The subject of a goal, with the name that the queue has in its text: "queue etl: p95 wait"."""
    who = "cluster" if limit.scope.kind == "cluster" else limit.text.partition(":")[0]
    return f"{who}: {limit.measure.name}"


def limit_in_words(limit: Expectation) -> str:
    """The limit of a goal as it was written, "< 90 s"; the number that it stands for, if it is in words."""
    written = _LIMIT.search(limit.text)
    return written[0] if written else f"{limit.comparison} {limit.measure.written(Value(limit.bound))}"


def contradictions(goals: Goals, trials: Sequence[SearchTrial]) -> list[Contradiction]:
    """The pairs of goals each of which some configuration meets, but none both; the larger costs first."""
    judged = [trial.judgement for trial in trials if trial.judgement is not None]
    found = [(distance, each) for distance, each in _pairs(goals, judged)]
    return [each for _, each in sorted(found, key=lambda pair: -pair[0])]


def unmet(goals: Goals, trials: Sequence[SearchTrial]) -> list[Unmet]:
    """The goals that no configuration meets."""
    judged = [(trial, trial.judgement) for trial in trials if trial.judgement is not None]
    found = []
    for position, limit in enumerate(goals.limits):
        trial, judgement = min(judged, key=lambda pair: pair[1].distances[position])
        if judgement.distances[position]:
            found.append(Unmet(limit, trial, judgement.values[position]))
    return found


def front(goals: Goals, trials: Sequence[SearchTrial]) -> list[SearchTrial]:
    """The configurations, of those run with all seeds, than which no other is nearer to all goals; at most FRONT_MAX,
    the nearest first. Of several with the same distances the first.
    """
    whole = [(trial, trial.judgement) for trial in trials if trial.is_whole and trial.judgement is not None]
    others = [judgement.distances for _, judgement in whole]
    found: dict[tuple[float, ...], SearchTrial] = {}
    for trial, judgement in sorted(whole, key=lambda pair: pair[1].distance):
        if not any(is_dominated(judgement.distances, other) for other in others):
            found.setdefault(judgement.distances, trial)
    return list(found.values())[:FRONT_MAX]


def _pairs(goals: Goals, judged: Sequence[GoalJudgement]) -> Iterator[tuple[float, Contradiction]]:
    for first, met in enumerate(goals.limits):
        meeting = [each for each in judged if not each.distances[first]]
        for second, missed in enumerate(goals.limits):
            can_be_met = any(not each.distances[second] for each in judged)
            if first == second or not meeting or not can_be_met:
                continue
            best = min(meeting, key=lambda each: each.distances[second])
            value = best.values[second]
            if best.distances[second] and value is not None:
                yield best.distances[second], Contradiction(met, missed, value)
