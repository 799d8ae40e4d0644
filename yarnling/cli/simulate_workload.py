"""`yarnling simulate --workload FILE`: what a workload would meet under a configuration.

Ctrl-C ends the simulation with the results so far, which are marked as incomplete; a second one ends it without.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from yarn.configuration import Configuration
from yarn.errors import InternalError, YarnException
from yarn.java.versions import HADOOP_VERSION
from yarn.times import duration
from yarnling.cli.expectations import exit_status, print_checked
from yarnling.cli.options.simulate import WorkloadOptions
from yarnling.cli.shared.arguments import (
    EXIT_CRASHED,
    TRACES,
    ArgumentFaults,
    check_output_directory,
    check_output_file,
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
from yarnling.cluster.configuration import definitions
from yarnling.faults.history import History
from yarnling.report.escapes import in_line
from yarnling.report.listing import Listing
from yarnling.report.wording import DURATION_UNITS, clock, count, counted, share
from yarnling.simulation.trace_file import TraceFile
from yarnling.whatif.checks import QueueMap, names_of_run, refuse_if_unfit, with_queues
from yarnling.whatif.error_margins import margin_of, with_margin
from yarnling.whatif.expectation_file import read_expectations, refuse_if_needing_before, resolved
from yarnling.whatif.expectations import Checked, Expectation, check
from yarnling.whatif.figures import Figures, GroupFigures, figures_of
from yarnling.whatif.headlines import findings, headline
from yarnling.whatif.measures import CLUSTER, MEASURES, Scope, Value
from yarnling.whatif.report import REPORT_HTML, make_directory, subject_of, write_report
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.run import HowFar, InputNames, RunOptions, run_what_if, what_if_configuration
from yarnling.whatif.waits import Wait
from yarnling.workload.formats import read_node_list, read_workload
from yarnling.workload.model import Workload, WorkloadNodes

EXIT_INTERRUPTED = 130
UNTIL_MAX_MS = 31 * 24 * 3_600_000
"""The longest time that can be simulated: a month."""


class _Inputs(Struct, frozen=True):
    """The inputs of a run. `warnings`: those of the configuration."""

    until_ms: int
    conf: Configuration
    warnings: tuple[str, ...]
    workload: Workload
    nodes: WorkloadNodes
    expectations: tuple[Expectation, ...]


def run(options: WorkloadOptions) -> int:
    """Simulate, write the report and print a summary; returns the exit status."""
    given = _read(options)
    configuration = str(options.conf) if options.conf else "the default configuration"
    names = InputNames(options.workload.stem, configuration, options.workload.name)
    run_options = RunOptions(options.seed, given.until_ms, options.hashed, names, given.warnings)
    try:
        with interruptible() as is_interrupted, _progress(options.workload.name) as show, _traced(options) as observed:
            result = run_what_if(
                given.conf,
                given.workload,
                given.nodes.nodes,
                observed(run_options),
                lambda how_far: show(how_far) and not is_interrupted(),
                schedule=given.nodes.schedule,
            )
    except InternalError as error:
        print_error(YarnException(str(error)))
        return EXIT_CRASHED
    figures = write_report(result, options.out) if options.out is not None else figures_of(result)
    checked = [check(each, [figures]) for each in given.expectations]
    if options.as_json:
        print_json({**summary_of(result, figures), "expectations": checked})
    else:
        print_summary(result, figures, options.out, terminal(), checked)
    return exit_status(checked) if result.is_complete else EXIT_INTERRUPTED


def _read(options: WorkloadOptions) -> _Inputs:
    """Read all inputs. Raises UsageException with the faults of all of them."""
    faults = ArgumentFaults()
    faults.of(lambda: check_output_file(options.trace, *TRACES))
    faults.of(lambda: check_output_directory(options.out))
    until_ms = faults.of(lambda: parse_duration(options.until))
    settings = faults.of(lambda: definitions(options.definitions)) or {}
    configuration = faults.of(lambda: what_if_configuration(options.conf, settings))
    queue_map = faults.of(lambda: QueueMap(definitions(options.queue_map, "--queue-map", "OLD=NEW")))
    workload = faults.of(lambda: read_workload(options.workload))
    listed = faults.of(lambda: read_node_list(options.nodes))
    expectations = faults.of(lambda: _expectations(options.expect))
    faults.refuse()
    assert until_ms is not None
    assert configuration is not None
    assert queue_map is not None
    assert workload is not None
    assert listed is not None
    assert expectations is not None
    with reading_arguments():
        conf = configuration.conf
        workload = with_queues(workload, queue_map).with_assumptions(listed.assumptions)
        refuse_if_unfit(conf, workload, listed.nodes, queue_map, schedule=listed.schedule)
        if expectations:
            expectations = resolved(expectations, str(options.expect), names_of_run(conf, workload))
        if options.out is not None:
            make_directory(options.out)
    return _Inputs(until_ms, conf, configuration.report.warnings, workload, listed, expectations)


def _expectations(path: Path | None) -> tuple[Expectation, ...]:
    """The expectations of a file, none of which compares with a run before. Raises ConfigurationException."""
    expectations = read_expectations(path) if path is not None else ()
    refuse_if_needing_before(expectations, str(path))
    return expectations


def parse_duration(text: str, option: str = "--until") -> int:
    """Milliseconds of a text such as 24h, 30m, 90s or 2d. Raises YarnException."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|min|h|d)", text)
    found = round(float(match[1]) * DURATION_UNITS[match[2]]) if match else 0
    if not 0 < found <= UNTIL_MAX_MS:
        problem = "must be a time of more than 0 and at most 31d"
        raise YarnException(f"{option} {text}: {problem} (write for example 24h, 30m, 90s or 2d)")
    return found


@contextmanager
def _traced(options: WorkloadOptions) -> Iterator[Callable[[RunOptions], RunOptions]]:
    """Writes the trace of a run with the changed options, if it is wanted."""
    if options.trace is None:
        yield lambda unchanged: unchanged
        return
    with TraceFile(options.trace, f"{options.workload.stem}, seed {options.seed}") as file:
        yield lambda plain: replace(plain, line=file.line, observe=file.observe)
        file.end(History())


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C sets a flag, which is returned; a second one raises KeyboardInterrupt."""
    interrupts: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        if interrupts:
            raise KeyboardInterrupt
        interrupts.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(interrupts)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress(name: str) -> Iterator[Callable[[HowFar], bool]]:
    """A progress bar with the virtual time and the remaining real time; lines of text if no bar can be shown."""
    console, started_s = notices(), time.monotonic()
    lines = ProgressLines(console)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[now]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(in_line(name), total=None, now="")

        def show(how_far: HowFar) -> bool:
            clocks = f"{clock(how_far.now_ms)} of {clock(how_far.until_ms)}"
            passed_s = time.monotonic() - started_s
            progress.update(task, completed=how_far.fraction, total=1, now=f"{clocks}, {_speed(how_far, passed_s)}")
            lines.show(lambda: f"{name}: {clocks} simulated, {_done(how_far, passed_s)}")
            return True

        yield show


def _speed(how_far: HowFar, passed_s: float) -> str:
    return f"{count(round(how_far.completed / passed_s))} containers/s" if passed_s > 0 else ""


def _done(how_far: HowFar, passed_s: float) -> str:
    """The containers that are done, the speed, and the time that the rest will take at this speed."""
    containers = f"{count(how_far.completed)} of {count(how_far.containers)} containers ({_speed(how_far, passed_s)})"
    left_ms = round(1000 * passed_s * (1 / how_far.fraction - 1)) if how_far.fraction else 0
    return f"{containers}, about {duration(left_ms)} left"


def print_summary(
    result: WhatIfResult, figures: Figures, out: Path | None, console: Console, checked: Sequence[Checked] = ()
) -> None:
    """Print the result in words, the queues, the longest waits, the limits of the result, and the expectations."""
    lines = [subject_of(result), headline(figures), *findings(figures)]
    if not result.is_complete:
        lines.insert(1, f"INCOMPLETE: interrupted after {duration(result.until_ms)} of virtual time.")
    if result.warnings:
        lines.append(f"{counted(len(result.warnings), 'warning')}, listed below.")
    for number, line in enumerate(lines):
        print_indented(console, Text(in_line(line), "bold" if number == 0 else ""))
    console.print()
    console.print(_queue_table(figures), crop=False)
    _print_longest(figures, console)
    print_lines("Warnings", result.warnings, all_in_report(out), console)
    print_lines("Assumptions", result.assumptions, all_in_report(out), console)
    print_checked(checked, console)
    console.print()
    cost = f"{count(result.events)} events in {duration(result.wall_s * 1000)}, seed {result.seed}"
    if result.release != HADOOP_VERSION:
        cost += f", by the rules of Hadoop {result.release}"
    print_indented(console, Text(in_line(f"{cost}; report: {out / REPORT_HTML}" if out is not None else cost)))
    if result.trace:
        console.print(result.trace, soft_wrap=True)


def _queue_table(figures: Figures) -> Listing:
    listing = Listing(
        "QUEUE", "APPS", "CONTAINERS", "WAIT P50", "P95", "P99", "AM P95", "OF GUARANTEE", "PREEMPTED", "MISSED"
    )
    for group in (*figures.queues, figures.cluster):
        if group.applications:
            listing.add_row(*_cells(group, figures))
    return listing


def _cells(group: GroupFigures, figures: Figures) -> tuple[str, ...]:
    use = figures.cluster_use if group is figures.cluster else figures.use_by_queue.get(group.name)
    of_guarantee = None if use is None else use.use
    waits = (("p50 wait", group.waits.p50), ("p95 wait", group.waits.p95), ("p99 wait", group.waits.p99))
    scope = CLUSTER if group is figures.cluster else Scope("queue", group.name)
    return (
        group.name,
        count(group.applications),
        count(group.containers),
        *(_wait_cell(name, wait, scope, figures) for name, wait in (*waits, ("p95 AM wait", group.am_waits.p95))),
        "-" if of_guarantee is None else share(of_guarantee),
        count(group.lost.containers),
        count(group.missed),
    )


def _wait_cell(name: str, wait: Wait | None, scope: Scope, figures: Figures) -> str:
    """The wait with its error."""
    if wait is None:
        return "-"
    measure, value = MEASURES[name], Value(wait.ms, wait.at_least)
    return with_margin(measure, value, margin_of(measure, scope, value, figures.calibration))


def _print_longest(figures: Figures, console: Console) -> None:
    if not figures.longest:
        return
    console.print("\nLongest waits", style="bold")
    for one in figures.longest:
        what = "its AM" if one.is_am else "a container"
        why = f": {one.explanation}" if one.explanation else ""
        line = (
            f"  {one.wait} from {clock(one.requested_ms)}, {what} of {one.application} ({one.queue}, {one.user}){why}"
        )
        print_indented(console, Text("  " + in_line(line.strip())))


def all_in_report(report: Path | None) -> str:
    """A hint that the report has all lines, or if there is none, how to get one."""
    return "the report has all" if report is not None else "-o DIR writes a report that has all"


def summary_of(result: WhatIfResult, figures: Figures) -> Mapping[str, object]:
    """The summary for programs; result.json has each container."""
    return {
        "title": result.title,
        "complete": result.is_complete,
        "release": result.release,
        "seed": result.seed,
        "until_ms": result.until_ms,
        "headline": headline(figures),
        "findings": findings(figures),
        "calibration": result.calibration,
        "cluster": figures.cluster,
        "nodes": figures.nodes,
        "queues": figures.queues,
        "users": figures.users,
        "longest_waits": figures.longest,
        "warnings": result.warnings,
        "assumptions": result.assumptions,
        "events": result.events,
        "wall_s": result.wall_s,
        "hash": result.trace,
    }
