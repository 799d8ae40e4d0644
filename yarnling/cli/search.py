"""`yarnling simulate search`: finds the smallest change of a configuration that meets goals."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from yarn.configuration import Configuration
from yarn.errors import InternalError, YarnException
from yarn.faults import ConfigurationException, Fault, Origin
from yarnling.cli.expectations import print_checked
from yarnling.cli.options.simulate import SearchOptions
from yarnling.cli.shared.arguments import (
    EXIT_CRASHED,
    ArgumentFaults,
    UsageException,
    check_output_directory,
    reading_arguments,
)
from yarnling.cli.shared.output import (
    ProgressLines,
    notices,
    print_error,
    print_indented,
    print_json,
    print_lines,
    terminal,
)
from yarnling.cli.simulate_workload import parse_duration
from yarnling.cluster.configuration import definitions
from yarnling.report.escapes import shown
from yarnling.report.listing import Listing
from yarnling.search.answer import CONF, SearchAnswer, answer_of
from yarnling.search.goals_file import SearchGoals, read_goals
from yarnling.search.report import write_search_page
from yarnling.search.run_cache import open_cache
from yarnling.search.search import SearchBounds, SearchProgress, search
from yarnling.search.trials import Runner, RunnerInThisProcess, Trials
from yarnling.whatif.checks import QueueMap, names_of_run, with_queues
from yarnling.whatif.parallel import cores, processes
from yarnling.whatif.report import make_directory
from yarnling.whatif.sides import Experiment, SideRun, runs_of
from yarnling.workload.formats import read_node_list, read_workload

EXIT_NOT_MET = 1
EXIT_INTERRUPTED = 130
RUNS_FILE = "runs.sqlite"
"""The file of the runs that were made, in the directory of the output."""


class _SearchInputs(Struct, frozen=True):
    """The inputs of a search. `runs`: of the configuration before, one for each seed."""

    runs: list[SideRun]
    goals: SearchGoals
    seconds: float | None


def run(options: SearchOptions) -> int:
    """Search, write the files and print a summary; returns the exit status. Raises UsageException for bad input."""
    given = _read(options)
    _check_installed(options)
    with reading_arguments():
        make_directory(options.out)
    try:
        answer = _search(options, given)
    except InternalError as error:
        print_error(YarnException(str(error)))
        return EXIT_CRASHED
    except YarnException as error:
        raise UsageException(error.message) from None
    if options.as_json:
        print_json(answer)
    else:
        _print(answer, options, terminal())
    if answer.is_interrupted:
        notices().print("interrupted: the same command continues, and makes no run twice")
        return EXIT_INTERRUPTED
    return 0 if answer.is_met else EXIT_NOT_MET


def _search(options: SearchOptions, given: _SearchInputs) -> SearchAnswer:
    with (
        open_cache(options.out / RUNS_FILE) as cache,
        _runner(options) as (runner, workers),
        _progress(options.trials) as report,
    ):
        bounds = SearchBounds(options.trials, given.seconds, workers, options.seed)
        trials = Trials(given.runs, given.goals.space, cache, runner)
        outcome = search(trials, given.goals, bounds, report)
        answer = answer_of(outcome, trials, given.goals.space, options.conf, options.out)
        if answer.changes:
            answer = replace(answer, written=(*answer.written, f"Compare in full: {_compare_command(options)}"))
        page = write_search_page(answer, outcome, given.goals.space, options.out)
        return replace(answer, written=(*answer.written, f"Report: {page}"))


def _compare_command(options: SearchOptions) -> str:
    """The command that compares the configuration before with the one that was found, under the same options."""
    words = ["yarnling", "simulate", "compare", options.conf, options.out / CONF]
    words += ["--workload", options.workload, "--nodes", options.nodes, "--until", options.until]
    words += ["--seed", options.first_seed, "--seeds", options.seeds, "-o", options.out / "compare"]
    words += [word for each in options.definitions for word in ("-D", each)]
    words += [word for each in options.queue_map for word in ("--queue-map", each)]
    return shlex.join(map(str, words))


def _read(options: SearchOptions) -> _SearchInputs:
    """Read all inputs. Raises UsageException with the faults of all of them."""
    faults = ArgumentFaults()
    faults.of(partial(check_output_directory, options.out))
    until_ms = faults.of(lambda: parse_duration(options.until))
    limit_ms = faults.of(lambda: parse_duration(options.time, "--time")) if options.time else None
    settings = faults.of(lambda: definitions(options.definitions)) or {}
    queue_map = faults.of(lambda: QueueMap(definitions(options.queue_map, "--queue-map", "OLD=NEW")))
    workload = faults.of(lambda: read_workload(options.workload))
    listed = faults.of(lambda: read_node_list(options.nodes))
    faults.refuse()
    assert until_ms is not None
    assert queue_map is not None
    assert workload is not None
    assert listed is not None
    with reading_arguments():
        workload = with_queues(workload, queue_map).with_assumptions(listed.assumptions)
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        inputs = (options.workload.name, workload, listed.nodes, seeds, until_ms, settings, queue_map, listed.schedule)
        runs = runs_of(options.conf, Experiment(*inputs))
        conf = Configuration.of(runs[0].configuration)
        goals = read_goals(options.goals, conf, names_of_run(conf, workload))
        _refuse_set_keys(goals, settings, options.goals)
    return _SearchInputs(runs, goals, None if limit_ms is None else limit_ms / 1000)


def _refuse_set_keys(goals: SearchGoals, settings: Mapping[str, str], path: Path) -> None:
    """Raise ConfigurationException with the keys that may change, but that -D sets."""
    problem, remedy = "is set with -D, so it cannot change", "remove it from one of them"
    keys = [each.key for each in goals.space.dimensions if each.key in settings]
    if keys:
        raise ConfigurationException(Fault("change", key, Origin(str(path)), problem, remedy) for key in keys)


def _check_installed(options: SearchOptions) -> None:
    extra = "search"
    try:
        import optuna  # noqa: F401

        if options.scheduler:
            extra = "sweep"
            import distributed  # noqa: F401
    except ImportError as error:
        raise UsageException(f"a search needs {error.name} (pip install 'yarnling[{extra}]')") from None


@contextmanager
def _runner(options: SearchOptions) -> Iterator[tuple[Runner, int]]:
    """(the runner, how many runs it makes at a time)."""
    workers = options.workers or cores()
    if options.scheduler:
        from yarnling.search.dask_runner import DaskRunner
        from yarnling.sweep.distribution import cores_of, remote_cluster

        with remote_cluster(options.scheduler) as client:
            yield DaskRunner(client), options.workers or cores_of(client)
    elif workers == 1:
        yield RunnerInThisProcess(), 1
    else:
        with processes(workers) as pool:
            yield pool, workers


@contextmanager
def _progress(most: int) -> Iterator[Callable[[SearchProgress], None]]:
    """A progress bar with the best configuration so far; lines of text if no bar can be shown."""
    console = notices()
    lines = ProgressLines(console)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[best]}", markup=False),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("configurations", total=most, best="")

        def report(progress: SearchProgress) -> None:
            best = progress.best_in_words()
            bar.update(task, completed=progress.tried, total=max(most, progress.tried), best=best)
            lines.show(lambda: f"{progress.tried} of at most {most} configurations tried; {best}")

        yield report


def _print(answer: SearchAnswer, options: SearchOptions, console: Console) -> None:
    print_indented(console, Text(shown(answer.headline), "bold"))
    for finding in answer.findings:
        print_indented(console, Text(f"  {shown(finding)}"))
    if answer.changes:
        console.print()
        changes = Listing("KEY", "BEFORE", "AFTER")
        for change in answer.changes:
            changes.add_row(change.what, change.before, change.after)
        console.print(changes, crop=False)
    print_checked(answer.checked, console)
    if answer.front:
        console.print()
        front = Listing(*(f"{column.upper()}" for column in answer.front.columns))
        for row in answer.front.rows:
            front.add_row(*row)
        console.print(front, crop=False)
    print_lines("Warnings", answer.warnings, f"{options.out} has all", console)
    console.print()
    for line in answer.written:
        console.print(Text(shown(line)), soft_wrap=True)
