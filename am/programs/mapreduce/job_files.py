"""The files that a job's client, AM and tasks share in its staging directory.

    job.json             the job: written by the client, read by all
    shuffle-secret       (mode 0600) the secret that reduces show to the nodes' shuffle services
    attempt              the number of the AM attempt in charge: an older one that still runs exits when it reads this
    journal.jsonl        every task attempt's start and end, appended by the AM: what its successor recovers from
    outputs-<n>.jsonl    where the maps' output is, appended by the AM's n-th attempt, followed by its reduces
    reports/<attempt>    the report that a task leaves when it ends
    status.json          the state of the job, for people and the demo

A line that was cut off by a crash is skipped, as if it had never been written.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from am.client.launching import read_record, write_atomically, write_record
from am.programs.mapreduce.core.job import MapReduceJob, TaskAttemptId
from am.programs.mapreduce.core.map_reduce import TaskReport
from wire.files.full_disk import full_disk_named
from wire.files.json_records import Json, from_json, to_json
from yarn.errors import InvalidArgumentException

SECRET_BYTES = 32


class PublishedOutput(Struct, frozen=True):
    """The place of a map's output: host:port of its node's shuffle service. A later line for the map replaces it.

    An empty `address` means that the output is lost.
    """

    map_number: int
    attempt_id: TaskAttemptId
    address: str


class JobEnded(Struct, frozen=True):
    """The last line of an outputs file: a task that still reads it can exit."""


class JobFiles:
    """Reads and writes the files of one staging directory."""

    def __init__(self, staging: Path) -> None:
        self.staging = staging
        self.status = staging / "status.json"
        self.journal = staging / "journal.jsonl"
        self._job = staging / "job.json"
        self._secret = staging / "shuffle-secret"
        self._attempt = staging / "attempt"
        self._reports = staging / "reports"

    def write_job(self, job: MapReduceJob) -> None:
        """Write the job, and a new secret."""
        self._reports.mkdir(exist_ok=True)
        descriptor = os.open(self._secret, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with full_disk_named(self._secret), open(descriptor, "wb") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
        write_record(self._job, job)

    def read_job(self) -> MapReduceJob:
        """The job. Raises InvalidArgumentException if it cannot be read."""
        job = read_record(self._job)
        if not isinstance(job, MapReduceJob):
            raise InvalidArgumentException(f"{self._job} does not contain a map-reduce job")
        return job

    def read_secret(self) -> bytes:
        """The job's shuffle secret. Raises OSError if it cannot be read."""
        return self._secret.read_bytes()

    def take_charge(self, am_attempt: int) -> None:
        write_atomically(self._attempt, str(am_attempt).encode())

    def attempt_in_charge(self) -> int:
        """The number of the AM attempt that runs the job; 0 if the job has not started, or is over."""
        try:
            return int(self._attempt.read_bytes())
        except (OSError, ValueError):
            return 0

    def outputs(self, am_attempt: int) -> Path:
        return self.staging / f"outputs-{am_attempt}.jsonl"

    def write_report(self, attempt_id: TaskAttemptId, report: TaskReport) -> None:
        write_record(self._reports / str(attempt_id), report)

    def read_report(self, attempt_id: TaskAttemptId) -> TaskReport | None:
        """The report that the task wrote; None if the file is missing or cannot be read."""
        try:
            report = read_record(self._reports / str(attempt_id))
        except InvalidArgumentException:
            return None
        return report if isinstance(report, TaskReport) else None


class LineWriter:
    """Appends records to a file, one per line. Readers see each line at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with full_disk_named(path), path.open("ab") as file:
            if file.tell() > 0:
                # A predecessor may have crashed within a line: end it here, so that readers skip it.
                file.write(b"\n")

    def write(self, record: object) -> None:
        line = json.dumps(to_json(record)).encode() + b"\n"
        with full_disk_named(self._path), self._path.open("ab", buffering=0) as file:
            file.write(line)


class LineReader:
    """Reads the complete lines that were appended since the last call."""

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
