"""The description of a map-reduce job, written by the client and read by the AM and the tasks (files.py).

Input is divided into splits of whole lines. A split has parts of one or several files, so that ten thousand small files
do not become ten thousand containers (Hadoop: CombineTextInputFormat).
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
"""The default size of a split. It is smaller than Hadoop's 128 MB block, because tasks on one machine should last
seconds."""

DEFAULT_TASK_RESOURCE = Resource(256, 1)
"""The default size of a task. It is smaller than Hadoop's 1024 MB, because tasks are scripts, not JVMs."""

REDUCES_MAX = 9_999
SPLITS_MAX = 100_000
"""The limits on reduces and splits, which keep the digits of a task's number and the memory of one AM within bounds."""


class TaskKind(Enum):
    """The kind of a task; the value is the letter in its id."""

    MAP = "m"
    REDUCE = "r"


class TaskId(NamedTuple):
    """The id of a task: `task_<cluster timestamp>_<application>_<m|r>_<number>`; numbers count from 0."""

    application_id: ApplicationId
    kind: TaskKind
    number: int

    def __str__(self) -> str:
        return f"task_{self.tail}"

    @property
    def tail(self) -> str:
        app = self.application_id
        return f"{app.cluster_timestamp}_{app.id:04d}_{self.kind.value}_{self.number:06d}"


class TaskAttemptId(NamedTuple):
    """The id of an attempt at a task.

    `attempt_..._<m|r>_<task>_<number>`. The n-th AM attempt counts from (n - 1) * 1000, as in Hadoop.
    """

    task_id: TaskId
    number: int

    def __str__(self) -> str:
        return f"attempt_{self.task_id.tail}_{self.number}"


_ATTEMPT = re.compile(r"attempt_(\d{1,19})_(\d{1,10})_([mr])_(\d{1,10})_(\d{1,10})")


def parse_attempt_id(text: str) -> TaskAttemptId:
    """Parse the id of a task attempt. Raises InvalidArgumentException if `text` is not such an id."""
    match = _ATTEMPT.fullmatch(text)
    if match is None:
        raise InvalidArgumentException(
            f"{text!r} is not the id of a task attempt (for instance attempt_1700000000000_0001_m_000000_0)"
        )
    task_id = TaskId(ApplicationId(int(match[1]), int(match[2])), TaskKind(match[3]), int(match[4]))
    return TaskAttemptId(task_id, int(match[5]))


class SplitPart(Struct, frozen=True):
    """Part of a file: the lines whose first byte lies in [start, start + length)."""

    path: str
    start: int
    length: int


class MapReduceJob(Struct, frozen=True):
    """A map-reduce job. The commands are shell commands that read lines and write `key<TAB>value` lines.

    Each of `splits` is the input of one map. With `reduces` 0, the maps write the output of the job. `output` is an
    absolute path that does not exist yet.
    """

    name: str
    splits: tuple[tuple[SplitPart, ...], ...]
    output: str
    map_command: str
    reduce_command: str = ""
    reduces: int = 1
    map_resource: Resource = DEFAULT_TASK_RESOURCE
    reduce_resource: Resource = DEFAULT_TASK_RESOURCE
    files: dict[str, LocalResource] = field(default_factory=dict[str, LocalResource])

    def __post_init__(self) -> None:
        if not 0 <= self.reduces <= REDUCES_MAX:
            raise InvalidArgumentException(f"reduces {self.reduces} is not within 0..{REDUCES_MAX}")
        if len(self.splits) > SPLITS_MAX:
            raise InvalidArgumentException(
                f"{len(self.splits)} splits are more than {SPLITS_MAX}: use a larger split size"
            )
        if self.reduces and not self.reduce_command:
            raise InvalidArgumentException(f"{self.reduces} reduces need a reduce command (or use 0 reduces)")
        if not self.map_command:
            raise InvalidArgumentException("a job needs a map command")


def splits_of(
    sizes: Iterable[tuple[str, int]], split_bytes: int = DEFAULT_SPLIT_BYTES
) -> tuple[tuple[SplitPart, ...], ...]:
    """Divide files, given as (path, size in bytes), into non-empty splits of at most `split_bytes`, in order.

    Every byte of every file belongs to exactly one part.
    """
    splits: list[tuple[SplitPart, ...]] = []
    parts: list[SplitPart] = []
    left = split_bytes
    for path, size in sizes:
        start = 0
        while start < size:
            length = min(size - start, left)
            parts.append(SplitPart(path, start, length))
            start += length
            left -= length
            if left == 0:
                splits.append(tuple(parts))
                parts, left = [], split_bytes
    return (*splits, tuple(parts)) if parts else tuple(splits)
