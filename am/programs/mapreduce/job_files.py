"""The files that a job's client, AM and tasks share in its staging directory.

    job.json             what is to be done: written by the client, read by all
    attempt              the number of the AM attempt in charge: an older one that still lives stops when it reads this
    journal.jsonl        every task attempt's start and end, appended by the AM: what its successor recovers from
    outputs-<n>.jsonl    where the maps' output is, appended by the AM's n-th attempt, followed by its reduces
    reports/<attempt>    what a task leaves when it ends
    status.json          how the job stands, for people and the demo

A line that was cut off by a crash is passed over: its event is as if it had not been written yet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from am.client.staging import read_record, write_atomically, write_record
from am.programs.mapreduce.core.job import Job, TaskAttemptId
from am.programs.mapreduce.core.orders import TaskReport
from wire.json_records import Json, from_json, to_json
from yarn.errors import InvalidArgumentException


class MapOutput(Struct, frozen=True):
    """Where a map's output is; a later line for the same map replaces it. `directory` "" = it is lost."""

    map_number: int
    attempt_id: TaskAttemptId
    directory: str


class JobEnded(Struct, frozen=True):
    """The last line of an outputs file: whoever still follows it may go."""


class JobFiles:
    """The paths in one staging directory, and their reading and writing."""

    def __init__(self, staging: Path) -> None:
        self.staging = staging
        self.status = staging / "status.json"
        self.journal = staging / "journal.jsonl"
        self._job = staging / "job.json"
        self._attempt = staging / "attempt"
        self._reports = staging / "reports"

    def write_job(self, job: Job) -> None:
        self._reports.mkdir(exist_ok=True)
        write_record(self._job, job)

    def read_job(self) -> Job:
        """Raises InvalidArgumentException if there is none."""
        job = read_record(self._job)
        if not isinstance(job, Job):
            raise InvalidArgumentException(f"{self._job} holds no job")
        return job

    def take_charge(self, am_attempt: int) -> None:
        write_atomically(self._attempt, str(am_attempt).encode())

    def attempt_in_charge(self) -> int:
        """The AM attempt that runs the job; 0 if none does (any more)."""
        try:
            return int(self._attempt.read_bytes())
        except (OSError, ValueError):
            return 0

    def outputs(self, am_attempt: int) -> Path:
        return self.staging / f"outputs-{am_attempt}.jsonl"

    def write_report(self, attempt_id: TaskAttemptId, report: TaskReport) -> None:
        write_record(self._reports / str(attempt_id), report)

    def read_report(self, attempt_id: TaskAttemptId) -> TaskReport | None:
        """What the task left, None if it left nothing that can be read."""
        try:
            report = read_record(self._reports / str(attempt_id))
        except InvalidArgumentException:
            return None
        return report if isinstance(report, TaskReport) else None


class LineWriter:
    """Appends records to a file, a line each, seen by readers at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("ab") as file:
            if file.tell() > 0:
                # A predecessor may have died inside a line: it ends here, and no reader takes it for one.
                file.write(b"\n")

    def write(self, record: object) -> None:
        line = json.dumps(to_json(record)).encode() + b"\n"
        with self._path.open("ab", buffering=0) as file:
            file.write(line)


class LineReader:
    """Reads the whole lines that have been appended since the last reading."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read_new(self) -> Iterator[object]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        whole, newline, _ = data.rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        for line in whole.split(b"\n"):
            record = _record_of(line)
            if record is not None:
                yield record


def _record_of(line: bytes) -> object | None:
    try:
        data: Json = json.loads(line)
        record: object = from_json(data)
    except (ValueError, InvalidArgumentException):
        return None
    return record
