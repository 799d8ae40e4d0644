"""Looks for planted bugs: runs one seed after another until a run with the bug fails."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from tests.mutants.bug import PlantedBug, planted, version_of
from tests.mutants.played_nodes import WORKLOADS
from tests.yarnling.simulation.intruder import simulate
from tests.yarnling.simulation.random_workloads import random_workload
from tests.yarnling.simulation.workload_ways import Way, first_difference, run_in
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
        for name in bug.plans:
            reason, count = _workload(bug, seed) if name == WORKLOADS else _plan(bug, name, seed, run)
            reached += count
            if reason:
                return Finding(name, seed, seed, reason, count, version)
    return Finding("", 0, seeds.stop - 1, "", reached, version)


def first_reason(reasons: tuple[str, ...], history: History) -> str:
    """Why a run failed, shortened. A violated invariant comes first: it ends the run, and other checks may follow."""
    broken = [text.removeprefix("an invariant is broken: ") for text in history.crashed]
    first = next(iter((*broken, *reasons)), "")
    return first if len(first) <= REASON_CHARS_MAX else f"{first[:REASON_CHARS_MAX]}..."


def _plan(bug: PlantedBug, name: str, seed: int, run: RunPlan) -> tuple[str, int]:
    """The failure of the run of a plan, "" if it passed, and the number of times that the broken code ran."""
    with planted(bug) as planting:
        one = run(random_plan(seed) if name == RANDOM else find_plan(name), seed, Options(encode=False))
    failed = one.judgement.verdict is RunVerdict.FAIL
    return first_reason(one.judgement.reasons, one.history) if failed else "", planting.count


def _workload(bug: PlantedBug, seed: int) -> tuple[str, int]:
    """The first difference of the played run with the bug from the full run without it, or "", and the same count."""
    workload = random_workload(seed)
    full = run_in(Way.QUIET_LEFT_OUT, workload)
    with planted(bug) as planting:
        try:
            reason = first_difference(full, run_in(Way.PLAYED, workload)).partition(";")[0]
        except Exception as error:  # A bug may break anything.
            reason = f"{type(error).__name__}: {error}"
    return reason[:REASON_CHARS_MAX], planting.count
