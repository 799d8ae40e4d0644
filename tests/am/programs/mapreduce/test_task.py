"""Tasks run in this process with real commands; the test acts as the AM."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from am.programs.mapreduce import task as task_module
from am.programs.mapreduce.committer import OutputCommitter
from am.programs.mapreduce.core.job import MapReduceJob, TaskAttemptId, TaskId, TaskKind, splits_of
from am.programs.mapreduce.core.map_reduce import EXIT_FETCH_FAILED, TaskReport
from am.programs.mapreduce.job_files import JobEnded, JobFiles, LineWriter, PublishedOutput
from am.programs.mapreduce.task import EXIT_FAILED, EXIT_ORPHANED, main
from nm.launcher.directories import application_dir
from tests.am.builders import APP
from tests.am.programs.mapreduce.shuffle_service import HOST, shuffle_service

COUNT = "uniq -c | sed 's/^ *//'"


class Stage:
    """A staging directory with a job over one small file in two splits, under AM attempt 1."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
        text = tmp_path / "text"
        text.write_text("b\na\nb\nc\n")
        settings: dict[str, object] = {"map_command": "cat", "reduce_command": COUNT, "reduces": 1, **changes}
        self.output = tmp_path / "out"
        splits = splits_of([(str(text), 8)], 4)
        self.job = MapReduceJob(name="letters", splits=splits, output=str(self.output), **settings)  # type: ignore[arg-type]
        staging = tmp_path / "staging"
        staging.mkdir()
        self.files = JobFiles(staging)
        self.files.write_job(self.job)
        self.files.take_charge(1)
        self.outputs = LineWriter(self.files.outputs(1))
        OutputCommitter(self.output).set_up()
        work = tmp_path / "work"
        work.mkdir()
        monkeypatch.chdir(work)
        self.disks = [tmp_path / "local-0", tmp_path / "local-1"]
        application_dirs = [application_dir(str(disk), "alice", APP) for disk in self.disks]
        monkeypatch.setenv("LOCAL_DIRS", ",".join(application_dirs))
        monkeypatch.setenv("NM_HOST", HOST)
        monkeypatch.setattr(task_module, "FETCH_POLL_S", 0.001)
        monkeypatch.setattr(task_module, "FETCH_RETRY_S", 0.001)

    def run(self, kind: TaskKind, number: int, attempt: int = 0) -> int:
        attempt_id = attempt_of(kind, number, attempt)
        return main(["--staging", str(self.files.staging), "--attempt", str(attempt_id)])

    def report(self, kind: TaskKind, number: int) -> TaskReport | None:
        return self.files.read_report(attempt_of(kind, number))

    def publish(self, number: int, address: str, attempt: int = 0) -> None:
        self.outputs.write(PublishedOutput(number, attempt_of(TaskKind.MAP, number, attempt), address))

    def run_maps(self) -> None:
        for number in range(2):
            assert self.run(TaskKind.MAP, number) == 0
            report = self.report(TaskKind.MAP, number)
            assert report is not None
            self.publish(number, report.output)


def attempt_of(kind: TaskKind, number: int, attempt: int = 0) -> TaskAttemptId:
    return TaskAttemptId(TaskId(APP, kind, number), attempt)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    stage = Stage(tmp_path, monkeypatch)
    with shuffle_service(stage.disks, APP, stage.files.read_secret()) as service:
        monkeypatch.setenv("NM_AUX_SERVICE_mapreduce_shuffle", base64.b64encode(service.metadata).decode())
        yield stage


def part_of(stage: Stage) -> str:
    report = stage.report(TaskKind.REDUCE, 0)
    assert report is not None
    return Path(report.output).read_text()


def test_maps_and_a_reduce_count_letters(stage: Stage) -> None:
    stage.run_maps()
    assert stage.run(TaskKind.REDUCE, 0) == 0
    assert part_of(stage) == "1 a\n2 b\n1 c\n"


def test_maps_are_spread_over_the_local_directories(stage: Stage, tmp_path: Path) -> None:
    stage.run_maps()
    for number in range(2):
        directory = Path(application_dir(str(stage.disks[number]), "alice", APP)) / "output"
        assert (directory / str(attempt_of(TaskKind.MAP, number)) / "file.out").is_file()


def test_a_failing_command_fails_the_task_with_its_code(stage: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    stage.files.write_job(MapReduceJob("j", stage.job.splits, str(stage.output), "exit 4", "cat"))
    assert stage.run(TaskKind.MAP, 0) == EXIT_FAILED
    assert "subprocess failed with code 4: exit 4" in capfd.readouterr().err
    assert stage.report(TaskKind.MAP, 0) is None


def test_input_that_is_gone_fails_the_task(stage: Stage, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").unlink()
    assert stage.run(TaskKind.MAP, 0) == EXIT_FAILED
    assert f"No such file or directory: '{tmp_path}/text'" in capfd.readouterr().err


def test_a_command_need_not_read_all_its_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, map_command="head -n 1", reduces=0)
    big = tmp_path / "text"
    big.write_text("line\n" * 200_000)
    job = MapReduceJob("j", splits_of([(str(big), big.stat().st_size)]), str(stage.output), "head -n 1", reduces=0)
    stage.files.write_job(job)
    assert stage.run(TaskKind.MAP, 0) == 0
    report = stage.report(TaskKind.MAP, 0)
    assert report is not None
    assert Path(report.output).read_text() == "line\n"


def test_streaming_variables_describe_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = 'echo "$mapreduce_task_attempt_id $mapreduce_task_partition $mapreduce_task_ismap"; cat >/dev/null'
    stage = Stage(tmp_path, monkeypatch, map_command=command, reduces=0)
    assert stage.run(TaskKind.MAP, 1) == 0
    report = stage.report(TaskKind.MAP, 1)
    assert report is not None
    assert Path(report.output).read_text() == f"{attempt_of(TaskKind.MAP, 1)} 1 true\n"


def test_a_reduce_that_started_early_waits_for_the_maps(stage: Stage) -> None:
    codes: list[int] = []
    reduce = threading.Thread(target=lambda: codes.append(stage.run(TaskKind.REDUCE, 0)))
    reduce.start()
    stage.run_maps()
    reduce.join(timeout=60)
    assert codes == [0]
    assert part_of(stage) == "1 a\n2 b\n1 c\n"


def test_output_that_stays_missing_is_reported(stage: Stage) -> None:
    stage.run_maps()
    report = stage.report(TaskKind.MAP, 1)
    assert report is not None
    stage.publish(1, report.output, attempt=1)
    assert stage.run(TaskKind.REDUCE, 0) == EXIT_FETCH_FAILED
    assert stage.report(TaskKind.REDUCE, 0) == TaskReport(fetch_failures=(attempt_of(TaskKind.MAP, 1, 1),))


def test_withdrawn_output_is_fetched_when_it_is_published_again(stage: Stage) -> None:
    stage.run_maps()
    lost = stage.report(TaskKind.MAP, 1)
    assert lost is not None
    stage.publish(1, "")
    reduce = threading.Thread(target=lambda: stage.run(TaskKind.REDUCE, 0))
    reduce.start()
    assert stage.run(TaskKind.MAP, 1, attempt=1) == 0
    stage.publish(1, lost.output, attempt=1)
    reduce.join(timeout=60)
    assert part_of(stage) == "1 a\n2 b\n1 c\n"


def test_a_reduce_exits_when_the_job_has_ended(stage: Stage) -> None:
    stage.outputs.write(JobEnded())
    assert stage.run(TaskKind.REDUCE, 0) == EXIT_ORPHANED


def test_a_reduce_exits_when_another_am_is_in_charge(stage: Stage) -> None:
    stage.files.take_charge(2)
    assert stage.run(TaskKind.REDUCE, 0) == EXIT_ORPHANED


def test_a_late_attempt_cannot_write_after_the_job_is_committed(stage: Stage) -> None:
    stage.run_maps()
    OutputCommitter(stage.output).commit_job()
    assert stage.run(TaskKind.REDUCE, 0) == EXIT_FAILED
    assert [path.name for path in stage.output.iterdir()] == ["_SUCCESS"]


def test_a_task_outside_a_container_fails_with_the_reason(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("LOCAL_DIRS")
    assert stage.run(TaskKind.MAP, 0) == EXIT_FAILED
    assert "LOCAL_DIRS is not set" in capfd.readouterr().err


def test_a_map_on_a_node_without_the_service_fails_before_its_command_with_the_remedy(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NM_AUX_SERVICE_mapreduce_shuffle")
    assert stage.run(TaskKind.MAP, 0) == EXIT_FAILED
    error = capfd.readouterr().err
    assert "this node has no mapreduce_shuffle: add it to yarn.nodemanager.aux-services" in error
