"""`yarnling chaos`: runs plans and tells what came of them. The exit status: 0 it holds, 1 not, 2 cannot tell."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from yarn.errors import YarnException
from yarnling.chaos.checks import Checked
from yarnling.chaos.costs import cost_of
from yarnling.chaos.history import Injected
from yarnling.chaos.notes import now_s
from yarnling.chaos.plan import Plan
from yarnling.chaos.ready_made import find_plan, names
from yarnling.chaos.runner import INTERRUPTED, Run, run_plan
from yarnling.chaos.scene import Tell
from yarnling.chaos.schedule import schedule
from yarnling.chaos.swarm import random_plan
from yarnling.chaos.verdict import Verdict
from yarnling.cli.app import tell
from yarnling.cli.arguments import reading_arguments
from yarnling.cli.terminal import Listing, in_line, notices, print_indented, terminal

SEED_MAX = 1 << 32
SHOWN_MAX = 20
"""Reasons that are told; the rest is counted."""
_STYLES = {Verdict.PASS: "green", Verdict.FAIL: "red", Verdict.CANNOT_TELL: "yellow"}
_STYLES_OF = {"fault": "red", "healed": "green", "problem": "yellow", "phase": "bold"}
_MARKS = {"fault": "x", "healed": "+", "problem": "?", "phase": "-"}


class ChaosOptions(Struct, frozen=True):
    """What `yarnling chaos` was asked for: a plan, or random ones."""

    plan: str
    is_random: bool
    seed: int | None
    runs: int
    keep: Path | None
    as_json: bool
    only_schedule: bool


def list_plans(*, as_json: bool) -> None:
    """The ready-made plans, each with what it is about."""
    plans = [find_plan(name) for name in names()]
    if as_json:
        sys.stdout.write(json.dumps([{"name": plan.name, "about": plan.about} for plan in plans], indent=2) + "\n")
        return
    console = terminal()
    widest = max(len(plan.name) for plan in plans)
    for plan in plans:
        print_indented(console, Text.assemble((f"{plan.name:<{widest}}", "bold"), "  ", in_line(plan.about)))


def run(options: ChaosOptions) -> int:
    """Run the plan under one seed after another; the worst verdict. A failure of the harness itself decides nothing."""
    with reading_arguments():
        _check(options)
    try:
        return _run(options)
    except YarnException as error:
        tell(error)
        return Verdict.CANNOT_TELL


def _run(options: ChaosOptions) -> int:
    first = random.randrange(SEED_MAX) if options.seed is None else options.seed
    console = notices() if options.as_json else terminal()
    runs: list[Run] = []
    for seed in range(first, first + options.runs):
        plan = find_plan(options.plan) if options.plan else random_plan(seed)
        if options.only_schedule:
            _show_schedule(plan, seed, console)
            continue
        runs.append(_run_once(plan, seed, options, console))
        if not options.as_json:
            _show_summary(runs[-1], options, console)
        if INTERRUPTED in runs[-1].history.problem:
            break
    if options.as_json:
        sys.stdout.write(json.dumps([_json(one, options) for one in runs], indent=2) + "\n")
    elif options.runs > 1 and runs:
        counts = ", ".join(
            f"{count} {_said(verdict)}"
            for verdict in Verdict
            if (count := sum(1 for one in runs if one.judgement.verdict is verdict))
        )
        console.print(f"{len(runs)} runs: {counts}")
    verdicts = {one.judgement.verdict for one in runs}
    return next((int(verdict) for verdict in (Verdict.FAIL, Verdict.CANNOT_TELL) if verdict in verdicts), 0)


def _check(options: ChaosOptions) -> None:
    if bool(options.plan) == options.is_random:
        raise YarnException("name a plan, or say --random (yarnling chaos --list tells the plans there are)")
    if options.plan:
        find_plan(options.plan)


def _run_once(plan: Plan, seed: int, options: ChaosOptions, console: Console) -> Run:
    keep = None if options.keep is None else options.keep.absolute() / f"{plan.name}-{seed}"
    progress = _Progress(plan, seed, console)
    with progress.shown():
        return asyncio.run(_interruptible(plan, seed, keep, progress.tell))


async def _interruptible(plan: Plan, seed: int, keep: Path | None, tell: Tell) -> Run:
    """The run; the first Ctrl-C or TERM has it end its cluster and say so."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return await run_plan(plan, seed, keep=keep, tell=tell, stop=stop)


class _Progress:
    """What happens, a line at a time; on a terminal, below it, how many applications are over."""

    def __init__(self, plan: Plan, seed: int, console: Console) -> None:
        self._console = console
        self._status = console.status("") if console.is_terminal else None
        self._begun_s = now_s()
        console.print(Text(f"{plan.name}, seed {seed}: {plan.about}", "bold"))

    def shown(self) -> contextlib.AbstractContextManager[object]:
        """A context in which it is shown."""
        return self._status or contextlib.nullcontext()

    def tell(self, kind: str, line: str) -> None:
        if kind == "state":
            if self._status is not None:
                self._status.update(Text(line))
            return
        text = Text(f"{now_s() - self._begun_s:6.1f} s {_MARKS[kind]} ")
        self._console.print(text.append(in_line(line), _STYLES_OF[kind]))


def _show_schedule(plan: Plan, seed: int, console: Console) -> None:
    console.print(Text(f"{plan.name}, seed {seed}: {plan.about}", "bold"))
    for blow in schedule(plan, seed):
        console.print(f"  {blow}")


def _show_summary(run: Run, options: ChaosOptions, console: Console) -> None:
    """Faults with what they cost, checks with figures, the verdict, and how to see it again."""
    judgement = run.judgement
    if options.runs == 1 or judgement.verdict is not Verdict.PASS:
        console.print(_faults_table(run), crop=False)
        console.print(_checks_table(judgement.checks), crop=False)
    for reason in judgement.reasons[:SHOWN_MAX]:
        console.print(Text(f"  {in_line(reason)}", _STYLES[judgement.verdict]))
    if len(judgement.reasons) > SHOWN_MAX:
        console.print(f"  and {len(judgement.reasons) - SHOWN_MAX} more")
    took_s = run.history.ended_s - run.history.begun_s if run.history.begun_s else 0.0
    verdict = f"{_said(judgement.verdict)}: {run.plan.name}, seed {run.seed}, {took_s:.1f} s"
    console.print(Text(verdict, f"bold {_STYLES[judgement.verdict]}"))
    if judgement.verdict is not Verdict.PASS:
        console.print(f"Again: {_again(run, options)}")
    if run.directory is not None:
        console.print(f"Logs, events, notes: {run.directory}", soft_wrap=True)


def _faults_table(run: Run) -> Listing:
    table = Listing("At", "Fault", "Target", "Effect")
    for one in run.history.injected:
        table.add_row(f"{one.start_s - run.history.begun_s:.1f} s", _of(one), one.whom, _cost(one, run))
    return table


def _of(one: Injected) -> str:
    return str(one.blow).partition(" s ")[2]


def _cost(one: Injected, run: Run) -> str:
    if one.problem:
        return f"could not be done: {one.problem}"
    return "nobody was there" if one.skipped else cost_of(one, run.history) or "nothing to be seen"


def _checks_table(checks: tuple[Checked, ...]) -> Listing:
    table = Listing("Check", "Result", "Looked at")
    for check in checks:
        state = (
            Text("violated", "red") if check.violations else Text("blind", "yellow") if check.blind else Text("holds")
        )
        table.add_row(check.name, state, check.blind or check.figures)
    return table


def _again(run: Run, options: ChaosOptions) -> str:
    """The command that does the same once more."""
    plan = shlex.quote(options.plan) if options.plan else "--random"
    return f"yarnling chaos {plan} --seed {run.seed}"


def _said(verdict: Verdict) -> str:
    return verdict.name.lower().replace("_", " ")


def _json(run: Run, options: ChaosOptions) -> dict[str, Any]:
    begun_s = run.history.begun_s
    return {
        "plan": run.plan.name,
        "seed": run.seed,
        "verdict": _said(run.judgement.verdict),
        "reasons": list(run.judgement.reasons),
        "checks": [
            {"name": check.name, "looked_at": check.figures, "violations": list(check.violations), "blind": check.blind}
            for check in run.judgement.checks
        ],
        "faults": [
            {
                "at_s": round(one.start_s - begun_s, 3),
                "fault": _of(one),
                "whom": one.whom,
                "cost": _cost(one, run),
            }
            for one in run.history.injected
        ],
        "applications": list(_applications(run, begun_s)),
        "seconds": round(run.history.ended_s - begun_s, 3) if begun_s else None,
        "directory": None if run.directory is None else str(run.directory),
        "again": _again(run, options),
    }


def _applications(run: Run, begun_s: float) -> Iterator[dict[str, Any]]:
    for one in run.history.submissions:
        outcome = run.history.outcomes.get(one.application_id)
        yield {
            "id": str(one.application_id),
            "program": one.program.value,
            "user": one.user,
            "acknowledged_s": None if one.acknowledged_s is None else round(one.acknowledged_s - begun_s, 3),
            "state": outcome.state.name if outcome is not None and outcome.state is not None else None,
            "final_status": None if outcome is None else outcome.final_status.name,
            "attempts": None if outcome is None else outcome.attempt,
        }
