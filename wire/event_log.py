"""The event log: every event that a core handled, and the effects that it returned, as one JSON line each.

    {"run": 2, "title": HOST, "start": {...}}       the first line: the arguments with which the core was created
    [ms, HOST, event, effects]                      a step

yarn.yarnling.event-log names a file, or a directory in which each daemon has its own file. A daemon that restarts
renames the log of its last start to name.1, the one before to name.2, and so on.

A new core that handles the same events returns the same effects, so a failed run can be examined step by step. Secrets
are omitted (wire.files.json_records). The log is a recorded run of one host (yarnling.run.writer).
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from wire.files.json_records import from_json, to_json
from yarn.configuration import Configuration
from yarn.errors import InvalidArgumentException, YarnException
from yarn.settings.yarnling import EVENT_LOG

FORMAT = 2
KEPT_MAX = 20
"""The maximum of logs of earlier starts that are kept, so that a daemon that restarts again and again does not fill
the disk."""


class LoggedStep(Struct, frozen=True):
    """A step of the core of `host`: `effects` is what `handle(event, now_ms)` returned."""

    now_ms: int
    host: str
    event: Any
    effects: tuple[Any, ...]


def step_text(now_ms: int, host: str, event: object, effects: Sequence[object]) -> str:
    """A step as text, without the end of its line."""
    step = [now_ms, host, to_json(event), [to_json(effect) for effect in effects]]
    return json.dumps(step, separators=(",", ":"))


def read_step(line: Any) -> LoggedStep:
    """The step of a line. Raises InvalidArgumentException, TypeError or ValueError for another line."""
    now_ms, host, event, effects = line
    return LoggedStep(int(now_ms), str(host), from_json(event), from_json(effects))


class EventLog:
    """Writes a new log. An existing one is renamed to `path`.1, and so on up to KEPT_MAX.

    Only its owner can read the file, because it shows who ran what.
    """

    def __init__(self, path: Path, start: Any, *, host: str = "", key: str = "") -> None:
        """`start`: a record of the core's arguments. Raises YarnException if the file cannot be written."""
        self.path = path
        self._host = host
        self._key = key
        self._file = self._opened()
        try:
            self._claim()
            if _is_written(self._file):
                self._rotate()
            first = {"run": FORMAT, "title": host, "start": to_json(start)}
            self._write(json.dumps(first, separators=(",", ":")))
        except YarnException:
            self.close()
            raise

    def append(self, now_ms: int, event: object, effects: Sequence[object]) -> None:
        """Append one step; it survives the death of this process. Raises YarnException if it cannot be written."""
        self._write(step_text(now_ms, self._host, event, effects))

    def close(self) -> None:
        """Close the file; closing twice is a no-op."""
        self._file.close()

    def _opened(self) -> io.FileIO:
        """The file, created if needed. It is not truncated, as another daemon may be writing to it."""
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._refusal(error) from None
        # Unbuffered, so that what was written survives this process and close() cannot fail to flush.
        return io.FileIO(descriptor, "wb")

    def _claim(self) -> None:
        """Lock the file. Raises YarnException if another daemon writes to it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise YarnException(
                f"{self._said()}: another daemon is writing its events to this file "
                f"(name a directory, where each daemon has a file of its own)"
            ) from None

    def _rotate(self) -> None:
        """Rename the logs of earlier starts, oldest first, and create a new file."""
        try:
            for number in reversed(range(KEPT_MAX)):
                older = earlier_log(self.path, number)
                if older.exists():
                    older.replace(earlier_log(self.path, number + 1))
        except OSError as error:
            raise self._refusal(error) from None
        moved, self._file = self._file, self._opened()
        moved.close()
        self._claim()

    def _write(self, line: str) -> None:
        data = line.encode() + b"\n"
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            raise self._refusal(error) from None

    def _refusal(self, error: OSError) -> YarnException:
        return YarnException(
            f"the event log cannot be written: {self._said()}: {error.strerror} "
            f"(free some space, or name a file that can be written)"
        )

    def _said(self) -> str:
        return f"{self._key} = {self.path}" if self._key else str(self.path)


def earlier_log(path: Path, number: int) -> Path:
    """The path of the log of an earlier start; 0 is the last start, 1 the one before it."""
    return path.with_name(f"{path.name}.{number}") if number else path


def open_event_log(conf: Configuration, daemon: str, start: object) -> EventLog | None:
    """The daemon's log as configured; None if none is configured. Raises YarnException if the file cannot be written.

    `daemon`: the file's name if a directory is configured, such as resourcemanager, nodemanager-127.0.0.2:45454.
    """
    name = EVENT_LOG.maybe_of(conf)
    if not name:
        return None
    path = Path(name)
    return EventLog(path / f"{daemon}.jsonl" if path.is_dir() else path, start, host=daemon, key=EVENT_LOG.key)


def read_event_log(path: Path) -> tuple[Any, Iterator[LoggedStep]]:
    """Read a log; returns the record of the core's arguments, and the steps in order.

    An incomplete last line is ignored: the process was killed while it wrote the line. Raises InvalidArgumentException
    for a file that is not an event log.
    """
    lines = _lines(path)
    first = next(lines, None)
    if not isinstance(first, dict) or first.get("run") != FORMAT or "start" not in first:
        raise InvalidArgumentException(f"{path} is not an event log of format {FORMAT}")
    return from_json(first["start"]), map(read_step, lines)


def _is_written(file: io.FileIO) -> bool:
    """True for a regular file that is not empty; devices and pipes are never."""
    status = os.fstat(file.fileno())
    return stat.S_ISREG(status.st_mode) and status.st_size > 0


def _lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                return
            try:
                yield json.loads(line)
            except ValueError as error:
                raise InvalidArgumentException(f"{path}:{number}: {error}") from None
