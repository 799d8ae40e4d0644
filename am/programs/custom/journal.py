"""The journal of a job of an ApplicationMaster of one's own: which tasks are confirmed, and how each attempt ended.

On processes it is a file of JSON lines that all attempts append to.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from yarn.ids import ContainerId


class JournalEntry(Struct, frozen=True, omit_defaults=True):
    """A line of the journal, written by `attempt` at `at_s` (seconds since boot, or of virtual time).

    `task`: a task that it confirmed, 0 at the end of the job. `was_known`: it knew that the task was confirmed before.
    `held`: the containers that it still held at the end of the job.
    """

    attempt: int
    at_s: float
    task: int = 0
    was_known: bool = False
    held: tuple[str, ...] = ()


def confirmed_in(entries: Iterable[JournalEntry]) -> frozenset[int]:
    """The tasks that are confirmed in these lines."""
    return frozenset(entry.task for entry in entries if entry.task)


class JournalFile:
    """The journal in a file, as one attempt uses it (am.programs.custom.core.Journal)."""

    def __init__(self, path: Path, attempt: int) -> None:
        self._path = path
        self._attempt = attempt

    def confirmed(self) -> frozenset[int]:
        return confirmed_in(read_journal(self._path))

    def confirm(self, task: int, *, was_known: bool) -> None:
        self._append(JournalEntry(self._attempt, _now_s(), task, was_known))

    def finish(self, held: Sequence[ContainerId]) -> None:
        self._append(JournalEntry(self._attempt, _now_s(), held=tuple(map(str, held))))

    def _append(self, entry: JournalEntry) -> None:
        """Append a line in one write, so that two attempts that run at once do not mix their lines."""
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, msgspec.json.encode(entry) + b"\n")
        finally:
            os.close(file)


def read_journal(path: Path) -> tuple[JournalEntry, ...]:
    """Read the lines of a journal; empty if nothing was written. A last line without its end is ignored."""
    if not path.exists():
        return ()
    lines = path.read_bytes().split(b"\n")[:-1]
    return tuple(msgspec.json.decode(line, type=JournalEntry) for line in lines)


def _now_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
