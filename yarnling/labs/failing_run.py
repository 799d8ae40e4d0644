"""A failing run of lab 1, made smaller and put into words, with its timeline as a page and as text."""

from __future__ import annotations

import json
import re
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from am.core.events import ContainerStarted, HeartbeatDone, Registered
from am.programs.custom.journal import confirmed_in
from wire.event_log import LoggedStep
from yarn.ids import ApplicationId, ContainerId
from yarnling.faults.checks import CheckResult
from yarnling.faults.plan import Plan, WorkProgram
from yarnling.faults.plan_text import plan_text
from yarnling.labs.limits import TooSlow, processor_time
from yarnling.labs.master import MISTAKE, NO_MISTAKE, PROCESSOR_S, QUIET, SeedResult, lab_plan
from yarnling.report.space_time_page import TextSection, html_of
from yarnling.report.space_time_text import run_lines
from yarnling.run.moments import opening_at_fault
from yarnling.run.names import Names, node_lifeline, short
from yarnling.run.reader import run_of
from yarnling.run.records import RecordedRun
from yarnling.run.step_wording import Wording, effect_words, event_words, listed
from yarnling.run.trace import Trace
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.simulation.engine import START_MS
from yarnling.simulation.runner import Options, simulate
from yarnling.simulation.shrink import shrink
from yarnling.simulation.trace_file import RunTrace

SHRINK_RUNS_MAX = 80
SHRINK_EVENTS_MAX = 400_000
SHRINK_PROCESSOR_S = 120.0
LINES_MAX = 4
"""The violations that are named of a run."""
MESSAGES_MAX = 200
MESSAGES_WIDTH = 150
BEFORE_FAULT_MS = 300
"""The text begins so long before the first fault."""
_NODE = re.compile(r"\b(?:n|node-)(\d{1,5})(?::\d{1,5})?\b")
"""The names that the simulation's machines have in messages."""


class Failure(Struct, frozen=True):
    """A failing run, made smaller: its plan, what went wrong in sentences, and its timeline as a page and as text."""

    plan: Plan
    seed: int
    runs: int
    sentences: tuple[str, ...]
    page: str
    messages: str = ""


def explained(result: SeedResult, file: Path) -> Failure:
    """Make the run of a failing seed smaller, and say what went wrong in it."""
    plan, runs = lab_plan(file, result.seed), 0
    if result.stopped:
        return Failure(plan, result.seed, 0, (result.stopped,), "")
    try:
        with processor_time(SHRINK_PROCESSOR_S, str(file)):
            run = result.run if result.run is not None else simulate(plan, result.seed, QUIET)
            shrunk = shrink(run, options=QUIET, runs_max=SHRINK_RUNS_MAX, events_max=SHRINK_EVENTS_MAX)
            plan, runs = shrunk.plan, shrunk.runs
    except TooSlow:
        pass  # The plan as it was drawn fails too.
    with processor_time(PROCESSOR_S, str(file)):
        watched = _WatchedRun(plan, result.seed)
    name = replace(plan, name=f"master-{result.seed}", about=f"Lab 1, seed {result.seed}, made smaller")
    return Failure(name, result.seed, runs, watched.sentences(), watched.page(name), watched.messages())


def _violated(check: CheckResult, line: str) -> str:
    """A violation in words. A mistake in a callback ends the run as an error of yarnling's would."""
    if mistake := MISTAKE.match(line):
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


class _WatchedRun:
    """A run of which everything is recorded."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self._lines: list[str] = []
        self._steps: list[LoggedStep] = []
        self._trace = RunTrace(self._lines.append, f"Lab 1, seed {seed}: what went wrong")
        options = Options(traced=True, line=self._trace.line, observe=self._observe)
        self._run = simulate(plan, seed, options)
        self._trace.end(self._run.history)
        timeline: RecordedRun = run_of(map(json.loads, self._lines))
        self._timeline = replace(timeline, from_ms=START_MS)

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
        said = [f"Violated: {_as_on_page(line)}." for line in dict.fromkeys(lines[:LINES_MAX])]
        if not said:
            said = ["The run did not fail when it was repeated: does your code read a clock, a file or random numbers?"]
        happened = [
            f"at {one.start_s:.3f} s {one.injection.kind.name} {short(one.target)}"
            for one in history.injected
            if not one.skipped
        ]
        said.append(
            f"What failed in the cluster: {'; '.join(happened)}." if happened else "Nothing failed before that."
        )
        return (*said, *self._not_confirmed(), *self._last_words())

    def _not_confirmed(self) -> tuple[str, ...]:
        """The tasks that the job has not confirmed."""
        tasks = sum(work.tasks for work in self._run.plan.work if work.program is WorkProgram.CUSTOM)
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
        return html_of(
            self._timeline,
            [
                TextSection("What went wrong", self.sentences(), is_open=True),
                TextSection("The messages since the first fault", (), plain=self.messages()),
                TextSection("The plan", ("Made smaller while it fails in the same way.",), plain=plan_text(plan)),
            ],
            opens_at=opening_at_fault,
        )

    def messages(self) -> str:
        """The timeline as text, from shortly before the first fault on."""
        first_ms = min((fault.from_ms for fault in self._timeline.faults), default=START_MS)
        lines = run_lines(self._timeline, first_ms - BEFORE_FAULT_MS, MESSAGES_MAX, MESSAGES_WIDTH)
        return "\n".join(line.text for line in lines) + "\n"
