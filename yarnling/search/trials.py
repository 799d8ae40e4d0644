"""Runs configurations of a search with their seeds, each once, and judges them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from yarn.errors import YarnException
from yarnling.search.goals import GoalJudgement, Goals, judge
from yarnling.search.run_cache import Refused, RunCache, digest_of, key_of
from yarnling.search.space import Settings, Space
from yarnling.whatif.figures import Figures
from yarnling.whatif.parallel import Report, Work
from yarnling.whatif.run import HowFar, Progress
from yarnling.whatif.sides import SideRun, run_once
from yarnling.workload.model import Workload

CanImprove = Callable[[GoalJudgement, Settings], bool]
"""True if a configuration with this judgement, after its first seed, may still be worth its other seeds."""


class SearchTrial(Struct, frozen=True):
    """A configuration that was tried. `judgement` is None, and `refusal` says why, if it is not valid. `is_whole`: it
    was run with all seeds; if not, its figures may be better than they would be.
    """

    settings: Settings
    judgement: GoalJudgement | None
    is_whole: bool
    refusal: str = ""


class Runner(Protocol):
    """Runs simulations: in processes of this machine, or elsewhere."""

    def outcomes(
        self, work: Work[SideRun, Figures | Refused], runs: Sequence[SideRun], report: Report
    ) -> Iterator[tuple[int, Figures | Refused]]:
        """The number of each run, from 0, with the outcome of its work, in the order in which they end."""
        ...


class RunnerInThisProcess:
    """Runs simulations one after another, without other processes."""

    def outcomes(
        self, work: Work[SideRun, Figures | Refused], runs: Sequence[SideRun], report: Report
    ) -> Iterator[tuple[int, Figures | Refused]]:
        """The number of each run, from 0, with the outcome of its work, in their order."""
        for number, run in enumerate(runs):
            yield number, work(run, lambda _: True)


class Trials:
    """All configurations that a search has tried. `before`: the runs of the configuration before it, one for each seed;
    `simulated`: how many runs were not in the cache.
    """

    def __init__(self, before: Sequence[SideRun], space: Space, cache: RunCache, runner: Runner) -> None:
        self._before = [replace(run, keeps_result=False) for run in before]
        self._digests = [digest_of(run) for run in self._before]
        self._space = space
        self._cache = cache
        self._runner = runner
        self.simulated = 0

    @property
    def seeds(self) -> int:
        """The number of runs of a configuration."""
        return len(self._before)

    @property
    def workload(self) -> Workload:
        """The workload of all runs."""
        return self._before[0].workload

    def figures(self, settings: Mapping[str, str]) -> list[Figures]:
        """The figures of the runs that were made of a configuration, the first seed first."""
        found = (self._cache.get(self._key(settings, number)) for number in range(len(self._before)))
        return [each for each in found if isinstance(each, Figures)]

    def run_before(self) -> list[Figures]:
        """The figures of the configuration before the search, with all seeds. Raises YarnException if it is refused."""
        self._run([({}, number) for number in range(len(self._before))])
        outcome = self._cache.get(self._key({}, 0))
        if isinstance(outcome, Refused):
            raise YarnException(outcome.message)
        return self.figures({})

    def run(self, candidates: Sequence[Settings], goals: Goals, can_improve: CanImprove) -> list[SearchTrial]:
        """Run each configuration with its first seed, and those that can still improve with all others; judge them."""
        self._run([(settings, 0) for settings in candidates])
        trials = [self._trial(settings, goals, seeds=1) for settings in candidates]
        goes_on = [trial.judgement is not None and can_improve(trial.judgement, trial.settings) for trial in trials]
        seeds = range(1, len(self._before))
        pairs = zip(candidates, goes_on, strict=True)
        self._run([(settings, number) for settings, is_run in pairs if is_run for number in seeds])
        return [
            self._trial(trial.settings, goals, seeds=len(self._before)) if is_run else trial
            for trial, is_run in zip(trials, goes_on, strict=True)
        ]

    def _trial(self, settings: Settings, goals: Goals, seeds: int) -> SearchTrial:
        outcome = self._cache.get(self._key(settings, 0))
        if isinstance(outcome, Refused):
            return SearchTrial(settings, None, is_whole=True, refusal=outcome.message)
        return SearchTrial(settings, judge(goals, self.figures(settings)[:seeds]), is_whole=seeds == len(self._before))

    def _run(self, wanted: Sequence[tuple[Settings, int]]) -> None:
        """Make the runs, (settings, number of the seed), that are not in the cache."""
        missing: dict[str, SideRun] = {}
        for settings, number in wanted:
            key = self._key(settings, number)
            if key not in missing and self._cache.get(key) is None:
                missing[key] = replace(self._before[number], configuration=self._configuration(settings, number))
        keys = list(missing)
        for number, outcome in self._runner.outcomes(run_or_refuse, list(missing.values()), lambda *_: None):
            self._cache.put(keys[number], outcome)
            self.simulated += 1

    def _key(self, settings: Mapping[str, str], number: int) -> str:
        return key_of(self._digests[number], self._configuration(settings, number))

    def _configuration(self, settings: Mapping[str, str], number: int) -> dict[str, str]:
        return {**self._before[number].configuration, **settings}


class RunStopped(Exception):
    """A run was ended early, because the search has ended; it has no figures."""


def run_or_refuse(run: SideRun, progress: Progress) -> Figures | Refused:
    """The figures of a run, or the faults of its configuration. Raises RunStopped if `progress` ends it early."""
    goes_on = True

    def noted(how_far: HowFar) -> bool:
        nonlocal goes_on
        goes_on = progress(how_far)
        return goes_on

    try:
        figures, _ = run_once(run, noted)
    except YarnException as error:
        return Refused(error.message)
    if not goes_on:
        raise RunStopped
    return figures
