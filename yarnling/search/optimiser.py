"""Proposes configurations: Optuna's TPE sampler over the points of a space. Needs optuna (the extra `search`).

The sampler learns from each trial: among configurations that do not meet the goals, those with a smaller distance are
better, among the others those with a smaller cost. With several targets it looks for the front between them. Its
proposals follow from the seed and the results alone, and results are cached (yarnling.search.run_cache): an interrupted
search repeats its proposals, gets their results from the file, and goes on where it was.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import optuna

from yarnling.search.space import Dimension, Point, Space

if TYPE_CHECKING:
    from optuna.trial import Trial as Proposal

REPEATED_MAX = 10
"""So many proposals in turn may be known points; then one is drawn that is not."""
DRAWN_MAX = 1000
"""So many draws may be known points; then the space counts as exhausted."""
FIRST_DRAWN = 12
"""The first proposals are drawn at random; later ones follow from the results."""


class Optimiser:
    """An optimiser of one or several targets, each to be minimised."""

    def __init__(self, space: Space, seed: int, targets: int) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=FIRST_DRAWN)
        self._study = optuna.create_study(directions=[optuna.study.StudyDirection.MINIMIZE] * targets, sampler=sampler)
        self._space = space
        # The last of siblings gets the rest, so there is nothing to wish.
        self._rests = {group.positions[-1] for group in space.siblings}
        self._targets = targets
        self._random = random.Random(seed)
        self._known: dict[Point, tuple[tuple[float, ...], float]] = {}
        self._asked: dict[Point, Proposal] = {}

    def ask(self) -> Point | None:
        """A point that was not asked before; None if there seems to be none left."""
        for _ in range(REPEATED_MAX):
            proposal = self._study.ask()
            point = self._space.nearest(self._wishes(proposal))
            if point not in self._known and point not in self._asked:
                self._asked[point] = proposal
                return point
            if point in self._known:
                self._tell(proposal, *self._known[point])
            else:
                self._study.tell(proposal, state=optuna.trial.TrialState.FAIL)
        return self._drawn()

    def tell(self, point: Point, values: Sequence[float], distance: float) -> None:
        """Report the result of a point: the values of the targets, and the distance from the goals, 0 if met."""
        self._known[point] = (tuple(values), distance)
        proposal = self._asked.pop(point, None)
        if proposal is None:
            proposal = self._proposal_of(point)
        self._tell(proposal, values, distance)

    def _tell(self, proposal: Proposal, values: Sequence[float], distance: float) -> None:
        proposal.set_constraint("distance", distance)
        self._study.tell(proposal, list(values))

    def _drawn(self) -> Point | None:
        for _ in range(DRAWN_MAX):
            wishes = [self._random.randrange(len(each.values)) for each in self._space.dimensions]
            point = self._space.nearest(wishes)
            if point not in self._known and point not in self._asked:
                self._asked[point] = self._proposal_of(point)
                return point
        return None

    def _proposal_of(self, point: Point) -> Proposal:
        """A proposal of this point."""
        wishes = {each.key: wish for each, wish in zip(self._space.dimensions, point, strict=True)}
        rests = {self._space.dimensions[position].key for position in self._rests}
        self._study.enqueue_trial({key: wish for key, wish in wishes.items() if key not in rests})
        proposal = self._study.ask()
        self._wishes(proposal)
        return proposal

    def _wishes(self, proposal: Proposal) -> list[int]:
        return [self._wish(proposal, position, each) for position, each in enumerate(self._space.dimensions)]

    def _wish(self, proposal: Proposal, position: int, dimension: Dimension) -> int:
        if position in self._rests:
            return 0
        if dimension.step is not None:
            return proposal.suggest_int(dimension.key, 0, len(dimension.values) - 1)
        return proposal.suggest_categorical(dimension.key, range(len(dimension.values)))
