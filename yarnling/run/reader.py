"""Reads a recorded run: a trace of a simulation, event logs of daemons, the output of `yarnling watch --json`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from wire.event_log import FORMAT
from yarn.errors import InvalidArgumentException, YarnException
from yarnling.run.builder import RunBuilder
from yarnling.run.event_logs import EventLogs
from yarnling.run.records import Call, Decision, RecordedFault, RecordedRun, Sample, StateChange
from yarnling.run.writer import EVENTS

FILE_BYTES_MAX = 1 << 30
LINES_MAX = 2_000_000
LINE_BYTES_MAX = 32 * 1024 * 1024
"""Larger files, files of more lines, and longer lines are refused."""
FILES_MAX = 2000
_KINDS = "an event log, a trace of yarnling simulate --trace, or the output of yarnling watch --json"
_STATE_CHANGED = "yarn.machine.dispatcher.StateChanged"


def read_run(path: Path) -> RecordedRun:
    """Read the run at `path`. Raises YarnException, naming the file and the fault, if it cannot be read."""
    try:
        files = _files(path) if path.is_dir() else [path]
        return _read_files(files, path)
    except OSError as error:
        raise YarnException(f"{path}: cannot be read: {error.strerror}") from None


def _files(path: Path) -> list[Path]:
    events = path / EVENTS if (path / EVENTS).is_dir() else path
    files = sorted((file for file in events.iterdir() if ".jsonl" in file.name and file.is_file()), key=_oldest_first)
    if not files:
        raise YarnException(f"{path}: has no event logs (*.jsonl); name a directory of {_KINDS}")
    if len(files) > FILES_MAX:
        raise YarnException(f"{path}: has {len(files)} event logs, at most {FILES_MAX} are read")
    return files


def _oldest_first(path: Path) -> tuple[str, int]:
    """The sort key of logs: that of the last start is NAME.jsonl, the one before it NAME.jsonl.1, and so on."""
    name, _, number = path.name.partition(".jsonl")
    return name, -int(number[1:]) if number[1:].isdigit() else 0


def run_of(lines: Iterable[Any]) -> RecordedRun:
    """Build a run from its lines, its header included. Raises InvalidArgumentException for any other lines."""
    builder = RunBuilder("")
    logs = EventLogs(builder)
    _read(builder, logs, lines)
    logs.match()
    return builder.run()


def _read_files(files: Iterable[Path], path: Path) -> RecordedRun:
    builder = RunBuilder("" if path in files else path.name)
    logs = EventLogs(builder)
    for file in files:
        try:
            _read(builder, logs, read_lines(file))
        except InvalidArgumentException as error:
            raise YarnException(f"{file}: {error}") from None
    logs.match()
    builder.title = builder.title or path.name or str(path)
    return builder.run()


def _read(builder: RunBuilder, logs: EventLogs, lines: Iterable[Any]) -> None:
    """Read the lines of a file. Raises InvalidArgumentException if it is not a recorded run."""
    rest = iter(lines)
    first = next(rest, None)
    if not isinstance(first, dict) or "run" not in first:
        raise InvalidArgumentException(f"is not {_KINDS}")
    if first["run"] != FORMAT:
        raise InvalidArgumentException(f"has format {first['run']}, and this version reads {FORMAT}")
    if "start" in first:
        logs.read(first["start"], rest)
        return
    builder.title = builder.title or str(first.get("title", ""))
    for number, line in enumerate(rest, 2):
        try:
            _take(builder, line)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArgumentException(f"line {number} is not a line of a recorded run: {error}") from None


def _take(builder: RunBuilder, line: Any) -> None:
    if isinstance(line, list):
        at_ms, host, _, effects = line
        for effect in effects:
            if effect["$"] == _STATE_CHANGED:
                builder.change(at_ms, builder.lifeline_of(host), effect)
        return
    ((key, value),) = line.items()
    match key:
        case "call":
            call = msgspec.convert(value, Call)
            call.source, call.target = builder.lifeline_of(call.source), builder.lifeline_of(call.target)
            builder.call(call)
        case "change":
            change = msgspec.convert(value, StateChange)
            builder.changes.append(replace(change, host=builder.lifeline_of(change.host)))
        case "decision":
            builder.decisions.append(msgspec.convert(value, Decision))
        case "sample":
            builder.samples.append(msgspec.convert(value, Sample))
        case "fault":
            builder.faults.append(msgspec.convert(value, RecordedFault))
        case "ended":
            builder.ended_ms = int(value)
        case "dropped":
            builder.dropped += int(value)
        case other:
            raise ValueError(f"{other!r} is not a record")


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
