"""`yarnling chaos`: run chaos plans and print the verdict, which is also the exit status (see Verdict)."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from yarn.errors import YarnException
from yarnling.chaos.checks import Checked
from yarnling.chaos.history import InjectedFault
from yarnling.chaos.notes import now_s
from yarnling.chaos.phases import Report, ReportKind
from yarnling.chaos.plan import Plan
from yarnling.chaos.plan_file import find_plan, plan_names
from yarnling.chaos.runner import INTERRUPTED, Run, run_plan
from yarnling.chaos.schedule import random_plan, schedule
from yarnling.chaos.verdict import Verdict, effect_of
from yarnling.cli.arguments import reading_arguments
from yarnling.cli.output import Listing, in_line, notices, print_error, print_indented, print_json, terminal

SEED_MAX = 1 << 32
REASONS_MAX = 20
"""How many reasons are printed; the others are only counted."""
_VERDICT_STYLES = {Verdict.PASS: "green", Verdict.FAIL: "red", Verdict.CANNOT_TELL: "yellow"}
_STYLES: dict[ReportKind, str] = {"fault": "red", "recovered": "green", "problem": "yellow", "phase": "bold"}
_MARKS: dict[ReportKind, str] = {"fault": "x", "recovered": "+", "problem": "?", "phase": "-"}


class ChaosOptions(Struct, frozen=True):
    """The options of `yarnling chaos`. `plan` is a file or the name of a ready-made plan, "" with `is_random`."""

    plan: str
    is_random: bool
    seed: int | None
    runs: int
    keep: Path | None
    as_json: bool
    only_schedule: bool


def list_plans(*, as_json: bool) -> None:
    """Print the ready-made plans with their descriptions."""
    plans = [find_plan(name) for name in plan_names()]
    if as_json:
        print_json([{"name": plan.name, "about": plan.about} for plan in plans])
        return
    console = terminal()
    widest = max(len(plan.name) for plan in plans)
    for plan in plans:
        print_indented(console, Text.assemble((f"{plan.name:<{widest}}", "bold"), "  ", in_line(plan.about)))


def run(options: ChaosOptions) -> int:
    """Run the plan with one seed after another.

    Returns the worst verdict; an error of the test itself is CANNOT_TELL.
    """
    with reading_arguments():
        if bool(options.plan) == options.is_random:
            raise YarnException("give a plan or --random (yarnling chaos --list shows the ready-made plans)")
        if options.plan:
            find_plan(options.plan)
    try:
        return _run(options)
    except YarnException as error:
        print_error(error)
        return Verdict.CANNOT_TELL


def _run(options: ChaosOptions) -> int:
    first = random.randrange(SEED_MAX) if options.seed is None else options.seed
    console = notices() if options.as_json else terminal()
    runs: list[Run] = []
    for seed in range(first, first + options.runs):
        plan = find_plan(options.plan) if options.plan else random_plan(seed)
        if options.only_schedule:
            _print_schedule(plan, seed, console)
            continue
        runs.append(_run_once(plan, seed, options, console))
        if not options.as_json:
            _print_summary(runs[-1], options, console)
        if INTERRUPTED in runs[-1].history.problem:
            break
    verdicts = [one.judgement.verdict for one in runs]
    if options.as_json:
        print_json([_plain(one, options) for one in runs])
    elif options.runs > 1 and runs:
        counts = ", ".join(f"{verdicts.count(one)} {one}" for one in Verdict if one in verdicts)
        console.print(f"{len(runs)} runs: {counts}")
    return next((int(verdict) for verdict in (Verdict.FAIL, Verdict.CANNOT_TELL) if verdict in verdicts), 0)


def _run_once(plan: Plan, seed: int, options: ChaosOptions, console: Console) -> Run:
    keep = None if options.keep is None else options.keep.absolute() / f"{plan.name}-{seed}"
    progress = _Progress(plan, seed, console)
    with progress.shown():
        return asyncio.run(_interruptible(plan, seed, keep, progress.report))


async def _interruptible(plan: Plan, seed: int, keep: Path | None, report: Report) -> Run:
    """Run the plan. The first Ctrl-C or SIGTERM stops its cluster in order."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return await run_plan(plan, seed, keep=keep, report=report, stop=stop)


class _Progress:
    """Prints what happens in a run, one line for each event.

    On a terminal, a status line below counts the applications that have ended.
    """

    def __init__(self, plan: Plan, seed: int, console: Console) -> None:
        self._console = console
        self._status = console.status("") if console.is_terminal else None
        self._started_s = now_s()
        console.print(Text(_title(plan, seed), "bold"))

    def shown(self) -> contextlib.AbstractContextManager[object]:
        """A context in which the status line is visible."""
        return self._status or contextlib.nullcontext()

    def report(self, kind: ReportKind, line: str) -> None:
        if kind == "state":
            if self._status is not None:
                self._status.update(Text(line))
            return
        text = Text(f"{now_s() - self._started_s:6.1f} s {_MARKS[kind]} ")
        self._console.print(text.append(in_line(line), _STYLES[kind]))


def _title(plan: Plan, seed: int) -> str:
    return f"{plan.name}, seed {seed}: {plan.about}"


def _print_schedule(plan: Plan, seed: int, console: Console) -> None:
    console.print(Text(_title(plan, seed), "bold"))
    for injection in schedule(plan, seed):
        console.print(f"  {injection}")


def _print_summary(run: Run, options: ChaosOptions, console: Console) -> None:
    """Print the faults with their effects, the checks, the verdict, and the command that repeats the run."""
    judgement = run.judgement
    if options.runs == 1 or judgement.verdict is not Verdict.PASS:
        console.print(_faults_table(run), crop=False)
        console.print(_checks_table(judgement.checks), crop=False)
    style = _VERDICT_STYLES[judgement.verdict]
    for reason in judgement.reasons[:REASONS_MAX]:
        console.print(Text(f"  {in_line(reason)}", style))
    if len(judgement.reasons) > REASONS_MAX:
        console.print(f"  and {len(judgement.reasons) - REASONS_MAX} more")
    took_s = run.history.ended_s - run.history.started_s if run.history.started_s else 0.0
    console.print(Text(f"{judgement.verdict}: {run.plan.name}, seed {run.seed}, {took_s:.1f} s", f"bold {style}"))
    if judgement.verdict is not Verdict.PASS:
        console.print(f"Run it again: {_command(run, options)}")
    if run.directory is not None:
        console.print(f"Logs, events and notes: {run.directory}", soft_wrap=True)


def _faults_table(run: Run) -> Listing:
    table = Listing("At", "Fault", "Target", "Effect")
    for one in run.history.injected:
        table.add_row(f"{one.start_s - run.history.started_s:.1f} s", _name(one), one.target, _effect(one, run))
    return table


def _name(fault: InjectedFault) -> str:
    """The kind, nodes and options of a fault, without its time."""
    return str(fault.injection).partition(" s ")[2]


def _effect(fault: InjectedFault, run: Run) -> str:
    if fault.problem:
        return f"could not be injected: {fault.problem}"
    return "no target" if fault.skipped else effect_of(fault, run.history) or "none observed"


def _checks_table(checks: tuple[Checked, ...]) -> Listing:
    table = Listing("Check", "Result", "Examined")
    for check in checks:
        state = (
            Text("violated", "red") if check.violations else Text("blind", "yellow") if check.blind else Text("holds")
        )
        table.add_row(check.name, state, check.blind or check.figures)
    return table


def _command(run: Run, options: ChaosOptions) -> str:
    """The command that repeats the run."""
    plan = shlex.quote(options.plan) if options.plan else "--random"
    return f"yarnling chaos {plan} --seed {run.seed}"


def _plain(run: Run, options: ChaosOptions) -> dict[str, object]:
    """The run as an object for JSON."""
    started_s = run.history.started_s
    return {
        "plan": run.plan.name,
        "seed": run.seed,
        "verdict": str(run.judgement.verdict),
        "reasons": run.judgement.reasons,
        "checks": [
            {"name": check.name, "examined": check.figures, "violations": check.violations, "blind": check.blind}
            for check in run.judgement.checks
        ],
        "faults": [
            {
                "at_s": round(one.start_s - started_s, 3),
                "fault": _name(one),
                "target": one.target,
                "effect": _effect(one, run),
            }
            for one in run.history.injected
        ],
        "applications": list(_applications(run, started_s)),
        "seconds": round(run.history.ended_s - started_s, 3) if started_s else None,
        "directory": None if run.directory is None else str(run.directory),
        "command": _command(run, options),
    }


def _applications(run: Run, started_s: float) -> Iterator[dict[str, object]]:
    for one in run.history.submissions:
        outcome = run.history.outcomes.get(one.application_id)
        yield {
            "id": one.application_id,
            "program": one.program.value,
            "user": one.user,
            "acknowledged_s": None if one.acknowledged_s is None else round(one.acknowledged_s - started_s, 3),
            "state": None if outcome is None else outcome.state,
            "final_status": None if outcome is None else outcome.final_status,
            "attempts": None if outcome is None else outcome.attempt,
        }
