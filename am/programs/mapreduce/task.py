"""A task in its container: runs the job's command over its part of the data, as Hadoop streaming does.

    python -m am.programs.mapreduce.task --staging DIR --attempt attempt_1700000000000_0001_m_000000_0

A task communicates with its AM through the staging directory: each task writes a report when it ends, and reduces read
the list of map outputs. Exit code 0 = done; EXIT_FETCH_FAILED = the report names maps whose output is gone; else the
task failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

from am.programs.mapreduce.committer import OutputCommitter, part_name
from am.programs.mapreduce.core.job import MapReduceJob, TaskAttemptId, TaskKind, parse_attempt_id
from am.programs.mapreduce.core.map_reduce import EXIT_FETCH_FAILED, TaskReport
from am.programs.mapreduce.core.tasks import ATTEMPTS_PER_AM
from am.programs.mapreduce.job_files import JobEnded, JobFiles, LineReader, PublishedOutput
from am.programs.mapreduce.shuffle import MapOutputWriter, copy_lines, merged_lines
from wire.files.full_disk import full_disk_named
from wire.files.shuffle import SERVICE, port_in
from yarn.errors import YarnException

FETCH_POLL_S = 0.1
"""The time between two looks of a reduce for new map output."""

FETCH_FAILURES_MAX = 5
FETCH_RETRY_S = 1.0
"""A reduce gives up on the output of a map after so many failures, with this pause between two of them."""

Fetch = Callable[[str, TaskAttemptId, Path], int]
"""Fetcher.fetch."""
Feed = Callable[[IO[bytes]], None]
"""Writes the input of a command."""

EXIT_FAILED = 1
EXIT_ORPHANED = 3
"""The job continues under another AM, or has ended: this task is not needed any more."""


class TaskFailed(YarnException):
    """The task failed; the message goes to stderr, which the NM includes in the diagnostics."""


class ShuffleFetchFailed(YarnException):
    """The output of some maps cannot be fetched."""

    def __init__(self, attempt_ids: tuple[TaskAttemptId, ...]) -> None:
        super().__init__("cannot fetch the output of " + ", ".join(map(str, attempt_ids)))
        self.attempt_ids = attempt_ids


class Orphaned(YarnException):
    """The task is not needed any more, because its job continues under another AM or has ended."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="am.programs.mapreduce.task", description=__doc__)
    parser.add_argument("--staging", type=Path, required=True)
    parser.add_argument("--attempt", type=parse_attempt_id, required=True)
    options = parser.parse_args(arguments)
    task = TaskRun(JobFiles(options.staging), options.attempt, os.environ)
    try:
        task.run()
    except ShuffleFetchFailed as error:
        task.files.write_report(task.attempt_id, TaskReport(fetch_failures=error.attempt_ids))
        print(error, file=sys.stderr)  # noqa: T201  the NM reads stderr for diagnostics
        return EXIT_FETCH_FAILED
    except (YarnException, OSError) as error:
        print(f"{task.attempt_id}: {error}", file=sys.stderr)  # noqa: T201
        return EXIT_ORPHANED if isinstance(error, Orphaned) else EXIT_FAILED
    return 0


class TaskRun:
    """An attempt of a task, in its work directory."""

    def __init__(self, files: JobFiles, attempt_id: TaskAttemptId, environ: Mapping[str, str]) -> None:
        self.files = files
        self.attempt_id = attempt_id
        self.job: MapReduceJob = files.read_job()
        self._environ = environ
        self._am_attempt = attempt_id.number // ATTEMPTS_PER_AM + 1
        self._committer = OutputCommitter(Path(self.job.output))

    def run(self) -> None:
        """Do the work and write the report. Raises TaskFailed, ShuffleFetchFailed, Orphaned or OSError."""
        task_id = self.attempt_id.task_id
        if task_id.kind is TaskKind.REDUCE:
            output = str(self._reduce())
        elif self.job.reduces:
            output = self._map_for_reduces(self._shuffle_address())
        else:
            output = str(self._write_part(self.job.map_command, self._feed_split))
        self.files.write_report(self.attempt_id, TaskReport(output=output))

    def _map_for_reduces(self, address: str) -> str:
        """Run a map whose output stays on the node until the application ends; reduces fetch it from `address`."""
        directory = self._local_directory() / "output" / str(self.attempt_id)
        directory.mkdir(parents=True, exist_ok=True)
        writer = MapOutputWriter(directory, self.job.reduces)
        for line in self._lines(self.job.map_command, self._feed_split):
            writer.add(line)
        writer.close()
        return address

    def _shuffle_address(self) -> str:
        """host:port of this node's shuffle service."""
        port = port_in(self._environ)
        if not port:
            raise TaskFailed(f"this node has no {SERVICE}: add it to yarn.nodemanager.aux-services")
        return f"{self._environ.get('NM_HOST', '')}:{port}"

    def _local_directory(self) -> Path:
        """Choose one of the NM's local directories, by the task's number, so that tasks are spread over the disks."""
        names = [name for name in self._environ.get("LOCAL_DIRS", "").split(",") if name]
        if not names:
            raise TaskFailed("LOCAL_DIRS is not set: a task is started by a NodeManager, which sets it")
        return Path(names[self.attempt_id.task_id.number % len(names)])

    def _feed_split(self, stdin: IO[bytes]) -> None:
        for part in self.job.splits[self.attempt_id.task_id.number]:
            copy_lines(Path(part.path), part.start, part.length, stdin)

    def _reduce(self) -> Path:
        work = Path.cwd() / "shuffle"
        work.mkdir(exist_ok=True)
        runs = self._fetch_all(work)
        return self._write_part(self.job.reduce_command, lambda stdin: stdin.writelines(merged_lines(runs, work)))

    def _fetch_all(self, work: Path) -> list[Path]:
        """Fetch this reduce's partition of every map's output, as the maps finish."""
        # Imported here: only reduces need HTTP, whose import takes longer than a short map.
        from am.programs.mapreduce.fetcher import Fetcher

        fetched: dict[int, Path] = {}
        offered: dict[int, PublishedOutput] = {}
        failures: dict[TaskAttemptId, FetchFailure] = {}
        reader = LineReader(self.files.outputs(self._am_attempt))
        fetch = Fetcher(self.files.read_secret(), self.attempt_id.task_id.number).fetch
        while True:
            for record in reader.read_new():
                if isinstance(record, JobEnded):
                    raise Orphaned("the job has ended")
                if isinstance(record, PublishedOutput):
                    offered[record.map_number] = record
            for number, output in offered.items():
                target = work / f"map-{number}"
                if number not in fetched and output.address and _fetch(fetch, output, target, failures):
                    fetched[number] = target
            if len(fetched) == len(self.job.splits):
                return [fetched[number] for number in sorted(fetched)]
            gone = [attempt_id for attempt_id, failure in failures.items() if failure.times >= FETCH_FAILURES_MAX]
            if gone:
                raise ShuffleFetchFailed(tuple(gone))
            if self.files.attempt_in_charge() != self._am_attempt:
                raise Orphaned(f"attempt {self._am_attempt} of the ApplicationMaster is not in charge any more")
            time.sleep(FETCH_POLL_S)

    def _write_part(self, command: str, feed: Feed) -> Path:
        """Run `command` and write its output as the attempt's part of the job's output."""
        part = self._committer.make_attempt_directory(self.attempt_id) / part_name(self.attempt_id.task_id)
        with full_disk_named(part), part.open("wb") as out:
            out.writelines(line + b"\n" for line in self._lines(command, feed))
        return part

    def _lines(self, command: str, feed: Feed) -> Iterator[bytes]:
        """Yield the lines that a shell command makes of the input that `feed` writes. Raises TaskFailed if it fails."""
        environment = {**self._environ, **self._streaming_variables()}
        with tempfile.TemporaryFile(dir=".") as stdin, tempfile.TemporaryFile(dir=".") as stdout:
            with full_disk_named(Path.cwd()):
                feed(stdin)
            stdin.seek(0)
            done = subprocess.run(
                ["/bin/bash", "-c", command], stdin=stdin, stdout=stdout, env=environment, check=False
            )
            if done.returncode != 0:
                raise TaskFailed(f"subprocess failed with code {done.returncode}: {command}")
            stdout.seek(0)
            for line in stdout:
                yield line.rstrip(b"\n")

    def _streaming_variables(self) -> dict[str, str]:
        """The variables with which Hadoop streaming describes the task (keys with underscores for dots)."""
        task_id = self.attempt_id.task_id
        return {
            "mapreduce_task_attempt_id": str(self.attempt_id),
            "mapreduce_task_partition": str(task_id.number),
            "mapreduce_task_ismap": "true" if task_id.kind is TaskKind.MAP else "false",
        }


class FetchFailure(NamedTuple):
    """The number of times that the output of a map could not be fetched, and the monotonic time of the last one."""

    times: int
    last_s: float


def _fetch(fetch: Fetch, output: PublishedOutput, target: Path, failures: dict[TaskAttemptId, FetchFailure]) -> bool:
    """Fetch the output of one map; False if that failed, or failed a moment ago."""
    attempt_id, now_s = output.attempt_id, time.monotonic()
    earlier = failures.get(attempt_id)
    if earlier is not None and now_s - earlier.last_s < FETCH_RETRY_S:
        return False
    try:
        fetch(output.address, attempt_id, target)
    except OSError as error:
        print(f"fetch of {attempt_id} failed: {error}", file=sys.stderr)  # noqa: T201
        failures[attempt_id] = FetchFailure(1 + (earlier.times if earlier else 0), now_s)
        return False
    failures.pop(attempt_id, None)
    return True


if __name__ == "__main__":
    sys.exit(main())
