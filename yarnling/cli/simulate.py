"""`yarnling simulate`: run chaos plans in virtual time; the exit status is the verdict, as with `yarnling chaos`."""

from __future__ import annotations

import random
import shlex
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from yarn.errors import YarnException
from yarnling.cli.options.simulate import PlanOptions
from yarnling.cli.run_summary import counted, exit_status, plain, print_summary, title
from yarnling.cli.shared.arguments import (
    TRACES,
    check_output_directory,
    check_output_file,
    plan_faults,
    reading_arguments,
    release_settings,
)
from yarnling.cli.shared.output import notices, print_json, terminal
from yarnling.cli.shrink import shrink_run
from yarnling.cluster.configuration import definitions
from yarnling.cluster.silent_logs import without_logs
from yarnling.faults.plan import SEED_MAX, Plan
from yarnling.faults.plan_file import find_plan
from yarnling.faults.schedule import random_plan
from yarnling.faults.verdict import RunVerdict
from yarnling.simulation.runner import Options, SimulatedRun, simulate
from yarnling.simulation.trace_file import TraceFile


class _Ended(Struct, frozen=True):
    """The part of a run that is kept, as there may be many. `plain`: for --json."""

    verdict: RunVerdict
    trace: str
    plain: dict[str, object]


def run(options: PlanOptions) -> int:
    """Run the plan with one seed after another; the worst verdict."""
    check_output_file(options.trace, *TRACES)
    if options.shrinks:
        check_output_directory(options.output)
    with reading_arguments():
        _check(options)
        given = None if options.is_random else find_plan(options.plan)
        seeds = _seeds(options, given)
        settings = definitions(release_settings(options.release))
    runs: list[_Ended] = []
    failed: SimulatedRun | None = None
    console = notices() if options.as_json else terminal()
    with seeds_progress(notices(), is_shown=options.runs > 1 and notices().is_terminal) as progress:
        task = progress.add_task(options.plan or "random plans", total=options.runs)
        for seed in seeds:
            plan = (given or random_plan(seed, all_faults=options.all_faults)).with_settings(settings)
            if options.runs == 1:
                console.print(Text(title(plan, seed), "bold"))
            with without_logs():
                one = _simulated(plan, seed, options)
            verdict = one.judgement.verdict
            if verdict is RunVerdict.FAIL and failed is None:
                failed = one
            runs.append(_Ended(verdict, one.trace, _plain(one, options) if options.as_json else {}))
            if not options.as_json:
                print_summary(one, _command(one, options), console, is_only=options.runs == 1)
            progress.advance(task)
    status = _report(runs, options, console)
    if options.shrinks:
        with without_logs():
            _shrink(failed, options.output, options, console)
    return status


def _check(options: PlanOptions) -> None:
    """Raise YarnException with everything that does not fit together."""
    faults = plan_faults(options.plan, is_random=options.is_random)
    if options.all_faults and not options.is_random:
        faults.append("--all-faults: only random plans have more faults with it (leave it out, or give --random)")
    if options.trace is not None and options.runs > 1:
        faults.append(f"--trace writes one run to its file: use --runs 1, not {options.runs}")
    if faults:
        raise YarnException("\n".join(faults))


def _shrink(failed: SimulatedRun | None, directory: Path, options: PlanOptions, console: Console) -> None:
    if failed is None:
        console.print("There is nothing to shrink: no run failed.")
        return
    shrink_run(failed, replace(_run_options(options), traced=False), directory, console)


def _simulated(plan: Plan, seed: int, options: PlanOptions) -> SimulatedRun:
    if options.trace is None:
        return simulate(plan, seed, _run_options(options))
    with TraceFile(options.trace, title(plan, seed)) as file:
        watched = replace(_run_options(options), traced=True, line=file.line, observe=file.observe)
        one = simulate(plan, seed, watched)
        file.end(one.history)
    return one


def _run_options(options: PlanOptions) -> Options:
    return Options(encode=not options.no_encode, traced=options.hashed)


def _seeds(options: PlanOptions, plan: Plan | None) -> range:
    """The seeds to run, from that of the command line, of the plan, or a random one. Raises YarnException."""
    given = options.seed if options.seed is not None or plan is None else plan.seed
    first = random.randrange(max(1, SEED_MAX - options.runs)) if given is None else given
    last = first + options.runs - 1
    if last > SEED_MAX:
        raise YarnException(f"the last seed would be {last}: at most {SEED_MAX} (lower --seed or --runs)")
    return range(first, last + 1)


def _report(runs: list[_Ended], options: PlanOptions, console: Console) -> int:
    verdicts = [one.verdict for one in runs]
    if options.as_json:
        print_json([one.plain for one in runs])
    else:
        if options.runs > 1:
            console.print(counted(verdicts))
        if options.hashed:
            for one in runs:
                console.print(one.trace, soft_wrap=True)
    return exit_status(verdicts)


def _plain(one: SimulatedRun, options: PlanOptions) -> dict[str, object]:
    figures: dict[str, object] = {"virtual_s": round(one.virtual_s, 3), "events": one.events}
    if options.hashed:
        figures["hash"] = one.trace
    return {**plain(one, _command(one, options)), **figures}


def _command(one: SimulatedRun, options: PlanOptions) -> str:
    """The command that replays exactly this run."""
    plan = shlex.quote(options.plan) if options.plan else f"--random{' --all-faults' if options.all_faults else ''}"
    release = f" --release {options.release}" if options.release else ""
    return f"yarnling simulate {plan} --seed {one.seed}{release}{' --no-encode' if options.no_encode else ''}"


def seeds_progress(console: Console, *, is_shown: bool) -> Progress:
    """A progress bar that counts seeds."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not is_shown, transient=True)
