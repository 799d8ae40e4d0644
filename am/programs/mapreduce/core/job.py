"""What a map-reduce is to do, as the client writes it down and the AM reads it. Pure; job_file does the reading.

Input is cut into splits of whole lines. A split holds pieces of one or several files, so that ten thousand small
files do not become ten thousand containers (Hadoop: CombineTextInputFormat).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from msgspec import Struct, field

from yarn.containers import LocalResource
from yarn.errors import InvalidArgumentException
from yarn.ids import ApplicationId
from yarn.resource import Resource

DEFAULT_SPLIT_BYTES = 4 << 20
"""Small against Hadoop's 128 MB block: on one machine a task should last seconds, not minutes."""

REDUCES_MAX = 9_999
SPLITS_MAX = 100_000
"""As many as five and six digits of a task's number and the memory of one AM bear well."""


class TaskKind(Enum):
    """The value is the letter in a task's id."""

    MAP = "m"
    REDUCE = "r"


class TaskId(NamedTuple):
    """`task_<cluster timestamp>_<application>_<m|r>_<number>`; numbers count from 0."""

    application_id: ApplicationId
    kind: TaskKind
    number: int

    def __str__(self) -> str:
        return f"task_{self._tail}"

    @property
    def _tail(self) -> str:
        app = self.application_id
        return f"{app.cluster_timestamp}_{app.id:04d}_{self.kind.value}_{self.number:06d}"


class TaskAttemptId(NamedTuple):
    """`attempt_..._<m|r>_<task>_<number>`; the n-th AM attempt numbers from (n - 1) * 1000, as Hadoop does."""

    task_id: TaskId
    number: int

    def __str__(self) -> str:
        return f"attempt_{self.task_id._tail}_{self.number}"


_ATTEMPT = re.compile(r"attempt_(\d{1,19})_(\d{1,10})_([mr])_(\d{1,10})_(\d{1,10})")


def parse_attempt_id(text: str) -> TaskAttemptId:
    """Raises InvalidArgumentException if `text` is no task attempt's id."""
    match = _ATTEMPT.fullmatch(text)
    if match is None:
        raise InvalidArgumentException(f"{text!r} is no task attempt (such as attempt_1700000000000_0001_m_000000_0)")
    task_id = TaskId(ApplicationId(int(match[1]), int(match[2])), TaskKind(match[3]), int(match[4]))
    return TaskAttemptId(task_id, int(match[5]))


class Piece(Struct, frozen=True):
    """Part of a file: the lines whose first byte lies in [start, start + length)."""

    path: str
    start: int
    length: int


class Split(Struct, frozen=True):
    """What one map reads."""

    pieces: tuple[Piece, ...]

    @property
    def length(self) -> int:
        return sum(piece.length for piece in self.pieces)


class Tuning(Struct, frozen=True):
    """Settings of the job, with Hadoop's defaults and the keys that they have there."""

    slow_start: float = 0.05  # mapreduce.job.reduce.slowstart.completedmaps
    attempts_max: int = 4  # mapreduce.map.maxattempts, mapreduce.reduce.maxattempts
    ramp_up_limit: float = 0.5  # yarn.app.mapreduce.am.job.reduce.rampup.limit
    preemption_limit: float = 0.5  # yarn.app.mapreduce.am.job.reduce.preemption.limit
    preempt_delay_ms: int = 0  # mapreduce.job.reducer.preempt.delay.sec
    unconditional_preempt_delay_ms: int = 300_000  # mapreduce.job.reducer.unconditional-preempt.delay.sec
    failures_per_node_max: int = 3  # mapreduce.job.maxtaskfailures.per.tracker
    blacklist_ignored_percent: int = 33  # yarn.app.mapreduce.am.job.node-blacklisting.ignore-threshold-node-percent


class Job(Struct, frozen=True):
    """A whole map-reduce: the commands are shell commands that read lines and write `key<TAB>value` lines.

    `reduces` 0: the maps' output is the output. `output` is an absolute path that does not exist yet.
    """

    name: str
    splits: tuple[Split, ...]
    output: str
    map_command: str
    reduce_command: str = ""
    reduces: int = 1
    map_resource: Resource = Resource(1024, 1)
    reduce_resource: Resource = Resource(1024, 1)
    files: dict[str, LocalResource] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    tuning: Tuning = Tuning()

    def __post_init__(self) -> None:
        if not 0 <= self.reduces <= REDUCES_MAX:
            raise InvalidArgumentException(f"reduces {self.reduces} is not within 0..{REDUCES_MAX}")
        if len(self.splits) > SPLITS_MAX:
            raise InvalidArgumentException(
                f"{len(self.splits)} splits are more than {SPLITS_MAX}: use a larger split size"
            )
        if self.reduces and not self.reduce_command:
            raise InvalidArgumentException(f"{self.reduces} reduces need a reduce command (or ask for 0 reduces)")
        if not self.map_command:
            raise InvalidArgumentException("a job needs a map command")


def splits_of(sizes: Iterable[tuple[str, int]], split_bytes: int = DEFAULT_SPLIT_BYTES) -> tuple[Split, ...]:
    """Splits of at most `split_bytes` over files given as (path, size in bytes), in their order; no empty one.

    Every byte of every file lies in exactly one piece.
    """
    if split_bytes < 1:
        raise InvalidArgumentException(f"split size {split_bytes} is not at least 1 byte")
    splits: list[Split] = []
    pieces: list[Piece] = []
    room = split_bytes
    for path, size in sizes:
        start = 0
        while start < size:
            length = min(size - start, room)
            pieces.append(Piece(path, start, length))
            start += length
            room -= length
            if room == 0:
                splits.append(Split(tuple(pieces)))
                pieces, room = [], split_bytes
    return (*splits, Split(tuple(pieces))) if pieces else tuple(splits)
