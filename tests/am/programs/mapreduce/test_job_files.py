"""The files of a job: readers see complete records only."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from am.programs.mapreduce.core.job import TaskAttemptId, TaskId, TaskKind
from am.programs.mapreduce.core.map_reduce import TaskReport
from am.programs.mapreduce.job_files import JobEnded, JobFiles, LineReader, LineWriter, PublishedOutput
from tests.am.builders import APP
from tests.am.programs.mapreduce.model import job
from yarn.errors import InvalidArgumentException

ATTEMPT = TaskAttemptId(TaskId(APP, TaskKind.MAP, 1), 0)
OUTPUT = PublishedOutput(1, ATTEMPT, "127.0.0.1:40001")


def test_a_job_is_read_as_it_was_written(tmp_path: Path) -> None:
    files = JobFiles(tmp_path)
    files.write_job(job())
    assert files.read_job() == job()
    assert stat.S_IMODE((tmp_path / "shuffle-secret").stat().st_mode) == 0o600
    assert len(files.read_secret()) == 32
    assert files.read_secret() not in (tmp_path / "job.json").read_bytes()


def test_a_file_without_a_job_is_reported_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentException, match=r"job\.json"):
        JobFiles(tmp_path).read_job()
    (tmp_path / "job.json").write_text("{")
    with pytest.raises(InvalidArgumentException, match="not valid JSON"):
        JobFiles(tmp_path).read_job()


def test_a_missing_or_truncated_report_is_none(tmp_path: Path) -> None:
    files = JobFiles(tmp_path)
    files.write_job(job())
    assert files.read_report(ATTEMPT) is None
    files.write_report(ATTEMPT, TaskReport(output="/x"))
    assert files.read_report(ATTEMPT) == TaskReport(output="/x")
    (tmp_path / "reports" / str(ATTEMPT)).write_text('{"$": "am.')
    assert files.read_report(ATTEMPT) is None


def test_the_attempt_in_charge(tmp_path: Path) -> None:
    files = JobFiles(tmp_path)
    assert files.attempt_in_charge() == 0
    files.take_charge(2)
    assert files.attempt_in_charge() == 2


def test_a_reader_follows_a_writer_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    reader = LineReader(path)
    assert list(reader.read_new()) == []
    writer = LineWriter(path)
    writer.write(OUTPUT)
    assert list(reader.read_new()) == [OUTPUT]
    assert list(reader.read_new()) == []
    writer.write(JobEnded())
    assert list(reader.read_new()) == [JobEnded()]


def test_a_line_is_read_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    LineWriter(path).write(OUTPUT)
    line = path.read_bytes()
    path.write_bytes(line[:20])
    reader = LineReader(path)
    assert list(reader.read_new()) == []
    path.write_bytes(line)
    assert list(reader.read_new()) == [OUTPUT]


def test_a_truncated_line_is_skipped_without_harm_to_others(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    LineWriter(path).write(OUTPUT)
    path.write_bytes(path.read_bytes() + b'{"$": "am.programs')
    LineWriter(path).write(JobEnded())
    assert list(LineReader(path).read_new()) == [OUTPUT, JobEnded()]
