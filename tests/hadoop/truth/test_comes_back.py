"""A true run of Hadoop comes back through a recording: its containers, its phases, and its replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hadoop.truth.reported import ReportedApplication, record_true_run
from tests.hadoop.truth.runs import CONFIGURATIONS, RUNS
from yarn.times import HOUR_MS
from yarnling.whatif.calibrate import Parameters, fitted
from yarnling.whatif.prediction_error import Compared, run_times
from yarnling.whatif.run import RunOptions, run_what_if, what_if_configuration
from yarnling.workload.formats import read_recorded_cluster, read_recorded_times, read_workload
from yarnling.workload.model import Workload, WorkloadApplication
from yarnling.workload.recorded_times import mean_am_start_ms
from yarnling.workload.run_times import RunTimes

STEADY = next(run for run in RUNS if run.name == "steady")
EVERY_MS = 2000


class Recorded:
    """A true run, the recording of it, and the workload of that recording."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "recording"
        self.true = record_true_run(STEADY, self.directory, every_ms=EVERY_MS)
        self.pairs: list[tuple[ReportedApplication, WorkloadApplication]] = [
            (self.true[each.name], each) for each in read_workload(self.directory).applications
        ]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("steady"))


def test_all_containers_come_back(recorded: Recorded) -> None:
    assert len(recorded.pairs) == len(recorded.true)
    true = sum(len(one.containers) - 1 for one, _ in recorded.pairs)
    assert sum(each.containers for _, each in recorded.pairs) == pytest.approx(true, rel=0.02)


def test_phases_come_back(recorded: Recorded) -> None:
    """Polls at which an application waits for nothing say when its later containers were requested."""
    same = sum(
        [group.after for group in one.work.groups] == [group.after for group in each.groups]
        for one, each in recorded.pairs
    )
    assert same >= 0.95 * len(recorded.pairs)


def test_the_longest_container_of_each_application_comes_back(recorded: Recorded) -> None:
    """Polls alone would take it for several that followed one another. The end of an application depends on it."""
    errors = sorted(
        abs(max(max(group.durations_ms) for group in each.groups) / longest_ms(one) - 1) for one, each in recorded.pairs
    )
    assert errors[len(errors) // 2] < 0.03
    assert errors[round(0.9 * len(errors))] < 0.15


def longest_ms(application: ReportedApplication) -> int:
    return max(each.ended_ms - each.placed_ms for each in application.containers[1:])


@pytest.mark.slow
def test_the_replay_of_its_calibration_is_near(recorded: Recorded) -> None:
    """Two true runs of it differ by 1 % in their mean run times and by 2.3 % in half of their applications."""
    times = read_recorded_times(recorded.directory)
    assert times is not None
    conf = what_if_configuration(CONFIGURATIONS / STEADY.configuration, {}).conf

    def simulate(workload: Workload) -> list[RunTimes]:
        return [run_times(run_what_if(conf, workload, STEADY.nodes, RunOptions(1, HOUR_MS)))]

    cluster = read_recorded_cluster(recorded.directory)
    assert cluster is not None
    start = Parameters(mean_am_start_ms(cluster, 20))
    _, best = fitted(read_workload(recorded.directory), times, start, simulate)
    assert error_of(best.error.whole.mb_ms) < 0.01
    assert error_of(best.error.makespan_ms) < 0.02
    assert error_of(best.error.whole.run_mean_ms) < 0.03
    assert (best.error.application_p50 or 0) < 0.05


def error_of(compared: Compared | None) -> float:
    assert compared is not None
    assert compared.error is not None
    return abs(compared.error)
