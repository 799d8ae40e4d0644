"""`yarnling simulate`: run chaos plans in virtual time; the exit status is the verdict, as with `yarnling chaos`."""

from __future__ import annotations

import logging
import random
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from yarn.errors import YarnException
from yarnling.chaos.plan import Plan
from yarnling.chaos.plan_file import find_plan
from yarnling.chaos.schedule import random_plan
from yarnling.chaos.verdict import Verdict
from yarnling.cli.arguments import reading_arguments
from yarnling.cli.chaos import SEED_MAX
from yarnling.cli.output import notices, print_json, terminal
from yarnling.cli.run_summary import counted, exit_status, plain, print_summary, title
from yarnling.simulation.runner import Options, SimulatedRun, check_modelled, simulate


class SimulateOptions(Struct, frozen=True):
    """`plan`: a file or the name of a ready-made plan; "" with `is_random`. `hashed`: print the hash of the trace."""

    plan: str
    is_random: bool
    seed: int | None
    runs: int
    hashed: bool
    encode: bool
    as_json: bool


def run(options: SimulateOptions) -> int:
    """Run the plan with one seed after another; the worst verdict.

    A plan with something that is not modelled is a wrong argument: nothing is run.
    """
    first = random.randrange(SEED_MAX) if options.seed is None else options.seed
    with reading_arguments():
        if bool(options.plan) == options.is_random:
            raise YarnException("give a plan or --random (yarnling chaos --list shows the ready-made plans)")
        plans = [(seed, _plan(options, seed)) for seed in range(first, first + options.runs)]
        for _, plan in plans:
            check_modelled(plan)
    runs: list[SimulatedRun] = []
    console = notices() if options.as_json else terminal()
    with _progress(notices(), is_shown=options.runs > 1 and notices().is_terminal) as progress:
        task = progress.add_task(options.plan or "random plans", total=len(plans))
        for seed, plan in plans:
            if options.runs == 1:
                console.print(Text(title(plan, seed), "bold"))
            with _quiet():
                one = simulate(plan, seed, Options(encode=options.encode, traced=options.hashed))
            runs.append(one)
            if not options.as_json:
                print_summary(one, _command(one, options), console, is_only=options.runs == 1)
            progress.advance(task)
    return _report(runs, options, console)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the log lines of the real services and applications, which would be mixed with the report."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _plan(options: SimulateOptions, seed: int) -> Plan:
    return random_plan(seed) if options.is_random else find_plan(options.plan)


def _report(runs: list[SimulatedRun], options: SimulateOptions, console: Console) -> int:
    verdicts: list[Verdict] = [one.judgement.verdict for one in runs]
    if options.as_json:
        print_json([_plain(one, options) for one in runs])
    else:
        if options.runs > 1:
            console.print(counted(verdicts))
        if options.hashed:
            for one in runs:
                console.print(one.trace, soft_wrap=True)
    return exit_status(verdicts)


def _plain(one: SimulatedRun, options: SimulateOptions) -> dict[str, object]:
    figures: dict[str, object] = {"virtual_s": round(one.virtual_s, 3), "events": one.events}
    if options.hashed:
        figures["hash"] = one.trace
    return {**plain(one, _command(one, options)), **figures}


def _command(one: SimulatedRun, options: SimulateOptions) -> str:
    """The command that replays exactly this run."""
    plan = shlex.quote(options.plan) if options.plan else "--random"
    return f"yarnling simulate {plan} --seed {one.seed}{'' if options.encode else ' --no-encode'}"


def _progress(console: Console, *, is_shown: bool) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not is_shown, transient=True)
