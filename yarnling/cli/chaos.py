"""`yarnling chaos`: run chaos plans and print the verdict, which is also the exit status (see RunVerdict)."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shlex
import signal
from pathlib import Path

from rich.console import Console
from rich.text import Text

from wire.files.full_disk import full_disk_named
from yarn.errors import YarnException
from yarnling.cli.options.cluster import ChaosOptions
from yarnling.cli.run_summary import counted, exit_status, plain, print_summary, title
from yarnling.cli.shared.arguments import check_output_directory, plan_faults, reading_arguments
from yarnling.cli.shared.output import notices, print_error, print_indented, print_json, terminal
from yarnling.faults.notes import now_s
from yarnling.faults.phases import Report, ReportKind
from yarnling.faults.plan import SEED_MAX, Plan
from yarnling.faults.plan_file import find_plan, plan_names
from yarnling.faults.plan_text import plan_text
from yarnling.faults.runner import INTERRUPTED, ProcessRun, run_plan
from yarnling.faults.schedule import pinned, random_plan, schedule
from yarnling.faults.verdict import RunVerdict
from yarnling.report.escapes import in_line

SIMULATED_RUNS = 100
"""The number of seeds that a failing run suggests to try in virtual time."""
_STYLES: dict[ReportKind, str] = {"fault": "red", "recovered": "green", "problem": "yellow", "phase": "bold"}
_MARKS: dict[ReportKind, str] = {"fault": "x", "recovered": "+", "problem": "?", "phase": "-"}


def list_plans(*, as_json: bool) -> None:
    """Print the ready-made plans with their descriptions."""
    plans = [find_plan(name) for name in plan_names()]
    if as_json:
        print_json([{"name": plan.name, "about": plan.about, "only_simulated": plan.only_simulated} for plan in plans])
        return
    console = terminal()
    widest = max(len(plan.name) for plan in plans)
    for plan in plans:
        mark = " (yarnling simulate only)" if plan.only_simulated else ""
        print_indented(console, Text.assemble((f"{plan.name:<{widest}}", "bold"), "  ", in_line(plan.about), mark))


def run(options: ChaosOptions) -> int:
    """Run the plan with one seed after another.

    Returns the worst verdict; an error of the test itself is CANNOT_TELL.
    """
    check_output_directory(options.keep)
    with reading_arguments():
        if faults := plan_faults(options.plan, is_random=options.is_random):
            raise YarnException("\n".join(faults))
        if options.plan:
            find_plan(options.plan).check_processes_have_it()
    try:
        return _run(options)
    except YarnException as error:
        print_error(error)
        return RunVerdict.CANNOT_TELL


def _run(options: ChaosOptions) -> int:
    seed = options.seed
    if seed is None and options.plan:
        seed = find_plan(options.plan).seed
    first = random.randrange(SEED_MAX) if seed is None else seed
    console = notices() if options.as_json else terminal()
    runs: list[ProcessRun] = []
    for seed in range(first, first + options.runs):
        plan = find_plan(options.plan) if options.plan else random_plan(seed)
        if options.only_schedule:
            _print_schedule(plan, seed, console)
            continue
        runs.append(run_once(plan, seed, options.keep, console))
        if not options.as_json:
            _print_summary(runs[-1], options, console)
        if INTERRUPTED in runs[-1].history.problem:
            break
    verdicts = [one.judgement.verdict for one in runs]
    if options.as_json:
        print_json([{**plain(one, _command(one, options)), "directory": _directory(one)} for one in runs])
    elif options.runs > 1 and runs:
        console.print(counted(verdicts))
    return exit_status(verdicts)


def run_once(plan: Plan, seed: int, keep_in: Path | None, console: Console) -> ProcessRun:
    """Run a plan on processes, and print what happens. `keep_in`: keep the run's files in a directory there."""
    keep = None if keep_in is None else keep_in.absolute() / f"{plan.name}-{seed}"
    progress = _Progress(plan, seed, console)
    with progress.shown():
        return asyncio.run(_interruptible(plan, seed, keep, progress.report))


async def _interruptible(plan: Plan, seed: int, keep: Path | None, report: Report) -> ProcessRun:
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
        console.print(Text(title(plan, seed), "bold"))

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


def _print_schedule(plan: Plan, seed: int, console: Console) -> None:
    console.print(Text(title(plan, seed), "bold"))
    for injection in schedule(plan, seed):
        console.print(f"  {injection}")


def _print_summary(run: ProcessRun, options: ChaosOptions, console: Console) -> None:
    print_summary(run, _command(run, options), console, is_only=options.runs == 1)
    if run.directory is not None:
        console.print(f"Logs, events and notes: {run.directory}", soft_wrap=True)
    if run.judgement.verdict is RunVerdict.FAIL and run.directory is not None:
        console.print(f"Try it in virtual time: {_simulation(run, run.directory)}", soft_wrap=True)


def _simulation(run: ProcessRun, directory: Path) -> str:
    """The command that runs the same faults in virtual time with many seeds, for the rest is up to chance."""
    plan_file = directory / "plan.yaml"
    with full_disk_named(plan_file):
        plan_file.write_text(plan_text(pinned(run.plan, run.seed)))
    return f"yarnling simulate {shlex.quote(str(plan_file))} --runs {SIMULATED_RUNS} --shrink"


def _command(run: ProcessRun, options: ChaosOptions) -> str:
    """The command that repeats the run."""
    plan = shlex.quote(options.plan) if options.plan else "--random"
    return f"yarnling chaos {plan} --seed {run.seed}"


def _directory(run: ProcessRun) -> str | None:
    return None if run.directory is None else str(run.directory)
