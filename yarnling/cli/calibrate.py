"""`yarnling workload calibrate`: makes a workload of a recorded run, and fits it until its replay is like the run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from yarn.errors import InternalError, YarnException
from yarn.settings.scheduler import MINIMUM_ALLOCATION_MB
from yarn.times import HOUR_MS, duration
from yarnling.cli.options.calibrate import CalibrateOptions
from yarnling.cli.shared.arguments import (
    EXIT_CRASHED,
    TRACES,
    ArgumentFaults,
    UsageException,
    check_output_directory,
    check_output_file,
)
from yarnling.cli.shared.output import ProgressLines, notices, print_error, print_indented, print_json, terminal
from yarnling.cli.simulate_workload import UNTIL_MAX_MS
from yarnling.cli.workload import NODE_LISTS, heading, print_evidence, refuse_input, write_files
from yarnling.cluster.configuration import ClusterConfiguration, definitions
from yarnling.report.escapes import shown
from yarnling.report.wording import counted, share
from yarnling.whatif.calibrate import (
    REPLAYS_MOST,
    Parameters,
    Replay,
    calibration_of,
    fitted,
    polling_error,
    with_parameters,
)
from yarnling.whatif.calibration_words import errors_in_words, polling_sentence, replay_sentence
from yarnling.whatif.checks import refuse_if_unfit
from yarnling.whatif.parallel import run_all
from yarnling.whatif.prediction_error import error_table, plain_error, prediction_error, run_times
from yarnling.whatif.recorded_run import recorded_again
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.run import HowFar, RunOptions, what_if_configuration
from yarnling.whatif.sides import SideRun
from yarnling.workload.calibration import Calibration, PollingError
from yarnling.workload.evidence import Basis
from yarnling.workload.formats import read_node_list, read_recorded_cluster, read_recorded_times, read_workload
from yarnling.workload.model import Workload, WorkloadNodes
from yarnling.workload.nodes_file import write_nodes
from yarnling.workload.recorded_applications import recorded_workload
from yarnling.workload.recorded_cluster import RecordedCluster
from yarnling.workload.recorded_conditions import RecordedFiles, recorded_files
from yarnling.workload.recorded_times import mean_am_start_ms
from yarnling.workload.run_times import RunTimes
from yarnling.workload.workload_file import write_workload

REGISTRATIONS_LEAST = 20
"""The mean start time of AMs is taken from a recording that shows so many registrations."""
AM_START_ABOUT = "from the launch of an AM to its registration, on average, from the polls between which AMs registered"
UNTIL_LEAST_MS = HOUR_MS
POLLING_REPLAYS = 2
"""A run that is recorded again, and the replay of that."""
BASES = {Basis.RECORDED: "measured", Basis.DETERMINED: "fitted", Basis.ASSUMED: "assumed"}
NOT_RECORDED = "is not what yarnling record wrote, nor the log of a ResourceManager"


class _RecordedInputs(Struct, frozen=True):
    """Inputs that are read before anything is simulated. `files`: of the recorded configuration. `every_ms`: the
    interval of the polls; 0: there were none, or it is not known.
    """

    recorded: RunTimes
    workload: Workload
    nodes: WorkloadNodes
    configuration: ClusterConfiguration
    files: RecordedFiles
    am_start_ms: int | None
    every_ms: int


def run(options: CalibrateOptions) -> int:
    """Calibrate, write the workload and print the remaining error; returns the exit status."""
    given = _read(options)
    try:
        first, best, polling = _fitted(given, options)
    except InternalError as error:
        print_error(YarnException(str(error)))
        return EXIT_CRASHED
    calibration = calibration_of(options.record.name, best, AM_START_ABOUT, polling)
    assumed = (*given.workload.assumptions, *given.nodes.assumptions, *given.files.notes)
    workload = replace(best.workload, assumptions=assumed, calibration=calibration)
    write_workload(workload, options.out)
    if options.nodes_out is not None:
        write_nodes(given.nodes, options.nodes_out)
    if options.conf_out is not None:
        write_files(given.files, options.conf_out)
    if options.as_json:
        print_json({**_plain(calibration, first, best), "evidence": workload.evidence, "assumptions": assumed})
    else:
        _print(workload, calibration, first, best, options)
    return 0


def _read(options: CalibrateOptions) -> _RecordedInputs:
    """Read all inputs. Raises UsageException with the faults of all of them."""
    faults = ArgumentFaults()
    faults.of(lambda: check_output_file(options.out, *TRACES))
    faults.of(lambda: check_output_file(options.nodes_out, *NODE_LISTS))
    faults.of(lambda: check_output_directory(options.conf_out))
    faults.of(lambda: refuse_input(options.out, "--out", options.record))
    settings = faults.of(lambda: definitions(options.define)) or {}
    recorded = faults.of(lambda: _recorded(options.record))
    cluster = None if recorded is None else faults.of(lambda: _Recorded(read_recorded_cluster(options.record)))
    files = None if cluster is None else faults.of(lambda: _files(options, cluster.cluster))
    configuration = None if files is None else faults.of(lambda: _configuration(options, files, settings))
    workload = None if recorded is None else faults.of(lambda: read_workload(options.record, "", options.defaults))
    nodes = None
    if recorded is not None or options.nodes is not None:
        nodes = faults.of(lambda: read_node_list(options.nodes or options.record))
    faults.refuse()
    assert recorded is not None
    assert cluster is not None
    assert files is not None
    assert configuration is not None
    assert workload is not None
    assert nodes is not None
    faults.of(lambda: refuse_if_unfit(configuration.conf, workload, nodes.nodes, schedule=nodes.schedule))
    faults.refuse()
    am_start_ms = None if cluster.cluster is None else mean_am_start_ms(cluster.cluster, REGISTRATIONS_LEAST)
    every_ms = 0 if cluster.cluster is None else cluster.cluster.every_ms
    return _RecordedInputs(recorded, workload, nodes, configuration, files, am_start_ms, every_ms)


class _Recorded(Struct, frozen=True):
    """The cluster of a recording; None for a log."""

    cluster: RecordedCluster | None


def _recorded(path: Path) -> RunTimes:
    recorded = read_recorded_times(path)
    if recorded is None:
        raise UsageException(f"{path}: {NOT_RECORDED} (yarnling workload import reads other inputs, without a replay)")
    if not any(each.ended_ms is not None for each in recorded.applications):
        raise UsageException(f"{path}: no application ended while it was recorded (record for longer)")
    return recorded


def _files(options: CalibrateOptions, cluster: RecordedCluster | None) -> RecordedFiles:
    """The recorded configuration. Raises YarnException if it is needed and there is none."""
    if options.conf is None and cluster is None:
        raise UsageException("--conf is missing (a log has no configuration: name the one that the cluster ran under)")
    if options.conf_out is not None and cluster is None:
        raise UsageException(f"{options.record}: only a recording has a configuration for --conf-out")
    needed = options.conf is None or options.conf_out is not None
    return recorded_files(cluster) if cluster is not None and needed else RecordedFiles({}, ())


def _configuration(options: CalibrateOptions, files: RecordedFiles, settings: dict[str, str]) -> ClusterConfiguration:
    """The configuration that the cluster ran under. Raises YarnException with its faults."""
    if options.conf is not None:
        return what_if_configuration(options.conf, settings)
    with tempfile.TemporaryDirectory() as directory:
        write_files(files, Path(directory))
        try:
            return what_if_configuration(Path(directory), settings)
        except YarnException as error:
            text = error.message.replace(f"{directory}/", f"{options.record}: recorded ")
            raise UsageException(
                f"{text}\n(correct it with -D KEY=VALUE, or name the cluster's files: --conf)"
            ) from None


def _fitted(given: _RecordedInputs, options: CalibrateOptions) -> tuple[Replay, Replay, PollingError | None]:
    """The first replay, the best one, and the error of the polls, with a progress bar over all that there may be."""
    most = REPLAYS_MOST + (POLLING_REPLAYS if given.every_ms else 0)
    with _progress(most) as show:
        replays = _Replays(given, options, show)
        first, best = fitted(given.workload, given.recorded, Parameters(given.am_start_ms), replays.of)
        return first, best, _polling_error(given, best, options, replays) if given.every_ms else None


def _polling_error(given: _RecordedInputs, best: Replay, options: CalibrateOptions, replays: _Replays) -> PollingError:
    """Simulate the calibrated workload, record that as the cluster was recorded, and replay it."""
    result = replays.one(best.workload)
    true, cluster = recorded_again(result, best.workload, given.every_ms)
    am_start_ms = best.parameters.am_start_ms
    if am_start_ms is not None:
        am_start_ms = mean_am_start_ms(cluster, REGISTRATIONS_LEAST) or am_start_ms
    parameters = replace(best.parameters, am_start_ms=am_start_ms)
    defaults = replace(options.defaults, step_mb=MINIMUM_ALLOCATION_MB.of(given.configuration.conf))
    again = with_parameters(recorded_workload(cluster, defaults), parameters)
    return polling_error(given.every_ms, prediction_error(true, replays.of(again)))


class _Replays:
    """Simulates workloads under the recorded configuration, and shows how far each replay is."""

    def __init__(self, given: _RecordedInputs, options: CalibrateOptions, show: Callable[[int, float], None]) -> None:
        last_ms = max(each.ended_ms or 0 for each in given.recorded.applications)
        self._until_ms = min(max(2 * last_ms, last_ms + UNTIL_LEAST_MS), UNTIL_MAX_MS)
        self._seeds = range(options.seed, options.seed + options.seeds)
        self._given = given
        self._conf = dict(given.configuration.conf.values())
        self._show = show
        self._made = 0

    def of(self, workload: Workload) -> Sequence[RunTimes]:
        """The times of the workload with each seed."""
        return [run_times(result) for result in self._results(workload, self._seeds)]

    def one(self, workload: Workload) -> WhatIfResult:
        """The result of the workload with the first seed."""
        (result,) = self._results(workload, self._seeds[:1])
        return result

    def _results(self, workload: Workload, seeds: Sequence[int]) -> list[WhatIfResult]:
        self._made += 1
        nodes = self._given.nodes
        runs = [
            SideRun(
                str(seed), self._conf, workload, nodes.nodes, RunOptions(seed, self._until_ms), True, nodes.schedule
            )
            for seed in seeds
        ]
        fractions = dict.fromkeys(range(len(runs)), 0.0)

        def report(number: int, how_far: HowFar) -> None:
            fractions[number] = how_far.fraction
            self._show(self._made, sum(fractions.values()) / len(runs))

        return [result for _, result in run_all(runs, report) if result is not None]


@contextmanager
def _progress(most: int) -> Iterator[Callable[[int, float], None]]:
    """Show a progress bar, from the number of a replay and the part of it that is done; or lines of text."""
    console = notices()
    lines = ProgressLines(console)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("", total=most)

        def show(number: int, fraction: float) -> None:
            text = f"replay {number} of {most} at most"
            progress.update(task, description=text, completed=number - 1 + fraction)
            lines.show(lambda: f"{text}: {share(fraction)}")

        yield show


def _plain(calibration: Calibration, first: Replay, best: Replay) -> dict[str, object]:
    return {
        "fitted": calibration.fitted,
        "polling": calibration.polling,
        "seeds": calibration.seeds,
        "error": plain_error(best.error),
        "before_fitting": plain_error(first.error),
    }


def _print(
    workload: Workload, calibration: Calibration, first: Replay, best: Replay, options: CalibrateOptions
) -> None:
    console = terminal()
    console.print(Text(shown(f"{options.out}: {heading(workload)}"), "bold"), soft_wrap=True)
    print_indented(console, Text(shown(f"  {replay_sentence(calibration)}")))
    print_indented(console, Text(shown(f"  Before fitting: {_errors_of(first, options)}")))
    if calibration.polling is not None:
        print_indented(console, Text(shown(f"  {polling_sentence(calibration.polling)}")))
    console.print("\nTimes:")
    for each in calibration.fitted:
        words = f"  {each.name} {duration(each.value_ms)} ({BASES[each.basis]}): {each.about}"
        print_indented(console, Text(shown(words)))
    console.print("\nThe replay, compared with the recording:")
    console.print(error_table(best.error), crop=False)
    if best.error.only_recorded:
        text = counted(best.error.only_recorded, "application")
        console.print(f"{text} did not end in the replay and are in no figure")
    print_evidence(workload, console)
    if workload.assumptions:
        console.print(f"\n{counted(len(workload.assumptions), 'assumption')}: yarnling workload show {options.out}")


def _errors_of(trial: Replay, options: CalibrateOptions) -> str:
    return errors_in_words(calibration_of(options.record.name, trial, AM_START_ABOUT))
