"""Puts output in place, so that readers never see a part of it (FileOutputCommitter).

    <output>/_temporary/attempts/<attempt>/part-r-00000    an attempt writes here
    <output>/_temporary/committed/part-r-00000             its task is committed: one rename
    <output>/part-r-00000, <output>/_SUCCESS               the job is committed

Every step can be repeated: if an AM crashes during the commit of the job, its successor continues it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from am.programs.mapreduce.core.job import TaskAttemptId, TaskId

TEMPORARY = "_temporary"
SUCCESS = "_SUCCESS"


def part_name(task_id: TaskId) -> str:
    """Hadoop's names: part-m-00000, part-r-00000."""
    return f"part-{task_id.kind.value}-{task_id.number:05d}"


class OutputCommitter:
    """The output directory of one job. Methods raise OSError."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self._temporary = output / TEMPORARY
        self._attempts = self._temporary / "attempts"
        self._committed = self._temporary / "committed"

    def set_up(self) -> None:
        self._attempts.mkdir(parents=True, exist_ok=True)
        self._committed.mkdir(exist_ok=True)

    def make_attempt_directory(self, attempt_id: TaskAttemptId) -> Path:
        """Make the directory that the attempt writes to.

        Fails once the job is committed, so that a late attempt leaves no files.
        """
        directory = self._attempts / str(attempt_id)
        directory.mkdir(exist_ok=True)
        return directory

    def commit_task(self, attempt_id: TaskAttemptId) -> None:
        name = part_name(attempt_id.task_id)
        directory = self._attempts / str(attempt_id)
        (directory / name).replace(self._committed / name)
        shutil.rmtree(directory, ignore_errors=True)

    def is_task_committed(self, task_id: TaskId) -> bool:
        name = part_name(task_id)
        return (self._committed / name).is_file() or (self.output / name).is_file()

    def is_job_committed(self) -> bool:
        return (self.output / SUCCESS).is_file()

    def commit_job(self) -> None:
        if self._committed.is_dir():
            for part in sorted(self._committed.iterdir()):
                part.replace(self.output / part.name)
        (self.output / SUCCESS).touch()
        shutil.rmtree(self._temporary, ignore_errors=True)

    def abort_job(self) -> None:
        """Remove everything that is not committed, and the directory itself if it is then empty."""
        shutil.rmtree(self._temporary, ignore_errors=True)
        if self.output.is_dir() and not any(self.output.iterdir()):
            self.output.rmdir()
