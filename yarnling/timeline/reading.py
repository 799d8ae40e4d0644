"""Reads a run, whatever it was written by: finds out what a path is, and has the right reader read it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from yarn.errors import InvalidArgumentException, YarnException
from yarnling.timeline.call_reader import read_calls
from yarnling.timeline.event_log_reader import read_event_logs
from yarnling.timeline.model import Timeline
from yarnling.timeline.trace_reader import read_trace

FILE_BYTES_MAX = 1 << 30
LINES_MAX = 2_000_000
LINE_BYTES_MAX = 32 * 1024 * 1024
"""Larger files, files of more lines, and longer lines are refused."""
FILES_MAX = 2000
EVENTS = "events"
"""Where a chaos run has its event logs, below its directory."""
_KINDS = "an event log, a trace of yarnling simulate --trace, or the output of yarnling watch --json"


def read_run(path: Path) -> Timeline:
    """The run at `path`. Raises YarnException if there is none, naming the file and what is wrong."""
    try:
        return _read_directory(path) if path.is_dir() else _read_file(path)
    except OSError as error:
        raise YarnException(f"{path}: cannot be read: {error.strerror}") from None


def _read_directory(path: Path) -> Timeline:
    events = path / EVENTS if (path / EVENTS).is_dir() else path
    files = sorted(file for file in events.iterdir() if ".jsonl" in file.name and file.is_file())
    if not files:
        raise YarnException(f"{path}: has no event logs (*.jsonl); name a directory of {_KINDS}")
    if len(files) > FILES_MAX:
        raise YarnException(f"{path}: has {len(files)} event logs, at most {FILES_MAX} are read")
    return read_event_logs({file: read_lines(file) for file in files}, path)


def _read_file(path: Path) -> Timeline:
    first = next(read_lines(path), None)
    try:
        if isinstance(first, dict) and "trace" in first:
            return read_trace(read_lines(path))
        if isinstance(first, dict) and "format" in first:
            return read_event_logs({path: read_lines(path)}, path)
        if isinstance(first, dict) and ("rpc" in first or "target" in first or "dropped" in first):
            return read_calls(read_lines(path), path.name)
    except InvalidArgumentException as error:
        raise YarnException(f"{path}: {error}") from None
    raise YarnException(f"{path}: is not {_KINDS}")


def read_lines(path: Path) -> Iterator[Any]:
    """The JSON of each line. An incomplete last line is left out: its writer was killed, or still writes.

    Raises YarnException for a line that is not JSON, and for a file that is too large.
    """
    size = path.stat().st_size
    if size > FILE_BYTES_MAX:
        raise YarnException(f"{path}: has {size} bytes, at most {FILE_BYTES_MAX} are read")
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LINE_BYTES_MAX + 1):
            number += 1
            if len(line) > LINE_BYTES_MAX or number > LINES_MAX:
                raise YarnException(
                    f"{path}:{number}: at most {LINES_MAX} lines of at most {LINE_BYTES_MAX} bytes are read"
                )
            try:
                yield msgspec.json.decode(line)
            except msgspec.DecodeError as error:
                if not line.endswith(b"\n"):
                    return
                raise YarnException(f"{path}:{number}: is not JSON: {error}") from None
