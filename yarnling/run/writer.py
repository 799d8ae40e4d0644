"""Writes a recorded run, one JSON line each: the format of simulations, of the event logs of daemons, of faults.

    {"run": 2, "title": "kill-node, seed 1"}           the first line; in an event log with "start" (wire.event_log)
    [ms, host, event, effects]                         a step of a core, as it is hashed (wire.event_log)
    {"call": {...}}, {"decision": {...}}, ...          another record (yarnling.run.records)
    {"ended": ms}                                      the end of the run

Requests and replies are without secrets (wire.files.plain_json).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import to_builtins

from wire.event_log import FORMAT
from yarnling.run.records import Call, Decision, RecordedFault, Sample, StateChange

Record: TypeAlias = Call | StateChange | Decision | Sample | RecordedFault
KEYS: dict[type[Any], str] = {
    Call: "call",
    StateChange: "change",
    Decision: "decision",
    Sample: "sample",
    RecordedFault: "fault",
}
"""{class of a record: its key in a line}."""
EVENTS = "events"
"""The directory of the event logs of a chaos run, below its own directory."""


class RunWriter:
    """Writes the lines of one run, each of which `write` gets."""

    def __init__(self, write: Callable[[str], object], title: str) -> None:
        self._write_line = write
        self._write({"run": FORMAT, "title": title})

    def step(self, text: str) -> None:
        """Write a step, as text."""
        self._write_line(f"{text}\n")

    def record(self, record: Record) -> None:
        """Write a record."""
        self._write({KEYS[type(record)]: to_builtins(record)})

    def ended(self, at_ms: int) -> None:
        """Write when the run ended."""
        self._write({"ended": at_ms})

    def _write(self, line: dict[str, Any]) -> None:
        self._write_line(json.dumps(line, separators=(",", ":")) + "\n")
