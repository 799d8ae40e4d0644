"""Output appears completely or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from am.programs.mapreduce.committer import OutputCommitter, part_name
from am.programs.mapreduce.core.job import TaskAttemptId, TaskId, TaskKind
from tests.am.builders import APP


def attempt(number: int, task: int = 0) -> TaskAttemptId:
    return TaskAttemptId(TaskId(APP, TaskKind.REDUCE, task), number)


@pytest.fixture
def committer(tmp_path: Path) -> OutputCommitter:
    committer = OutputCommitter(tmp_path / "out")
    committer.set_up()
    return committer


def write(committer: OutputCommitter, attempt_id: TaskAttemptId, text: str) -> None:
    (committer.make_attempt_directory(attempt_id) / part_name(attempt_id.task_id)).write_text(text)


def visible(committer: OutputCommitter) -> dict[str, str]:
    return {path.name: path.read_text() for path in committer.output.iterdir() if path.is_file()}


def test_no_output_is_visible_before_the_job_is_committed(committer: OutputCommitter) -> None:
    write(committer, attempt(0), "x")
    committer.commit_task(attempt(0))
    assert visible(committer) == {}
    assert committer.is_task_committed(attempt(0).task_id)
    assert not committer.is_job_committed()


def test_the_committed_attempt_counts_and_others_are_removed(committer: OutputCommitter) -> None:
    write(committer, attempt(0), "half")
    write(committer, attempt(1), "whole")
    committer.commit_task(attempt(1))
    committer.commit_job()
    assert visible(committer) == {"part-r-00000": "whole", "_SUCCESS": ""}
    assert [path.name for path in committer.output.iterdir() if path.is_dir()] == []


def test_an_interrupted_commit_is_finished_by_the_next_one(committer: OutputCommitter) -> None:
    for task in (0, 1):
        write(committer, attempt(0, task), str(task))
        committer.commit_task(attempt(0, task))
    committed = committer.output / "_temporary" / "committed"
    (committed / "part-r-00000").replace(committer.output / "part-r-00000")
    assert committer.is_task_committed(attempt(0, 0).task_id)
    assert committer.is_task_committed(attempt(0, 1).task_id)
    committer.commit_job()
    committer.commit_job()
    assert visible(committer) == {"part-r-00000": "0", "part-r-00001": "1", "_SUCCESS": ""}


def test_an_attempt_without_output_cannot_be_committed(committer: OutputCommitter) -> None:
    with pytest.raises(FileNotFoundError):
        committer.commit_task(attempt(0))


def test_an_aborted_job_leaves_nothing_of_its_own(committer: OutputCommitter) -> None:
    write(committer, attempt(0), "x")
    committer.abort_job()
    assert not committer.output.exists()
    committer.set_up()
    (committer.output / "mine").touch()
    committer.abort_job()
    assert [path.name for path in committer.output.iterdir()] == ["mine"]
