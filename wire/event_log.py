"""The event log: every event that a core handled, and the effects it answered with, one JSON line each.

yarn.yarnling.event-log names a file, or a directory in which each daemon has a file of its own.

Replayed into a fresh core, which is pure, the events give the same effects: a run that went wrong can be looked at
step by step. The first line holds what the core was made of. Secrets are left out (wire.json_records).
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wire.json_records import Json, from_json, to_json
from yarn.configuration import Configuration
from yarn.errors import InvalidArgumentException, YarnException
from yarn.settings.yarnling import EVENT_LOG

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a core: `effects` is what `handle(event, now_ms)` returned."""

    now_ms: int
    event: Any
    effects: tuple[Any, ...]


class EventLog:
    """Appends to a new log. The file can be read by its owner only: it tells who ran what."""

    def __init__(self, path: Path, start: Any, *, key: str = "") -> None:
        """`start`: a record of what the core was made of. Raises YarnException if the file cannot be written."""
        self.path = path
        self._key = key
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._refusal(error) from None
        # Not buffered: what was written survives this process, and closing has nothing left that could fail.
        self._file = open(descriptor, "wb", buffering=0)  # noqa: SIM115  closed by close()
        try:
            self._claim()
            self._write({"format": FORMAT, "start": to_json(start)})
        except YarnException:
            self.close()
            raise

    def append(self, now_ms: int, event: object, effects: Sequence[object]) -> None:
        """Write one step, so that it survives the end of this process. Raises YarnException if it cannot be."""
        self._write({"ms": now_ms, "event": to_json(event), "effects": [to_json(effect) for effect in effects]})

    def close(self) -> None:
        """Close the file; twice is once."""
        self._file.close()

    def _claim(self) -> None:
        """Empty the file, unless another daemon writes to it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise YarnException(
                f"{self._said()}: another daemon writes its events there "
                f"(name a directory: each daemon then has a file of its own)"
            ) from None
        if stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            self._file.truncate(0)

    def _write(self, line: dict[str, Json]) -> None:
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            raise self._refusal(error) from None

    def _refusal(self, error: OSError) -> YarnException:
        return YarnException(
            f"the event log cannot be written: {self._said()}: {error.strerror} "
            f"(make room, or give a file that can be written)"
        )

    def _said(self) -> str:
        return f"{self._key} = {self.path}" if self._key else str(self.path)


def open_event_log(conf: Configuration, daemon: str, start: object) -> EventLog | None:
    """The log of a daemon as `conf` wants it; None if it wants none. Raises YarnException if it cannot be written.

    `daemon` names the file in a directory: resourcemanager, nodemanager-127.0.0.2:45454.
    """
    name = EVENT_LOG.maybe_of(conf)
    if not name:
        return None
    path = Path(name)
    return EventLog(path / f"{daemon}.jsonl" if path.is_dir() else path, start, key=EVENT_LOG.key)


def read_event_log(path: Path) -> tuple[Any, Iterator[Step]]:
    """What the core was made of, and its steps in order. Raises InvalidArgumentException for a file that is no log.

    A last line cut short (the process was killed while it wrote) ends the log without complaint.
    """
    lines = _lines(path)
    first = next(lines, None)
    if first is None or first.get("format") != FORMAT:
        raise InvalidArgumentException(f"{path} is no event log of format {FORMAT}")
    return from_json(first["start"]), (_step(line) for line in lines)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                return
            try:
                parsed = json.loads(line)
            except ValueError as error:
                raise InvalidArgumentException(f"{path}:{number}: {error}") from None
            if not isinstance(parsed, dict):
                raise InvalidArgumentException(f"{path}:{number} is no JSON object")
            yield parsed


def _step(line: dict[str, Any]) -> Step:
    return Step(line["ms"], from_json(line["event"]), from_json(line["effects"]))
