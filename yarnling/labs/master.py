"""Lab 1: an ApplicationMaster that finishes a job although nodes, the ResourceManager and messages fail.

Each seed draws a chaos plan whose work is a job of the learner's AM (am.programs.custom). The checks of chaos plans
judge it; the plan of the first seed that fails is made smaller, and drawn as a timeline.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from am.core.events import ContainerStarted, HeartbeatDone, Registered
from am.programs.custom.core import MasterMistake
from am.programs.custom.journal import confirmed_in
from wire.event_log import LoggedStep
from yarn.ids import ApplicationId, ContainerId
from yarn.settings.resourcemanager import (
    AM_EXPIRY_INTERVAL,
    CONTAINER_ALLOCATION_EXPIRY_INTERVAL,
    NM_CLIENT_CONNECT_MAX_WAIT,
)
from yarnling.faults.checks import CheckResult
from yarnling.faults.kinds import KINDS, FaultScope
from yarnling.faults.plan import ClusterPlan, Expectations, FaultPlan, Plan, WorkPlan, WorkProgram
from yarnling.faults.plan_text import plan_text
from yarnling.faults.verdict import RunVerdict
from yarnling.labs.limits import TooSlow, processor_time
from yarnling.report.space_time_page import TextSection, html_of
from yarnling.run.names import Names, node_lifeline, short
from yarnling.run.reader import run_of
from yarnling.run.records import RecordedRun
from yarnling.run.step_wording import Wording, effect_words, event_words, listed
from yarnling.run.trace import Trace
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.simulation.engine import START_MS
from yarnling.simulation.runner import Options, SimulatedRun, simulate
from yarnling.simulation.shrink import shrink
from yarnling.simulation.trace_file import RunTrace

LASTS_S = 8.0
STARTS_MAX_S = 2.0
"""Faults begin in the first seconds of a plan, while its job runs."""
PROCESSOR_S = 20.0
"""The processor time that the run of one seed may take. It takes about half a second."""
SHRINK_RUNS_MAX = 80
SHRINK_EVENTS_MAX = 400_000
SHRINK_PROCESSOR_S = 120.0
LINES_MAX = 4
"""The violations that are told of a run."""
EXPECT = Expectations(heal=30.0, drain=30.0)
SETTINGS = {
    AM_EXPIRY_INTERVAL.key: "200000",
    NM_CLIENT_CONNECT_MAX_WAIT.key: "1000",
    CONTAINER_ALLOCATION_EXPIRY_INTERVAL.key: "2400000",
}
"""An AM expires after 10 s of virtual time, and starts fail within a second. A container that nobody starts or releases
is held for two minutes, longer than a run waits for the end of its job."""
ENDLESS = "the ApplicationMaster returns from its callbacks"
"""The check that fails if a run uses up its processor time."""
NO_MISTAKE = "no callback fails"
"""The check that fails if a callback raises an exception or makes a call that is not possible."""
_MISTAKE = re.compile(rf"{MasterMistake.__name__} after ([\d.]+ s): (.*)", re.DOTALL)
_NODE = re.compile(r"\b(?:n|node-)(\d{1,5})(?::\d{1,5})?\b")
"""The names that the simulation's machines have in messages."""
_KINDS = (
    *("kill-container", "fail-container", "kill-node", "kill-master", "kill-rm", "pause-node", "stop-node"),
    *("pause-master", "pause-rm", "partition-node", "partition-nm-from-masters", "partition-masters-from-rm"),
    *("partition-nm-from-rm", "slow-node", "partition-nm-from-masters", "partition-nm-from-masters"),
)
_DURATIONS_S = ((0.2, 1.0), (1.0, 3.0), (3.5, 6.0))
_QUIET = Options(encode=False)


class SeedResult(Struct, frozen=True):
    """The result of one seed. `failed`: the names of the checks that failed. `run`: a run that failed.

    `stopped`: why there is no run to explain, or "".
    """

    seed: int
    failed: tuple[str, ...]
    run: SimulatedRun | None
    stopped: str = ""


class Failure(Struct, frozen=True):
    """A failing run, made smaller: its plan, what went wrong in sentences, and its timeline as a page."""

    plan: Plan
    seed: int
    runs: int
    sentences: tuple[str, ...]
    page: str


def start_file() -> str:
    """The file that a learner starts with; it fails as soon as something fails."""
    return Path(__file__).with_name("start").joinpath("master.py").read_text()


def lab_plan(file: Path, seed: int) -> Plan:
    """The plan of a seed: a job of the AM in `file` on a small cluster, and one to three faults.

    The number of the seed chooses the kind of the first one.
    """
    draw = random.Random(f"lab master {seed}")
    names = [_KINDS[seed % len(_KINDS)], *(draw.choice(_KINDS) for _ in range(draw.choice((0, 0, 1, 2))))]
    nodes = draw.randint(2, 4)
    # More tasks than containers at once, so that containers are started all the time.
    tasks = round(nodes * draw.uniform(2, 9))
    work = WorkPlan(program=WorkProgram.CUSTOM, file=str(file), tasks=tasks, seconds=draw.choice((0.5, 1.0, 2.0)))
    return Plan(
        name=f"master-{seed}",
        about=f"Lab 1, seed {seed}: {', '.join(names)}",
        cluster=ClusterPlan(nodes=nodes, memory_mb=512, same_ports=draw.random() < 0.5, settings=SETTINGS),
        work=(work,),
        faults=tuple(_fault(name, draw) for name in names),
        lasts=LASTS_S,
        expect=EXPECT,
        awaits_work=draw.random() < 0.5,
    )


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
            run = simulate(lab_plan(file, seed), seed, _QUIET)
    except TooSlow as slow:
        return SeedResult(seed, (ENDLESS,), None, slow.sentence(file))
    checks = tuple(_check_name(check) for check in run.judgement.checks if check.violations)
    if run.judgement.verdict is RunVerdict.FAIL:
        return SeedResult(seed, checks, run)
    return SeedResult(seed, ("the run can be judged",) if run.history.problem else (), None, run.history.problem)


def _check_name(check: CheckResult) -> str:
    return NO_MISTAKE if all(map(_MISTAKE.match, check.violations)) else check.name


def _violated(check: CheckResult, line: str) -> str:
    """A violation in words. A mistake in a callback ends the run as an error of yarnling's would."""
    if mistake := _MISTAKE.match(line):
        return f"{NO_MISTAKE}: at {mistake[1]} {mistake[2]}"
    return f"{check.name}: {line}"


class _PageNames(Names):
    """Names as on the page with the timeline: app 0001, c0001_000002."""

    def application(self, application_id: ApplicationId) -> str:
        return short(str(application_id))

    def container(self, container_id: ContainerId) -> str:
        return short(str(container_id))


def _as_on_page(text: str) -> str:
    """`text` with the names of the page: c0001_000002 for a container, nm-1 for machine 1."""
    return _NODE.sub(lambda found: node_lifeline(int(found[1])), short(text))


def explained(result: SeedResult, file: Path) -> Failure:
    """Make the run of a failing seed smaller, and say what went wrong in it."""
    plan, runs = lab_plan(file, result.seed), 0
    if result.run is None:
        return Failure(plan, result.seed, 0, (result.stopped,), "")
    try:
        with processor_time(SHRINK_PROCESSOR_S, str(file)):
            shrunk = shrink(result.run, options=_QUIET, runs_max=SHRINK_RUNS_MAX, events_max=SHRINK_EVENTS_MAX)
            plan, runs = shrunk.plan, shrunk.runs
    except TooSlow:
        pass  # The plan as it was drawn fails too.
    with processor_time(PROCESSOR_S, str(file)):
        watched = _WatchedRun(plan, result.seed)
    name = replace(plan, name=f"master-{result.seed}", about=f"Lab 1, seed {result.seed}, made smaller")
    return Failure(name, result.seed, runs, watched.sentences(), watched.page(name))


class _WatchedRun:
    """A run of which everything is recorded."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self._lines: list[str] = []
        self._steps: list[LoggedStep] = []
        self._trace = RunTrace(self._lines.append, f"Lab 1, seed {seed}: what went wrong")
        options = Options(traced=True, line=self._trace.line, observe=self._observe)
        self._run = simulate(plan, seed, options)
        self._trace.end(self._run.history)

    def _observe(self, cluster: SimulatedCluster, trace: Trace) -> None:
        self._trace.observe(cluster, trace)
        trace.observers.append(self._note)

    def _note(self, step: LoggedStep) -> None:
        if step.host.startswith("am ") and not (isinstance(step.event, HeartbeatDone) and not step.effects):
            self._steps.append(step)

    def sentences(self) -> tuple[str, ...]:
        """Say what went wrong: the violated checks, the faults before, and what the AM did last."""
        history = self._run.history
        lines = [_violated(check, line) for check in self._run.judgement.checks for line in check.violations]
        told = [f"Violated: {_as_on_page(line)}." for line in dict.fromkeys(lines[:LINES_MAX])]
        if not told:
            told = ["The run did not fail when it was repeated: does your code read a clock, a file or random numbers?"]
        happened = [
            f"at {one.start_s:.3f} s {one.injection.kind.name} {short(one.target)}"
            for one in history.injected
            if not one.skipped
        ]
        told.append(
            f"What failed in the cluster: {'; '.join(happened)}." if happened else "Nothing failed before that."
        )
        return (*told, *self._not_confirmed(), *self._last_words())

    def _not_confirmed(self) -> tuple[str, ...]:
        """The tasks that the job has not confirmed."""
        tasks = sum(work.tasks for work in self._run.plan.work)
        confirmed = {task for entries in self._run.history.journals.values() for task in confirmed_in(entries)}
        missing = [str(task) for task in range(1, tasks + 1) if task not in confirmed]
        return (f"Not confirmed: {'task' if len(missing) == 1 else 'tasks'} {listed(missing)}.",) if missing else ()

    def _last_words(self) -> tuple[str, ...]:
        """The last event that the AM had to react to, and its reaction."""
        steps = [step for step in self._steps if not isinstance(step.event, ContainerStarted)]
        if not steps:
            return ("The ApplicationMaster never registered.",)
        step, names = steps[-1], _PageNames()
        words = Wording(names)
        said = event_words(step.event, step.effects, names, words)
        did = [text for effect in step.effects if (text := effect_words(effect, names, words))]
        attempt = int(step.host.split("_")[-2])
        answer = f"it {listed(did)}" if did else "it did nothing"
        if isinstance(step.event, Registered):
            said = "it was registered"
        last = f"{_as_on_page(said)}; {_as_on_page(answer)}"
        at_s = (step.now_ms - START_MS) / 1000
        return (f"The last event of the ApplicationMaster, at {at_s:.3f} s in attempt {attempt}: {last}.",)

    def page(self, plan: Plan) -> str:
        """The timeline as a page, below the sentences and the plan."""
        timeline: RecordedRun = run_of(map(json.loads, self._lines))
        return html_of(
            replace(timeline, from_ms=START_MS),
            [
                TextSection("What went wrong", self.sentences(), is_open=True),
                TextSection("The plan", ("Made smaller while it fails in the same way.",), plain=plan_text(plan)),
            ],
        )
