"""`yarnling simulate compare`: one workload under two configurations; the exit status says if expectations hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from yarn.configuration import Configuration
from yarn.errors import InternalError, YarnException
from yarn.times import HOUR_MS, duration
from yarnling.cli.expectations import exit_status, print_checked
from yarnling.cli.options.simulate import CompareOptions
from yarnling.cli.shared.arguments import (
    EXIT_CRASHED,
    ArgumentFaults,
    UsageException,
    check_output_directory,
    release_settings,
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
from yarnling.cli.simulate_workload import all_in_report, parse_duration
from yarnling.cluster.configuration import definitions
from yarnling.report.escapes import shown
from yarnling.report.listing import Listing
from yarnling.report.wording import clock, count, counted
from yarnling.whatif.changes import changes_of
from yarnling.whatif.checks import QueueMap, names_of_run, with_queues
from yarnling.whatif.compare import Balance, ChangeVerdict, Comparison, Difference, ParentBalance, compare, ends_of
from yarnling.whatif.compare_report import SIDES, warnings_of, write_comparison
from yarnling.whatif.compare_words import findings, headline, names_of
from yarnling.whatif.expectation_file import read_expectations, resolved
from yarnling.whatif.expectations import Checked, Expectation, KnownNames, check, names_in
from yarnling.whatif.measures import Scope
from yarnling.whatif.parallel import Outcome, run_all
from yarnling.whatif.report import make_directory, write_report
from yarnling.whatif.run import HowFar
from yarnling.whatif.sides import (
    Experiment,
    Side,
    SideRun,
    configuration_of,
    read_side,
    result_path,
    runs_of,
    side_of,
)
from yarnling.workload.formats import read_node_list, read_workload

ROWS_MAX = 20
WHY = "MAIN REASON"
"""The column with the cause of most of the waiting time, on the side where that is longer."""
_VERDICT_STYLES = {ChangeVerdict.BETTER: "green", ChangeVerdict.WORSE: "red"}


class _Given(Struct, frozen=True):
    """The inputs of one side. `queue_map`: the texts of `option`."""

    inputs: CompareOptions
    nodes: Path | None
    queue_map: list[str]
    option: str
    release: str | None


def run(options: CompareOptions) -> int:
    """Compare, report, and return the exit status. Raises UsageException for bad input."""
    try:
        expectations, before, after = _read_and_run(options)
        _warn_of_other_workload(before, after)
    except InternalError as error:
        print_error(YarnException(str(error)))
        return EXIT_CRASHED
    except YarnException as error:
        raise UsageException(error.message) from None
    comparison = compare(before.figures, after.figures, options.threshold / 100)
    checked = [check(each, comparison.after, comparison.before) for each in expectations]
    report = _write(options.out, comparison, (before, after), checked) if options.out else None
    warnings = warnings_of((before.result, after.result))
    if options.as_json:
        changes = changes_of(before.result, after.result)
        print_json({"changes": changes, **_plain(comparison, checked, report), "warnings": warnings})
    else:
        _print(comparison, checked, warnings, report, terminal())
    return exit_status(checked)


def _read_and_run(options: CompareOptions) -> tuple[tuple[Expectation, ...], Side, Side]:
    """The expectations and the sides. Raises UsageException with the faults of all inputs before anything is run."""
    faults = ArgumentFaults()
    faults.of(partial(check_output_directory, options.out))
    expectations = faults.of(partial(read_expectations, options.expect)) if options.expect is not None else ()
    results = result_path(options.before), result_path(options.after)
    faults.of(lambda: _check_inputs(options, results))
    of_before = _runs_of(options.before, _given_before(options), faults) if results[0] is None else []
    of_after = _runs_of(options.after, _given_after(options), faults) if results[1] is None else []
    read = [None if path is None else faults.of(partial(read_side, path)) for path in results]
    known = _names_after(of_after, read[1])
    if expectations and known is not None:
        expectations = faults.of(partial(resolved, expectations, str(options.expect), known))
    faults.refuse()
    assert expectations is not None
    if options.out is not None:
        for name in SIDES:
            make_directory(options.out / name)
    outcomes = _run_all([*of_before, *of_after])
    before = read[0] or side_of(outcomes[: len(of_before)])
    return expectations, before, read[1] or side_of(outcomes[len(of_before) :])


def _names_after(runs: Sequence[SideRun], read: Side | None) -> KnownNames | None:
    """The names for expectations: the queues and users of the second side; None after its faults were added."""
    if read is not None:
        return names_in(read.figures[0])
    return names_of_run(Configuration.of(runs[0].configuration), runs[0].workload) if runs else None


def _run_all(runs: Sequence[SideRun]) -> list[Outcome]:
    """Run all simulations, with a progress bar for each, or lines of text if no bars can be shown."""
    if not runs:
        return []
    console = notices()
    lines, times_ms = ProgressLines(console), [0] * len(runs)
    with _progress(console) as progress:
        tasks = [progress.add_task(shown(run.title), total=None) for run in runs]

        def report(number: int, how_far: HowFar) -> None:
            progress.update(tasks[number], completed=how_far.fraction, total=1)
            times_ms[number] = how_far.now_ms
            lines.show(lambda: f"{_times(runs, times_ms)} of {clock(how_far.until_ms)} simulated")

        return run_all(runs, report)


def _times(runs: Sequence[SideRun], times_ms: Sequence[int]) -> str:
    return ", ".join(f"{run.title}: {clock(time_ms)}" for run, time_ms in zip(runs, times_ms, strict=True))


def _check_inputs(inputs: CompareOptions, results: Sequence[Path | None]) -> None:
    faults = []
    if None in results and inputs.workload is None:
        faults.append("--workload is missing (name the workload to run under the configurations)")
    if (results[0] is None and inputs.nodes is None) or (
        results[1] is None and not (inputs.nodes or inputs.nodes_after)
    ):
        faults.append("--nodes is missing (name the file of the cluster's machines)")
    if inputs.seeds > 1 and any(results):
        faults.append("--seeds: a result.json has one seed (name the directories of both configurations)")
    releases = zip(SIDES, (inputs.release_before, inputs.release_after), results, strict=True)
    for side, version, result in releases:
        if version is not None and result is not None:
            faults.append(f"--release-{side}: {result} was simulated already (name the directory of its configuration)")
    if faults:
        raise YarnException("\n".join(faults))


def _runs_of(directory: Path, given: _Given, faults: ArgumentFaults) -> list[SideRun]:
    """The runs of a side; what is wrong with its configuration or with the other inputs is added to `faults`."""
    defined = [*given.inputs.definitions, *release_settings(given.release)]
    settings = faults.of(lambda: definitions(defined)) or {}
    experiment = _experiment(given, settings, faults)
    if experiment is None:
        faults.of(lambda: configuration_of(directory, settings))
        return []
    return faults.of(lambda: runs_of(directory, experiment)) or []


def _experiment(given: _Given, settings: Mapping[str, str], faults: ArgumentFaults) -> Experiment | None:
    """The inputs of a side; None after its faults were added."""
    path, until = given.inputs.workload, given.inputs.until
    until_ms = faults.of(lambda: parse_duration(until))
    queue_map = faults.of(lambda: QueueMap(definitions(given.queue_map, given.option, "OLD=NEW"), given.option))
    workload = faults.of(partial(read_workload, path)) if path is not None else None
    listed = faults.of(partial(read_node_list, given.nodes)) if given.nodes is not None else None
    if workload is None or queue_map is None:
        return None
    workload = faults.of(partial(with_queues, workload, queue_map))
    if path is None or workload is None or listed is None or until_ms is None:
        return None
    workload = workload.with_assumptions(listed.assumptions)
    return Experiment(
        path.name,
        workload,
        listed.nodes,
        given.inputs.seeds_of_runs,
        until_ms,
        settings,
        queue_map,
        listed.schedule,
    )


def _given_before(inputs: CompareOptions) -> _Given:
    return _Given(inputs, inputs.nodes, inputs.queue_map, "--queue-map", inputs.release_before)


def _given_after(inputs: CompareOptions) -> _Given:
    """The option of its own for the second side, if it is given, replaces the one for both."""
    nodes = inputs.nodes_after or inputs.nodes
    if inputs.queue_map_after:
        return _Given(inputs, nodes, inputs.queue_map_after, "--queue-map-after", inputs.release_after)
    return _Given(inputs, nodes, inputs.queue_map, "--queue-map", inputs.release_after)


def _warn_of_other_workload(before: Side, after: Side) -> None:
    if before.result.workload != after.result.workload:
        both = f"{before.result.workload} and {after.result.workload}"
        notices().print(f"yarnling: warning: the sides have different workloads, {shown(both)}")


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)


def _write(out: Path, comparison: Comparison, sides: tuple[Side, Side], checked: Sequence[Checked]) -> Path:
    for side, name in zip(sides, SIDES, strict=True):
        write_report(side.result, out / name)
    return write_comparison(comparison, (sides[0].result, sides[1].result), checked, out)


def _print(
    comparison: Comparison,
    checked: Sequence[Checked],
    warnings: tuple[str, ...],
    report: Path | None,
    console: Console,
) -> None:
    print_indented(console, Text(shown(headline(comparison)), "bold"))
    for finding in findings(comparison):
        print_indented(console, Text(f"  {shown(finding)}"))
    if warnings:
        print_indented(console, Text(f"  {counted(len(warnings), 'warning')}, listed below"))
    if comparison.differences:
        console.print()
        console.print(_table(comparison), crop=False)
    if comparison.parents():
        console.print()
        console.print(_parents(comparison), crop=False)
    if comparison.balances:
        console.print()
        console.print(_balances(comparison), crop=False)
        if (left_out := len(comparison.balances) - ROWS_MAX) > 0:
            console.print(f"{left_out} between those who pay most and those who gain most are left out", style="dim")
    print_checked(checked, console)
    print_lines("Warnings", warnings, all_in_report(report), console)
    if report is not None:
        console.print()
        console.print(Text(f"Report: {shown(str(report))}"), soft_wrap=True)


def _table(comparison: Comparison) -> Listing:
    listing = Listing("OF", "MEASURE", "BEFORE", "AFTER", "", WHY)
    names = names_of(comparison)
    for each in comparison.differences[:ROWS_MAX]:
        words = "" if each.verdict is ChangeVerdict.OTHER else each.verdict.value
        listing.add_row(
            _short(each.scope, names),
            each.measure.name,
            each.measure.written(each.before),
            each.after_text,
            Text(words, _VERDICT_STYLES.get(each.verdict, "")),
            _why(comparison, each),
        )
    return listing


def _why(comparison: Comparison, changed: Difference | Balance | ParentBalance) -> str:
    reason = comparison.reason(changed)
    return reason.short() if reason else ""


def _parents(comparison: Comparison) -> Listing:
    """Parent queues, those who pay most first; those who gain and those who pay most if there are many."""
    listing = Listing("BELOW", "QUEUES THAT PAY", "THAT GAIN", "CONTAINER-HOURS OF WAITING", WHY)
    names = names_of(comparison)
    for each in ends_of(comparison.parents(), ROWS_MAX):
        cells = (count(each.paying), count(each.gaining), f"{each.total_ms / HOUR_MS:+,.1f}")
        listing.add_row(names.get(each.parent, each.parent), *cells, _why(comparison, each))
    return listing


def _balances(comparison: Comparison) -> Listing:
    """List the queues or users that pay, then those that gain."""
    listing = Listing("WHO", "", "MEAN WAIT BEFORE", "AFTER", "CONTAINERS", "CONTAINER-HOURS OF WAITING", WHY)
    names = names_of(comparison)
    for each in ends_of(comparison.balances, ROWS_MAX):
        verb = Text("pays", "red") if each.change_ms > 0 else Text("gains", "green")
        hours = f"{each.total_ms / HOUR_MS:+,.1f}"
        mean = (duration(each.before_ms), each.after_text)
        cells = (*mean, count(each.containers), hours, _why(comparison, each))
        listing.add_row(_short(each.scope, names), verb, *cells)
    return listing


def _short(scope: Scope, names: dict[str, str]) -> str:
    return str(Scope(scope.kind, names.get(scope.name, scope.name))) if scope.kind == "queue" else str(scope)


def _plain(comparison: Comparison, checked: Sequence[Checked], report: Path | None) -> dict[str, object]:
    return {
        "headline": headline(comparison),
        "calibration": comparison.calibration,
        "findings": findings(comparison),
        "differences": [
            {**_plain_difference(each), "reason": comparison.reason(each)}
            for each in (*comparison.differences, *comparison.noise)
        ],
        "balances": [
            {
                "scope": str(each.scope),
                "mean_wait_before_ms": round(each.before_ms),
                "mean_wait_after_ms": round(each.after_ms),
                "margin_ms": None if each.margin_ms is None else round(each.margin_ms),
                "containers": each.containers,
                "change_ms": round(each.total_ms),
                "reason": comparison.reason(each),
            }
            for each in comparison.balances
        ],
        "expectations": checked,
        "report": None if report is None else str(report),
    }


def _plain_difference(each: Difference) -> dict[str, object]:
    """Numbers are milliseconds, counts or fractions, as `unit` says."""
    values = {
        name: None if value is None else value.number
        for name, value in (("before", each.before), ("after", each.after))
    }
    return {
        "scope": str(each.scope),
        "measure": each.measure.name,
        "unit": {"duration": "ms", "count": "", "share": "fraction"}[each.measure.kind.value],
        **values,
        "spread": each.spread,
        "margin": each.margin,
        "verdict": each.verdict.value,
    }
