"""`yarnling simulate sweep`: many runs on all cores or a Dask cluster; the exit status is the worst verdict."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar
from rich.text import Text

from yarn.errors import YarnException
from yarn.times import duration
from yarnling.cli.options.simulate import SweepOptions
from yarnling.cli.shared.arguments import check_output_file, reading_arguments
from yarnling.cli.shared.output import ProgressLines, notices, print_json, print_lines, terminal
from yarnling.faults.verdict import RunVerdict
from yarnling.report.escapes import in_line
from yarnling.report.listing import Listing
from yarnling.sweep.result_file import QueueSummary, ResultFile, SweptCluster, open_results
from yarnling.sweep.runs import Sweep, SweepRun
from yarnling.sweep.spec_file import read_sweep
from yarnling.whatif.headlines import node_hours

FAILURES_MAX = 20
"""The number of runs that did not pass that are listed; the file has all."""
ROWS_MAX = 60
"""The number of rows of queues that are printed; the file and --json have all."""
DATABASES = (".sqlite", ".sqlite3", ".db")
EXIT_INTERRUPTED = 130


def run(options: SweepOptions) -> int:
    """Run the sweep, or what is left of it, and print a summary of the whole file."""
    check_output_file(options.out, *DATABASES)
    with reading_arguments():
        sweep = read_sweep(options.spec, options.release)
        notes = _notes(sweep)
        _check_installed()
        with open_results(options.out) as file:
            file.prepare(sweep)
    lost, is_interrupted = _run(sweep, options)
    with open_results(options.out) as file:
        status = _summarize(file, options, lost, notes)
        left = len(sweep.runs) - len(file.done() & set(sweep.runs))
    if is_interrupted:
        notices().print(f"interrupted: {left} of {len(sweep.runs)} runs are left; the same command continues")
        return EXIT_INTERRUPTED
    return status


def _run(sweep: Sweep, options: SweepOptions) -> tuple[tuple[tuple[SweepRun, str], ...], bool]:
    """(runs that were given up and why, whether Ctrl-C ended the sweep)."""
    from yarnling.sweep.runner import Place, Progress, run_sweep

    lost: tuple[tuple[SweepRun, str], ...] = ()
    console, total = notices(), len(sweep.runs)
    lines = ProgressLines(console)
    with _progress_bar(console) as bar:
        task = bar.add_task(str(options.spec.name), total=total)

        def report(progress: Progress) -> None:
            nonlocal lost
            lost = progress.lost
            bar.update(task, completed=progress.done)
            lines.show(lambda: f"{options.spec.name}: {progress.done} of {total} runs")

        try:
            run_sweep(sweep, options.out, Place(options.scheduler, options.workers), report)
        except KeyboardInterrupt:
            return lost, True
    return lost, False


def _check_installed() -> None:
    try:
        import cryptography  # noqa: F401
        import distributed  # noqa: F401
    except ImportError as error:
        raise YarnException(f"a sweep needs {error.name} (pip install 'yarnling[sweep]')") from None


@contextmanager
def _progress_bar(console: Console) -> Iterator[ProgressBar]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with ProgressBar(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        yield bar


class _Notes(Struct, frozen=True):
    """The part of the summary about the inputs: each line begins with the name of a configuration or a workload."""

    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]


def _notes(sweep: Sweep) -> _Notes:
    warnings = [f"{name}: {warning}" for name, of_one in sweep.warnings.items() for warning in of_one]
    workloads = sweep.inputs.workloads.items()
    assumptions = [f"{name}: {assumption}" for name, workload in workloads for assumption in workload.assumptions]
    return _Notes(tuple(warnings), tuple(assumptions))


def _summarize(file: ResultFile, options: SweepOptions, lost: tuple[tuple[SweepRun, str], ...], notes: _Notes) -> int:
    counts = file.verdicts()
    failures = file.not_passed(FAILURES_MAX)
    if options.as_json:
        rows = [{"run": one, "verdict": verdict, "reasons": reasons} for one, verdict, reasons in failures]
        missing = [{"run": one, "reason": reason} for one, reason in lost]
        summary = {"verdicts": counts, "queues": file.queues(), "clusters": file.clusters()}
        print_json({**summary, "not_passed": rows, "lost": missing, **asdict(notes), "wall_s": round(file.wall_s(), 3)})
    else:
        console = terminal()
        _print(console, counts, failures, lost, file, options.release)
        print_lines("Warnings", notes.warnings, "--json has all", console)
        print_lines("Assumptions", notes.assumptions, "--json has all", console)
    verdicts = {verdict for count in counts.values() for verdict in count}
    if str(RunVerdict.FAIL) in verdicts:
        return int(RunVerdict.FAIL)
    return int(RunVerdict.CANNOT_TELL) if lost or str(RunVerdict.CANNOT_TELL) in verdicts else 0


def _print(
    console: Console,
    counts: Mapping[str, Mapping[str, int]],
    failures: list[tuple[SweepRun, str, str]],
    lost: tuple[tuple[SweepRun, str], ...],
    file: ResultFile,
    release: str | None,
) -> None:
    table = Listing("", "runs", *(str(verdict) for verdict in RunVerdict))
    for plan, of in counts.items():
        table.add_row(plan, str(sum(of.values())), *(str(of.get(str(verdict), 0)) for verdict in RunVerdict))
    console.print(table, crop=False)
    if queues := file.queues():
        console.print()
        console.print(_queue_table(queues), crop=False)
        console.print()
        if (clusters := file.clusters()) and any(one.changes for one in clusters):
            console.print(_cluster_table(clusters), crop=False)
            console.print()
    for one, verdict, reasons in failures:
        first = in_line(reasons.splitlines()[0] if reasons else "")
        console.print(Text(f"{verdict}: {_command(one, release)}   {first}"), soft_wrap=True)
    for one, reason in lost[:FAILURES_MAX]:
        console.print(Text(f"lost: {_command(one, release)}   {in_line(reason)}"), soft_wrap=True)
    console.print(
        f"{sum(sum(of.values()) for of in counts.values())} runs took {duration(1000 * file.wall_s())} in all"
    )


def _queue_table(queues: list[QueueSummary]) -> Listing:
    """The table of queues: one row for each queue and configuration, those of a queue together."""
    table = Listing(
        "workload", "load", "queue", "configuration", "runs", "mean p95 wait", "mean preempted", "mean missed deadlines"
    )
    for one in queues[:ROWS_MAX]:
        table.add_row(
            *(one.workload, f"{one.load_factor:g}", one.queue, one.configuration, str(one.runs)),
            *("" if one.wait_p95_ms is None else duration(one.wait_p95_ms), f"{one.preempted:.1f}"),
            f"{one.missed_deadlines:.1f}",
        )
    return table


def _cluster_table(clusters: list[SweptCluster]) -> Listing:
    """The table of clusters whose nodes come and go: what the runs took, and what the machines cost."""
    columns = ("mean run time", "mean node-hours", "nodes", "mean containers lost with nodes")
    table = Listing("workload", "load", "configuration", "runs", *columns)
    for one in clusters[:ROWS_MAX]:
        table.add_row(
            *(one.workload, f"{one.load_factor:g}", one.configuration, str(one.runs)),
            *("" if one.mean_run_ms is None else duration(one.mean_run_ms), node_hours(one.node_ms)),
            *(f"{one.nodes_least} to {one.nodes_most}", f"{one.lost_containers:.1f}"),
        )
    return table


def _command(run: SweepRun, release: str | None) -> str:
    """The command that replays the run of a plan; what is simulated, for a workload."""
    if not run.plan:
        return f"{run.workload} under {run.configuration}, load factor {run.load_factor:g}, seed {run.seed}"
    plan = "--random" if run.plan == "random" else shlex.quote(run.plan)
    return f"yarnling simulate {plan} --seed {run.seed}{f' --release {release}' if release else ''}"
