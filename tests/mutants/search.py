"""Looks for planted bugs: runs one seed after another until a run with the bug fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from tests.mutants.bug import PlantedBug, planted, version_of
from tests.yarnling.simulation.intruder import simulate
from yarnling.faults.history import History
from yarnling.faults.plan import Plan
from yarnling.faults.plan_file import find_plan
from yarnling.faults.schedule import random_plan
from yarnling.faults.verdict import RunVerdict
from yarnling.simulation.runner import Options, SimulatedRun

RANDOM = "random"
"""In PlantedBug.plans: the random plan of each seed."""
REASON_CHARS_MAX = 160

RunPlan = Callable[[Plan, int, Options], SimulatedRun]


class Finding(Struct, frozen=True):
    """The result of a search. `seed`: the first with which a run of `plan` fails, 0 if none of `seeds` does.

    `seeds`: how many seeds of that plan were run; of each plan, if none fails. `reason`: the first reason of the
    failure. `reached`: how often the broken code ran in that run, or in all runs if none fails. `version`: the version
    of the bug that was looked for.
    """

    plan: str
    seed: int
    seeds: int
    reason: str
    reached: int
    version: str

    @property
    def is_found(self) -> bool:
        return self.seed > 0


def search(bug: PlantedBug, seeds: range, reached: int = 0, run: RunPlan = simulate) -> Finding:
    """Run the bug's plans, seed by seed, until one fails. `reached`: the count of earlier seeds, in which none did."""
    version = version_of(bug)
    for seed in seeds:
        for name, plan in _plans(bug, seed):
            with planted(bug) as planting:
                one = run(plan, seed, Options(encode=False))
            reached += planting.count
            if one.judgement.verdict is RunVerdict.FAIL:
                return Finding(
                    name, seed, seed, first_reason(one.judgement.reasons, one.history), planting.count, version
                )
    return Finding("", 0, seeds.stop - 1, "", reached, version)


def first_reason(reasons: tuple[str, ...], history: History) -> str:
    """Why a run failed, shortened. A violated invariant comes first: it ends the run, and other checks may follow."""
    broken = [text.removeprefix("an invariant is broken: ") for text in history.crashed]
    first = next(iter((*broken, *reasons)), "")
    return first if len(first) <= REASON_CHARS_MAX else f"{first[:REASON_CHARS_MAX]}..."


def _plans(bug: PlantedBug, seed: int) -> Iterator[tuple[str, Plan]]:
    for name in bug.plans:
        plan = random_plan(seed) if name == RANDOM else find_plan(name)
        yield name, plan
