"""A recorded day comes back: the replay of its calibrated workload is like the day, and says by how much it is off."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from tests.yarnling.whatif.recorded_day import (
    ADDED,
    AM_START_MS,
    EVERY_MS,
    FIXED,
    NODES,
    SCALED,
    SCHEDULE,
    record_a_day,
)
from tests.yarnling.whatif.small_clusters import application, group
from yarnling.cli.app import app
from yarnling.cli.shared.arguments import UsageException
from yarnling.whatif.calibrate import Parameters, badness, calibration_of, fitted, with_parameters
from yarnling.whatif.prediction_error import Compared, prediction_error, run_times
from yarnling.workload.calibration import Calibration, FittedTime, PollingError, ReplayError
from yarnling.workload.evidence import Basis
from yarnling.workload.formats import read_node_list, read_recorded_cluster, read_recorded_times, read_workload
from yarnling.workload.model import NodeChange, NodeSchedule, Workload, WorkloadNode
from yarnling.workload.recorded_times import mean_am_start_ms
from yarnling.workload.run_times import ALL_QUEUES, ApplicationTimes, RunTimes, UseOverTime
from yarnling.workload.workload_file import write_workload

S = 1000


class Day:
    """The recorded day, what really happened in it, and its calibrated workload."""

    def __init__(
        self, directory: Path, nodes: Sequence[WorkloadNode] = NODES, schedule: NodeSchedule = SCHEDULE
    ) -> None:
        self.record = directory / "recording"
        self.true = record_a_day(self.record, nodes, schedule)
        self.workload = directory / "day.jsonl"
        self.nodes = directory / "nodes.json"
        outs = ["-o", str(self.workload), "--nodes-out", str(self.nodes), "--conf-out", str(directory / "conf")]
        calibrated = CliRunner().invoke(
            app, ["workload", "calibrate", str(self.record), *outs, "--seeds", "1", "--json"]
        )
        assert calibrated.exit_code == 0, calibrated.output
        self.summary = json.loads(calibrated.stdout)


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    return Day(tmp_path_factory.mktemp("day"))


@pytest.mark.slow
def test_a_recorded_day_comes_back_with_small_errors(day: Day) -> None:
    error = day.summary["error"]
    assert error["all"]["applications"] == len(day.true.applications)
    assert abs(error["all"]["mb_ms"]["error"]) < 0.01
    assert abs(error["all"]["am_wait_p95_ms"]["error"]) < 0.1
    assert abs(error["makespan_ms"]["error"]) < 0.05


@pytest.mark.slow
def test_a_day_with_an_autoscaler_comes_back_with_small_errors(tmp_path: Path) -> None:
    """The recording has the nodes that it added and removed, and no policy."""
    scaled = Day(tmp_path, (*FIXED, *ADDED), SCALED)
    error = scaled.summary["error"]
    assert error["all"]["applications"] == len(scaled.true.applications)
    assert abs(error["all"]["mb_ms"]["error"]) < 0.01
    assert abs(error["all"]["am_wait_p95_ms"]["error"]) < 0.1
    assert abs(error["makespan_ms"]["error"]) < 0.05
    listed = read_node_list(scaled.nodes)
    assert listed.schedule.scaling is None
    added = {each.host for each in listed.schedule.events if each.change is NodeChange.JOIN}
    assert {each.host for each in ADDED} >= added
    assert len(added) >= 3
    assert any(each.change is NodeChange.DRAIN for each in listed.schedule.events)


@pytest.mark.slow
def test_what_was_recorded_is_what_happened(day: Day) -> None:
    """The ResourceManager's times are exact; what polls see of the use over time is right but for their distance."""
    recorded = read_recorded_times(day.record)
    assert recorded is not None
    true = run_times(day.true)
    by_submission = sorted(recorded.applications, key=lambda each: each.submitted_ms)
    named = [
        replace(one, name=other.name)
        for one, other in zip(by_submission, sorted(true.applications, key=lambda each: each.submitted_ms), strict=True)
    ]
    error = prediction_error(replace(recorded, applications=tuple(named)), [true])
    assert error.application_p90 == pytest.approx(0, abs=0.001)
    assert error.whole.mb_ms is not None
    assert error.whole.mb_ms.error == pytest.approx(0, abs=0.001)
    cluster = read_recorded_cluster(day.record)
    assert cluster is not None
    assert mean_am_start_ms(cluster, 20) == pytest.approx(AM_START_MS, abs=600)


@pytest.mark.slow
def test_the_workload_carries_its_calibration_and_the_nodes_their_changes(day: Day) -> None:
    calibration = read_workload(day.workload).calibration
    assert calibration is not None
    assert (calibration.record, calibration.seeds) == ("recording", 1)
    assert [each.queue for each in calibration.errors] == ["", "root.adhoc", "root.etl"]
    assert calibration.polling is not None
    assert calibration.polling.every_ms == EVERY_MS
    assert abs(calibration.polling.makespan or 1) < 0.1
    assert calibration.whole.memory == pytest.approx(day.summary["error"]["all"]["mb_ms"]["error"], abs=1e-4)
    assert {each.name for each in calibration.fitted} == {"am_start_ms", "held_ms", "phase_delay_ms", "am_heartbeat_ms"}
    listed = read_node_list(day.nodes)
    assert len(listed.nodes) == len(NODES)
    assert {each.host for each in listed.schedule.events} == {"h6", "h7", "h8"}


def recorded_run(*, mb_ms: int) -> RunTimes:
    one = ApplicationTimes(name="a", queue="root.etl", submitted_ms=0, am_allocated_ms=0, ended_ms=100 * S, mb_ms=mb_ms)
    return RunTimes((one,), {ALL_QUEUES: UseOverTime.of_containers([(0, 100 * S, 1024)])}, 10_240)


def test_the_time_until_a_container_starts_is_fitted_to_the_memory() -> None:
    """A replay in which each container is held for a second more than its duration."""
    work = Workload((application(group(10, 20.0), name="a"),))
    seen: list[Workload] = []

    def simulate(workload: Workload) -> list[RunTimes]:
        seen.append(workload)
        (one,) = workload.applications
        held_ms = sum(duration + 1000 for each in one.groups for duration in each.durations_ms)
        return [recorded_run(mb_ms=1024 * held_ms)]

    first, best = fitted(work, recorded_run(mb_ms=1024 * 200 * S), Parameters(2000), simulate)
    assert (first.parameters, best.parameters) == (Parameters(2000), Parameters(2000, held_ms=1000))
    assert badness(best.error) < badness(first.error)
    assert len(seen) == 2
    assert seen[1].applications[0].groups[0].durations_ms == (19_000,) * 10
    calibration = calibration_of("day", best, "measured")
    assert calibration.whole == ReplayError("", 1, 0, None, None, 0, 0)
    assert calibration.fitted[0] == FittedTime("am_start_ms", 2000, "measured", Basis.RECORDED)


def test_a_change_that_makes_the_replay_worse_is_not_kept() -> None:
    work = Workload((application(group(10, 20.0), name="a"),))
    answers = [[recorded_run(mb_ms=mb_s * S)] for mb_s in (300_000, 900_000, 250_000, 260_000)]
    first, best = fitted(work, recorded_run(mb_ms=200_000 * S), Parameters(), lambda _: answers.pop(0))
    assert (first.error.whole.mb_ms, best.error.whole.mb_ms) == (
        Compared(200_000 * S, 300_000 * S),
        Compared(200_000 * S, 250_000 * S),
    )
    assert not answers


def test_only_later_phases_are_delayed() -> None:
    work = Workload((application(group(1), group(1, after=0, delay_ms=50)),))
    (one,) = with_parameters(work, Parameters(None, held_ms=60 * S, phase_delay_ms=700)).applications
    assert [each.delay_ms for each in one.groups] == [0, 750]
    assert [each.durations_ms for each in one.groups] == [(1,), (1,)]
    assert one.am_start_ms == work.applications[0].am_start_ms


def test_a_calibration_is_written_and_read(tmp_path: Path) -> None:
    errors = (ReplayError("", 5, 0.01, None, -0.25, 0.001, 3.5), ReplayError("root.etl", 5, 0.01))
    polling = PollingError(10_000, 0.01, -0.02, None, 0, 0.04)
    calibration = Calibration("day", 3, errors, (FittedTime("held_ms", 5, "why"),), -0.02, 0.07, polling)
    workload = Workload((application(group(1)),), calibration=calibration)
    write_workload(workload, tmp_path / "w.jsonl")
    assert read_workload(tmp_path / "w.jsonl") == workload
    assert calibration.of_queue("root.etl").run_mean == 0.01
    assert calibration.of_queue("root.new") == calibration.whole


def refusal(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["workload", "calibrate", *map(str, arguments)])
    assert isinstance(result.exception, UsageException)
    return result.exception.message


def test_bad_input_is_refused_with_all_its_faults(tmp_path: Path) -> None:
    other = tmp_path / "w.jsonl"
    write_workload(Workload((application(group(1)),)), other)
    text = refusal(other, "-o", tmp_path / "out.csv", "--nodes", tmp_path / "none.yaml")
    assert "is not what yarnling record wrote, nor the log of a ResourceManager" in text
    assert "cannot write .csv here" in text
    assert "none.yaml" in text
    log = tmp_path / "rm.log"
    log.write_text(
        "2026-11-27 10:00:00,000 INFO RMAuditLogger: USER=ann\tOPERATION=Submit Application Request\t"
        "RESULT=SUCCESS\tAPPID=application_1_0001\n"
    )
    assert "has no container" in refusal(log, "-o", tmp_path / "o.jsonl")
