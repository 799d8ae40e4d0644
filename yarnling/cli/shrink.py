"""`yarnling simulate PLAN --shrink`: makes the plan of a failing run smaller, and writes it as a plan and as a test."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from yarn.errors import YarnException
from yarnling.faults.plan import Plan
from yarnling.faults.plan_text import plan_text
from yarnling.simulation.runner import Options, SimulatedRun
from yarnling.simulation.shrink import RUNS_MAX, Shrunk, shrink

_TEST = '''"""{about}"""

from __future__ import annotations

from yarnling.faults.plan_file import parse_plan
from yarnling.simulation.runner import Options, simulate

PLAN = r"""
{plan}"""


def test_{name}() -> None:
    run = simulate(parse_plan(PLAN, "{name}", "{name}"), {seed}, Options(encode={encode}))
    assert run.judgement.reasons == ()
'''


def shrink_run(run: SimulatedRun, options: Options, directory: Path, console: Console) -> None:
    """Shrink a failing run, and write the result into the directory. Raises YarnException if it cannot be written."""
    columns = (TextColumn("shrinking, {task.fields[faults]} faults left"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("", total=RUNS_MAX, faults=len(run.injections))

        def report(runs: int, plan: Plan) -> None:
            progress.update(task, completed=runs, faults=len(plan.faults))

        shrunk = shrink(run, options=options, report=report)
    name = re.sub(r"\W+", "_", f"shrunk_{run.plan.name}_{run.seed}")
    plan_file, test_file = directory / f"{name}.yaml", directory / f"test_{name}.py"
    plan = replace(shrunk.plan, about=_about(run, shrunk))
    text = plan_text(plan)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        plan_file.write_text(text)
        test_file.write_text(_test_text(plan, name, run.seed, options))
    except OSError as error:
        raise YarnException(f"{directory}: the shrunk plan cannot be written: {error.strerror}") from error
    console.print(f"Shrunk in {shrunk.runs} runs; it still fails with: {shrunk.failure}", soft_wrap=True)
    console.print(text, end="", markup=False, highlight=False, soft_wrap=True)
    replay = _command(plan_file, run.seed, options)
    lines = (f"The plan: {plan_file}", f"To replay it: {replay}", f"A test of it: {test_file}")
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def _about(run: SimulatedRun, shrunk: Shrunk) -> str:
    return f"Shrunk from {run.plan.name} with seed {run.seed}, which failed with: {shrunk.failure}."


def _command(plan_file: Path, seed: int, options: Options) -> str:
    """The command that runs the shrunk plan as it ran last."""
    return f"yarnling simulate {shlex.quote(str(plan_file))} --seed {seed}{'' if options.encode else ' --no-encode'}"


def _test_text(plan: Plan, name: str, seed: int, options: Options) -> str:
    return _TEST.format(about=plan.about, plan=plan_text(plan), name=name, seed=seed, encode=options.encode)
