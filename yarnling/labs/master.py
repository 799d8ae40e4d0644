"""Lab 1: an ApplicationMaster that finishes a job although nodes, the ResourceManager and messages fail.

Each seed draws a chaos plan whose work is a job of the learner's AM (am.programs.custom). The checks of chaos plans
judge it; the plan of the first seed that fails is made smaller, and drawn as a timeline.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from am.programs.custom.core import MasterMistake
from yarn.settings.resourcemanager import (
    AM_EXPIRY_INTERVAL,
    CONTAINER_ALLOCATION_EXPIRY_INTERVAL,
    NM_CLIENT_CONNECT_MAX_WAIT,
)
from yarnling.cluster.silent_logs import without_logs
from yarnling.faults.checks import CheckResult
from yarnling.faults.kinds import KINDS, FaultScope
from yarnling.faults.plan import ClusterPlan, Expectations, FaultPlan, Plan, WorkPlan, WorkProgram
from yarnling.faults.verdict import RunVerdict
from yarnling.labs.limits import TooSlow, processor_time
from yarnling.simulation.engine import START_MS
from yarnling.simulation.runner import Options, SimulatedRun, simulate
from yarnling.whatif.parallel import cores, processes

LASTS_S = 8.0
STARTS_MAX_S = 2.0
"""Faults begin in the first seconds of a plan, while its job runs."""
PROCESSOR_S = 20.0
"""The processor time that the run of one seed may take. It takes about half a second."""
EXPECT = Expectations(heal=30.0, drain=30.0)
PREEMPTION = "preemption"
"""Not a fault: another user's application takes half of the cluster back."""
RIVAL = "rival"
PREEMPTING = {
    "yarn.scheduler.capacity.root.queues": "default,rivals",
    **{
        f"yarn.scheduler.capacity.root.{queue}.{key}": value
        for queue in ("default", "rivals")
        for key, value in {"capacity": "50", "maximum-capacity": "100", "user-limit-factor": "2"}.items()
    },
    "yarn.scheduler.capacity.queue-mappings": f"u:{RIVAL}:root.rivals",
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    "yarn.resourcemanager.monitor.capacity.preemption.total_preemption_per_round": "1",
    "yarn.resourcemanager.monitor.capacity.preemption.natural_termination_factor": "1",
}
SETTINGS = {
    AM_EXPIRY_INTERVAL.key: "200000",
    NM_CLIENT_CONNECT_MAX_WAIT.key: "1000",
    CONTAINER_ALLOCATION_EXPIRY_INTERVAL.key: "2400000",
}
"""An AM expires after 10 s of virtual time, and starts fail within a second. A container that nobody starts or releases
is held for two minutes, longer than a run waits for the end of its job."""
PARALLEL_FROM = 8
"""With fewer seeds a process for each core does not pay."""
ENDLESS = "the ApplicationMaster returns from its callbacks"
"""The check that fails if a run uses up its processor time."""
NO_MISTAKE = "no callback fails"
"""The check that fails if a callback raises an exception or makes a call that is not possible."""
REPEATABLE = "two runs of a seed are the same"
"""The check that fails if the AM makes other calls after the same events."""
MISTAKE = re.compile(rf"{MasterMistake.__name__} after ([\d.]+ s): (.*)", re.DOTALL)
_MASTER_STEP = re.compile(r'\[\d+,"am ')
"""The beginning of a step of an ApplicationMaster in the text of a trace."""
_KINDS = (
    *("kill-container", "fail-container", "kill-node", "kill-master", "kill-rm", "pause-node", "stop-node"),
    *("pause-master", "pause-rm", "partition-node", "partition-nm-from-masters", "partition-masters-from-rm"),
    *("partition-nm-from-rm", "slow-node", "partition-nm-from-masters", "partition-nm-from-masters"),
)
RARE = ("lose-store", "move-application", PREEMPTION)
"""Kinds that few seeds have, beside the others."""
_RARE_EVERY = 8
"""The period of the seeds that have one of the rare ones, too."""
_DURATIONS_S = ((0.2, 1.0), (1.0, 3.0), (3.5, 6.0))
QUIET = Options(encode=False)


class SeedResult(Struct, frozen=True):
    """The result of one seed. `failed`: the names of the checks that failed. `run`: a run that failed.

    `stopped`: why there is no run to make smaller, or "".
    """

    seed: int
    failed: tuple[str, ...]
    run: SimulatedRun | None
    stopped: str = ""


def start_file() -> str:
    """The file that a learner starts with; it fails as soon as something fails."""
    return Path(__file__).with_name("start").joinpath("master.py").read_text()


def lab_plan(file: Path, seed: int) -> Plan:
    """The plan of a seed: a job of the AM in `file` on a small cluster, and one to three faults.

    The number of the seed chooses the kind of the first one, and one seed in eight has a rare one in addition.
    """
    draw = random.Random(f"lab master {seed}")
    names = [_KINDS[seed % len(_KINDS)], *(draw.choice(_KINDS) for _ in range(draw.choice((0, 0, 1, 2))))]
    nodes = draw.randint(2, 4)
    # More tasks than containers at once, so that containers are started all the time.
    tasks = round(nodes * draw.uniform(2, 9))
    work = WorkPlan(program=WorkProgram.CUSTOM, file=str(file), tasks=tasks, seconds=draw.choice((0.5, 1.0, 2.0)))
    plan = Plan(
        name=f"master-{seed}",
        about=f"Lab 1, seed {seed}: {', '.join(names)}",
        cluster=ClusterPlan(nodes=nodes, memory_mb=512, same_ports=draw.random() < 0.5, settings=SETTINGS),
        work=(work,),
        faults=tuple(_fault(name, draw) for name in names),
        lasts=LASTS_S,
        expect=EXPECT,
        awaits_work=draw.random() < 0.5,
    )
    return plan if seed % _RARE_EVERY else _with_rare(plan, RARE[seed // _RARE_EVERY % len(RARE)], draw)


def _with_rare(plan: Plan, name: str, draw: random.Random) -> Plan:
    """The plan with one of `RARE` in addition."""
    about = f"{plan.about}, {name}"
    if name != PREEMPTION:
        return replace(plan, about=about, faults=(*plan.faults, _fault(name, draw)))
    cluster = plan.cluster.model_copy(update={"settings": {**SETTINGS, **PREEMPTING}})
    tasks = 2 * plan.cluster.nodes
    rival = WorkPlan(program=WorkProgram.BATCH, tasks=tasks, seconds=1.0, at=0.5, users=(RIVAL,), may_fail=True)
    return replace(plan, about=about, cluster=cluster, work=(*plan.work, rival))


def processes_plan(file: Path) -> Plan:
    """The plan for real processes: a job of the AM in `file`, of which a container, a node and the AM are killed."""
    faults = (("kill-container", 0.3, 0.0, ""), ("kill-node", 0.8, 1.0, "2"), ("kill-master", 2.5, 0.0, ""))
    return Plan(
        name="master-processes",
        about="Lab 1 on real processes: a container, a node and the ApplicationMaster are killed",
        cluster=ClusterPlan(nodes=3, memory_mb=512),
        work=(WorkPlan(program=WorkProgram.CUSTOM, file=str(file), tasks=8, seconds=2.0),),
        faults=tuple(
            FaultPlan(KINDS[name], (at, at), (lasts, lasts), node=node, optional=name == "kill-container")
            for name, at, lasts, node in faults
        ),
        lasts=6.0,
    )


def _fault(name: str, draw: random.Random) -> FaultPlan:
    kind = KINDS[name]
    options: dict[str, object] = {}
    if kind.links and "lost" in kind.parameters:
        options = {
            "lost": draw.choice(("both", "requests", "replies")),
            "how": draw.choice(("silent", "lost", "reset", "reset")),
        }
    if name == "slow-node":
        options = {"delay": draw.choice((0.05, 0.3)), "loss": draw.choice((0.0, 0.1)), "kilobytes": 0.0, "breaks": 0.0}
    if name == "kill-node":
        options = {"containers": True}
    if name == "fail-container":
        options = {"exit": 1}
    return FaultPlan(
        kind,
        at=(0.0, STARTS_MAX_S),
        lasts=draw.choice(_DURATIONS_S[1 if kind.links else 0 :]) if kind.has_end else (0.0, 0.0),
        node="any" if kind.scope is FaultScope.NODE else "",
        options=options,
        optional=True,
    )


def run_seed(file: Path, seed: int) -> SeedResult:
    """Judge the AM in `file` by the plan of one seed."""
    try:
        with processor_time(PROCESSOR_S, str(file)):
            run = simulate(lab_plan(file, seed), seed, QUIET)
    except TooSlow as slow:
        return SeedResult(seed, (ENDLESS,), None, slow.sentence(file))
    checks = tuple(_check_name(check) for check in run.judgement.checks if check.violations)
    if run.judgement.verdict is RunVerdict.FAIL:
        return SeedResult(seed, checks, run)
    return SeedResult(seed, ("the run can be judged",) if run.history.problem else (), None, run.history.problem)


def _check_name(check: CheckResult) -> str:
    return NO_MISTAKE if all(map(MISTAKE.match, check.violations)) else check.name


def run_seeds(file: Path, seeds: Sequence[int], ended: Callable[[], None]) -> list[SeedResult]:
    """Judge the AM in `file` by many seeds, on all cores; no more after a run that had to be stopped.

    `ended` is called after each seed. The first seed that fails, or the first one, runs twice more, because two runs of
    a seed must be the same.
    """
    results: list[SeedResult] = []
    for result in _judged(file, seeds):
        results.append(result)
        ended()
        if ENDLESS in result.failed:
            break
    results.sort(key=lambda result: result.seed)
    number = next((number for number, result in enumerate(results) if result.failed), 0)
    if not results[number].stopped and (difference := difference_of_runs(file, results[number].seed)):
        failed = (*results[number].failed, REPEATABLE)
        results[number] = SeedResult(results[number].seed, failed, None, difference)
    return results


def _judged(file: Path, seeds: Sequence[int]) -> Iterator[SeedResult]:
    """The results of the seeds, as they come."""
    if len(seeds) < PARALLEL_FROM or cores() == 1:
        yield from (run_seed(file, seed) for seed in seeds)
        return
    with processes(min(len(seeds), cores())) as pool:
        for _, result in pool.outcomes(_judged_elsewhere, [(file, seed) for seed in seeds], lambda *_: None):
            yield result


def _judged_elsewhere(work: tuple[Path, int], _: object) -> SeedResult:
    """Judge by a seed in another process. The run itself is not sent back: it is large, and quickly made again."""
    with without_logs():
        return replace(run_seed(*work), run=None)


def difference_of_runs(file: Path, seed: int) -> str:
    """Run a seed twice, and say where the calls of the AM first differ; "" if they are the same."""
    try:
        with processor_time(2 * PROCESSOR_S, str(file)):
            first, second = _steps_of_masters(file, seed), _steps_of_masters(file, seed)
    except TooSlow as slow:
        return slow.sentence(file)
    differing = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
    if not differing and len(first) == len(second):
        return ""
    at = ""
    if differing:
        now_ms, host, *_ = json.loads(differing[0][0])
        at = f" from {(now_ms - START_MS) / 1000:.3f} s on, in {host.split('_')[-2].lstrip('0')}"
    return f"Two runs of seed {seed} differ{at}: does your code read a clock, a file or random numbers?"


def _steps_of_masters(file: Path, seed: int) -> list[str]:
    """The steps of all attempts of the AM in a run, as text."""
    lines: list[str] = []
    simulate(lab_plan(file, seed), seed, Options(encode=False, traced=True, line=lines.append))
    return [line for line in lines if _MASTER_STEP.match(line)]
