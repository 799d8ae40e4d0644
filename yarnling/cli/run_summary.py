"""The output of `yarnling chaos` and `yarnling simulate` about a run: its faults, its checks, the verdict and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from rich.console import Console
from rich.text import Text

from yarn.times import duration
from yarnling.faults.checks import CheckResult
from yarnling.faults.history import History, InjectedFault
from yarnling.faults.plan import Plan
from yarnling.faults.verdict import Judgement, RunVerdict, effect_of
from yarnling.report.escapes import in_line
from yarnling.report.listing import Listing

REASONS_MAX = 20
"""Reasons that are printed; the rest is counted."""
_NOTHING = "0 "
"""The beginning of the figures of a check that found nothing to examine."""
_VERDICT_STYLES = {RunVerdict.PASS: "green", RunVerdict.FAIL: "red", RunVerdict.CANNOT_TELL: "yellow"}


class JudgedRun(Protocol):
    """A run with its verdict."""

    @property
    def plan(self) -> Plan: ...
    @property
    def seed(self) -> int: ...
    @property
    def history(self) -> History: ...
    @property
    def judgement(self) -> Judgement: ...


def title(plan: Plan, seed: int) -> str:
    """The first line about a run."""
    return f"{plan.name}, seed {seed}: {plan.about}"


def print_summary(run: JudgedRun, command: str, console: Console, *, is_only: bool) -> None:
    """Print the faults with their effects, the checks, the verdict, and the command that repeats the run."""
    judgement = run.judgement
    if is_only or judgement.verdict is not RunVerdict.PASS:
        console.print(_faults_table(run), crop=False)
        console.print(_checks_table(judgement.checks), crop=False)
    style = _VERDICT_STYLES[judgement.verdict]
    for reason in judgement.reasons[:REASONS_MAX]:
        console.print(Text(f"  {in_line(reason)}", style))
    if len(judgement.reasons) > REASONS_MAX:
        console.print(f"  and {len(judgement.reasons) - REASONS_MAX} more")
    took_s = run.history.ended_s - run.history.started_s if run.history.started_s else 0.0
    console.print(
        Text(f"{judgement.verdict}: {run.plan.name}, seed {run.seed}, {duration(1000 * took_s)}", f"bold {style}")
    )
    if judgement.verdict is not RunVerdict.PASS:
        console.print(f"Run it again: {command}", soft_wrap=True)


def counted(verdicts: list[RunVerdict]) -> str:
    """The number of runs for each verdict."""
    counts = ", ".join(f"{verdicts.count(one)} {one}" for one in RunVerdict if one in verdicts)
    return f"{len(verdicts)} runs: {counts}"


def exit_status(verdicts: list[RunVerdict]) -> int:
    """The worst verdict; 0 if there is none."""
    return next((int(verdict) for verdict in (RunVerdict.FAIL, RunVerdict.CANNOT_TELL) if verdict in verdicts), 0)


def _faults_table(run: JudgedRun) -> Listing:
    table = Listing("After work began", "Fault", "Target", "Effect")
    for one in run.history.injected:
        table.add_row(f"{one.start_s - run.history.started_s:.1f} s", _name(one), one.target, _effect(one, run))
    return table


def _name(fault: InjectedFault) -> str:
    """Kind, nodes and options, without the time."""
    return str(fault.injection).partition(" s ")[2]


def _effect(fault: InjectedFault, run: JudgedRun) -> str:
    if fault.problem:
        return f"could not be injected: {fault.problem}"
    return "no target" if fault.skipped else effect_of(fault, run.history) or "none observed"


def _checks_table(checks: tuple[CheckResult, ...]) -> Listing:
    """The checks, without those for which the plan has nothing: a service, a gang, a task that ran again."""
    table = Listing("Check", "Result", "Examined")
    for check in checks:
        if check.figures.startswith(_NOTHING) and not (check.violations or check.blind):
            continue
        state = (
            Text("violated", "red") if check.violations else Text("blind", "yellow") if check.blind else Text("holds")
        )
        table.add_row(check.name, state, check.blind or check.figures)
    return table


def plain(run: JudgedRun, command: str) -> dict[str, object]:
    """The run for JSON."""
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
        "command": command,
    }


def _applications(run: JudgedRun, started_s: float) -> Iterator[dict[str, object]]:
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
